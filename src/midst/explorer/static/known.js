// What the adversary knows by now: a bar a node between its bounds, and under it the bits. Many nodes stand in the order
// of what is known of them: those with an upper bound alone, those that are known, those with a lower bound alone.

import { MANY, el, fit, labels, number, shorten } from "./dom.js";
import { EXPOSED, SENDING, STATES, UNKNOWN, palette } from "./palette.js";
import { CanvasPen } from "./pen.js";

const LEFT = 46;
const RIGHT = 8;
const BITS = 0.3; // of the height
const FEW = 24;

function marks(low, high, most) {
  const step = 10 ** Math.floor(Math.log10((high - low) / most));
  const size = [1, 2, 5, 10].map((k) => k * step).find((each) => (high - low) / each <= most) ?? step;
  const first = Math.ceil(low / size);
  return Array.from({ length: Math.min(most, Math.floor(high / size) - first) + 1 }, (_, k) => (first + k) * size);
}

export class Known {
  constructor(choose, hover) {
    this.canvas = el("canvas", { className: "layer" });
    this.canvas.setAttribute("role", "img");
    this.element = el("div", { className: "canvas known" }, this.canvas);
    this.canvas.addEventListener("pointermove", (event) => hover(this.hit(event)));
    this.canvas.addEventListener("pointerleave", () => hover(null));
    this.canvas.addEventListener("click", (event) => choose(this.hit(event)));
  }

  show(run, range) {
    this.run = run;
    this.range = range;
    this.left = Math.max(LEFT, 12 + 6.5 * Math.max(0, ...(range ? labels(marks(...range, 5)) : []).map(({ length }) => length)));
  }

  draw(view) {
    if (!this.run || !this.element.clientWidth) return;
    const { context, width, height } = fit(this.canvas);
    this.width = width;
    this.paint(new CanvasPen(context), width, height, view);
    const bits = this.run.audit?.report ? `, ${number(this.total(view.t), 3)} bits in all` : "";
    this.canvas.setAttribute("aria-label", `Bounds and bits of each node at iteration ${view.t}${bits}; the table has them in words.`);
  }

  total(t) {
    let sum = 0;
    for (let i = 0; i < this.run.n; i += 1) sum += this.run.bits(i, t) ?? 0;
    return sum;
  }

  // The place of each node along the axis.
  arrange(t) {
    const { run } = this;
    const order = Array.from({ length: run.n }, (_, i) => i);
    if (run.n > MANY) {
      const f = run.frameAt(t);
      const side = (i) => (run.lower(f, i) === -Infinity) - (run.upper(f, i) === Infinity);
      const middle = (i) => Math.max(run.lower(f, i), -1e300) / 2 + Math.min(run.upper(f, i), 1e300) / 2;
      const rank = run.search ? (i) => -(run.bits(i, t) ?? 0) : middle;
      const [sides, ranks] = [order.map(run.search ? () => 0 : side), order.map(rank)];
      order.sort((i, j) => sides[j] - sides[i] || ranks[i] - ranks[j]);
    }
    this.order = order;
    this.rank = new Int32Array(run.n);
    order.forEach((i, place) => (this.rank[i] = place));
  }

  paint(pen, width, height, view) {
    this.arrange(view.t);
    const withBits = Boolean(this.run.audit?.report);
    if (this.run.search && !withBits) pen.text("not audited", width / 2, height / 2, { fill: palette().faint, align: "center" });
    const share = this.run.search ? 0.96 : BITS;
    const top = { left: this.left, top: 8, width: width - this.left - RIGHT, height: height * (withBits ? 1 - share : 1) - 26 };
    if (!this.run.search) this.paintBounds(pen, top, view);
    if (withBits) {
      const at = height * (1 - share) + (this.run.search ? 10 : 4);
      this.paintBits(pen, { left: this.left, top: at, width: top.width, height: height - at - 18 }, view);
    }
    if (this.run.n > MANY) {
      const words = `${this.run.n.toLocaleString("en-GB")} nodes, in the order of what is known of them`;
      pen.text(words, top.left + top.width / 2, height - 8, { fill: palette().faint, size: 10, align: "center" });
      return;
    }
    const letters = Math.min(8, Math.max(...this.run.labels.map((label) => label.length)));
    const every = Math.ceil((this.run.n * Math.max(18, 7 * letters)) / top.width);
    for (let i = 0; i < this.run.n; i += every) {
      pen.text(shorten(this.run.labels[i], 8), this.middle(top, i), height - 8, { fill: palette().faint, size: 10, align: "center" });
    }
  }

  middle(box, i) {
    return box.left + ((this.rank[i] + 0.5) * box.width) / this.run.n;
  }

  thickness(box) {
    const { n } = this.run;
    return n > MANY ? box.width / n : Math.max(1, Math.min(18, (box.width / n) * 0.62));
  }

