// Five steps over a run, for somebody who is here for the first time: offered, never in the way.

import { el, plural } from "./dom.js";

const KEY = "midst-toured";
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// What is said, at which time, beside which view: of the search that the page opens with.
function tell(run) {
  const { title, shown, proof } = run.facts;
  const [first, second] = run.search.rows;
  const last = run.iterations - 1;
  return [
    {
      view: "of-network", t: 0,
      text: `${plural(run.n, "node")}, each with a number of its own. In a search all answer the same public question: between which of these thresholds does your number lie? Masks hide every answer.`,
    },
    {
      view: "of-funnel", t: 1,
      text: `The masks cancel in the sum: of probe 1 only the totals become known, ${first.totals.join(", ")}. The green dots are the own numbers, which you alone see here.`,
    },
    {
      view: "of-funnel", t: 2,
      text: `The totals tell in which cell the ${title} lies: the darker one. Probe 2 divides that cell, in which ${plural(second.totals.reduce((a, b) => a + b), "number")} lie.`,
    },
    {
      view: "of-known", t: last,
      text: "The totals tell a little about everybody, in bits. The paler part of a bar comes from the answer alone; no method can avoid it.",
    },
    {
      view: "of-funnel", t: last,
      text: `The ${title} is ${shown}, ${proof}. Nobody was exposed: nobody's number was sent. Choose Consensus | search above, and see whom the paper's iteration exposes.`,
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
    const { view, t, text } = this.steps[step];
    this.app.change({ node: null });
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
