// <verified-replay src id data-run>: a recorded run of a kernel, which the reader steps
// through. What is inside is for paper.

import { choice, make } from "./elements.mjs";
import { frame, written } from "./replay/scene.mjs";
import { Stage } from "./replay/stage.mjs";

const GAP = 8; // pixels
const PACE = { line: 1300, tile: 2000, program: 2600 }; // milliseconds, while it plays

const button = (text, click, name = text) =>
  make("button", { type: "button", textContent: text, ariaLabel: name, onclick: click });

const indent = (line) => Math.max(0, line.search(/\S/));

// The lines of a snippet as the blocks of the page show them.

/** A range for each line of a block. */
function ranges(code) {
  const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  const found = [];
  let range = null;
  while (walker.nextNode()) {
    const { data } = walker.currentNode;
    for (let at = 0; at < data.length; at += 1) {
      if (!range) (range = document.createRange()).setStart(walker.currentNode, at);
      if (data[at] !== "\n") continue;
      range.setEnd(walker.currentNode, at);
      found.push(range);
      range = null;
    }
  }
  return found;
}

/** Line of the file: { range, block }, from the page's blocks of a file. */
function linesOf(snippet) {
  const lines = new Map();
  for (const block of document.querySelectorAll(`figure[data-snippet="${snippet}"]`)) {
    const all = ranges(block.querySelector("pre code"));
    for (const [n, line] of block.dataset.lines.split(" ").map(Number).entries()) {
      lines.set(line, [...(lines.get(line) ?? []), { range: all[n], block }]);
    }
  }
  return lines;
}

/** Top and bottom of a line in its block, asked once. */
function place(shown) {
  if (!shown.bottom) {
    const box = shown.block.querySelector(".highlight").getBoundingClientRect();
    const { top, bottom } = shown.range.getBoundingClientRect();
    Object.assign(shown, { top: top - box.top, bottom: top && bottom - box.top });
  }
  return shown;
}

/** Mark the lines from `first` to `last` in the blocks that show them, or none. */
function light(lines, first, last, on) {
  const starts = new Map((on && lines.get(first)?.map((it) => [it.block, place(it)])) || []);
  for (const block of new Set([...lines.values()].flat().map((shown) => shown.block))) {
    const start = starts.get(block);
    let bar = block.querySelector(".replay-line");
    if (!bar && start) {
      bar = make("div");
      block.querySelector(".highlight").prepend(bar);
    }
    if (bar) bar.className = `replay-line ${start ? "" : "off"}`;
    if (!start) continue;
    const end = lines.get(last)?.map(place).find((it) => it.block === block) ?? start;
    bar.style.top = `${start.top}px`;
    bar.style.height = `${end.bottom - start.top}px`;
  }
}

/** One trace as the reader sees it: the stage, the code around the line, the sentence. */
class View {
  constructor(trace) {
    this.trace = trace;
    this.lines = linesOf(trace.snippet);
    this.stage = new Stage();
    this.picture = make("div", { className: "replay-stage" }, this.stage.element);
    this.text = make("div", { className: "replay-text" });
    this.code = make("div", { className: "replay-code highlight", "aria-hidden": "true" }, this.text);
    this.program = make("span", { className: "replay-program" });
    this.sentence = make("span");
    this.say = make("p", { className: "replay-say", "aria-live": "polite" }, this.program, this.sentence);
    this.file = trace.snippet.split("/").at(-1);
    this.now = make("div", { className: "replay-now" },
      make("div", { className: "replay-name",
        textContent: this.file.replace(/^wrong.*/, "$&, wrong on purpose") }), this.code, this.say);
    this.texts = new Map([...this.lines].sort(([a], [b]) => a - b).map(([line, [{ range }]]) =>
      [line, make("div", {}, range.cloneContents(), "\n")]));
    for (const text of this.texts.values()) text.style.setProperty("--own", indent(text.textContent));
    this.text.append(...this.texts.values());
    // It is drawn in a task of its own.
    new ResizeObserver(() => setTimeout(() => this.fit())).observe(this.picture);
  }

  get steps() {
    return this.run.steps;
  }

  /** Steps where a part begins, of this kind or a larger one, and the last step. */
  starts(unit) {
    const programs = this.run.programs.map(({ start }) => start);
    const tiles = [...this.steps.keys()].filter((n) => this.steps[n].mark);
    const found = unit === "program" ? programs : [...tiles, ...programs, 0];
    return [...new Set([...found, this.steps.length - 1])].sort((a, b) => a - b);
  }

