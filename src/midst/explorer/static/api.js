// Where runs come from: the server, or the page itself, which then has them in it (page.py). Both are asked alike:
//
//   hello()                       which page this is, and what can be set
//   run(side, settings, signal)   what happens, as events: "run" and "audit" when these parts are there; "done" in the end
//   part(run, name, signal)       facts and arrays
//
// The server can also be followed (live), and makes pages (page). The token comes with the address that was opened, and
// is sent in a header.

const KEY = "midst-token";

export class Refused extends Error {
  constructor(fields) {
    super(Object.values(fields).join("; "));
    this.fields = fields;
  }
}

// Facts and arrays, as packing.py lays them out.
function unpack(buffer) {
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

class Server {
  constructor() {
    this.client = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    this.takeToken();
  }

  // Takes the token out of the address, so that it is in no link that is copied.
  takeToken() {
    const hash = new URLSearchParams(location.hash.slice(1));
    if (!hash.has("token")) return;
    localStorage.setItem(KEY, hash.get("token"));
    hash.delete("token");
    history.replaceState(null, "", `${location.pathname}${hash.size ? `#${hash}` : ""}`);
  }

  async ask(path, options = {}) {
    const headers = { "x-midst-token": localStorage.getItem(KEY) ?? "", "x-midst-client": this.client, ...options.headers };
    const answer = await fetch(path, { ...options, headers, referrerPolicy: "no-referrer" });
    if (answer.ok) return answer;
    const said = await answer.json().catch(() => ({}));
    throw Object.assign(new Error(said.text ?? `the server said ${answer.status}`), { status: answer.status });
  }

  async hello() {
    return (await this.ask("/api/hello")).json();
  }

  // A run that was just cancelled may take a moment to be gone.
  async begin(options, tries = 20) {
    try {
      return await this.ask("/api/runs", options);
    } catch (error) {
      if (error.status !== 409 || tries === 0 || options.signal.aborted) throw error;
      await pause(150);
      return this.begin(options, tries - 1);
    }
  }

  async *run(side, settings, signal) {
    const body = JSON.stringify(settings);
    const answer = await this.begin({ method: "POST", body, signal, headers: { "content-type": "application/json" } });
    for await (const event of events(answer)) {
      if (event.kind === "refused") throw new Refused(event.fields);
      if (event.kind === "failed") throw new Error(event.text);
      yield event;
      if (event.kind === "done") return;
    }
    if (!signal.aborted) throw new Error("the connection to midst was lost; is it still running?");
  }

  async part(run, name, signal) {
    return unpack(await (await this.ask(`/api/runs/${run}/${name}`, { signal })).arrayBuffer());
  }

  async *live(signal) {
    yield* events(await this.ask("/api/live", { signal }));
  }

  // One file with these runs in it, and the own numbers only if they are asked for.
  async page(runs, values) {
    return (await this.ask(`/api/page?${new URLSearchParams([...runs.map((run) => ["run", run]), ["values", Number(values)]])}`)).blob();
  }
}

class Enclosed {
  constructor(hello) {
    this.greeting = hello;
  }

  async hello() {
    return JSON.parse(this.greeting.textContent);
  }

  async *run(side) {
    yield { kind: "run", run: side };
    yield { kind: "audit", run: side };
  }

  async part(side, name) {
    if (!globalThis.DecompressionStream) throw new Error("this browser is too old for the page; try one of 2023 or later");
    try {
      const text = atob(document.getElementById(`${side}.${name}`).textContent);
      const bytes = new Uint8Array(text.length);
      for (let k = 0; k < text.length; k += 1) bytes[k] = text.charCodeAt(k);
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      return unpack(await new Response(stream).arrayBuffer());
    } catch {
      throw new Error("this file is damaged, or not all of it is here; get it again from where it came");
    }
  }
}

const enclosed = document.getElementById("hello");
export const source = enclosed ? new Enclosed(enclosed) : new Server();
