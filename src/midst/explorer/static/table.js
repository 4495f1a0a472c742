// The same in words: every node, as it stands at this iteration.

import { el, number } from "./dom.js";
import { STATES } from "./palette.js";

const COLUMNS = ["node", "state", "sends", "lower bound", "upper bound", "bits", "exposed at"];
const OF_SEARCH = ["node", "state", "bits", "floor", "excess"];
const bits = (value) => (value === null || value === undefined ? "" : value.toFixed(2));
const BETWEEN = 200; // milliseconds between two refreshes while time runs

export class Table {
  constructor(choose) {
    this.choose = choose;
    this.head = el("tr");
    this.body = el("tbody");
    this.caption = el("caption");
    const table = el("table", {}, this.caption, el("thead", {}, this.head), this.body);
    this.element = el("details", { className: "table" }, el("summary", {}, "All nodes as a table"), el("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Nodes" }, table));
    this.element.addEventListener("toggle", () => this.view && this.fill(this.view));
    this.drawn = 0;
  }

  show(run) {
    this.run = run;
    const columns = run.search ? OF_SEARCH : COLUMNS;
    this.columns = run.values ? [...columns, "own number"] : columns;
    this.head.replaceChildren(...this.columns.map((words) => el("th", { scope: "col" }, words)));
    this.rows = run.labels.map((label, i) => {
      const name = el("button", { type: "button", className: "plain", onclick: () => this.choose(i, true) }, label);
      const cells = this.columns.slice(1).map(() => el("td"));
      return { row: el("tr", {}, el("th", { scope: "row" }, name), ...cells), cells };
    });
    this.body.replaceChildren(...this.rows.map(({ row }) => row));
  }

  draw(view) {
    this.view = view;
    if (!this.element.open || !this.run) return;
    const now = performance.now();
    if (view.playing && now - this.drawn < BETWEEN) return;
    this.drawn = now;
    this.fill(view);
  }

  fill({ states, t, node, values }) {
    const { run } = this;
    if (!run || !this.element.open) return;
    this.caption.textContent = run.search ? "What everybody learns of each node, by the totals of the whole search" : `Iteration ${t}`;
    const f = run.frameAt(t);
    this.rows.forEach(({ row, cells }, i) => {
      const { mark, words, name } = STATES[states[i]];
      const shown = states[i] <= 2;
      const at = run.exposedAt(i);
      const of = run.audit?.report?.nodes[i];
      const told = run.search ? [bits(of?.bits), bits(of?.floor), bits(of?.excess)] : [
        number(run.x(f, i), 6),
        shown ? number(run.lower(f, i), 6) : "",
        shown ? number(run.upper(f, i), 6) : "",
        bits(run.bits(i, t)),
        at >= 0 && at <= t ? `t = ${at}` : "",
      ];
      const texts = [
        `${mark} ${words}`,
        ...told,
        ...(run.values ? [values ? number(run.values[i], 6) : "hidden"] : []),
      ];
      texts.forEach((text, k) => {
        if (cells[k].textContent !== text) cells[k].textContent = text;
      });
      row.className = `${name}${i === node ? " chosen" : ""}`;
    });
  }
}
