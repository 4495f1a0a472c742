// What is to be seen, in sentences.

import { number, plural, whole } from "./dom.js";
import { EXPOSED, SENDING, STATES } from "./palette.js";

function searching(run, t) {
  const { rounds } = run.search;
  const last = run.iterations - 1;
  const certain = run.audit?.report?.totals.exposed ?? 0;
  const known = certain && t === last ? `; ${plural(certain, "number")} known for certain` : "";
  const begun = t ? `probe ${whole(t)} of ${whole(last)}, round ${whole(rounds[t])} of ${whole(rounds[last])}` : "before the first probe";
  return { count: "Nobody", rest: ` exposed: ${begun}${known}` };
}

export function headline(run, { states, t }) {
  const live = run.start ?? null;
  if (run.search) return live ? { count: "Nobody", rest: ` exposed (step ${whole(t)})` } : searching(run, t);
  if (live && !live.all) {
    const at = run.exposedAt(live.self);
    const state = at >= 0 && at <= t ? `exposed since t = ${whole(at)}` : "not exposed so far";
    return { count: run.labels[live.self], rest: `: ${state} (t = ${whole(t)})` };
  }
  const count = (...wanted) => states.reduce((sum, each) => sum + wanted.includes(each), 0);
  const sending = count(SENDING);
  const now = sending ? `, ${whole(sending)} sending now` : "";
  return { count: `${whole(count(SENDING, EXPOSED))} of ${whole(run.n - run.corrupt.size)}`, rest: ` exposed by t = ${whole(t)}${now}` };
}

export function outcome(run) {
  if (run.start) return liveOutcome(run);
  const { title, shown, proof, between, iterations, stopped, file } = run.facts;
  const why = { asked: ", as was asked", full: ", the most that the page holds", certified: ": all x were close enough", exact: ": all x were close enough for a search" }[stopped] ?? "";
  const ended = run.search ? "" : ` Stopped after ${plural(iterations, "iteration")}${why}.`;
  if (proof) return `The ${title} is ${shown}, ${proof}.${ended}`;
  return `${file ? "No answer is proved in this file" : "No answer yet"}: all x lie between ${between.join(" and ")}.${ended}`;
}

function liveOutcome(run) {
  const { all, self, names } = run.start;
  const ends = [...run.ends.values()];
  const found = ends.find((end) => end.value);
  const who = all ? plural(run.n, "node") : names[self];
  const [up, neighbours] = all ? [0, 0] : run.linksOf(self);
  const links = all ? "" : `, linked to ${up} of ${plural(neighbours, "neighbour")}`;
  const few = run.waiting.length <= 3 ? run.waiting.map((i) => names[i]).join(", ") : `${run.waiting.length} of ${run.n}`;
  const waited = run.waiting.length ? `, waiting for ${few}` : "";
  if (!found) return ends.length ? ends[0].text : `${who}${links}, looking for the ${run.facts.title}${waited} …`;
  const value = number(found.value[0], 10);
  const told = `known to ${all ? `${ends.length} of ${who}` : who} after ${plural(found.rounds, "round")}`;
  return found.proved ? `The ${run.facts.title} is ${value} (${found.text}), ${told}.` : `With noise, ${value} was found; ${found.text}; ${told}.`;
}

// What goes on under the funnel of a search.
export function course(run) {
  if (run.start) return "Brackets as all know them; nobody knows whose numbers are inside.";
  const { rounds } = run.search;
  const hops = plural(rounds[0], "hop");
  return `These totals and the answer are all that anybody learns. Keys, ${plural(run.iterations - 1, "probe")} and signatures each cross the network, ${hops}: ${plural(rounds.at(-1), "round")}.`;
}

export function proof(run, t) {
  const { result, needed } = run.facts;
  if (run.bracket) {
    const [low, high] = run.bracket.ends;
    return `Search: step ${run.bracket.step}; ${plural(run.bracket.totals[0], "number")} between ${number(low, 5)} and ${number(high, 5)}.`;
  }
  const f = run.frameAt(t);
  const spread = run.spread[f];
  if (result?.proof) {
    const { below, equal, above, probes } = result.proof;
    if (t < run.iterations - 1) return `Search: begins when all x are close; they lie within ${number(spread, 3)} of each other.`;
    return `Search: ${plural(probes, "probe")}, behind masks, counted ${below} below, ${equal} equal, ${above} above ✓.`;
  }
  const tolerance = result?.tolerance;
  const close = tolerance ? ` (${spread <= tolerance ? "small enough" : `to be at most ${number(tolerance, 2)}`})` : "";
  const parts = [`all x lie within ${number(spread, 3)} of each other${close}`];
  if (needed) {
    const part = (have, need, words) => `${have} of ${need} needed ${words} ${have >= need ? "✓" : "✕"}`;
    parts.push(part(run.arrays.at_or_below[f], needed.below, "have s ≤ x"));
    parts.push(part(run.arrays.at_or_above[f], needed.above, "have s ≥ x"));
  }
  return `Certificate: ${parts.join("; ")}.`;
}

export function about(run, i, { states, t, values }) {
  const f = run.frameAt(t);
  const { mark, words, name } = STATES[states[i]];
  if (run.search) return aboutSearched(run, i, { mark, words, name, values });
  const rows = [["", `${mark} ${words}`, name]];
  const x = run.x(f, i);
  if (!Number.isNaN(x)) rows.push(["sends", number(x, 5)]);
  if (states[i] <= EXPOSED) {
    const [low, high] = [run.lower(f, i), run.upper(f, i)];
    rows.push(["known", low === high ? `is ${number(low, 5)}` : `between ${number(low, 5)} and ${number(high, 5)}`]);
  }
  const interval = run.interval(f, i);
  if (interval) rows.push(["clipped to", `${number(interval[0], 4)} … ${number(interval[1], 4)}`]);
  const bits = run.bits(i, t);
  if (bits !== null) rows.push([run.bitsOverTime ? "bits so far" : "bits in the end", bits.toFixed(2)]);
  if (values && run.values) rows.push(["own number", number(run.values[i], 5)]);
  if (values && run.held && run.held !== run.values) rows.push(["with noise", number(run.held[i], 5)]);
  const at = run.exposedAt(i);
  if (at >= 0 && at <= t) rows.push(["exposed", `since t = ${whole(at)}`]);
  return rows;
}

// What the others learn of a node by a search, in the end.
function aboutSearched(run, i, { mark, words, name, values }) {
  const rows = [["", `${mark} ${words}`, name]];
  const of = run.audit?.report?.nodes[i];
  const bits = (value) => `${value.toFixed(2)} bits`;
  if (typeof of?.bits === "number") rows.push(["others learn", bits(of.bits)]);
  if (typeof of?.floor === "number") rows.push(["by the answer alone", bits(of.floor)], ["by the totals besides", bits(of.excess)]);
  if (of?.exposed) rows.push(["", "known for certain"]);
  if (values && run.values) rows.push(["own number", number(run.values[i], 5)]);
  if (values && run.held && run.held !== run.values) rows.push(["with noise", number(run.held[i], 5)]);
  return rows;
}