  load(name) {
    const { runs, sizes } = this.trace;
    this.run = runs.find((run) => run.name === name) ?? runs[0];
    this.last = this.size = this.stage.boxes = null;
    this.asks = [...this.steps.keys()].filter((n) => this.asked(n));
    this.stage.load(this.run, sizes);
    this.fit();
  }

  fit() {
    const [stage, code] = [this.picture, this.code].map((it) => it.getBoundingClientRect());
    const { width, height } = stage;
    // With room, the code stands beside memory.
    const beside = code.left > stage.left + 1 ? stage.right - code.left + GAP : 0;
    const size = `${[width, height, beside]}`;
    if (!width || size === this.size) return;
    this.size = size;
    this.stage.fit({ width, height, beside });
    this.code.style.setProperty("--memory", `${this.stage.high}px`);
    if (this.last) this.show(...this.last);
  }

  /** The number that a step computes from others, and a reader can guess: in the first row. */
  asked(at) {
    const { state = {}, uses = [], reads } = this.steps[at];
    const it = this.run.state.findLast(({ name, shape }) =>
      shape.length < 2 && state[name]?.every(Number.isFinite));
    if (!it || uses.length < 2 || reads) return null;
    const values = state[it.name];
    return { ...it, value: values[0], where: values.length > 1 ? "in the first row " : "" };
  }

  /** What the rows of the output add up to at the end. */
  sums() {
    const { name, shape } = this.run.tensors.find(({ writes }) => writes);
    const { values } = frame(this.run, this.steps.length - 1).memory.get(name);
    const cols = shape.at(-1);
    const sums = new Set();
    for (let n = 0; n < values.length; n += cols) {
      sums.add(written(values.slice(n, n + cols).reduce((sum, each) => sum + each), 2));
    }
    return `${[...sums].join(" or ")} in ${this.file}`;
  }

  /** `said` comes before the sentence; no line is `lit` before the reader does something. */
  show(at, { secret, moving, lit, said = "" } = {}) {
    this.last = [at, { secret, lit, said }];
    const { run, steps } = this;
    const step = steps[at];
    if (this.stage.boxes) this.stage.show(frame(run, at), { secret, moving });
    const program = run.programs.findLastIndex(({ start }) => start <= at);
    const { label, kernel } = run.programs[program] ?? {};
    const { unit } = this.trace;
    const name = label || `${unit} ${program + 1} of ${run.programs.length}`;
    const where = kernel ? `${kernel}, ${name}` : name[0].toUpperCase() + name.slice(1);
    this.program.textContent = program < 0 ? "" : `${where}.`;
    const formulas = at === steps.length - 1 ? Object.entries(run.formula ?? {}) : [];
    const sums = formulas.map(([what, { text, value }]) => `bytes ${what} ${text} = ${value}`);
    const end = sums.length ? ` By the formula, ${sums.join(", ")}.` : "";
    this.program.hidden = Boolean(end);
    this.sentence.textContent = secret
      ? `Guess: what is ${secret.label} (${secret.title}) ${secret.where}after this line?`
      : said + step.say + end + (lit ? "" : ` Press ${run.parts ? "two parts to merge them" : "› for the next line"}, or Play.`);
    const { line: first, last = first } = step;
    for (const [line, text] of this.texts) {
      text.classList.toggle("lit", first <= line && line <= last);
    }
    const place = [...this.texts.keys()].indexOf(first);
    if (place >= 0) {
      this.text.style.setProperty("--at", place);
      this.code.style.setProperty("--more", last - first);
      // As far left as lets the line that holds this one be seen.
      this.text.style.setProperty("--indent", indent(this.texts.get(first).textContent) - 4);
    }
    light(this.lines, first, last, lit);
  }
}

/** The choice among all orders of merging parts: a run's name is what its merges make, "02.13.0123",
    with a key frame after each. Of the parts at hand the reader presses two, which merge next. */
class Order {
  element = make("div");
  undo = button("Undo", () => this.#go(this.view.run, this.done.length - 1));

  constructor(view, choose) {
    Object.assign(this, { view, choose });
  }

  #go(run, merges) {
    this.choose(run.name, [0, ...run.frames][merges]);
  }

