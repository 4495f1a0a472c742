// Charts over time. uPlot keeps scales and axes; curves are thinned to the pixels there are, and drawn once. What changes
// from frame to frame (the veil over what is yet to come, the chosen node) is on a layer above.

import uPlot from "./vendor/uPlot.esm.js";
import { MANY, el, fit, labels, number, whole } from "./dom.js";
import { palette } from "./palette.js";
import { CanvasPen } from "./pen.js";

const MOST_CURVES = 400;
const FEW = 40;

// Iterations that are marked on a logarithmic axis: 0, 1, 3, 10, 30 … so far as they fit.
function logMarks(last) {
  const marks = [0, 1];
  for (let power = 1; power <= last; power *= 10) marks.push(3 * power, 10 * power);
  const inside = [...new Set(marks)].filter((t) => t <= last);
  return inside.length > 8 ? inside.filter((t) => t === 0 || /^10*$/.test(String(t))) : inside;
}

// Powers of ten, at most six of them.
function decades(low, high) {
  const [from, to] = [Math.round(Math.log10(low)), Math.round(Math.log10(high))];
  const step = Math.ceil((to - from) / 6);
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, k) => 10 ** (from + k * step));
}

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

function power(value) {
  const exponent = Math.round(Math.log10(value));
  return exponent >= -1 && exponent <= 3 ? number(value) : `10${[...String(exponent)].map((c) => RAISED[c]).join("")}`;
}

export class TimeChart {
  constructor({ name, yLog = false, range, paint, overlay, hover = null, scrub, above = null }) {
    Object.assign(this, { name, yLog, range, paint, overlay, hover, above });
    this.element = el("div", { className: "canvas chart" });
    this.layer = el("canvas", { className: "layer", ariaHidden: "true" });
    this.run = null;
    let held = false;
    const at = (event) => Math.round(this.timeAt(event.clientX - this.layer.getBoundingClientRect().left));
    this.layer.addEventListener("pointerdown", (event) => {
      if (!this.run) return;
      held = true;
      this.layer.setPointerCapture(event.pointerId);
      scrub(at(event));
    });
    this.layer.addEventListener("pointermove", (event) => {
      if (!this.run) return;
      if (held) scrub(at(event));
      else if (hover) hover(this.nearest(event));
    });
    for (const end of ["pointerup", "pointercancel"]) this.layer.addEventListener(end, () => (held = false));
    this.layer.addEventListener("pointerleave", () => hover?.(null));
  }

  // The place of an iteration on the scale, and back.
  place(t) {
    return this.log ? t + 1 : t;
  }

  timeAt(pixel) {
    const value = this.plot.posToVal(pixel, "x");
    return this.log ? value - 1 : value;
  }

  show(run, log) {
    this.run = run;
    this.log = log;
    this.redraw();
  }