  paintBounds(pen, box, view) {
    const { run } = this;
    const colours = palette();
    const [low, high] = this.range;
    const Y = (value) => box.top + (box.height * (high - Math.min(Math.max(value, low), high))) / (high - low);
    const levels = marks(low, high, 5);
    labels(levels).forEach((words, k) => {
      const y = Y(levels[k]);
      pen.path((path) => (path.moveTo(box.left, y), path.lineTo(box.left + box.width, y)), { stroke: colours.line });
      pen.text(words, box.left - 6, y, { fill: colours.faint, align: "right" });
    });
    if (run.facts.answer) {
      const y = Y(run.facts.answer.low);
      const line = (path) => (path.moveTo(box.left, y), path.lineTo(box.left + box.width, y));
      pen.path(line, { stroke: colours.text, dash: [6, 4], alpha: 0.7 });
    }
    const f = run.frameAt(view.t);
    const w = this.thickness(box);
    const marked = view.hover ?? view.node;
    for (let i = 0; i < run.n; i += 1) {
      const state = view.states[i];
      if (state >= EXPOSED + 1) continue;
      const x = this.middle(box, i);
      const [a, b] = [run.lower(f, i), run.upper(f, i)];
      if (i === marked) pen.rect(x - w / 2 - 3, box.top, w + 6, box.height, { fill: colours.text, alpha: 0.09 });
      if (state === SENDING || state === EXPOSED) {
        this.paintKnown(pen, x, Y(a), w, STATES[state]);
        if (i === marked) this.paintInterval(pen, x + w / 2 + 5, run.interval(f, i)?.map(Y));
        continue;
      }
      if (i === marked) this.paintInterval(pen, x + w / 2 + 5, run.interval(f, i)?.map(Y));
      const [upper, lower] = [Y(b), Y(a)];
      pen.rect(x - w / 2, upper, w, Math.max(lower - upper, 1.5), { fill: colours.bound, alpha: 0.32 });
      for (const [end, y] of [[a, lower], [b, upper]]) {
        if (end >= low && end <= high) pen.rect(x - w / 2, y - 1, w, 2, { fill: colours.hidden });
      }
      if (view.values && run.values) pen.rect(x - w / 2 - 1, Y(run.values[i]) - 1, w + 2, run.n > MANY ? 1 : 2, { fill: colours.value, alpha: run.n > MANY ? 0.35 : 1 });
      const now = run.x(f, i);
      if (w > 3 && now >= low && now <= high) pen.shape("circle", x, Y(now), Math.min(2.6, w / 3), { fill: colours.text });
    }
  }

  // To which its number is clipped now.
  paintInterval(pen, x, ends) {
    if (!ends) return;
    const trace = (path) => {
      ends.forEach((y) => (path.moveTo(x - 3, y), path.lineTo(x + 3, y)));
      path.moveTo(x, ends[0]);
      path.lineTo(x, ends[1]);
    };
    pen.path(trace, { stroke: palette().faint, width: 2 });
  }

  paintKnown(pen, x, y, w, { name, shape }) {
    const colour = palette()[name];
    if (name === "sending") pen.shape("circle", x, y, Math.max(w, 4), { fill: colour, alpha: 0.25 });
    pen.shape(shape, x, y, Math.max(Math.min(w / 2, 7), 1.6), { fill: colour });
  }

  paintBits(pen, box, view) {
    const { run } = this;
    const colours = palette();
    const largest = Math.max(...run.audit.report.nodes.map((node) => node.bits ?? 0));
    const most = largest > 0.1 || largest === 0 ? Math.max(largest, 1) : largest;
    const Y = (bits) => box.top + box.height * (1 - bits / most);
    pen.text("bits", 2, box.top - 6, { fill: colours.faint, size: 10 });
    for (const value of marks(0, most, run.search ? 5 : 2)) {
      const y = Y(value);
      pen.path((path) => (path.moveTo(box.left, y), path.lineTo(box.left + box.width, y)), { stroke: colours.line });
      pen.text(number(value, 3), box.left - 6, y, { fill: colours.faint, align: "right" });
    }
    const w = this.thickness(box);
    for (let i = 0; i < run.n; i += 1) {
      const bits = run.bits(i, view.t);
      if (bits === null || view.states[i] === UNKNOWN) continue;
      const x = this.middle(box, i);
      if (run.search && i === (view.hover ?? view.node)) pen.rect(x - w / 2 - 3, box.top, w + 6, box.height, { fill: colours.text, alpha: 0.09 });
      pen.rect(x - w / 2, Y(bits), w, Math.max(box.top + box.height - Y(bits), 0.75), { fill: colours[STATES[view.states[i]].name], alpha: 0.85 });
      const floor = Math.min(run.floor(i) ?? 0, bits);
      if (floor > 0) pen.rect(x - w / 2, Y(floor), w, box.top + box.height - Y(floor), { fill: colours.card, alpha: 0.5 });
      if (run.n <= FEW && w > 14) pen.text(bits.toFixed(1), x, Y(bits) - 6, { fill: colours.faint, size: 9, align: "center" });
    }
  }

  hit(event) {
    if (!this.run) return null;
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    const i = Math.floor(((x - this.left) * this.run.n) / (this.width - this.left - RIGHT));
    return i >= 0 && i < this.run.n ? this.order[i] : null;
  }
}
