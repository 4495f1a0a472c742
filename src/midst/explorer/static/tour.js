// Five steps over a run, for somebody who is here for the first time: offered, never in the way.

import { el, plural } from "./dom.js";

const KEY = "midst-toured";
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// What is said, at which time, about which node, beside which view.
function tell(run) {
  const everybody = run.labels.map((_, i) => i);
  const exposed = everybody.filter((i) => run.exposedAt(i) >= 0).sort((i, j) => run.exposedAt(i) - run.exposedAt(j));
  const [caught, last] = [exposed[0], run.iterations - 1];
  const hidden = everybody.find((i) => !exposed.includes(i)) ?? caught;
  const at = run.exposedAt(caught);
  return [
    {
      view: "of-network", t: 0, node: null,
      text: `${plural(run.n, "node")}, each with a number of its own. In every iteration each sends one number to its neighbours, and nothing else.`,
    },
    {
      view: "of-curves", t: Math.floor(at * 0.8), node: caught,
      text: `Node ${run.labels[caught]} sends its own number, clipped to the grey interval. What its neighbours send moves the interval; it has not come to the number yet.`,
    },
    {
      view: "of-curves", t: at, node: caught,
      text: "Now the interval reaches over the number, and the number itself is sent. The node lights up: whoever listens knows its number from here on.",
    },
    {
      view: "of-known", t: Math.min(2 * at, last), node: hidden,
      text: `Node ${run.labels[hidden]}'s interval passed its number by. Of such a node only bounds become known: the bars are all that a listener can prove so far.`,
    },
    {
      view: "of-curves", t: last, node: null,
      text: `In the end all send the ${run.facts.title}. ${exposed.length} of ${run.n} were exposed on the way. Drag a green dot at the right edge, or start near the answer, and see who is caught.`,
    },
  ];
}

export class Tour {
  // `begin` brings the run that is told about, and gives its panel.
  constructor(app, place, begin) {
    Object.assign(this, { app, place, begin });
    this.button = el("button", { type: "button", onclick: () => this.start() }, "Tour");
    this.words = el("p", { ariaLive: "polite" });
    this.count = el("span", { className: "count" });
    this.back = el("button", { type: "button", onclick: () => this.go(this.at - 1) }, "Back");
    this.next = el("button", { type: "button", className: "primary", onclick: () => this.go(this.at + 1) }, "Next");
    const leave = el("button", { type: "button", onclick: () => this.leave() }, "Leave");
    const buttons = el("div", { className: "buttons" }, this.count, this.back, this.next, leave);
    this.card = el("section", { className: "tour", ariaLabel: "Tour", hidden: true }, this.words, buttons);
    this.card.addEventListener("keydown", (event) => {
      const stride = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!stride) return;
      if (this.at + stride >= 0) this.go(this.at + stride);
      event.preventDefault();
      event.stopPropagation();
    });
    document.addEventListener("keydown", (event) => event.key === "Escape" && !this.card.hidden && this.leave());
    document.body.append(this.card);
  }

  offer() {
    if (localStorage.getItem(KEY)) return;
    const yes = el("button", { type: "button", className: "primary", onclick: () => this.start() }, "Show me");
    const no = el("button", { type: "button", onclick: () => this.leave() }, "No, thanks");
    this.place.replaceChildren(el("p", {}, "New here? Five steps, over the run below, tell what is to be seen."), yes, no);
    this.place.hidden = false;
  }

  async start() {
    this.place.hidden = true;
    this.panel = await this.begin();
    if (!this.panel.run) return;
    this.steps = tell(this.panel.run);
    this.card.hidden = false;
    document.body.classList.add("touring");
    this.next.focus();
    this.go(0);
  }

  go(step) {
    if (step >= this.steps.length) {
      this.leave();
      return;
    }
    this.at = step;
    const { view, t, node, text } = this.steps[step];
    this.app.change({ node });
    this.app.scrub(t);
    this.words.textContent = text;
    this.count.textContent = `${step + 1} of ${this.steps.length}`;
    if (step === 0 && document.activeElement === this.back) this.next.focus();
    this.back.disabled = step === 0;
    this.next.textContent = step === this.steps.length - 1 ? "Done" : "Next";
    this.mark(view);
  }

  mark(view) {
    for (const figure of this.panel.views.children) figure.classList.toggle("told", figure.classList.contains(view));
    this.panel.views.querySelector(".told")?.scrollIntoView({ block: "nearest", behavior: calm.matches ? "auto" : "smooth" });
  }

  leave() {
    localStorage.setItem(KEY, "1");
    this.place.hidden = true;
    this.card.hidden = true;
    document.body.classList.remove("touring");
    if (this.panel) this.mark(null);
    this.button.focus();
  }
}
