// One run: its settings, its views, and what can be said about it.

import { Refused, source } from "./api.js";
import { TimeChart, overCurves, paintCurves, paintError, rangeOfCurves, rangeOfError, rangeOfNumbers, veil } from "./charts.js";
import { el, whole } from "./dom.js";
import { Form } from "./form.js";
import { Funnel } from "./funnel.js";
import { Handles } from "./handles.js";
import { Known } from "./known.js";
import { SavedRun } from "./models.js";
import { Network } from "./network.js";
import { AWAITED, CORRUPT, HERE, STATES, UNKNOWN } from "./palette.js";
import { savePng, saveSvg } from "./picture.js";
import { saveCsv, savePage } from "./saving.js";
import { Table } from "./table.js";
import { about, course, headline, outcome, proof } from "./words.js";

function figure(className, title, content, below = null) {
  return el("figure", { className }, el("figcaption", {}, title), content, below);
}

// What the marks in a figure mean.
function key(...parts) {
  const words = (part) => (Array.isArray(part) ? el("span", {}, el("i", { className: part[0] }), part[1]) : part);
  return el("p", { className: "key" }, ...parts.map(words));
}

export class Panel {
  constructor(side, app, { fields = null, file = null, say }) {
    Object.assign(this, { side, app, say });
    this.run = null;
    const choose = (node, keep = false) => app.change({ node: node === app.node && !keep ? null : node });
    const hover = (node) => node !== app.hover && app.change({ hover: node });
    const scrub = (t) => app.scrub(t);
    this.network = new Network(choose, hover);
    this.handles = new Handles(choose, (values) => this.remake(values));
    this.curves = new TimeChart({
      name: "curves", above: (plot) => this.holdNumbers(plot), hover, scrub, overlay: overCurves,
      range: (run) => rangeOfCurves(run, app.showsValues(run)),
      paint: (pen, run, scale) => paintCurves(pen, run, scale, { values: app.showsValues(run) }),
    });
    this.error = new TimeChart({
      name: "error", yLog: true, scrub, range: rangeOfError, paint: paintError,
      overlay: (pen, _, scale, { t }) => veil(pen, scale, t),
    });
    this.funnel = new Funnel();
    this.known = new Known(choose, hover);
    this.table = new Table(choose);
    this.build(fields, file);
    new ResizeObserver(() => requestAnimationFrame(() => this.resize())).observe(this.views);
  }

  build(fields, file) {
    this.count = el("strong");
    this.rest = el("span");
    this.title = el("p", { className: "headline" }, this.count, this.rest);
    this.outcome = el("p", { className: "outcome" });
    this.notes = el("ul", { className: "notes", hidden: true });
    this.proof = el("p", { className: "proof" });
    this.course = el("p", { className: "course" });
    this.node = el("div", { className: "node" });
    this.chooser = el("select", { ariaLabel: "Node", onchange: () => this.app.change({ node: this.chooser.value === "" ? null : Number(this.chooser.value) }) });
    this.progress = el("progress", { hidden: true, ariaLabel: "Progress of the run" });
    this.knownTo = el("span");
    const save = (words, act) => el("button", { type: "button", onclick: () => this.run && act() }, words);
    const name = () => `midst-${this.side}-t${this.view.t}`;
    const downloads = el("div", { className: "downloads" }, el("span", {}, "Download"),
      save("CSV", () => saveCsv(this.run, name())),
      save("PNG", () => savePng(this, this.view, name())),
      save("SVG", () => saveSvg(this, this.view, name())),
      source.page && fields ? save("Page", () => this.savePage()) : null);
    this.views = el("div", { className: "views" },
      figure("of-network", "The network", this.network.element, el("div", {}, (this.legend = el("p", { className: "key marks" })),
        el("div", { className: "chosen" }, this.chooser, this.node))),
      figure("of-curves", "What each node sends, x(t)", this.curves.element, key(
        ["line", "one node"], ["plateau", "while it sends its own number"], ["answer", "the answer"], ["own", "own numbers"],
        ["interval", "interval of the chosen node"], ["bound", "where it must lie"])),
      figure("of-funnel", (this.funnelTitle = el("span")), this.funnel.element, this.course),
      figure("of-known", (this.knownTitle = el("span")), this.known.element, key(
        ["bound", "where its number must lie"], ["now", "x now"], ["own", "own number"], ["bits", "bits"],
        ["floor", "of these, by the answer alone"], ["clip", "interval of the chosen node"], this.knownTo)),
      figure("of-error", (this.errorTitle = el("span")), this.error.element, el("div", {}, key(
        ["line", "distance from the answer"], ["apart", "how far the nodes are apart"]), this.proof)));
    this.tag = el("h2", {}, this.side.toUpperCase());
    const head = el("header", {}, this.tag, el("div", {}, this.title, this.outcome), this.progress);
    this.element = el("section", { className: "panel", ariaLabel: `Run ${this.side.toUpperCase()}` }, head);
    if (fields) {
      this.form = new Form(this.side, fields, { file, run: () => this.app.start([this.side]), cancel: () => this.cancel(), changed: () => this.app.light() });
      this.fold = el("details", { className: "settings" }, el("summary", {}, el("span", { className: "fold-title" }, "Settings"), (this.summary = el("span", { className: "summary" }))), this.form.element);
      this.element.append(this.fold);
    } else this.fold = { open: false };
    this.below = el("div", { className: "below" }, this.notes, this.table.element, downloads);
    this.element.append(this.views, this.below);
    this.views.hidden = this.below.hidden = true;
  }

