// The same strokes on a canvas and in an SVG, so that what is saved is what is seen.

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

function corners(kind, x, y, r) {
  if (kind === "square") return [[x - r, y - r], [x + r, y - r], [x + r, y + r], [x - r, y + r]];
  if (kind === "diamond") return [[x, y - 1.35 * r], [x + 1.35 * r, y], [x, y + 1.35 * r], [x - 1.35 * r, y]];
  return [[x, y - 1.2 * r], [x + 1.1 * r, y + 0.8 * r], [x - 1.1 * r, y + 0.8 * r]];
}

export class CanvasPen {
  constructor(context, ratio = 1) {
    this.context = context;
    this.ratio = ratio;
  }

  path(trace, { stroke = null, fill = null, width = 1, dash = [], alpha = 1, cap = "butt" } = {}) {
    const { context, ratio } = this;
    context.beginPath();
    trace(context);
    context.globalAlpha = alpha;
    if (fill) {
      context.fillStyle = fill;
      context.fill();
    }
    if (stroke) {
      context.strokeStyle = stroke;
      context.lineWidth = width * ratio;
      context.lineCap = cap;
      context.lineJoin = "round";
      context.setLineDash(dash.map((each) => each * ratio));
      context.stroke();
      context.setLineDash([]);
    }
    context.globalAlpha = 1;
  }

  shape(kind, x, y, r, style) {
    const radius = r * this.ratio;
    this.path((path) => {
      if (kind === "circle") {
        path.arc(x, y, radius, 0, 2 * Math.PI);
        return;
      }
      corners(kind, x, y, radius).forEach(([a, b], k) => (k ? path.lineTo(a, b) : path.moveTo(a, b)));
      path.closePath();
    }, style);
  }

  rect(x, y, w, h, { fill, alpha = 1 }) {
    this.context.globalAlpha = alpha;
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, w, h);
    this.context.globalAlpha = 1;
  }

  text(words, x, y, { fill, size = 11, align = "left", weight = 400, baseline = "middle" }) {
    const { context } = this;
    context.font = `${weight} ${size * this.ratio}px ${FONT}`;
    context.fillStyle = fill;
    context.textAlign = align;
    context.textBaseline = baseline;
    context.fillText(words, x, y);
  }

  clip(x, y, w, h, draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, w, h);
    this.context.clip();
    draw();
    this.context.restore();
  }

  // Draws something as if its corner were elsewhere.
  at(x, y, draw) {
    this.context.save();
    this.context.translate(x, y);
    draw();
    this.context.restore();
  }
}

const round = (value) => Math.round(value * 100) / 100;
const escape = (words) => words.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

export class SvgPen {
  constructor(width, height, title) {
    this.title = title;
    this.size = [width, height];
    this.ratio = 1;
    this.parts = [];
    this.clips = 0;
  }

  path(trace, { stroke = null, fill = null, width = 1, dash = [], alpha = 1, cap = "butt" } = {}) {
    const d = [];
    trace({
      moveTo: (x, y) => d.push(`M${round(x)} ${round(y)}`),
      lineTo: (x, y) => d.push(`L${round(x)} ${round(y)}`),
      closePath: () => d.push("Z"),
      rect: (x, y, w, h) => d.push(`M${round(x)} ${round(y)}h${round(w)}v${round(h)}h${round(-w)}Z`),
    });
    if (!d.length) return;
    const line = stroke ? ` stroke="${stroke}" stroke-width="${width}" stroke-linecap="${cap}" stroke-linejoin="round"` : "";
    const dashes = stroke && dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    this.parts.push(`<path d="${d.join("")}" fill="${fill ?? "none"}"${line}${dashes} opacity="${alpha}"/>`);
  }

  shape(kind, x, y, r, style) {
    const { stroke = "none", fill = "none", width = 1, alpha = 1 } = style;
    const paint = `fill="${fill ?? "none"}" stroke="${stroke ?? "none"}" stroke-width="${width}" opacity="${alpha}"`;
    if (kind === "circle") {
      this.parts.push(`<circle cx="${round(x)}" cy="${round(y)}" r="${round(r)}" ${paint}/>`);
      return;
    }
    const points = corners(kind, x, y, r).map((point) => point.map(round).join(",")).join(" ");
    this.parts.push(`<polygon points="${points}" ${paint}/>`);
  }

  rect(x, y, w, h, { fill, alpha = 1 }) {
    const place = `x="${round(x)}" y="${round(y)}" width="${round(Math.max(w, 0))}" height="${round(Math.max(h, 0))}"`;
    this.parts.push(`<rect ${place} fill="${fill}" opacity="${alpha}"/>`);
  }

  text(words, x, y, { fill, size = 11, align = "left", weight = 400, baseline = "middle" }) {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    const base = { middle: "central", top: "hanging", bottom: "auto" }[baseline] ?? "auto";
    const look = `fill="${fill}" font-size="${size}" font-weight="${weight}" text-anchor="${anchor}"`;
    const place = `x="${round(x)}" y="${round(y)}" dominant-baseline="${base}"`;
    this.parts.push(`<text ${place} ${look}>${escape(words)}</text>`);
  }

  clip(x, y, w, h, draw) {
    const id = `c${(this.clips += 1)}`;
    const box = `<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}"/>`;
    this.parts.push(`<clipPath id="${id}">${box}</clipPath><g clip-path="url(#${id})">`);
    draw();
    this.parts.push("</g>");
  }

  at(x, y, draw) {
    this.parts.push(`<g transform="translate(${round(x)} ${round(y)})">`);
    draw();
    this.parts.push("</g>");
  }

  toString() {
    const [width, height] = this.size;
    const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
    return `${head} font-family='${FONT}' role="img"><title>${escape(this.title)}</title>${this.parts.join("")}</svg>`;
  }
}
