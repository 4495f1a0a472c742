// The form, drawn from the fields that the server names; what is wrong is said beside the field.

import { el } from "./dom.js";

const GROUPS = {
  network: "Network", data: "Data and question", method: "Method", iteration: "Iteration", adversary: "Who listens", defence: "Defences",
};

// Settings that fit the numbers at hand, besides those of the iteration and the noise.
const FITTED = ["draw", "prior", "prior_a", "prior_b", "least", "most", "resolution"];

export class Form {
  constructor(side, fields, { file, run, cancel, changed }) {
    this.fields = fields.filter((field) => file || field.name !== "source");
    this.side = side;
    this.inputs = new Map();
    this.rows = new Map();
    this.errors = new Map();
    this.general = el("p", { className: "error", hidden: true });
    this.runButton = el("button", { type: "submit", className: "primary" }, "Run");
    this.cancelButton = el("button", { type: "button", hidden: true, onclick: cancel }, "Cancel");
    this.drawButton = el("button", { type: "button", title: "Another seed", onclick: () => this.drawAgain() }, "New draw");
    const groups = Object.entries(GROUPS).map(([group, words]) => {
      const rows = this.fields.filter((field) => field.group === group).map((field) => this.row(field));
      return el("fieldset", {}, el("legend", {}, words), ...rows);
    });
    const buttons = el("div", { className: "buttons" }, this.runButton, this.drawButton, this.cancelButton);
    buttons.append(this.general);
    this.element = el("form", { noValidate: true, autocomplete: "off", ariaLabel: `Settings ${side.toUpperCase()}` });
    this.element.append(buttons, ...groups);
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      run();
    });
    this.element.addEventListener("keydown", (event) => {
      // Enter runs from every other field; here it ends a line
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea")) this.element.requestSubmit();
    });
    this.element.addEventListener("input", ({ target }) => target.name === "numbers" && this.borrowed && this.forget());
    this.element.addEventListener("change", ({ target }) => {
      if (target.name === "data" && target.value === "own") this.forget();
      this.show();
      changed();
    });
    this.show();
  }

  row(field) {
    const id = `${this.side}-${field.name}`;
    const common = { id, name: field.name, "aria-describedby": `${id}-error` };
    let input;
    const many = ["numbers", "edges"].includes(field.kind); // lines
    if (many) {
      common["aria-describedby"] += ` ${id}-help`;
      input = el("textarea", { ...common, rows: 5, placeholder: field.hint, spellcheck: false });
    } else if (field.kind === "choice") {
      input = el("select", common, ...field.choices.map(([value, words]) => el("option", { value }, words)));
    } else {
      const inputMode = field.kind === "nodes" ? "text" : field.kind === "whole" ? "numeric" : "text";
      input = el("input", { ...common, type: "text", inputMode, placeholder: field.hint, spellcheck: false });
    }
    const error = el("p", { id: `${id}-error`, className: "error", hidden: true });
    const width = field.label.length <= 2 ? "narrow" : "";
    const row = el("div", { className: `field ${field.kind} ${width}`, title: field.help }, el("label", { htmlFor: id }, field.label), input, error);
    if (many) row.append(el("p", { id: `${id}-help`, className: "help" }, field.help));
    this.inputs.set(field.name, input);
    this.rows.set(field.name, row);
    this.errors.set(field.name, error);
    this.put(field, field.default);
    return row;
  }

  put(field, text) {
    const input = this.inputs.get(field.name);
    // a choice that does not exist is kept, so that the refusal has something to stand beside
    if (field.kind === "choice" && !field.choices.some(([value]) => value === text)) {
      input.append(el("option", { value: text }, text));
    }
    input.value = text;
  }

  read(field) {
    return this.inputs.get(field.name).value.trim();
  }

  used(field) {
    return field.when.every(([name, values]) => {
      const other = this.fields.find((each) => each.name === name);
      return !other ? values.includes("simulated") : values.includes(this.read(other)) && this.used(other);
    });
  }

  show() {
    for (const field of this.fields) this.rows.get(field.name).hidden = !this.used(field);
    for (const set of this.element.querySelectorAll("fieldset")) {
      set.hidden = [...set.querySelectorAll(".field")].every((row) => row.hidden);
    }
  }

  // The same for anybody to see, in a link or a file: without the own numbers, which are private. Where drawn numbers
  // were moved, a link leads to those that were drawn.
  get settings() {
    const { numbers, ...others } = this.asked;
    if (!this.borrowed) return others;
    const { data, ...drawn } = others;
    return { ...drawn, n: this.inputs.get("n").value };
  }

  // What differs from the defaults, of the fields in use.
  get asked() {
    const pairs = this.fields
      .filter((field) => this.used(field))
      .map((field) => [field.name, this.read(field), field.default])
      .filter(([, value, usual]) => value !== usual);
    return { ...this.strange, ...Object.fromEntries(pairs) };
  }

  set settings(given) {
    const known = new Set(this.fields.map((field) => field.name));
    // a setting that does not exist is passed on once, to be refused by name
    this.strange = Object.fromEntries(Object.entries(given).filter(([name]) => !known.has(name)));
    for (const field of this.fields) this.put(field, given[field.name] ?? field.default);
    this.borrowed = false;
    this.show();
    this.refuse({});
  }

  like({ asked, borrowed }) {
    Object.assign(this, { settings: asked, borrowed });
  }

  // Other numbers come: what was chosen for those before, in their units, goes back to what is chosen by itself.
  forget() {
    this.borrowed = false;
    for (const field of this.fields) if (["iteration", "defence"].includes(field.group) || FITTED.includes(field.name)) this.put(field, field.default);
    this.show();
  }

  // Drawn numbers that were moved become own ones, and keep what was chosen for them: until others are typed.
  takeNumbers(values) {
    const put = (name, text) => this.put(this.fields.find((field) => field.name === name), text);
    if (this.inputs.get("data").value === "drawn") {
      this.borrowed = true;
      for (const [name, usual] of [["prior_a", "0"], ["prior_b", "1"]]) put(name, this.inputs.get(name).value || usual);
    }
    put("data", "own");
    put("numbers", values.join("\n"));
    this.show();
  }

  get hasOwnNumbers() {
    return "numbers" in this.asked;
  }

  refuse(fields) {
    const loose = [];
    for (const field of this.fields) {
      const text = fields[field.name] ?? "";
      const error = this.errors.get(field.name);
      error.textContent = text;
      error.hidden = !text;
      this.inputs.get(field.name).setAttribute("aria-invalid", text ? "true" : "false");
    }
    for (const [name, text] of Object.entries(fields)) {
      if (!this.errors.has(name)) loose.push(name ? `${name}: ${text}` : text);
    }
    this.general.textContent = loose.join("; ");
    this.general.hidden = !loose.length;
    const first = this.fields.find((field) => fields[field.name]);
    if (first) this.inputs.get(first.name).focus();
  }

  drawAgain() {
    const seed = this.fields.find((field) => field.name === "seed");
    this.put(seed, String(crypto.getRandomValues(new Uint16Array(1))[0]));
    this.element.requestSubmit();
  }

  set busy(busy) {
    this.cancelButton.hidden = !busy;
    this.runButton.textContent = busy ? "Run again" : "Run";
    this.element.setAttribute("aria-busy", String(busy));
  }

  // One line about the settings, for where the form is folded away.
  get summary() {
    const words = (name) => {
      const field = this.fields.find((each) => each.name === name);
      const input = this.inputs.get(name);
      return field.kind === "choice" ? (input.selectedOptions[0]?.textContent ?? "") : input.value;
    };
    if (this.inputs.has("source") && this.inputs.get("source").value === "file") return "from the file";
    const own = this.inputs.get("data").value === "own";
    const graph = this.inputs.get("graph").value === "own" ? "own graph" : words("graph");
    const count = own || graph === "own graph" ? (own ? "own numbers" : "") : `${words("n")} nodes`;
    const parts = [graph, count, words("objective")].filter(Boolean);
    const method = this.inputs.get("method").value;
    for (const name of ["c", "mu", "sigma"]) {
      if (method !== "search" && words(name)) parts.push(`${{ c: "c", mu: "μ", sigma: "σ" }[name]} = ${words(name).replace("-", "−")}`);
    }
    parts.push(`by ${method}`);
    if (words("dp") !== "none") parts.push(`noise: ${words("dp")}`);
    if (this.inputs.get("init").value === "sealed") parts.push("sealed");
    return parts.join(" · ");
  }
}