  #press(part) {
    const next = [...this.done, [...part + this.first].sort().join("")].join(".");
    const run = this.first && this.view.trace.runs.find(({ name }) => name.startsWith(next));
    this.first = this.first ? "" : part;
    this.parts.press(this.first);
    if (run) this.#go(run, this.done.length + 1);
  }

  press(name, at) {
    const { frames, parts } = this.view.run;
    this.done = name.split(".").slice(0, frames.filter((end) => end <= at).length);
    this.undo.disabled = !this.done.length;
    const now = parts[this.done.length];
    if (`${now}` === this.now) return;
    this.now = `${now}`;
    this.first = "";
    this.parts = choice("Parts: press two to merge them", now, (part) => this.#press(part));
    const focused = this.element.contains(document.activeElement);
    this.element.replaceChildren(this.parts.element);
    if (focused) this.element.querySelector(`[value="${this.done.at(-1) ?? now[0][0]}"]`).focus();
  }
}

class Replay extends HTMLElement {
  at = 0;
  unit = "line";

  connectedCallback() {
    new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && this.start(), { rootMargin: "800px" })
      .observe(this);
    addEventListener("hashchange", () => this.#follow());
    addEventListener("click", ({ target }) => target.closest("a")?.hash === location.hash && this.#follow());
    if (this.#address()) this.start();
  }

  async start() {
    if (this.started) return;
    this.started = true;
    try {
      this.view = new View(await this.#fetched(this.getAttribute("src")));
    } catch {
      this.style.height = "auto"; // The figure stays.
      return;
    }
    this.#build();
    this.setAttribute("ready", "");
    this.#choose(this.dataset.run);
    this.#follow();
  }

  async #fetched(address) {
    return (await fetch(address)).json(); // An error is a page, and no JSON.
  }

  /** Run and step of an address that leads here or to a name. */
  #address() {
    const { hash } = this.querySelector(":target")?.dataset ?? location;
    const [, id, run, step] = /^#(.+)=(.+):(\d+)$/.exec(hash) ?? [];
    return id === this.id && [run, step - 1];
  }

  #follow() {
    const to = this.view && this.#address();
    if (!to) return;
    this.play(false);
    this.#choose(...to);
    this.scrollIntoView({ block: "nearest" });
  }

  #build() {
    const { runs, compare, unit, snippet } = this.view.trace;
    const name = `Replay of ${snippet}`;
    const choose = (...run) => this.#choose(...run);
    this.runs = runs[0].parts ? new Order(this.view, choose)
      : choice("Input", runs.map((run) => [run.name, run.title]), choose);
    this.units = choice("Step by", [["line", "line"], ["tile", "tile"], ["program", unit]], (by) => {
      this.unit = by;
      this.units.press(by);
    });
    this.guess = button("Guess", () => this.#ask(), "Guess the next number");
    this.field = make("input", { type: "text", size: 6, autocomplete: "off", ariaLabel: "Your guess" });
    this.form = make("form", { className: "replay-guess", onsubmit: (event) => this.#check(event) },
      this.field, make("button", { textContent: "Check" }));
    this.beside = button("Compare with the wrong kernel", () => this.#compare());
    this.beside.ariaPressed = false;
    this.playing = button("Play", () => this.play(!this.timer));
    this.back = button("‹", () => this.step(-1), "Back");
    this.next = button("›", () => this.step(1), "Forward");
    this.slider = make("input", { type: "range", min: 0, ariaLabel: "Step",
      oninput: () => this.go(Number(this.slider.value)) });
    this.marks = make("div", { className: "replay-marks", "aria-hidden": "true" });
    this.link = make("a", { className: "replay-link" });
    this.views = make("div", { className: "replay-views" }, this.view.picture);
    this.nows = make("div", { className: "replay-nows" }, this.view.now);
    this.track = make("div", { className: "replay-track" }, this.slider, this.marks);
    this.result = make("p", { className: "replay-result" });
    this.body = make("div", { className: "replay", role: "group", ariaLabel: name },
      make("div", { className: "replay-bar" },
        runs.length > 1 ? this.runs.element
          : make("span", { className: "replay-program", textContent: name }),
        make("span", { className: "replay-by", textContent: "step by" }), this.units.element,
        this.guess, ...(compare ? [this.beside] : []), this.runs.undo ?? ""),
      this.views,
      make("div", { className: "replay-panel" }, this.nows, this.result,
        make("div", { className: "replay-play" }, this.back, this.playing, this.next,
          this.track, this.form, this.link)));
    this.addEventListener("keydown", (event) => this.#key(event));
    this.units.press(this.unit);
    this.append(this.body);
  }

  #choose(name, at) {
    this.view.load(name);
    this.other?.load(name);
    const { run, steps } = this.view;
    this.slider.max = steps.length - 1;
    const programs = new Set(run.programs.map(({ start }) => start));
    this.marks.replaceChildren(...this.view.starts("tile").slice(0, -1).map((start) => {
      const mark = make("i", { className: programs.has(start) ? "program" : "" });
      mark.style.setProperty("--at", start / (steps.length - 1));
      return mark;
    }));
    this.guess.hidden = !this.view.asks.length;
    this.at = 0;
    this.secret = null;
    if (at >= 0) this.go(at);
    else this.#show();
  }

  async #compare() {
    const { snippet, compare } = this.view.trace;
    const names = [snippet, compare.snippet].map((it) => it.slice(0, -3));
    const trace = this.other ? null : await this.#fetched(this.getAttribute("src").replace(...names)).catch(() => {});
    // There is another if the reader pressed twice.
    this.other?.picture.remove();
    this.other?.now.remove();
    this.other = trace && new View(trace);
    if (trace) {
      this.other.load(this.view.run.name);
      this.views.append(this.other.picture);
      this.nows.append(this.other.now);
    }
    this.beside.ariaPressed = this.toggleAttribute("compare", !!trace);
    this.#show(false, trace === undefined ? "It did not load. " : "");
  }

  /** The step of the other trace, as far from the same store as this one. */
  #matching() {
    const [here, there] = [this.view, this.other].map(({ steps }) =>
      [0, ...[...steps.keys()].filter((n) => steps[n].writes), steps.length - 1]);
    const n = here.findLastIndex((start) => start <= this.at);
    const done = (this.at - here[n]) / (here[n + 1] - here[n]) || 0;
    return there[n] + Math.floor(done * (there[n + 1] - there[n]) || 0);
  }

