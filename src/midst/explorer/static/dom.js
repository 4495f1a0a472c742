// Elements, and numbers for people.

export const MANY = 400; // nodes, which are too many to be looked at one by one: a view shows where they crowd

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list" && name !== "form") element[name] = value;
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// A small drawing in one colour, from the path of an SVG of 16 by 16.
export function icon(path) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS("http://www.w3.org/2000/svg", "path");
  shape.setAttribute("d", path);
  svg.append(shape);
  return svg;
}

export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  const size = Math.abs(value);
  const far = size !== 0 && (size < 1e-3 || size >= 10 ** Math.max(digits, 6));
  const plain = far ? value.toExponential(digits - 1).replace(/\.?0*e\+?/, "e") : String(Number(value.toPrecision(digits)));
  return plain.replaceAll("-", "−");
}

// Numbers along an axis: with as many digits as tell them apart.
export function labels(values) {
  const tries = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13].map((digits) => values.map((value) => number(value, digits)));
  return tries.find((texts) => new Set(texts).size === values.length) ?? tries[0];
}

// The name of a node where there is little room: of a long one both ends.
export function shorten(label, most) {
  return label.length <= most ? label : `${label.slice(0, most - 5)}…${label.slice(-4)}`;
}

export function whole(value) {
  return value.toLocaleString("en-GB");
}

export function plural(count, one, many = `${one}s`) {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

// A canvas that is as sharp as the screen, and knows its size in CSS pixels.
export function fit(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}