  // What the form says; a run that was brought along has none.
  get settings() {
    return this.form?.settings ?? {};
  }

  get sizes() {
    const size = ({ element }) => [element.clientWidth, element.clientHeight];
    return { network: size(this.network), curves: size(this.curves), funnel: size(this.funnel), known: size(this.known), error: size(this.error) };
  }

  get titleText() {
    return this.title.textContent;
  }

  get outcomeText() {
    return this.outcome.textContent;
  }

  // What was run, in a line.
  get about() {
    const { graph, file, adversary } = this.run.facts;
    const made = file ?? (this.form ? this.form.summary : `${graph.n} nodes, ${graph.edges} edges`);
    return adversary ? `${made} · ${adversary}` : made;
  }

  cancel() {
    this.leave?.abort();
  }

  // One file with what is shown now: this run, or both.
  async savePage() {
    try {
      savePage(await source.page(this.app.sides.map(({ id }) => id), this.view.values), "midst-run");
      this.say(`The page is saved, ${this.view.values ? "with" : "without"} the own numbers: one file, which anybody can open.`);
    } catch (error) {
      this.say(error.message);
    }
  }

  // Makes the run of the form's settings, or takes the one that was brought along; true when it is there to be seen.
  async make() {
    this.cancel();
    const leave = new AbortController();
    this.leave = leave;
    const { signal } = leave;
    if (this.form) {
      this.form.refuse({});
      this.form.busy = true;
      this.summary.textContent = this.form.summary;
    }
    this.progress.hidden = false;
    this.progress.removeAttribute("value");
    this.element.dataset.state = "running";
    try {
      this.say("Running …");
      let most = null;
      for await (const event of source.run(this.side, this.form?.asked ?? {}, signal)) {
        if (event.kind === "started") most = event.most;
        if (event.kind === "progress") {
          if (most) this.progress.value = event.t / most;
          this.say(`Running: iteration ${whole(event.t)}`, true);
        }
        if (event.kind === "run") {
          this.id = event.run;
          this.show(new SavedRun(await source.part(event.run, "run", signal)));
        }
        if (event.kind === "auditing") this.say("Auditing what was given away …");
        if (event.kind === "audit") this.audited(await source.part(event.run, "audit", signal));
      }
      this.element.dataset.state = "done";
      return true;
    } catch (error) {
      if (this.leave !== leave) return false; // another run has taken its place
      this.element.dataset.state = signal.aborted ? "cancelled" : "refused";
      if (signal.aborted) this.say("Cancelled.");
      else if (error instanceof Refused) {
        this.fold.open = true;
        this.form.refuse(error.fields);
        this.form.strange = {};
        this.say(`Not run: ${error.message}`);
      } else this.say(error.message);
      return false;
    } finally {
      if (this.leave === leave) {
        if (this.form) this.form.busy = false;
        this.progress.hidden = true;
        this.leave = null;
      }
    }
  }

  // Own numbers can be moved where a run can be made of them.
  holdNumbers(plot) {
    const { run, app } = this;
    plot.over.append(this.handles.element);
    this.handles.show(run, plot, Boolean(this.form) && !run.facts.file && app.showsValues(run));
  }

  remake(values) {
    this.form.takeNumbers(values);
    this.app.wanted = this.app.t < this.app.last ? this.app.t : null;
    this.app.start([this.side], { playing: false });
  }

