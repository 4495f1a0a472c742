// What can be taken away: the numbers (CSV), the picture (PNG, SVG), and the page itself, as they are shown.

import { palette } from "./palette.js";
import { CanvasPen, SvgPen } from "./pen.js";

const ROWS = 500; // of a table, made into text at a time
const GAP = 16;

function give(parts, type, name) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const quote = (label) => (/[",\n]/.test(label) ? `"${label.replaceAll('"', '""')}"` : label);

function saveCells(run, name) {
  const cells = run.search.rows.flatMap(({ step, ends, totals }) => totals.map((total, k) => [step + 1, ends[k], ends[k + 1], total].join(",")));
  give([`probe,above,up_to,total\n${cells.join("\n")}\n`], "text/csv", `${name}.csv`);
}

export function saveCsv(run, name) {
  if (run.search) {
    saveCells(run, name);
    return;
  }
  const each = (prefix) => run.labels.map((label) => quote(`${prefix}_${label}`));
  const parts = [["t", "error", "spread", ...each("x"), ...each("sends_own")].join(",") + "\n"];
  const inside = run.labels.map((_, i) => run.plateaus(i));
  for (let begin = 0; begin < run.frames; begin += ROWS) {
    let text = "";
    for (let f = begin; f < Math.min(begin + ROWS, run.frames); f += 1) {
      const t = run.time(f);
      const row = [t, run.error[f], run.spread[f]];
      for (let i = 0; i < run.n; i += 1) row.push(run.x(f, i));
      for (let i = 0; i < run.n; i += 1) row.push(Number(inside[i].some(([start, stop]) => start <= t && t < stop)));
      text += `${row.join(",")}\n`;
    }
    parts.push(text);
  }
  give(parts, "text/csv", `${name}.csv`);
}

export function savePage(page, name) {
  give([page], "text/html", `${name}.html`);
}

// Network and curves above, bounds and error below, each as large as on the page; of a search, the funnel beside both.
function compose(pen, panel, view, [width, height]) {
  const colours = palette();
  const sizes = panel.sizes;
  pen.rect(0, 0, width, height, { fill: colours.card });
  pen.text(panel.titleText, GAP, 20, { fill: colours.text, size: 15, weight: 650 });
  pen.text(panel.outcomeText, GAP, 40, { fill: colours.faint, size: 12 });
  const { search } = panel.run;
  const [top, below] = [56, 56 + Math.max(sizes.network[1], search ? 0 : sizes.curves[1]) + GAP];
  const beside = Math.max(sizes.network[0], sizes.known[0]) + GAP;
  pen.at(0, top, () => {
    const at = panel.network.lay(...sizes.network);
    panel.network.drawEdges(pen, at);
    panel.network.drawNodes(pen, at, view);
  });
  if (sizes.known[0]) pen.at(0, below, () => panel.known.paint(pen, ...sizes.known, view));
  if (search) {
    pen.at(beside, top, () => panel.funnel.paint(pen, ...sizes.funnel, view));
    return;
  }
  pen.at(beside, top, () => panel.curves.save(pen));
  pen.at(beside, below, () => panel.error.save(pen));
}

function sizeOf({ sizes }) {
  const width = Math.max(sizes.network[0], sizes.known[0]) + GAP + Math.max(sizes.curves[0], sizes.error[0], sizes.funnel[0]);
  const rows = Math.max(sizes.network[1], sizes.curves[1]) + GAP + Math.max(sizes.known[1], sizes.error[1]);
  const height = 56 + Math.max(rows, sizes.funnel[1]) + 8;
  return [Math.ceil(width), Math.ceil(height)];
}

export function saveSvg(panel, view, name) {
  const size = sizeOf(panel);
  const pen = new SvgPen(...size);
  compose(pen, panel, view, size);
  give([pen.toString()], "image/svg+xml", `${name}.svg`);
}

export function savePng(panel, view, name) {
  const size = sizeOf(panel);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = size.map((each) => 2 * each);
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  compose(new CanvasPen(context), panel, view, size);
  canvas.toBlob((blob) => give([blob], "image/png", `${name}.png`));
}
