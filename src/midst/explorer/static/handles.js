// The own numbers at the edge of x(t), to be moved by mouse, by touch and by the arrow keys. When they come to rest, they
// are given away, and the run is made again.

import { el, number } from "./dom.js";

const MOST = 40; // more could not be told apart
const REST = 600; // milliseconds after the last key

export class Handles {
  constructor(choose, moved) {
    Object.assign(this, { choose, moved });
    this.element = el("div", { className: "handles", hidden: true });
    this.handles = [];
    this.held = null;
    this.element.addEventListener("pointerdown", (event) => this.take(event));
    this.element.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) this.element.addEventListener(end, () => this.release());
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  // The numbers of a run, along the scale of this chart; none where they are not to be moved.
  show(run, plot, movable) {
    const shown = movable && run.values && run.n <= MOST;
    this.element.hidden = !shown;
    if (!shown) return;
    this.plot = plot;
    this.values = [...run.values];
    const spread = Math.max(...this.values) - Math.min(...this.values) || Math.abs(this.values[0]) || 1;
    this.step = 10 ** Math.floor(Math.log10(spread / 20));
    if (this.handles.length !== run.n) {
      this.handles = this.values.map((_, i) => el("div", { className: "handle", role: "slider", tabIndex: -1, "data-node": i }));
      this.element.replaceChildren(...this.handles);
    }
    this.handles.forEach((handle, i) => {
      handle.setAttribute("aria-label", `own number of node ${run.labels[i]}`);
      handle.setAttribute("aria-orientation", "vertical");
    });
  }

  // The chosen node's is the one that the tabulator key finds.
  draw({ node }) {
    if (this.element.hidden) return;
    const chosen = node ?? 0;
    this.handles.forEach((handle, i) => {
      this.place(i);
      handle.tabIndex = i === chosen ? 0 : -1;
      handle.classList.toggle("picked", i === node);
    });
  }

  place(i) {
    const [handle, value] = [this.handles[i], this.values[i]];
    const { min, max } = this.plot.scales.y;
    handle.style.top = `${this.plot.valToPos(value, "y")}px`;
    handle.dataset.value = number(value, 4);
    handle.setAttribute("aria-valuemin", Math.min(min, value));
    handle.setAttribute("aria-valuemax", Math.max(max, value));
    handle.setAttribute("aria-valuenow", value);
    handle.setAttribute("aria-valuetext", number(value, 5));
  }

  set(i, value, step) {
    this.values[i] = Number((Math.round(value / step) * step).toPrecision(12));
    this.changed = true;
    this.place(i);
  }

  take(event) {
    const top = this.element.getBoundingClientRect().top;
    const gap = (i) => Math.abs(this.plot.valToPos(this.values[i], "y") - (event.clientY - top));
    this.held = this.values.map((_, i) => i).reduce((best, i) => (gap(i) < gap(best) ? i : best));
    this.choose(this.held, true);
    this.element.setPointerCapture(event.pointerId);
    this.handles[this.held].classList.add("held");
    this.handles[this.held].focus({ preventScroll: true });
    event.preventDefault();
  }

  drag(event) {
    if (this.held === null) return;
    const { min, max } = this.plot.scales.y;
    const { top, height } = this.element.getBoundingClientRect();
    this.set(this.held, this.plot.posToVal(event.clientY - top, "y"), 10 ** Math.floor(Math.log10((max - min) / height)));
  }

  release() {
    if (this.held === null) return;
    this.handles[this.held].classList.remove("held");
    this.held = null;
    this.rest();
  }

  key(event) {
    const strides = { ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    if (!strides[event.key]) return;
    const i = Number(event.target.dataset.node);
    this.choose(i, true);
    this.set(i, this.values[i] + strides[event.key] * (event.shiftKey ? 10 : 1) * this.step, this.step);
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.rest(), REST);
    event.preventDefault();
    event.stopPropagation();
  }

  rest() {
    if (!this.changed || this.held !== null) return;
    this.changed = false;
    this.moved([...this.values]);
  }
}
