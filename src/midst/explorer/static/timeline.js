// Time: play, pause, step, scrub. The slider runs along the same scale as the charts.

import { el, icon, whole } from "./dom.js";

const STEPS = 1000;
const ICONS = {
  first: "M2 3h2v10H2zM14 3v10L5 8z", back: "M12 3v10L4 8z", play: "M4 2v12l10-6z", pause: "M3 2h4v12H3zM9 2h4v12H9z",
  on: "M4 3v10l8-5z", last: "M12 3h2v10h-2zM2 3v10l9-5z",
};
const SPEEDS = [["0.25", "¼×"], ["0.5", "½×"], ["1", "1×"], ["2", "2×"], ["4", "4×"]];

export class Timeline {
  constructor(element, app) {
    this.app = app;
    const button = (label, name, act) => el("button", { type: "button", ariaLabel: label, title: label, onclick: act }, icon(ICONS[name]));
    this.play = button("Play", "play", () => app.toggle());
    this.slider = el("input", { type: "range", min: 0, max: STEPS, step: 1, ariaLabel: "Iteration", id: "slider" });
    this.slider.addEventListener("input", () => app.scrub(this.at(Number(this.slider.value) / STEPS)));
    this.output = el("output", { htmlFor: "slider" });
    this.speed = el("select", { ariaLabel: "Speed" }, ...SPEEDS.map(([value, words]) => el("option", { value, selected: value === "1" }, words)));
    element.append(
      el("div", { className: "buttons" },
        button("First iteration", "first", () => app.scrub(0)),
        button("One iteration back", "back", () => app.scrub(app.t - 1)),
        this.play,
        button("One iteration on", "on", () => app.scrub(app.t + 1)),
        button("Last iteration", "last", () => app.scrub(app.last))),
      this.slider, this.output, this.speed);
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.app.ready) return;
    const on = event.target;
    const writes = on.matches?.("input:not([type=range]):not([type=checkbox]), select, textarea");
    if (writes || (event.key === " " && on.matches?.("button, summary, input[type=checkbox]"))) return;
    const stride = event.shiftKey ? 10 : 1;
    const { app } = this;
    const acts = {
      " ": () => app.toggle(),
      ArrowLeft: () => app.scrub(app.t - stride),
      ArrowRight: () => app.scrub(app.t + stride),
      Home: () => app.scrub(0),
      End: () => app.scrub(app.last),
    };
    if (!acts[event.key]) return;
    acts[event.key]();
    event.preventDefault();
  }

  // Where an iteration lies on the slider, from 0 to 1, and back.
  place(t) {
    const { last, bends: log } = this.app;
    return last ? (log ? Math.log1p(t) / Math.log1p(last) : t / last) : 0;
  }

  at(place) {
    const { last, bends: log } = this.app;
    return Math.round(log ? Math.expm1(place * Math.log1p(last)) : place * last);
  }

  // Seconds that a run takes to play.
  get length() {
    return Math.min(9, Math.max(3, this.app.last * 0.15)) / Number(this.speed.value);
  }

  draw(app) {
    this.slider.value = String(Math.round(this.place(app.t) * STEPS));
    const step = app.live ? "step" : "probe";
    this.slider.setAttribute("aria-valuetext", `${app.searches ? step : "iteration"} ${app.t} of ${app.last}`);
    const text = `${app.searches ? step : "t ="} ${whole(app.t)} of ${whole(app.last)}`;
    if (this.output.textContent !== text) this.output.textContent = text;
    const label = app.playing ? "Pause" : "Play";
    if (this.play.title !== label) {
      this.play.title = this.play.ariaLabel = label;
      this.play.replaceChildren(icon(ICONS[app.playing ? "pause" : "play"]));
    }
  }
}