  redraw() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!this.run || !width || !height) return;
    const colours = palette();
    const last = Math.max(this.run.iterations - 1, 1);
    const [low, high] = this.range(this.run);
    const axis = {
      stroke: colours.faint, font: "11px system-ui, sans-serif", ticks: { stroke: colours.line, width: 1, size: 4 },
      grid: { stroke: colours.line, width: 1 }, gap: 3,
    };
    const x = { ...axis, size: 26, values: (_, splits) => splits.map((v) => whole(this.log ? v - 1 : v)) };
    if (this.log) x.splits = () => logMarks(last).map((t) => t + 1);
    else x.incrs = [1, 2, 5].flatMap((k) => [0, 1, 2, 3, 4, 5].map((power) => k * 10 ** power)).sort((a, b) => a - b);
    if (this.log) x.filter = (_, splits) => splits;
    const size = (_, texts) => Math.max(52, 12 + 6.5 * Math.max(0, ...(texts ?? []).map(({ length }) => length)));
    const y = { ...axis, size, values: (_, splits) => (this.yLog ? splits.map(power) : labels(splits)) };
    if (this.yLog) Object.assign(y, { splits: () => decades(low, high), filter: (_, splits) => splits });
    const options = {
      width, height, padding: [10, 20, 0, 0], legend: { show: false }, cursor: { show: false },
      scales: {
        x: { time: false, distr: this.log ? 3 : 1, range: () => [this.place(0), this.place(last)] },
        y: { distr: this.yLog ? 3 : 1, range: () => [low, high] },
      },
      series: [{}, { paths: () => null, points: { show: false } }],
      axes: [x, y],
      hooks: { draw: [(u) => this.paintAll(u)] },
    };
    const focused = this.element.contains(document.activeElement) ? document.activeElement : null;
    this.plot?.destroy();
    this.plot = new uPlot(options, [[this.place(0), this.place(last)], [low, high]], this.element);
    this.plot.over.append(this.layer);
    this.above?.(this.plot);
    focused?.focus({ preventScroll: true });
    if (this.view) this.drawOver(this.view);
  }

  paintAll(u) {
    const { left, top, width, height } = u.bbox;
    this.curves(new CanvasPen(u.ctx, devicePixelRatio || 1), u, { left, top, width, height }, true);
  }

  curves(pen, u, box, device) {
    const scale = {
      X: (t) => u.valToPos(this.place(t), "x", device),
      Y: (value) => u.valToPos(value, "y", device),
      box,
    };
    if (!device) {
      const [X, Y] = [scale.X, scale.Y];
      scale.X = (t) => X(t) + box.left;
      scale.Y = (value) => Y(value) + box.top;
    }
    pen.clip(box.left, box.top - 2, box.width + 20 * pen.ratio, box.height + 4, () => this.paint(pen, this.run, scale));
    return scale;
  }

  // The whole chart, for a file: axes and their names, and what is above the curves.
  save(pen, view, name) {
    const u = this.plot;
    if (!u || !this.element.clientWidth) return;
    const ratio = devicePixelRatio || 1;
    const box = Object.fromEntries(Object.entries(u.bbox).map(([name, value]) => [name, value / ratio]));
    const colours = palette();
    u.axes[0]._splits?.forEach((v, k) => {
      if (v === null) return;
      const x = u.valToPos(v, "x") + box.left;
      const line = (path) => (path.moveTo(x, box.top), path.lineTo(x, box.top + box.height));
      pen.path(line, { stroke: colours.line });
      pen.text(String(u.axes[0]._values[k] ?? ""), x, box.top + box.height + 12, { fill: colours.faint, align: "center" });
    });
    u.axes[1]._splits?.forEach((v, k) => {
      const words = u.axes[1]._values[k];
      if (v === null || !words) return;
      const y = u.valToPos(v, "y") + box.top;
      pen.path((path) => (path.moveTo(box.left, y), path.lineTo(box.left + box.width, y)), { stroke: colours.line });
      pen.text(String(words), box.left - 6, y, { fill: colours.faint, align: "right" });
    });
    const scale = this.curves(pen, u, box, false);
    pen.clip(box.left, box.top, box.width, box.height, () => this.overlay(pen, this.run, scale, view));
    const now = Math.min(Math.max(scale.X(view.t), box.left + 20), box.left + box.width - 20);
    pen.text(`t = ${whole(view.t)}`, now, box.top - 6, { fill: colours.text, size: 10, align: "center", weight: 650 });
    pen.text("iteration t", box.left + box.width, box.top + box.height + 24, { fill: colours.faint, size: 10, align: "right" });
    pen.text(name, 2, box.top - 6, { fill: colours.faint, size: 10 });
  }

  draw(view) {
    this.view = view;
    if (this.plot) this.drawOver(view);
  }

  drawOver(view) {
    const { context, width, height } = fit(this.layer);
    if (!width) return;
    const pen = new CanvasPen(context);
    const scale = {
      X: (t) => this.plot.valToPos(this.place(t), "x"),
      Y: (value) => this.plot.valToPos(value, "y"),
      box: { left: 0, top: 0, width, height },
    };
    this.overlay(pen, this.run, scale, view);
  }

  nearest(event) {
    const box = this.layer.getBoundingClientRect();
    const f = this.run.frameAt(Math.round(this.timeAt(event.clientX - box.left)));
    const y = event.clientY - box.top;
    let best = null;
    let gap = 14;
    for (let i = 0; i < this.run.n; i += 1) {
      const distance = Math.abs(this.plot.valToPos(this.run.x(f, i), "y") - y);
      if (distance < gap) [best, gap] = [i, distance];
    }
    return best;
  }
}

