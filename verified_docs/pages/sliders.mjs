// A figure with a slider as SVG, as it is before it is moved, for paper and for browsers
// without scripts; only the build runs this, before the figure's own script (sliders.py).

const SIZE = { width: 400, height: 280 };
const kinds = {};

/** As much of an element as is drawn. */
class Drawn {
  constructor(tag, attributes, children) {
    Object.assign(this, { tag, attributes, children });
  }

  append(...children) {
    this.children.push(...children);
  }

  toString() {
    const attributes = Object.entries(this.attributes).map(([name, value]) =>
      ` ${name}="${typeof value === "number" ? +value.toFixed(1) : escaped(value)}"`);
    const inner = this.children.map((it) => (it instanceof Drawn ? it : escaped(it)));
    return `<${this.tag}${attributes.join("")}>${inner.join("")}</${this.tag}>`;
  }
}

const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt()};`);
const draw = (tag, attributes = {}, ...children) => new Drawn(tag, attributes, children);
const make = () => ({});
const choice = () => ({ press() {} });
class HTMLElement {}
const customElements = { define: (name, kind) => (kinds[name] = kind) };

/** The drawing, and what is said of it. */
function still(name, dataset) {
  const svg = draw("svg", { viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: "img" });
  const figure = Object.assign(new kinds[name](), { dataset, say: {}, blank: () => ({ svg, ...SIZE }) });
  figure.controls();
  figure.show();
  svg.attributes["aria-label"] = svg.ariaLabel;
  return [`${svg}`, figure.say.textContent];
}
