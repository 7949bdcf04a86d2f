// What sliders move.

import { draw, make } from "./elements.mjs";

/** A figure that the reader moves: drawn anew when it is moved, and as wide as it is. Its
    first child is for paper. */
export class Figure extends HTMLElement {
  connectedCallback() {
    this.picture = make("div", { className: "replay-stage" }, draw("svg", { role: "img" }));
    this.say = make("p", { className: "replay-say", "aria-live": "polite" });
    this.replaceChildren(this.firstElementChild, make("div", { className: "replay" },
      make("div", { className: "replay-bar" }, ...this.controls()), this.picture, this.say));
    // On paper, and in what is folded, it has no size.
    new ResizeObserver(([{ contentRect }]) => contentRect.width && this.show())
      .observe(this.picture);
  }

  /** The drawing, empty, and its size in pixels. */
  blank() {
    const { width, height } = this.picture.getBoundingClientRect();
    const svg = this.picture.firstChild;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren();
    return { svg, width, height };
  }
}
