// The states a node can be in, each with a colour, a shape and words; colours live in the style sheet.

export const HIDDEN = 0, SENDING = 1, EXPOSED = 2, CORRUPT = 3, UNKNOWN = 4, HERE = 5, AWAITED = 6;

export const STATES = [
  { name: "hidden", shape: "circle", mark: "●", words: "not exposed so far" },
  { name: "sending", shape: "diamond", mark: "◆", words: "sends its own number now" },
  { name: "exposed", shape: "square", mark: "■", words: "exposed" },
  { name: "corrupt", shape: "triangle", mark: "▲", words: "corrupt" },
  { name: "unknown", shape: "circle", mark: "○", words: "another party: not shown" },
  { name: "here", shape: "circle", mark: "●", words: "its contribution is here" },
  { name: "awaited", shape: "circle", mark: "○", words: "its contribution is awaited" },
];

const NAMES = [
  "hidden", "sending", "exposed", "corrupt", "unknown", "here", "awaited",
  "text", "faint", "line", "edge", "card", "value", "bound",
];
let colours = null;

export function palette() {
  if (colours === null) {
    const style = getComputedStyle(document.documentElement);
    colours = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }
  return colours;
}

export function onTheme(redraw) {
  for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) {
    matchMedia(query).addEventListener("change", () => {
      colours = null;
      redraw();
    });
  }
}
