// Figures before a reader moves them, for paper and for browsers without scripts. The build
// runs this, and after it the figures' own scripts, whose elements these are (stills.py).

const SLIDER = { width: 400, height: 280 };
const kinds = {};

/** As much of an element as is drawn. */
class Drawn {
  states = {};
  classList = { toggle: (name, on) => (this.states[name] = on) };

  constructor(tag, attributes, children) {
    Object.assign(this, { tag, attributes: { ...attributes } });
    this.replaceChildren(...children);
  }

  setAttribute(name, value) {
    this.attributes[name] = value;
  }

  set ariaLabel(text) {
    this.attributes["aria-label"] = text;
  }

  set textContent(text) {
    this.replaceChildren(text);
  }

  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }

  append(...children) {
    for (const child of children) if (child instanceof Drawn) child.siblings = this.children;
    this.children.push(...children);
  }

  after(next) {
    this.siblings.splice(this.siblings.indexOf(this) + 1, 0, next);
  }

  addEventListener() {}

  toString() {
    const { away, ...states } = this.states;
    if (away || this.attributes.d === "") return "";
    const also = Object.keys(states).filter((name) => states[name]);
    const { class: kind, ...rest } = this.attributes;
    const all = kind ? { class: [kind, ...also].join(" "), ...rest } : rest;
    const attributes = Object.entries(all).map(([name, value]) =>
      ` ${name}="${typeof value === "number" ? +value.toFixed(1) : escaped(value)}"`);
    const inner = this.children.map((it) => (it instanceof Drawn ? it : escaped(it)));
    return `<${this.tag}${attributes.join("")}>${inner.join("")}</${this.tag}>`;
  }
}

const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt()};`);
const draw = (tag, attributes = {}, ...children) => new Drawn(tag, attributes, children);
const make = () => ({});
const choice = () => ({ press() {} });
const matchMedia = () => ({});
class HTMLElement {}
const customElements = { define: (name, kind) => (kinds[name] = kind) };

/** The drawing of a figure with a slider, and what is said of it. */
function slider(name, dataset) {
  const { width, height } = SLIDER;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  const figure = Object.assign(new kinds[name](), { dataset, say: {}, blank: () => ({ svg, ...SLIDER }) });
  figure.controls();
  figure.show();
  return [`${svg}`, figure.say.textContent];
}

/** The drawing of each key frame of a run, on a stage of this size. */
function frames(run, name, size) {
  const stage = new Stage();
  stage.load(run);
  stage.fit({ ...size, height: needed([run], size) });
  return run.frames.map((n) => {
    const now = frame(run, n);
    // Outlined in memory is all that the tile has touched so far.
    const begun = run.steps.slice(0, n + 1).findLastIndex(({ mark }) => mark);
    for (let step = Math.max(0, begun); step < n; step += 1) {
      for (const [it, { touched }] of frame(run, step).memory) now.memory.get(it).touched.push(...touched);
    }
    stage.show(now);
    const held = stage.scene.chip.filter((it) => now.chip.has(it.name) && !now.chip.get(it.name).gone);
    const numbers = (it) => now.chip.get(it.name).values.map((each) => written(each, it.whole ? 0 : 2));
    const told = held.map((it) => `${it.label}: ${numbers(it).join(", ")}`).join("; ");
    stage.element.ariaLabel = `${name}, step ${n + 1} of ${run.steps.length}. On the chip: ${told}`;
    return `${stage.element}`;
  });
}
