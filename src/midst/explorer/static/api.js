// Everything that goes over the wire. The token comes with the address that was opened, and is sent in a header.

const KEY = "midst-token";
const client = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export class Refused extends Error {
  constructor(fields) {
    super(Object.values(fields).join("; "));
    this.fields = fields;
  }
}

// Takes the token out of the address, so that it is in no link that is copied.
export function takeToken() {
  const hash = new URLSearchParams(location.hash.slice(1));
  if (!hash.has("token")) return;
  localStorage.setItem(KEY, hash.get("token"));
  hash.delete("token");
  history.replaceState(null, "", `${location.pathname}${hash.size ? `#${hash}` : ""}`);
}

async function ask(path, options = {}) {
  const headers = { "x-midst-token": localStorage.getItem(KEY) ?? "", "x-midst-client": client, ...options.headers };
  const answer = await fetch(path, { ...options, headers, referrerPolicy: "no-referrer" });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(said.text ?? `the server said ${answer.status}`), { status: answer.status });
}

export async function hello() {
  return (await ask("/api/hello")).json();
}

async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      if (block.startsWith("data: ")) yield JSON.parse(block.slice(6));
    }
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A run that was just cancelled may take a moment to be gone.
async function begin(options, tries = 20) {
  try {
    return await ask("/api/runs", options);
  } catch (error) {
    if (error.status !== 409 || tries === 0 || options.signal.aborted) throw error;
    await pause(150);
    return begin(options, tries - 1);
  }
}

export async function* run(settings, signal) {
  const body = JSON.stringify(settings);
  const answer = await begin({ method: "POST", body, signal, headers: { "content-type": "application/json" } });
  for await (const event of events(answer)) {
    if (event.kind === "refused") throw new Refused(event.fields);
    if (event.kind === "failed") throw new Error(event.text);
    yield event;
    if (event.kind === "done") return;
  }
  if (!signal.aborted) throw new Error("the connection to midst was lost; is it still running?");
}

export async function* live(signal) {
  yield* events(await ask("/api/live", { signal }));
}

// Facts and arrays, as packing.py lays them out.
export async function part(run, name, signal) {
  const buffer = await (await ask(`/api/runs/${run}/${name}`, { signal })).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const facts = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = {};
  for (const [key, { type, shape, at }] of Object.entries(facts.arrays)) {
    const count = shape.reduce((a, b) => a * b, 1);
    arrays[key] = new (type === "f64" ? Float64Array : Int32Array)(buffer, 4 + length + at, count);
  }
  delete facts.arrays;
  return { facts, arrays };
}