  show(run) {
    this.run = run;
    this.views.hidden = this.below.hidden = false;
    this.chooser.replaceChildren(el("option", { value: "" }, "no node chosen"), ...run.labels.map((label, i) => el("option", { value: String(i) }, `node ${label}`)));
    this.network.show(run, () => this.app.change({}));
    this.table.show(run);
    const others = [run.corrupt.size ? CORRUPT : null, run.start && !run.start.all && !run.search ? UNKNOWN : null].filter((each) => each !== null);
    const marks = [...(run.search ? (run.start ? [HERE, AWAITED] : [0]) : [0, 1, 2]), ...others].map((state) => STATES[state]);
    this.element.classList.toggle("search", Boolean(run.search));
    this.element.classList.toggle("valueless", !run.values);
    this.element.classList.toggle("clips", Boolean(run.interval(0, 0)));
    put(this.funnelTitle, run.start ? "How many numbers lie in the bracket" : "How many numbers lie in each cell");
    put(this.knownTitle, run.search ? "What the others learn of each node, in bits" : "What is known of each node");
    this.element.classList.toggle("one", Boolean(run.start && !run.start.all));
    this.element.classList.toggle("answerless", !run.facts.answer);
    put(this.errorTitle, run.facts.answer ? "How far the network is from the answer" : "How far apart the nodes are");
    this.legend.replaceChildren(...marks.map(({ name, mark, words }) => el("span", { className: name }, el("i", { ariaHidden: "true" }, mark), words)));
    if (this.network.crowded) this.legend.append(el("span", { className: "edges" }, el("i", { ariaHidden: "true" }, "▒"), "edges, shaded by how many cross"));
    this.app.shown(this);
    this.redraw();
  }

  audited(part) {
    this.run.setAudit(part);
    this.element.classList.toggle("floored", this.run.labels.some((_, i) => this.run.floor(i) !== null));
    this.say(part.facts.refused ? `Shown; not audited: ${part.facts.refused}` : "Done.");
    this.app.change({});
  }

  redraw() {
    if (!this.run || this.views.hidden) return;
    this.network.at = null;
    this.network.redraw();
    this.funnel.show(this.run);
    this.known.show(this.run, this.run.search ? null : rangeOfNumbers(this.run, this.app.showsValues(this.run)));
    if (!this.run.search) {
      this.curves.show(this.run, this.app.log);
      this.error.show(this.run, this.app.log);
    }
    this.app.change({});
  }

  resize() {
    const size = JSON.stringify(this.sizes);
    if (size !== this.size) {
      this.size = size;
      this.redraw();
    }
  }

  draw(app) {
    const { run } = this;
    if (!run || this.views.hidden) return;
    const t = Math.min(app.t, run.iterations - 1);
    const mine = (node) => (node !== null && node < run.n ? node : null);
    const view = {
      t, node: mine(app.node), hover: mine(app.hover), values: app.showsValues(run), playing: app.playing,
      states: (this.states = run.states(t, this.states?.length === run.n ? this.states : undefined)),
    };
    this.view = view;
    this.network.draw(view);
    if (run.search) this.funnel.draw(view);
    else {
      this.handles.draw(view);
      this.curves.draw(view);
      this.error.draw(view);
    }
    this.known.draw(view);
    this.table.draw(view);
    this.write(run, view);
  }

  write(run, view) {
    const { count, rest } = headline(run, view);
    put(this.count, count);
    put(this.rest, rest);
    put(this.outcome, outcome(run));
    if (run.search) put(this.course, course(run));
    else put(this.proof, proof(run, view.t));
    const bits = run.audit?.report && !run.bitsOverTime ? "; bits in the end" : "";
    put(this.knownTo, `to ${run.audit?.audience ?? run.facts.adversary}${bits}`);
    const notes = [...run.facts.notes, ...(run.audit?.refused ? [`not audited: ${run.audit.refused}`] : []), ...(run.audit?.report?.notes ?? [])];
    if (notes.join() !== this.noted) {
      this.noted = notes.join();
      this.notes.hidden = !notes.length;
      this.notes.replaceChildren(...notes.map((note) => el("li", {}, note)));
    }
    const i = view.hover ?? view.node;
    this.chooser.value = i === null ? "" : String(i);
    const rows = i === null ? [] : about(run, i, view);
    const text = rows.flat().join("|");
    if (text === this.described) return;
    this.described = text;
    this.node.replaceChildren(...rows.map(([name, words, state]) => el("span", { className: state ?? "" }, name ? `${name} ` : "", el("b", {}, words))));
    if (i === null) this.node.textContent = "Point at a node, or choose one: everything follows it.";
  }
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
