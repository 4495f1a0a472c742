// The picture of a run, for a file (PNG, SVG): every view as it is shown, with its title, axes, legend and the time.

import { STATES, palette } from "./palette.js";
import { CanvasPen, SvgPen } from "./pen.js";
import { give } from "./saving.js";

const EDGE = 16;
const GAP = 26; // between views
const TOP = 70; // what the whole is about
const TITLE = 22;
const LINE = 17; // of a legend
const LETTER = 6; // pixels, about

// The mark of a legend, in a box of 18 by 10 around (x, y).
const MARKS = {
  line: (pen, x, y, c) => pen.rect(x, y - 1, 18, 2, { fill: c.hidden }),
  plateau: (pen, x, y, c) => pen.rect(x, y - 2.5, 18, 5, { fill: c.exposed }),
  answer: (pen, x, y, c) => pen.path((path) => (path.moveTo(x, y), path.lineTo(x + 18, y)), { stroke: c.text, width: 1.5, dash: [5, 3] }),
  own: (pen, x, y, c) => pen.rect(x + 4, y - 1.5, 10, 3, { fill: c.value }),
  interval: (pen, x, y, c) => pen.path((path) => path.rect(x + 2, y - 5, 14, 10), { fill: c.faint, stroke: c.faint, alpha: 0.4 }),
  bound: (pen, x, y, c) => pen.rect(x + 3, y - 6, 12, 12, { fill: c.bound, alpha: 0.32 }),
  now: (pen, x, y, c) => pen.shape("circle", x + 9, y, 3, { fill: c.text }),
  bits: (pen, x, y, c) => pen.rect(x + 4, y - 6, 10, 12, { fill: c.hidden, alpha: 0.85 }),
  floor: (pen, x, y, c) => pen.rect(x + 4, y - 6, 10, 12, { fill: c.hidden, alpha: 0.42 }),
  clip: (pen, x, y, c) => pen.path((path) => {
    for (const end of [y - 6, y + 6]) [path.moveTo(x + 6, end), path.lineTo(x + 12, end)];
    path.moveTo(x + 9, y - 6);
    path.lineTo(x + 9, y + 6);
  }, { stroke: c.faint, width: 2 }),
  edges: (pen, x, y, c) => pen.rect(x + 3, y - 6, 12, 12, { fill: c.edge, alpha: 0.5 }),
  apart: (pen, x, y, c) => pen.path((path) => (path.moveTo(x, y), path.lineTo(x + 18, y)), { stroke: c.faint, width: 1.5, dash: [1, 3], cap: "round" }),
};

function mark(pen, name, x, y) {
  const state = STATES.find((each) => each.name === name);
  if (state) pen.shape(state.shape, x + 9, y, 5, { fill: palette()[name] });
  else MARKS[name]?.(pen, x, y, palette());
}

// The legend of a view, as it stands on the page, in lines that fit; the name of a mark, and its words.
function legend(figure, width) {
  const shown = [...figure.querySelectorAll(".key > span")].filter((span) => span.offsetWidth && span.textContent);
  const lines = [[]];
  let room = width;
  for (const span of shown) {
    const words = span.textContent.replace(/^[●◆■▲○▒]/u, "");
    const name = span.querySelector("i") ? span.querySelector("i").className || span.className : "";
    const length = (name ? 24 : 0) + LETTER * words.length + 14;
    if (length > room && lines.at(-1).length) {
      lines.push([]);
      room = width;
    }
    lines.at(-1).push({ name, words, at: width - room });
    room -= length;
  }
  return lines.filter((line) => line.length);
}

// The views that are there, by column: where they are on the page, and how each is drawn.
function blocks(panel, view) {
  const { sizes, run } = panel;
  const network = (pen, width, height) => {
    const at = panel.network.lay(width, height);
    panel.network.drawEdges(pen, at);
    panel.network.drawNodes(pen, at, view);
  };
  const left = [["network", network], ["known", (pen, ...size) => panel.known.paint(pen, ...size, view)]];
  const right = run.search ? [["funnel", (pen, ...size) => panel.funnel.paint(pen, ...size, view)]] : [
    ["curves", (pen) => panel.curves.save(pen, view, "x")],
    ["error", (pen) => panel.error.save(pen, view, "error")],
  ];
  const make = ([name, paint]) => {
    const figure = panel.views.querySelector(`.of-${name}`);
    const [width, height] = sizes[name];
    const title = figure.querySelector("figcaption").textContent;
    const key = legend(figure, width);
    return { title, paint, key, width, height, whole: TITLE + height + 8 + LINE * key.length };
  };
  return [left, right].map((column) => column.filter(([name]) => sizes[name][0]).map(make));
}

function compose(pen, panel, columns, [width, height]) {
  const colours = palette();
  pen.rect(0, 0, width, height, { fill: colours.card });
  pen.text(panel.titleText, EDGE, 22, { fill: colours.text, size: 16, weight: 650 });
  pen.text(panel.outcomeText, EDGE, 42, { fill: colours.faint, size: 12 });
  pen.text(`midst: ${panel.about}`, EDGE, 59, { fill: colours.faint, size: 11 });
  let x = EDGE;
  for (const column of columns) {
    let y = TOP + 8;
    for (const block of column) {
      pen.at(x, y, () => paint(pen, block));
      y += block.whole + GAP;
    }
    x += Math.max(0, ...column.map((block) => block.width)) + GAP;
  }
}

function paint(pen, { title, paint: draw, key, width, height }) {
  const colours = palette();
  pen.text(title, 0, 8, { fill: colours.text, size: 13, weight: 650 });
  pen.at(0, TITLE, () => draw(pen, width, height));
  key.forEach((line, k) => {
    const y = TITLE + height + 14 + LINE * k;
    for (const { name, words, at } of line) {
      if (name) mark(pen, name, at, y);
      pen.text(words, at + (name ? 24 : 0), y, { fill: colours.faint, size: 11 });
    }
  });
}

function measure(panel, columns) {
  const widths = columns.map((column) => Math.max(0, ...column.map((block) => block.width)));
  const heights = columns.map((column) => column.reduce((sum, block) => sum + block.whole + GAP, 0));
  const words = LETTER * Math.max(panel.outcomeText.length, panel.about.length + 7);
  return [Math.ceil(2 * EDGE + Math.max(widths[0] + GAP + widths[1], words)), Math.ceil(TOP + Math.max(...heights))];
}

export function saveSvg(panel, view, name) {
  const columns = blocks(panel, view);
  const size = measure(panel, columns);
  const pen = new SvgPen(...size, `${panel.titleText}. ${panel.outcomeText}`);
  compose(pen, panel, columns, size);
  give([pen.toString()], "image/svg+xml", `${name}.svg`);
}

export function savePng(panel, view, name) {
  const columns = blocks(panel, view);
  const size = measure(panel, columns);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = size.map((each) => 2 * each);
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  compose(new CanvasPen(context), panel, columns, size);
  canvas.toBlob((blob) => give([blob], "image/png", `${name}.png`));
}
