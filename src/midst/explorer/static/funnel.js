// How a search closes in: a row a probe, its cells equally wide; the cell that is opened widens into the next row, down
// to the answer. Of a running network only the brackets are known, each within the one before.

import { el, fit, whole } from "./dom.js";
import { palette } from "./palette.js";
import { CanvasPen } from "./pen.js";

const LEFT = 58;
const RIGHT = 24;
const TOP = 8;
const LEAST = 47; // pixels from one row to the next
const MOST = 96;
const LETTER = 5.8; // pixels, about
const BAR = 0.46; // of a row

export class Funnel {
  constructor() {
    this.canvas = el("canvas", { className: "layer", ariaLabel: "How many numbers lie in each cell" });
    this.canvas.setAttribute("role", "img");
    this.element = el("div", { className: "canvas funnel" }, this.canvas);
  }

  show(run) {
    this.run = run;
  }

  draw(view) {
    if (!this.run?.search || !this.element.clientWidth) return;
    const { context, width, height } = fit(this.canvas);
    this.paint(new CanvasPen(context), width, height, view);
    this.canvas.setAttribute("aria-label", this.describe(view));
  }

  describe({ t }) {
    const told = this.run.search.rows.filter((row) => this.told(row, t)).map(({ step, totals }) => `probe ${step + 1}: ${totals.join(", ")}`);
    const end = this.answered(t) ? ` The ${this.run.facts.title} is ${this.run.search.answer}.` : "";
    return `How many numbers lie in each cell. ${told.join("; ") || "Nothing is known yet"}.${end}`;
  }

  // Whether the totals of a row are known by now.
  told({ step }, t) {
    return step < t || Boolean(this.run.start);
  }

  answered(t) {
    return this.run.search.answer !== null && t >= this.run.iterations - 1;
  }

  paint(pen, width, height, view) {
    const { rows, answer } = this.run.search;
    const shown = rows.filter((row) => row.step <= view.t);
    const steps = [...new Set(shown.map((row) => row.step))];
    const [lines, all] = [steps.length + this.answered(view.t), new Set(rows.map((row) => row.step)).size + 1];
    const size = Math.max(LEAST, Math.min(MOST, (height - TOP) / all));
    const above = Math.max(0, lines - Math.floor((height - TOP) / size)); // rows that there is no room for
    const at = { X: (place) => LEFT + place * (width - LEFT - RIGHT), Y: (line) => TOP + (line - above) * size, size };
    const line = (row) => steps.indexOf(row.step);
    pen.clip(0, above ? TOP - 4 : 0, width, height, () => {
      for (const row of shown) {
        if (row.opens) this.opening(pen, at, rows[row.opens[0]], row.opens[1], line(row), row.left, row.right);
      }
      if (this.answered(view.t)) {
        for (const row of shown.filter((each) => line(each) === steps.length - 1)) {
          for (const cell of row.chosen) this.opening(pen, at, row, cell, steps.length, row.left, row.right);
        }
        const last = shown.at(-1) ?? { left: 0, right: 1 };
        this.bar(pen, at, steps.length, last.left, last.right, 0.45);
        this.word(pen, at, (last.left + last.right) / 2, steps.length, `${this.run.facts.title} ${answer}`, true);
        this.label(pen, at, steps.length, "answer");
      }
      for (const row of shown) this.row(pen, at, row, line(row), view);
    });
    if (above) pen.text(`${whole(above)} above`, 4, TOP + 4, { fill: palette().faint, size: 10 });
  }

  row(pen, at, row, line, view) {
    const count = row.totals.length;
    const place = (cells) => row.left + ((row.right - row.left) * cells) / count;
    const told = this.told(row, view.t);
    row.totals.forEach((total, cell) => {
      const chosen = told && row.chosen.includes(cell);
      this.bar(pen, at, line, place(cell), place(cell + 1), chosen ? 0.45 : told ? 0.14 : 0.07);
      this.word(pen, at, place(cell + 0.5), line, told && total !== null ? whole(total) : "?", chosen);
    });
    if (view.values) this.dots(pen, at, row, line, view);
    this.label(pen, at, line, this.run.start ? `step ${row.step}` : `probe ${row.step + 1}`);
    const taken = [];
    for (const [cells, words] of row.marks) {
      const [x, room] = [at.X(place(cells)), (LETTER * (words.length + 1)) / 2];
      if (taken.some(([low, high]) => x + room > low && x - room < high)) continue;
      taken.push([x - room, x + room]);
      const y = at.Y(line) + at.size * BAR + 8;
      pen.rect(x - room + 3, y - 5, 2 * room - 6, 10, { fill: palette().card, alpha: 0.85 });
      pen.text(words, x, y, { fill: palette().text, size: 10, align: "center" });
    }
  }

  dots(pen, at, row, line, { node, hover }) {
    const number = this.run.search.rows.indexOf(row);
    const colours = palette();
    for (const [k, i, place] of this.run.dots) {
      if (k !== number) continue;
      const marked = i === (hover ?? node);
      const style = marked ? { fill: colours.value, stroke: colours.text, width: 1.5 } : { fill: colours.value };
      pen.shape("circle", at.X(place), at.Y(line) + 5, marked ? 4.5 : 2.4, style);
    }
  }

  bar(pen, { X, Y, size }, line, left, right, alpha) {
    pen.rect(X(left) + 0.75, Y(line), X(right) - X(left) - 1.5, size * BAR, { fill: palette().hidden, alpha });
  }

  word(pen, { X, Y, size }, place, line, words, strong) {
    const style = { fill: palette().text, size: 12, align: "center", weight: strong ? 700 : 400 };
    pen.text(words, X(place), Y(line) + (size * BAR) / 2 + 1, style);
  }

  label(pen, { Y, size }, line, words) {
    pen.text(words, LEFT - 8, Y(line) + (size * BAR) / 2, { fill: palette().faint, size: 11, align: "right" });
  }

  opening(pen, { X, Y, size }, row, cell, line, left, right) {
    const place = (cells) => X(row.left + ((row.right - row.left) * cells) / row.totals.length);
    const [high, low] = [Y(line - 1) + size * BAR, Y(line)];
    const [from, to] = [place(cell), place(cell + 1)];
    const area = (path) => {
      [[from, high], [to, high], [X(right), low], [X(left), low]].forEach(([x, y], k) => (k ? path.lineTo(x, y) : path.moveTo(x, y)));
      path.closePath();
    };
    const lines = (path) => {
      for (const [a, b] of [[from, X(left)], [to, X(right)]]) {
        path.moveTo(a, high);
        path.lineTo(b, low);
      }
    };
    pen.path(area, { fill: palette().hidden, alpha: 0.05 });
    pen.path(lines, { stroke: palette().edge });
  }
}
