// <verified-shift>: softmax with a shift c, computed in four formats as c is moved.

import { choice, draw, make } from "./elements.mjs";
import { Figure } from "./figure.mjs";

// Significant bits p and largest exponent E.
const FORMATS = { float16: [11, 15], bfloat16: [8, 127], float32: [24, 127], float64: [53, 1023] };
const ROWS = {
  "ordinary scores": [-2, 3, 8, 12],
  "large": [70, 85, 89, 91],
  "very negative": [-790, -770, -760, -757],
};
const FAR = 1100; // the end of the axis

/** The number of a format that is nearest, an even one of two; beyond the largest, ∞. */
export function rounded(value, [p, E]) {
  if (!Number.isFinite(value) || value === 0) return value;
  let exponent = Math.floor(Math.log2(Math.abs(value)));
  if (2 ** exponent > Math.abs(value)) exponent -= 1;
  const unit = 2 ** (Math.max(exponent, 1 - E) - p + 1);
  const scaled = value / unit;
  const whole = Math.abs(scaled % 1) === 0.5 ? 2 * Math.round(scaled / 2) : Math.round(scaled);
  const found = whole * unit;
  return Math.abs(found) > (2 - 2 ** (1 - p)) * 2 ** E ? Math.sign(value) * Infinity : found;
}

/** exp(x - c) for each x, their sum and the weights, each step rounded to the format. */
export function softmax(row, c, format) {
  const to = (value) => rounded(value, format);
  const terms = row.map((x) => to(Math.exp(to(to(x) - to(c)))));
  const sum = terms.reduce((so_far, term) => to(so_far + term), 0);
  return { terms, sum, weights: terms.map((term) => to(term / sum)) };
}

function verdict(row, { terms, sum, weights }, [p]) {
  if (terms.includes(Infinity)) return ["bad", "a term is ∞, and ∞ / ∞ is NaN"];
  if (sum === Infinity) return ["bad", "the sum is ∞, so all weights are 0"];
  if (sum === 0) return ["bad", "all terms are 0, and 0 / 0 is NaN"];
  const exact = softmax(row, Math.max(...row), FORMATS.float64).weights;
  const error = Math.max(...weights.map((weight, n) => Math.abs(weight - exact[n])));
  if (error > 2 ** (2 - p)) return ["caution", "terms this small have few digits left"];
  const shown = weights.map((weight) => weight.toFixed(3)).join(" ");
  return ["good", `weights ${shown}`];
}

class Shift extends Figure {
  row = ROWS["ordinary scores"];
  c = 0;

  controls() {
    const names = Object.keys(ROWS).map((name) => [name, name]);
    this.rows = choice("Row", names, (name) => {
      this.row = ROWS[name];
      this.rows.press(name);
      this.move(0);
    });
    this.rows.press("ordinary scores");
    this.slider = make("input", { type: "range", step: "any", ariaLabel: "Shift c",
      oninput: () => this.move(Number(this.slider.value)) });
    this.value = make("output", { className: "replay-value" });
    const maximum = make("button", { type: "button", textContent: "c = the maximum",
      onclick: () => this.move(Math.max(...this.row)) });
    return [this.rows.element, maximum,
      make("label", { className: "replay-slide" }, "shift c", this.slider, this.value)];
  }

  move(c) {
    this.c = c;
    this.show();
  }

  show() {
    const { row } = this;
    this.slider.min = Math.min(0, ...row) - 20;
    this.slider.max = Math.max(0, ...row) + 20;
    this.slider.value = this.c;
    const c = Math.round(this.c * 10) / 10;
    this.value.value = c.toFixed(1).replace("-", "−");
    this.slider.ariaValueText = this.value.value;
    const { svg, width, height } = this.blank();
    const tall = (height - 20) / Object.keys(FORMATS).length;
    const middle = width / 2;
    const half = Math.asinh(FAR / 4);
    const place = (t) => middle + (Math.asinh(t / 4) / half) * (middle - 6);
    const said = [];
    for (const [n, [name, format]] of Object.entries(FORMATS).entries()) {
      const [p, E] = format;
      const y = n * tall;
      const result = softmax(row, c, format);
      const [kind, words] = verdict(row, result, format);
      said.push(`${name}: ${words}`);
      const low = place(Math.log(2) * (2 - E - p));
      const high = place(Math.log(2) * (E + 1));
      const band = { y: y + 22, height: tall - 30 };
      const title = draw("text", { x: 0, y: y + 16, class: "name" }, name);
      title.append(draw("tspan", { dx: 10, class: kind }, words));
      svg.append(title,
        draw("rect", { ...band, x: 0, width: low, class: "zero" }),
        draw("rect", { ...band, x: low, width: high - low, class: "range" }),
        draw("rect", { ...band, x: high, width: width - high, class: "over" }),
        draw("text", { x: 5, y: band.y + band.height / 2 + 4, class: "quiet" }, "0"),
        draw("text", { x: width - 5, y: band.y + band.height / 2 + 4, class: "quiet", "text-anchor": "end" }, "∞"));
      row.forEach((x, k) => {
        const term = result.terms[k];
        const state = term === Infinity ? "lost over" : term === 0 ? "lost" : "kept";
        svg.append(draw("circle", {
          cx: place(x - c), cy: band.y + band.height / 2, r: 5, class: `dot t-x ${state}`,
        }));
      });
    }
    for (const t of width < 480 ? [-709, -88, 0, 11, 88, 709] : [-709, -88, -17, -4, 0, 4, 11, 88, 709]) {
      svg.append(draw("text", { x: place(t), y: height - 4, class: "tick", "text-anchor": "middle" },
        String(t).replace("-", "−")));
    }
    svg.ariaLabel = `x − c in the range of exp, for ${row.join(", ")}. ${said.join(". ")}.`;
    const largest = Math.max(...row);
    const what = row.map((x) => String(x).replace("-", "−")).join(", ");
    this.say.textContent = `The row ${what}. Each dot is x − c on the axis of exponents; the green band is where ` +
      `exp(x − c) is a number of the format. The largest exponent is ${(largest - c).toFixed(1).replace("-", "−")}.`;
  }
}

customElements.define("verified-shift", Shift);