// Frames by pixel: [first, last] of each column that has any.
function columns(run, { X, box, limits }, step) {
  const found = [];
  let column = -1;
  const [from, to] = limits ?? [0, run.frames - 1];
  for (let f = from; f <= to; f += 1) {
    const here = Math.floor((X(run.time(f)) - box.left) / step);
    if (here === column) found[found.length - 1][1] = f;
    else found.push([f, f]);
    column = here;
  }
  return found;
}

// A curve through the least and greatest of each column, in the order in which they came.
function traceCurve(path, run, i, found, { X, Y }) {
  let pen = false;
  const to = (f, value) => {
    if (Number.isNaN(value)) return;
    const [x, y] = [X(run.time(f)), Y(value)];
    if (pen) path.lineTo(x, y);
    else path.moveTo(x, y);
    pen = true;
  };
  for (const [first, last] of found) {
    if (first === last) {
      to(first, run.x(first, i));
      continue;
    }
    let [low, high] = [first, first];
    for (let f = first + 1; f <= last; f += 1) {
      if (run.x(f, i) < run.x(low, i)) low = f;
      if (run.x(f, i) > run.x(high, i)) high = f;
    }
    to(Math.min(low, high), run.x(Math.min(low, high), i));
    if (low !== high) to(Math.max(low, high), run.x(Math.max(low, high), i));
  }
}

function tracePlateaus(path, run, i, { X, Y }) {
  for (const [start, stop] of run.plateaus(i)) {
    const y = Y(run.x(run.frameAt(start), i));
    if (Number.isNaN(y)) continue;
    path.moveTo(X(start), y);
    path.lineTo(Math.max(X(stop - 1), X(start) + 0.5), y);
  }
}

function level(pen, { Y, box }, value, style) {
  pen.path((path) => (path.moveTo(box.left, Y(value)), path.lineTo(box.left + box.width, Y(value))), style);
}

const FAR = 3; // times the range of the numbers: a run that starts so far away has its plateaus enlarged, as in the paper

// What to enlarge, and where: the passage past the plateaus, in the corner that a run from far away leaves free.
function inset(run, { box }) {
  if (run.enlarged === undefined) run.enlarged = passage(run);
  if (!run.enlarged || run.start) return null;
  const { from, to, low, high, falls } = run.enlarged;
  const inner = { left: box.left + 0.47 * box.width, width: 0.51 * box.width, height: 0.52 * box.height };
  inner.top = box.top + (falls ? 0.03 : 0.45) * box.height;
  return {
    box: inner,
    X: (t) => inner.left + (inner.width * (t - from)) / (to - from),
    Y: (value) => inner.top + (inner.height * (high - value)) / (high - low),
    from, to, low, high, limits: [run.frameAt(from), run.frameAt(to)],
  };
}

function passage(run) {
  if (run.facts.mean || !run.facts.answer || run.n > FEW) return null;
  const starts = run.labels.flatMap((_, i) => run.plateaus(i).slice(0, 1).map(([start]) => start));
  if (starts.length < 2) return null;
  const levels = run.labels.flatMap((_, i) => run.plateaus(i).slice(0, 1).map(([start]) => run.x(run.frameAt(start), i)));
  const [least, most] = [Math.min(...levels, run.facts.answer.low), Math.max(...levels, run.facts.answer.high)];
  const [first, last] = [run.x(0, 0), run.facts.answer.low];
  const [bottom, top] = rangeOfCurves(run, true);
  const away = Math.abs(first - last);
  if (away < FAR * (most - least) || away < (top - bottom) / 2 || most === least) return null;
  const room = 0.25 * (most - least);
  const [from, to] = [Math.max(Math.min(...starts) - 3, 0), Math.max(...starts) + 6];
  return { from, to, low: least - room, high: most + room, falls: first > last };
}

function paintInset(pen, run, outer) {
  const scale = inset(run, outer);
  if (!scale) return;
  const colours = palette();
  const { box, from, to, low, high } = scale;
  const spot = { x: outer.X(from), y: outer.Y(high), w: outer.X(to) - outer.X(from), h: outer.Y(low) - outer.Y(high) };
  pen.path((path) => path.rect(spot.x, spot.y, spot.w, spot.h), { stroke: colours.faint, alpha: 0.8 });
  const lines = (path) => {
    const y = run.enlarged.falls ? box.top + box.height : box.top;
    const end = run.enlarged.falls ? spot.y : spot.y + spot.h;
    path.moveTo(box.left, y);
    path.lineTo(spot.x, end);
    path.moveTo(box.left + box.width, y);
    path.lineTo(spot.x + spot.w, end);
  };
  pen.path(lines, { stroke: colours.faint, alpha: 0.5 });
  paintEnlarged(pen, run, scale);
}

