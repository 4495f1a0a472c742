// A run as the views ask for it: saved, or growing while it is followed.
//
//   n, labels, edges, places      who talks to whom, and where to draw them (null: to be found)
//   frames, time(f), frameAt(t)   the iterations that are known
//   x(f, i), lower(f, i), upper(f, i)
//   interval(f, i)                to which i's number is clipped; null where it is not known
//   states(t, out)                of every node, as palette.js numbers them
//   plateaus(i)                   [start, stop] pairs in which node i sends its own number
//   search                        of a search: its rows, as funnel.py makes them, and the answer; null of an iteration

import { number } from "./dom.js";
import { AWAITED, CORRUPT, EXPOSED, HERE, HIDDEN, SENDING, UNKNOWN } from "./palette.js";

function last(count, atMost) {
  // the last index below count for which atMost holds; 0 if for none
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (atMost(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

// What is common to both: who sends its own number, and who has.
class Run {
  plateaus(i) {
    return this.spans[i];
  }

  exposedAt(i) {
    return this.first[i];
  }

  states(t, out = new Uint8Array(this.n)) {
    for (let i = 0; i < this.n; i += 1) out[i] = this.state(i, t);
    return out;
  }

  sent(i, t) {
    const spans = this.spans[i];
    if (spans.length && spans[0][0] <= t && !this.facts.mean) {
      const [start, stop] = spans[last(spans.length, (k) => spans[k][0] <= t)];
      if (start <= t && t < stop) return SENDING;
    }
    return this.first[i] >= 0 && this.first[i] <= t ? EXPOSED : HIDDEN;
  }
}

export class SavedRun extends Run {
  constructor({ facts, arrays }) {
    super();
    this.facts = facts;
    this.arrays = arrays;
    this.n = facts.graph.n;
    this.labels = facts.graph.labels ?? Array.from({ length: this.n }, (_, i) => String(i));
    this.edges = arrays.edges;
    this.places = arrays.positions ?? null;
    this.frames = arrays.t.length;
    this.iterations = facts.iterations;
    this.values = arrays.values ?? null;
    this.held = arrays.held ?? this.values;
    this.error = arrays.error ?? new Float64Array(this.frames).fill(NaN);
    this.spread = arrays.spread;
    this.audit = null;
    this.first = arrays.first;
    this.spans = Array.from({ length: this.n }, () => []);
    for (let k = 0; k < arrays.spans.length; k += 3) {
      this.spans[arrays.spans[k]].push([arrays.spans[k + 1], arrays.spans[k + 2]]);
    }
    this.corrupt = new Set(facts.corrupt);
    this.search = facts.search ? { ...facts.search, answer: facts.shown || null } : null;
    this.dots = [];
    for (let k = 0; k < (arrays.dots?.length ?? 0); k += 3) this.dots.push([...arrays.dots.slice(k, k + 3)]);
  }

  time(f) {
    return this.arrays.t[f];
  }

  frameAt(t) {
    if (this.frames === this.iterations) return Math.min(Math.max(t, 0), this.frames - 1);
    return last(this.frames, (f) => this.arrays.t[f] <= t);
  }

  x(f, i) {
    return this.arrays.x[f * this.n + i] ?? NaN;
  }

  lower(f, i) {
    return this.arrays.lower[f * this.n + i];
  }

  upper(f, i) {
    return this.arrays.upper[f * this.n + i];
  }

  // To which the number of node i is clipped; null where that is not known.
  interval(f, i) {
    if (!this.arrays.interval) return null;
    const low = this.arrays.interval[f * this.n + i];
    return [low, low + this.arrays.width[i]];
  }

  state(i, t) {
    return this.corrupt.has(i) ? CORRUPT : this.sent(i, t);
  }

  setAudit({ facts, arrays }) {
    this.audit = { refused: facts.refused ?? null, report: facts.audit ?? null, audience: facts.audience, ...arrays };
  }

  // Bits of node i up to t; where only the whole run was audited, its figure.
  bits(i, t) {
    if (!this.audit?.report || this.corrupt.has(i)) return null;
    const { moments, bits, report } = this.audit;
    const exposed = this.first[i] >= 0 && this.first[i] <= t;
    if (!moments || exposed) return report.nodes[i].bits;
    return bits[last(moments.length, (k) => moments[k] <= t) * this.n + i];
  }

  // How many of these bits the answer alone tells; null where that is not known.
  floor(i) {
    return this.audit?.report?.nodes[i].floor ?? null;
  }

  get bitsOverTime() {
    return Boolean(this.audit?.moments);
  }
}

const ROOM = 256;

// What a feed has said so far; columns grow as rounds come in, which nodes do one by one.
export class LiveRun extends Run {
  constructor(start) {
    super();
    this.start = start;
    this.n = start.names.length;
    this.labels = start.names;
    this.edges = Int32Array.from(start.edges.flat());
    this.places = null;
    this.frames = 0;
    this.times = [];
    this.index = new Map();
    this.values = null;
    this.held = null;
    this.corrupt = new Set();
    this.search = start.method === "search" ? { rows: [], answer: null } : null;
    this.bracket = null;
    this.waiting = [];
    this.dots = [];
    this.first = new Int32Array(this.n).fill(-1);
    this.spans = Array.from({ length: this.n }, () => []);
    this.links = new Map();
    this.ends = new Map();
    this.room = ROOM;
    this.columns = { x: NaN, lower: -Infinity, upper: Infinity };
    for (const [name, empty] of Object.entries(this.columns)) this[`_${name}`] = new Float64Array(ROOM * this.n).fill(empty);
    this.error = [];
    this.spread = [];
    this.facts = {
      title: start.objective, graph: { name: "", n: this.n, edges: this.edges.length / 2 }, corrupt: [],
      notes: [], mean: start.objective === "mean", answer: null, result: null, adversary: "whoever hears z(0)",
    };
  }

  get iterations() {
    if (this.search) return Math.max(1, (this.search.rows.at(-1)?.step ?? 0) + 1 + (this.search.answer !== null));
    return this.frames ? this.times[this.frames - 1] + 1 : 1;
  }

  take(news) {
    for (const [node, t, x, branch] of news.rounds ?? []) this.round(node, t, x[0], branch[0]);
    for (const [node, t] of news.first ?? []) this.first[node] = t;
    for (const [i, j, up] of news.links ?? []) this.links.set(`${i} ${j}`, up);
    for (const end of news.ends ?? []) this.ends.set(end.node, end);
    if (news.search) {
      this.waiting = news.search.waiting;
      this.bracket = news.search.rows.at(-1);
      if (this.search) this.search.rows = news.search.rows;
    }
    const found = [...this.ends.values()].find((end) => end.value);
    if (found?.proved && this.search) this.search.answer = number(found.value[0], 10);
    this.facts.iterations = this.iterations;
  }

  round(i, t, x, branch) {
    const f = this.frameFor(t);
    if (f === null || x === null || x === undefined) return;
    const { n } = this;
    const at = f * n + i;
    this._x[at] = x;
    const before = at - n;
    let lower = f ? this._lower[before] : -Infinity;
    let upper = f ? this._upper[before] : Infinity;
    if (branch < 0) lower = Math.max(lower, x);
    else if (branch > 0) upper = Math.min(upper, x);
    else {
      lower = upper = x;
      const spans = this.spans[i];
      const open = spans.at(-1);
      if (open && open[1] >= t) open[1] = t + 1;
      else spans.push([t, t + 1]);
    }
    if (this.first[i] >= 0 && this.first[i] < t && f && this._lower[before] === this._upper[before]) {
      lower = upper = this._lower[before];
    }
    this._lower[at] = lower;
    this._upper[at] = upper;
    this.measure(f);
  }

  frameFor(t) {
    if (this.index.has(t)) return this.index.get(t);
    if (this.frames && t < this.times[this.frames - 1]) return null;
    if (this.frames === this.room) this.grow();
    const f = this.frames;
    this.frames += 1;
    this.times.push(t);
    this.index.set(t, f);
    return f;
  }

  grow() {
    this.room *= 2;
    for (const [name, empty] of Object.entries(this.columns)) {
      const larger = new Float64Array(this.room * this.n).fill(empty);
      larger.set(this[`_${name}`]);
      this[`_${name}`] = larger;
    }
  }

  measure(f) {
    let low = Infinity;
    let high = -Infinity;
    for (let i = 0; i < this.n; i += 1) {
      const x = this._x[f * this.n + i];
      if (x < low) low = x;
      if (x > high) high = x;
    }
    this.spread[f] = Math.max(high - low, 0);
    this.error[f] = NaN;
  }

  time(f) {
    return this.times[f];
  }

  frameAt(t) {
    return this.frames ? last(this.frames, (f) => this.times[f] <= t) : 0;
  }

  x(f, i) {
    return this.frames ? this._x[f * this.n + i] : NaN;
  }

  lower(f, i) {
    return this.frames ? this._lower[f * this.n + i] : -Infinity;
  }

  upper(f, i) {
    return this.frames ? this._upper[f * this.n + i] : Infinity;
  }

  interval() {
    return null;
  }

  state(i, t) {
    if (this.search && this.bracket) return !this.ends.size && this.waiting.includes(i) ? AWAITED : HERE;
    return !this.start.all && i !== this.start.self ? UNKNOWN : this.sent(i, t);
  }

  // How many of a node's links are up, of how many.
  linksOf(i) {
    let [up, all] = [0, 0];
    for (let k = 0; k < this.edges.length; k += 2) {
      if (this.edges[k] !== i && this.edges[k + 1] !== i) continue;
      all += 1;
      up += this.linked(this.edges[k], this.edges[k + 1]) === true;
    }
    return [up, all];
  }

  linked(i, j) {
    const [there, back] = [this.links.get(`${i} ${j}`), this.links.get(`${j} ${i}`)];
    return there === undefined && back === undefined ? null : there !== false && back !== false;
  }

  bits() {
    return null;
  }

  floor() {
    return null;
  }

  get bitsOverTime() {
    return false;
  }
}
