// Settings, the time and the node in the address: reloading it, or opening it elsewhere, gives the same page. Own
// numbers are private and never in it; an own graph is while it is small.

const LONGEST = 2000; // characters of a setting

export function readLink() {
  const state = { a: {}, b: {}, compare: false, t: null, node: null, values: null, log: true };
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
    if (/^[ab]\./.test(key)) state[key[0]][key.slice(2)] = value;
    else if (key === "compare") state.compare = value === "1";
    else if (key === "t" || key === "node") state[key] = /^\d{1,9}$/.test(value) ? Number(value) : null;
    else if (key === "values") state.values = value === "1";
    else if (key === "axis") state.log = value !== "linear";
  }
  return state;
}

export function writeLink({ settings, compare, t, node, values, log }) {
  const hash = new URLSearchParams();
  for (const side of compare ? ["a", "b"] : ["a"]) {
    for (const [name, value] of Object.entries(settings[side])) if (value.length <= LONGEST) hash.set(`${side}.${name}`, value);
  }
  if (compare) hash.set("compare", "1");
  if (t !== null) hash.set("t", t);
  if (node !== null) hash.set("node", node);
  if (values !== null) hash.set("values", values ? "1" : "0");
  if (!log) hash.set("axis", "linear");
  try {
    history.replaceState(null, "", `#${hash}`);
  } catch {
    // a page within a page may have no address of its own
  }
}
