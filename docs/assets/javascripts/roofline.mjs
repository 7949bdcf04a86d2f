// <verified-roofline data-bandwidth data-fp32 data-bf16 data-copy data-matmul>: where a
// kernel is on the roofline, as what it computes and moves is changed. Units: bytes and
// FLOPs per second.

import { choice, draw, make } from "./elements.mjs";
import { Figure } from "./figure.mjs";

const LEFT = 46, BOTTOM = 36, TOP = 16, RIGHT = 10; // pixels
const INTENSITY = [0.1, 10_000], SPEED = [0.1e12, 2000e12]; // the ends of the axes

/** What a kernel computes and moves: the page's formulas, for b bytes an element. */
const KERNELS = {
  softmax: {
    title: "softmax", label: "reads of the matrix", values: [1, 2, 3], roof: () => "fp32",
    // A kernel that reads once has the terms at hand; the others compute them twice.
    count: (reads, b) => ({ flops: reads > 1 ? 7 : 5, bytes: (reads + 1) * b }),
    say: (reads) => `${reads > 1 ? 7 : 5} FLOPs an element; ${reads} ${reads > 1 ? "reads" : "read"} and 1 write of it`,
  },
  product: {
    title: "matrix product", label: "n of an n × n product",
    values: Array.from({ length: 11 }, (_, k) => 16 * 2 ** k), roof: (b) => (b === 2 ? "bf16" : "fp32"),
    count: (n, b) => ({ flops: 2 * n ** 3, bytes: 3 * n ** 2 * b }),
    say: (n) => `2n³ FLOPs and 3n² elements to move, n = ${n.toLocaleString("en")}`,
  },
};

const digits = (value) => Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 3 });

class Roofline extends Figure {
  kernel = "softmax";
  bytes = 4;
  at = 0;

  controls() {
    const kernels = Object.entries(KERNELS).map(([name, { title }]) => [name, title]);
    this.kernels = choice("Kernel", kernels, (name) => this.set({ kernel: name, at: 0 }));
    this.formats = choice("Element", [[4, "fp32"], [2, "bf16"]], (bytes) => this.set({ bytes }));
    this.slider = make("input", { type: "range", min: 0,
      oninput: () => this.set({ at: Number(this.slider.value) }) });
    this.words = make("span");
    this.value = make("output", { className: "replay-value" });
    return [this.kernels.element, this.formats.element,
      make("label", { className: "replay-slide" }, this.words, this.slider, this.value)];
  }

  set(change) {
    Object.assign(this, change);
    this.show();
  }

  show() {
    const { values, label, roof, count, say } = KERNELS[this.kernel];
    const value = values[this.at];
    this.kernels.press(this.kernel);
    this.formats.press(this.bytes);
    this.slider.max = values.length - 1;
    this.slider.value = this.at;
    this.words.textContent = label;
    this.value.value = value.toLocaleString("en");
    this.slider.ariaValueText = this.value.value;

    const [bandwidth, fp32, bf16, copy, matmul] = ["bandwidth", "fp32", "bf16", "copy", "matmul"]
      .map((name) => Number(this.dataset[name]));
    const peak = roof(this.bytes) === "bf16" ? bf16 : fp32;
    const { flops, bytes } = count(value, this.bytes);
    const intensity = flops / bytes;
    const speed = Math.min(peak, bandwidth * intensity);

    const { svg, width, height } = this.blank();
    const scale = (value, [low, high]) => Math.log(value / low) / Math.log(high / low);
    const x = (value) => LEFT + scale(value, INTENSITY) * (width - LEFT - RIGHT);
    const y = (value) => height - BOTTOM - scale(value, SPEED) * (height - BOTTOM - TOP);
    const line = (kind, ...points) => draw("polyline", {
      class: kind, points: points.map(([i, s]) => `${x(i)},${y(s)}`).join(" "),
    });
    const text = (kind, left, top, words, anchor = "start") =>
      draw("text", { class: kind, x: left, y: top, "text-anchor": anchor }, words);
    const [first, last] = INTENSITY;
    const roofs = [["fp32, ordinary arithmetic", fp32, 16], ["bf16, matrix units", bf16, -6]];
    for (const value of [0.1, 1, 10, 100, 1000, 10_000]) {
      svg.append(line("grid", [value, SPEED[0]], [value, SPEED[1]]),
        text("tick", x(value), height - BOTTOM + 15, value.toLocaleString("en"),
          value === last ? "end" : "middle"));
    }
    for (const value of [0.1, 1, 10, 100, 1000]) {
      svg.append(line("grid", [first, value * 1e12], [last, value * 1e12]),
        text("tick", LEFT - 6, y(value * 1e12) + 4, value, "end"));
    }
    svg.append(text("tick", LEFT, TOP - 5, "TFLOP/s"),
      text("tick", width - RIGHT, height - 5, "FLOPs per byte", "end"));
    for (const [name, top, down] of roofs) {
      const on = top === peak ? "on" : "";
      svg.append(line(`roof ${on}`, [top / bandwidth, top], [last, top]),
        text(`quiet ${on}`, width - RIGHT - 4, y(top) + down, name, "end"));
    }
    svg.append(line("roof on", [first, first * bandwidth], [peak / bandwidth, peak]));
    if (peak < bf16) svg.append(line("roof", [peak / bandwidth, peak], [bf16 / bandwidth, bf16]));
    if (copy && matmul) {
      svg.append(line("measured", [first, first * copy], [matmul / copy, matmul], [last, matmul]),
        text("measured", width - RIGHT - 4, y(matmul) + 16, "measured", "end"));
    }
    svg.append(line("drop", [intensity, SPEED[0]], [intensity, speed]), line("drop", [first, speed], [intensity, speed]),
      draw("circle", { class: "dot", cx: x(intensity), cy: y(speed), r: 7 }));
    const bound = intensity < peak / bandwidth ? "memory" : "arithmetic";
    this.say.textContent = `${say(value)}: ${digits(intensity)} FLOPs per byte. ` +
      `At most ${digits(speed / 1e12)} TFLOP/s, ${digits((100 * speed) / peak)} % of the roof: bound by ${bound}. ` +
      `The ridge is at ${digits(peak / bandwidth)}.`;
    svg.ariaLabel = `The roofline. ${this.say.textContent}`;
  }
}

customElements.define("verified-roofline", Roofline);
