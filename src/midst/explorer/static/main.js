// The page: what is shown, at which time, and who is chosen. Everything is drawn at most once a frame.

import { source } from "./api.js";
import { el } from "./dom.js";
import { readLink, writeLink } from "./link.js";
import { LiveRun } from "./models.js";
import { onTheme } from "./palette.js";
import { Panel } from "./panel.js";
import { Timeline } from "./timeline.js";
import { Tour } from "./tour.js";

const $ = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const AFTER = 250; // milliseconds of rest before the address follows

class App {
  constructor() {
    Object.assign(this, readLink());
    this.wanted = this.t; // the time that the link asks for, once there is a run
    this.hover = null;
    this.playing = false;
    this.follow = false;
    this.panels = {};
    this.t = 0;
    this.drawn = 0;
    this.said = 0;
    this.queue = Promise.resolve();
  }

  // What changes, and a frame in which to draw it.
  change(part) {
    Object.assign(this, part);
    if (!this.waiting) this.waiting = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.waiting = 0;
    if (!this.ready) return;
    for (const panel of this.sides) panel.draw(this);
    this.timeline.draw(this);
    this.drawn += 1;
    $("main").dataset.drawn = String(this.drawn);
    if (!this.live && !this.playing) this.remember();
  }

  remember() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      const { compare, t, node, values, log, panels } = this;
      const settings = { a: panels.a.settings, b: panels.b.settings };
      if (!this.started) writeLink({ settings, compare, t: this.ready ? t : this.wanted, node, values, log });
    }, AFTER);
  }

  get sides() {
    return this.compare ? [this.panels.a, this.panels.b] : [this.panels.a];
  }

  get ready() {
    return this.sides.some((panel) => panel?.run);
  }

  // Whether time counts the steps of searches, and nothing else.
  get searches() {
    return this.sides.every((panel) => !panel.run || panel.run.search);
  }

  // Whether time is shown along a logarithmic scale: a search has few steps.
  get bends() {
    return this.log && !this.searches;
  }

  get last() {
    return Math.max(0, ...this.sides.map((panel) => (panel.run ? panel.run.iterations - 1 : 0)));
  }

  showsValues(run) {
    return Boolean(run.values) && (this.values ?? !run.facts.file);
  }

  scrub(t) {
    const time = Math.min(Math.max(t, 0), this.last);
    this.follow = this.live && time === this.last;
    this.change({ t: time, playing: false });
  }

  toggle() {
    if (this.playing) {
      this.change({ playing: false });
      return;
    }
    this.play(this.t >= this.last ? 0 : this.t);
  }

  play(from) {
    let place = this.timeline.place(from);
    let before = null;
    this.follow = false;
    this.change({ playing: true, t: from });
    const go = (now) => {
      if (!this.playing) return;
      if (before !== null) place += (now - before) / 1000 / this.timeline.length;
      before = now;
      const done = place >= 1;
      this.change({ t: done ? this.last : this.timeline.at(place), playing: !done });
      if (!done) requestAnimationFrame(go);
    };
    requestAnimationFrame(go);
  }

  say(text, often = false) {
    const now = performance.now();
    if (often && now - this.said < 1000) return;
    this.said = now;
    $("status").textContent = text;
  }

  // Runs of these panels, one after the other.
  start(names, { playing = !calm.matches } = {}) {
    this.change({ playing: false });
    this.light();
    for (const name of names) this.panels[name].cancel();
    this.autoplay = playing;
    this.started = (this.started ?? 0) + 1;
    this.queue = this.queue.then(async () => {
      for (const name of names) await this.panels[name].make();
    }).finally(() => {
      this.started -= 1;
      this.change({});
    });
    return this.queue;
  }

  // A run is there: show it as the link says, from its beginning, or in the end.
  shown(panel) {
    if (this.live) return;
    const lastSide = this.sides.at(-1) === panel;
    if (this.wanted !== null) {
      this.scrub(this.wanted);
      if (lastSide) this.wanted = null;
    } else if (this.autoplay && lastSide) {
      this.play(0);
    } else {
      this.scrub(this.last);
    }
    $("sought").textContent = `the ${panel.run.facts.title}`;
    this.valuesBox.checked = this.showsValues(panel.run);
    this.valuesBox.disabled = !this.sides.some(({ run }) => run?.values);
  }

  setCompare(compare) {
    if (compare && !this.saved && !Object.keys(this.panels.b.settings).length) this.panels.b.form.like(this.panels.a.form);
    this.compare = compare;
    this.arrange();
    this.light();
    if (compare && !this.panels.b.run) this.start(["b"]);
    this.change({});
  }

  arrange() {
    const { a, b } = this.panels;
    $("main").replaceChildren(...this.sides.map((panel) => panel.element));
    $("main").classList.toggle("two", this.compare);
    const wide = matchMedia("(min-width: 1000px)").matches;
    for (const panel of [a, b]) {
      panel.tag.hidden = !this.compare;
      panel.fold.open = wide && !this.compare;
    }
    this.compareBox.checked = this.compare;
  }

  // Lights the preset that the settings are.
  light() {
    const sides = JSON.stringify(this.sides.map(({ form }) => Object.entries(form?.asked ?? {}).sort()));
    for (const { button, settings } of this.presets ?? []) button.setAttribute("aria-pressed", String(settings === sides));
  }

  redraw() {
    for (const panel of this.sides) panel.redraw();
  }
}

function box(words, checked, act) {
  const input = el("input", { type: "checkbox", checked });
  input.addEventListener("change", () => act(input.checked));
  return [input, el("label", { className: "switch" }, input, ` ${words}`)];
}