function paintEnlarged(pen, run, scale, above = () => {}) {
  const colours = palette();
  const { box, from, to } = scale;
  const frame = (path) => path.rect(box.left, box.top, box.width, box.height);
  pen.path(frame, { fill: colours.card });
  pen.clip(box.left, box.top, box.width, box.height, () => {
    paintLines(pen, run, scale, columns(run, scale, pen.ratio));
    above();
  });
  pen.text(`t = ${from} to ${to}, enlarged`, box.left + 6 * pen.ratio, box.top + 10 * pen.ratio, { fill: colours.faint, size: 10 });
  pen.path(frame, { stroke: colours.faint });
}

// Where the numbers themselves lie, as far as they are shown; of a run that starts far away, a small part of the curves.
export function rangeOfNumbers(run, values) {
  const everything = rangeOfCurves(run, values);
  const near = run.labels.flatMap((_, i) => run.plateaus(i).slice(0, 1).map(([start]) => run.x(run.frameAt(start), i)));
  for (let i = 0; i < run.n; i += 1) near.push(run.x(run.frames - 1, i));
  if (values && run.values) near.push(...run.values);
  const known = near.filter((value) => !Number.isNaN(value));
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = 0.35 * (high - low);
  return high > low && 2.5 * (high - low) < everything[1] - everything[0] ? [low - room, high + room] : everything;
}

export function rangeOfCurves(run, values) {
  let [low, high] = [Infinity, -Infinity];
  const take = (value) => {
    if (value < low) low = value;
    if (value > high) high = value;
  };
  for (let f = 0; f < run.frames; f += 1) for (let i = 0; i < run.n; i += 1) take(run.x(f, i));
  if (values && run.values && run.n <= MANY) run.values.forEach(take); // of many, the curves alone can be told apart
  if (!(low <= high)) return [-1, 1];
  const room = Math.max(high - low || Math.abs(high) || 1, 1e-9 * Math.abs(high)) * 0.06; // floats need room between two marks
  return [low - room, high + room];
}

function paintLines(pen, run, scale, found) {
  const colours = palette();
  const few = run.n <= FEW;
  const every = Math.ceil(run.n / MOST_CURVES);
  const thin = (path) => {
    for (let i = 0; i < run.n; i += every) traceCurve(path, run, i, found, scale);
  };
  pen.path(thin, { stroke: colours.hidden, width: few ? 1.3 : 0.7, alpha: few ? 0.8 : Math.max(0.12, 7 / Math.sqrt(run.n * 10)) });
  if (!run.facts.mean) {
    const thick = (path) => {
      for (let i = 0; i < run.n; i += 1) tracePlateaus(path, run, i, scale);
    };
    pen.path(thick, { stroke: colours.exposed, width: few ? 4 : run.n > MANY ? 1 : 2, alpha: run.n > MANY ? 0.5 : 1, cap: "round" });
  }
  if (run.facts.answer) {
    const style = { stroke: colours.text, width: 1.3, dash: [6, 4], alpha: 0.85 };
    level(pen, scale, run.facts.answer.low, style);
    if (run.facts.answer.high !== run.facts.answer.low) level(pen, scale, run.facts.answer.high, style);
  }
}

export function paintCurves(pen, run, scale, { values }) {
  const few = run.n <= FEW;
  paintLines(pen, run, scale, columns(run, scale, 1.5 * pen.ratio));
  paintInset(pen, run, scale);
  if (values && run.values) {
    const { Y, box } = scale;
    const edge = box.left + box.width + 3 * pen.ratio;
    const ticks = (path) => run.values.forEach((s) => (path.moveTo(edge, Y(s)), path.lineTo(edge + 10 * pen.ratio, Y(s))));
    pen.path(ticks, { stroke: palette().value, width: few ? 2.5 : 1, alpha: few ? 1 : 0.6 });
  }
}

