// The network: who talks to whom, and in which state each is. Edges are drawn once, nodes in every frame.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "./vendor/d3-force.js";
import { MANY, el, fit, shorten } from "./dom.js";
import { AWAITED, CORRUPT, EXPOSED, HERE, HIDDEN, SENDING, STATES, UNKNOWN, palette } from "./palette.js";
import { CanvasPen } from "./pen.js";

const MOST_EDGES = 1500; // drawn one by one; of more it is drawn how close they lie
const CELL = 7; // pixels, in which edges are counted
const MOST_PULLED = 20000; // edges that a layout by forces can bear
const NUMBERED = 40;
const BUDGET = 8; // milliseconds of a frame for the layout

function circle(n) {
  return Array.from({ length: n }, (_, i) => {
    const angle = (2 * Math.PI * i) / n - Math.PI / 2;
    return { index: i, x: Math.cos(angle) * 20 * Math.sqrt(n), y: Math.sin(angle) * 20 * Math.sqrt(n) };
  });
}

export class Network {
  constructor(choose, hover) {
    this.back = el("canvas", { className: "layer", ariaHidden: "true" });
    this.front = el("canvas", { className: "layer", tabIndex: 0 });
    this.front.setAttribute("role", "img");
    this.element = el("div", { className: "canvas network" }, this.back, this.front);
    this.run = null;
    this.front.addEventListener("pointermove", (event) => hover(this.hit(event)));
    this.front.addEventListener("pointerleave", () => hover(null));
    this.front.addEventListener("click", (event) => choose(this.hit(event)));
    this.front.addEventListener("keydown", (event) => {
      if (!this.run || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
      const from = this.chosen ?? (event.key === "ArrowDown" ? -1 : this.run.n);
      this.chosen = (from + (event.key === "ArrowDown" ? 1 : this.run.n - 1)) % this.run.n; // before it is drawn
      choose(this.chosen, true);
      event.preventDefault();
    });
  }

  show(run, redraw) {
    this.simulation?.stop();
    this.run = run;
    this.short = run.labels.every((label) => label.length <= 3);
    this.settled = true;
    const round = run.edges.length === run.n * (run.n - 1) || this.isRing();
    if (run.places) {
      this.nodes = Array.from({ length: run.n }, (_, i) => ({ x: run.places[2 * i], y: -run.places[2 * i + 1] }));
      this.part();
    } else {
      this.nodes = circle(run.n);
      if (!round && run.edges.length / 2 <= MOST_PULLED) this.arrange(redraw);
    }
  }

  // Whether edges are counted, and not drawn one by one.
  get crowded() {
    return this.run.edges.length / 2 > MOST_EDGES;
  }

  isRing() {
    const { n, edges } = this.run;
    const next = (k) => [1, n - 1].includes(Math.abs(edges[2 * k] - edges[2 * k + 1]));
    return edges.length === 2 * n && Array.from({ length: n }, (_, k) => k).every(next);
  }

  // Moves nodes a little that would hide each other.
  part() {
    const xs = this.nodes.map((node) => node.x);
    const ys = this.nodes.map((node) => node.y);
    const reach = Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys)) || 1;
    for (const node of this.nodes) {
      node.x *= 400 / reach;
      node.y *= 400 / reach;
      [node.home, node.level] = [node.x, node.y];
    }
    forceSimulation(this.nodes)
      .force("x", forceX((node) => node.home))
      .force("y", forceY((node) => node.level))
      .force("apart", forceCollide(this.run.n <= NUMBERED ? 26 : Math.min(9, 190 / Math.sqrt(this.run.n))))
      .stop()
      .tick(60);
  }

  arrange(redraw) {
    const { n, edges } = this.run;
    const links = Array.from({ length: edges.length / 2 }, (_, k) => ({ source: edges[2 * k], target: edges[2 * k + 1] }));
    const simulation = forceSimulation(this.nodes)
      .force("link", forceLink(links).distance(40))
      .force("charge", forceManyBody().strength(n > 500 ? -60 : -140))
      .force("x", forceX().strength(0.03))
      .force("y", forceY().strength(0.09))
      .alphaDecay(n > 500 ? 0.05 : 0.03)
      .stop();
    this.simulation = simulation;
    this.settled = false;
    if (n <= 60 || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      while (simulation.alpha() > simulation.alphaMin()) simulation.tick();
      this.settled = true;
      return;
    }
    const go = () => {
      if (this.simulation !== simulation) return;
      const until = performance.now() + BUDGET;
      while (performance.now() < until && simulation.alpha() > simulation.alphaMin()) simulation.tick();
      this.settled = simulation.alpha() <= simulation.alphaMin();
      redraw();
      if (!this.settled) requestAnimationFrame(go);
    };
    requestAnimationFrame(go);
  }

  get radius() {
    const { n } = this.run;
    return n <= 8 ? 17 : n <= NUMBERED ? 13 : Math.max(2.2, Math.min(8, 90 / Math.sqrt(n)));
  }

  // Where each node lies in a picture of this size.
  lay(width, height) {
    const room = this.radius * 1.9 + 6;
    let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { x, y } of this.nodes) {
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
    const across = (width - 2 * room) / (right - left || 1);
    const down = (height - 2 * room) / (bottom - top || 1);
    // of many, no shape is to be seen, and all the room is theirs
    const [w, h] = this.run.n > MANY ? [across, down] : [Math.min(across, down), Math.min(across, down)];
    const [dx, dy] = [(width - w * (left + right)) / 2, (height - h * (top + bottom)) / 2];
    return this.nodes.map(({ x, y }) => [x * w + dx, y * h + dy]);
  }

  redraw() {
    if (!this.run || !this.element.clientWidth) return;
    const { context, width, height } = fit(this.back);
    this.at = this.lay(width, height);
    this.drawEdges(new CanvasPen(context), this.at);
  }

  draw(view) {
    if (!this.run || !this.element.clientWidth) return;
    if (!this.at || !this.settled) this.redraw();
    this.chosen = view.node;
    const { context } = fit(this.front);
    this.drawNodes(new CanvasPen(context), this.at, view);
    this.front.setAttribute("aria-label", this.describe(view));
  }

  describe({ states, t }) {
    const count = (state) => states.reduce((sum, each) => sum + (each === state), 0);
    const told = count(HERE) + count(AWAITED) ? [HERE, AWAITED] : [HIDDEN, SENDING, EXPOSED];
    const parts = told.map((state) => `${count(state)} ${STATES[state].words}`);
    return `Network of ${this.run.n} nodes at ${this.run.search ? "probe" : "iteration"} ${t}: ${parts.join(", ")}. Up and down choose a node.`;
  }

  drawEdges(pen, at) {
    const { edges } = this.run;
    const count = edges.length / 2;
    if (this.crowded) {
      this.drawDensity(pen, at);
      return;
    }
    const alpha = Math.max(0.12, Math.min(0.9, 24 / Math.sqrt(count)));
    const [solid, broken] = [[], []];
    for (let k = 0; k < count; k += 1) {
      const pair = [at[edges[2 * k]], at[edges[2 * k + 1]]];
      const down = this.run.linked?.(edges[2 * k], edges[2 * k + 1]) === false;
      (down ? broken : solid).push(pair);
    }
    const trace = (pairs) => (path) => {
      for (const [from, to] of pairs) {
        path.moveTo(from[0], from[1]);
        path.lineTo(to[0], to[1]);
      }
    };
    pen.path(trace(solid), { stroke: palette().edge, width: count > 1000 ? 0.6 : 1.2, alpha });
    if (broken.length) pen.path(trace(broken), { stroke: palette().exposed, width: 1.5, dash: [3, 4] });
  }

  // How many edges cross each little cell, in four shades.
  drawDensity(pen, at) {
    const { edges } = this.run;
    const crossed = new Map();
    for (let k = 0; k < edges.length; k += 2) {
      const [[a, b], [c, d]] = [at[edges[k]], at[edges[k + 1]]];
      const steps = Math.max(1, Math.ceil(Math.hypot(c - a, d - b) / CELL));
      for (let step = 0; step <= steps; step += 1) {
        const x = Math.floor((a + ((c - a) * step) / steps) / CELL);
        const y = Math.floor((b + ((d - b) * step) / steps) / CELL);
        crossed.set(4096 * y + x, (crossed.get(4096 * y + x) ?? 0) + 1);
      }
    }
    const most = Math.log1p(Math.max(...crossed.values()));
    const shades = [[], [], [], []];
    for (const [cell, edgesHere] of crossed) shades[Math.min(3, Math.floor((4 * Math.log1p(edgesHere)) / most))].push(cell);
    shades.forEach((cells, shade) => {
      const trace = (path) => cells.forEach((cell) => path.rect(CELL * (cell % 4096), CELL * Math.floor(cell / 4096), CELL, CELL));
      pen.path(trace, { fill: palette().edge, alpha: 0.12 + 0.14 * shade });
    });
  }

  drawNodes(pen, at, { states, node, hover }) {
    const colours = palette();
    const { run, radius: r } = this;
    const marked = hover ?? node;
    if (marked !== null) {
      const near = [];
      for (let k = 0; k < run.edges.length; k += 2) {
        if (run.edges[k] === marked || run.edges[k + 1] === marked) near.push([at[run.edges[k]], at[run.edges[k + 1]]]);
      }
      const trace = (path) => near.forEach(([a, b]) => (path.moveTo(a[0], a[1]), path.lineTo(b[0], b[1])));
      pen.path(trace, { stroke: colours.text, width: 1.4, alpha: 0.65 });
    }
    for (let i = 0; i < run.n; i += 1) {
      if (states[i] !== SENDING) continue;
      pen.shape("circle", at[i][0], at[i][1], r * 2.1, { fill: colours.sending, alpha: 0.22 });
      pen.shape("circle", at[i][0], at[i][1], r * 1.65, { fill: colours.sending, alpha: 0.3 });
    }
    // of many, those that were caught lie above the others, and are larger
    const [below, above] = run.n > MANY ? [[HIDDEN, HERE], [SENDING, EXPOSED, CORRUPT, UNKNOWN, AWAITED]] : [STATES.keys(), []].map((each) => [...each]);
    for (const level of [below, above]) this.drawMarks(pen, at, states, level, marked);
  }

  drawMarks(pen, at, states, level, marked) {
    const colours = palette();
    const { run } = this;
    const r = run.n <= MANY ? this.radius : level[0] === HIDDEN ? 1.5 : 3.5;
    for (let i = 0; i < run.n; i += 1) {
      if (!level.includes(states[i])) continue;
      const { shape, name } = STATES[states[i]];
      const [x, y] = at[i];
      const hollow = states[i] === UNKNOWN || states[i] === AWAITED;
      const size = shape === "square" ? r * 0.92 : r;
      const outline = i === marked ? { stroke: colours.text, width: 2.5 } : { stroke: colours.card, width: r > 5 ? 1.5 : 0.5 };
      pen.shape(shape, x, y, size, hollow ? { fill: colours.card, stroke: colours[name], width: 1.5 } : { fill: colours[name], ...outline });
      if (run.n <= NUMBERED) this.drawLabel(pen, i, x, y, r, hollow);
    }
  }

  drawLabel(pen, i, x, y, r, hollow) {
    const label = this.run.labels[i];
    const colours = palette();
    if (this.short) {
      pen.text(label, x, y + 0.5, { fill: hollow ? colours.faint : colours.card, size: r * 0.85, align: "center", weight: 700 });
    } else {
      pen.text(shorten(label, 14), x, y + 1.35 * r + 8, { fill: colours.faint, size: 11, align: "center" });
    }
  }

  hit(event) {
    if (!this.run || !this.at) return null;
    const box = this.front.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    let nearest = (this.radius + 8) ** 2;
    this.at.forEach(([a, b], i) => {
      const distance = (a - x) ** 2 + (b - y) ** 2;
      if (distance < nearest) [best, nearest] = [i, distance];
    });
    return best;
  }
}