function tools(app, hasValues = true) {
  const [compareBox, compare] = box("Compare", app.compare, (on) => app.setCompare(on));
  const [valuesBox, values] = box("Show own numbers", true, (on) => {
    app.values = on;
    app.redraw();
  });
  const [, log] = box("Log time", app.log, (on) => {
    app.log = on;
    app.redraw();
  });
  const share = el("button", { type: "button", onclick: () => copyLink(app) }, "Copy link");
  app.compareBox = compareBox;
  app.valuesBox = valuesBox;
  const saved = [app.compare && compare, hasValues && values, log];
  const parts = app.live ? [log] : app.saved ? saved : [compare, values, log, share];
  $("tools").append(...parts.filter(Boolean));
}

async function copyLink(app) {
  const without = app.sides.some(({ form }) => form.hasOwnNumbers) ? "; your own numbers are not in it" : "";
  try {
    await navigator.clipboard.writeText(location.href);
    app.say(`The link is copied: it has all settings, the time and the node, and no token${without}.`);
  } catch {
    app.say(`The address of this page is the link: it has all settings, the time and the node${without}.`);
  }
}

function presetButtons(app, presets, fields) {
  const usual = Object.fromEntries(fields.map((field) => [field.name, field.default]));
  const differing = (settings) => Object.entries(settings).filter(([name, value]) => value !== usual[name]).sort();
  app.presets = presets.map(({ name, text, a, b }) => {
    const act = (options) => {
      app.wanted = null;
      app.node = null;
      app.panels.a.form.settings = a;
      app.panels.b.form.settings = b ?? {};
      app.panels.b.run = null;
      app.compare = Boolean(b);
      app.arrange();
      return app.start(b ? ["a", "b"] : ["a"], options).then(() => app.say(text));
    };
    const button = el("button", { type: "button", title: text, onclick: () => act() }, name);
    return { act, button, settings: JSON.stringify((b ? [a, b] : [a]).map(differing)) };
  });
  $("presets").append(...app.presets.map(({ button }) => button));
}

function startExplorer(app, { fields, presets, file }) {
  tools(app);
  for (const side of ["a", "b"]) {
    app.panels[side] = new Panel(side, app, { fields, file, say: (text, often) => app.say(text, often) });
    app.panels[side].form.settings = app[side];
  }
  const asked = Object.keys(app.a).length > 0 || app.compare;
  if (!asked) app.panels.a.form.settings = file ? { source: "file" } : presets[0].a;
  presetButtons(app, presets, fields);
  app.arrange();
  const [usual] = app.presets;
  const tour = new Tour(app, $("offer"), async () => {
    await app.queue;
    if (usual.button.ariaPressed !== "true" || !app.panels.a.run) await usual.act({ playing: false });
    return app.panels.a;
  });
  $("tools").append(tour.button);
  if (!asked && !file) tour.offer();
  app.start(app.compare ? ["a", "b"] : ["a"], { playing: !asked && !file && !calm.matches });
}

// A file with runs in it, which cannot make others.
function startSaved(app, { runs, values, version }) {
  app.saved = true;
  app.compare = runs > 1;
  document.documentElement.classList.toggle("framed", window !== window.parent);
  if (values) app.values ??= true;
  tools(app, values);
  $("presets").hidden = true;
  for (const side of ["a", "b"]) app.panels[side] = new Panel(side, app, { say: (text) => app.say(text) });
  app.arrange();
  app.start(app.compare ? ["a", "b"] : ["a"]).then(() => {
    if (app.ready) app.say(`Made with midst ${version}. The own numbers are ${values ? "" : "not "}in this file.`);
  });
}

async function startLive(app) {
  app.live = true;
  app.follow = true;
  app.compare = false;
  tools(app);
  $("presets").hidden = true;
  const panel = new Panel("a", app, { say: (text) => app.say(text) });
  panel.tag.hidden = true;
  app.panels.a = panel;
  $("main").append(panel.element);
  $("main").classList.add("live");
  app.say("Waiting for the network to start …");
  try {
    for await (const news of source.live(new AbortController().signal)) follow(app, panel, news);
    app.say("The network has ended; what was seen stays here.");
  } catch (error) {
    app.say(error instanceof TypeError ? "The network has ended; what was seen stays here." : error.message);
  }
}

function follow(app, panel, news) {
  if (news.start) {
    const { start } = news;
    $("sought").textContent = `the ${start.objective}`;
    panel.show(new LiveRun(start));
    app.say(start.all ? "Following the network." : `Following ${start.names[start.self]}, and nobody else.`);
    if (!start.all) app.node = start.self;
  }
  if (!panel.run) return;
  panel.run.take(news);
  for (const end of news.ends ?? []) app.say(`${panel.run.labels[end.node]}: ${end.text}`);
  const now = performance.now();
  if (now - (app.refreshed ?? 0) > 200 || news.ends) {
    app.refreshed = now;
    panel.redraw();
  } else {
    clearTimeout(app.later);
    app.later = setTimeout(() => panel.redraw(), 200);
  }
  if (app.follow) app.change({ t: app.last });
}

async function begin() {
  const app = new App();
  app.timeline = new Timeline($("time"), app);
  onTheme(() => app.redraw());
  try {
    const hello = await source.hello();
    if (hello.page === "live") await startLive(app);
    else if (hello.page === "saved") startSaved(app, hello);
    else startExplorer(app, hello);
  } catch (error) {
    app.say(error.message);
  }
}

begin();