// What is above the curves: the time, and the chosen node; the same where they are enlarged.
export function overCurves(pen, run, scale, view) {
  const within = inset(run, scale);
  veil(pen, scale, view.t);
  markNode(pen, run, scale, view);
  if (!within) return;
  paintEnlarged(pen, run, within, () => {
    veil(pen, within, view.t);
    markNode(pen, run, within, view);
  });
}

// Covers what is yet to come.
export function veil(pen, { X, box }, t) {
  const now = Math.max(X(t), box.left);
  pen.rect(now, box.top, box.left + box.width - now, box.height, { fill: palette().card, alpha: 0.62 });
  pen.path((path) => (path.moveTo(now, box.top), path.lineTo(now, box.top + box.height)), { stroke: palette().text, width: 1.2, alpha: 0.8 });
}

// What lies between two curves, as far as it is near the picture.
function traceBand(path, run, frames, ends, { X, Y, box }) {
  const low = (f) => Math.min(Y(Math.max(ends(f)[0], -1e300)), box.top + box.height + 9);
  const high = (f) => Math.max(Y(Math.min(ends(f)[1], 1e300)), box.top - 9);
  frames.forEach((f, k) => (k ? path.lineTo(X(run.time(f)), high(f)) : path.moveTo(X(run.time(f)), high(f))));
  [...frames].reverse().forEach((f) => path.lineTo(X(run.time(f)), low(f)));
  path.closePath();
}

// The chosen node: its curve, between its bounds as they close in; its interval, which follows it; and its own number.
function markNode(pen, run, scale, { node, hover, t, values }) {
  const i = hover ?? node;
  if (i === null || i >= run.n) return;
  const colours = palette();
  const { X, Y } = scale;
  const until = run.frameAt(t);
  const found = columns(run, scale, 1.5);
  if (run.frames > 1) {
    const kept = found.filter(([, last]) => last <= until).map(([, last]) => last);
    const band = (ends, style) => kept.length > 1 && pen.path((path) => traceBand(path, run, kept, ends, scale), style);
    band((f) => [run.lower(f, i), run.upper(f, i)], { fill: colours.bound, alpha: 0.2 });
    if (run.interval(0, i)) band((f) => run.interval(f, i), { fill: colours.faint, stroke: colours.faint, alpha: 0.4 });
  }
  if (values && run.values) level(pen, scale, run.values[i], { stroke: colours.value, width: 1.5, dash: [2, 3] });
  pen.path((path) => traceCurve(path, run, i, found, scale), { stroke: colours.text, width: 2 });
  if (!run.facts.mean) {
    pen.path((path) => tracePlateaus(path, run, i, scale), { stroke: colours.exposed, width: 5, cap: "round" });
  }
  const x = run.x(until, i);
  if (!Number.isNaN(x)) pen.shape("circle", X(run.time(until)), Y(x), 4.5, { fill: colours.text, stroke: colours.card, width: 1.5 });
}

const TINY = 1e-17;

export function rangeOfError(run) {
  let [low, high] = [Infinity, TINY];
  for (const column of [run.error, run.spread]) {
    for (let f = 0; f < run.frames; f += 1) {
      const value = column[f];
      if (value > TINY && value < low) low = value;
      if (value > high) high = value;
    }
  }
  const tolerance = run.facts.result?.tolerance;
  if (tolerance && !run.facts.result.proof) low = Math.min(low, tolerance);
  return [10 ** Math.floor(Math.log10(Math.min(low, high)) - 0.01), 10 ** Math.ceil(Math.log10(high) + 0.01)];
}

export function paintError(pen, run, scale) {
  const colours = palette();
  const { X, Y, box } = scale;
  const found = columns(run, scale, 1.5 * pen.ratio);
  const line = (column) => (path) => {
    let down = false;
    for (const [, f] of found) {
      const value = column[f];
      if (!(value > TINY)) {
        down = false;
        continue;
      }
      if (down) path.lineTo(X(run.time(f)), Y(value));
      else path.moveTo(X(run.time(f)), Y(value));
      down = true;
    }
  };
  pen.path(line(run.spread), { stroke: colours.faint, width: 1.2, dash: [1, 3], cap: "round" });
  pen.path(line(run.error), { stroke: colours.hidden, width: 2 });
  const { result } = run.facts;
  if (result?.tolerance && !result.proof) level(pen, scale, result.tolerance, { stroke: colours.text, dash: [6, 4], alpha: 0.7 });
}