  /** Go to the next step that computes a number, and ask for it. */
  #ask() {
    const { asks } = this.view;
    const at = asks.find((n) => n > this.at) ?? asks[0];
    this.play(false);
    this.go(at, false, this.view.asked(at));
    this.field.value = "";
    this.field.focus();
  }

  #check(event) {
    event.preventDefault();
    const { label, value } = this.secret;
    const said = this.field.value.trim().replace(",", ".").replace("−", "-");
    const right = Math.abs(said - value) <= 0.02 * Math.max(1, Math.abs(value));
    this.secret = null;
    const verdict = said && (right ? "Right: " : "Not quite: ");
    this.#show(false, `${verdict}${label} is ${`${value}`.replace("-", "−")}. `);
    this.guess.focus();
  }

  go(at, moving = false, secret = null) {
    const last = this.view.steps.length - 1;
    this.touched = true;
    this.at = Math.max(0, Math.min(at, last));
    this.secret = secret;
    this.#show(moving);
  }

  step(by) {
    if (this.unit === "line") {
      this.go(this.at + by, by > 0);
    } else {
      const starts = this.view.starts(this.unit);
      const to = by > 0 ? starts.find((n) => n > this.at) : starts.findLast((n) => n < this.at);
      this.go(to ?? this.at, by > 0);
    }
  }

  play(on) {
    clearTimeout(this.timer);
    this.timer = 0;
    if (on && this.at === this.view.steps.length - 1) this.go(0);
    const turn = () => {
      this.step(1);
      if (this.at === this.view.steps.length - 1) this.play(false);
      else this.timer = setTimeout(turn, PACE[this.unit]);
    };
    if (on) this.timer = setTimeout(turn, 300);
    this.playing.ariaLabel = this.playing.textContent = on ? "Pause" : "Play";
    // Nobody can listen as fast as it plays.
    this.view.say.ariaLive = on ? "off" : "polite";
  }

  #show(moving, said) {
    const { at, secret, view } = this;
    view.show(at, { secret, moving, lit: this.touched, said });
    this.other?.show(this.#matching(), { moving, lit: this.touched });
    this.runs.press(view.run.name, at);
    this.result.textContent = this.other
      ? `At the end a row of the output adds up to ${view.sums()}, and to ${this.other.sums()}.` : "";
    this.track.hidden = Boolean(secret);
    this.form.hidden = !secret;
    this.slider.value = at;
    this.slider.ariaValueText = `Step ${at + 1} of ${view.steps.length}. ${view.program.textContent}`;
    this.back.disabled = at === 0;
    this.next.disabled = at === view.steps.length - 1;
    this.link.href = `#${this.id}=${view.run.name}:${at + 1}`;
    this.link.textContent = `${at + 1} / ${view.steps.length}`;
    this.link.ariaLabel = `${this.link.textContent}: link to this step`;
  }

  #key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!by || event.target === this.field || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.play(false);
    if (Number.isFinite(by)) this.step(by);
    else this.go(by);
  }
}

customElements.define("verified-replay", Replay);
