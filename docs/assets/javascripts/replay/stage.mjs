// The drawing of memory, above, and the chip, below.

import { draw } from "../elements.mjs";
import { arranged, bounds, BUS, indices, kernelOf, LETTER, LEVELS, NARROW, number, PAD, placed, READABLE, scenes, SMALL, written } from "./scene.mjs";

const FLIGHT = { duration: 380, easing: "cubic-bezier(.3,0,.2,1)" };
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Stage {
  constructor() {
    this.element = draw("svg", { role: "img" });
    this.element.addEventListener("pointerover", ({ target }) => this.#peek(target));
  }

  load(run, sizes) {
    this.run = run;
    this.sizes = sizes ?? {};
    this.scenes = scenes(run);
    this.scene = this.scenes.get(kernelOf(run, 0));
    const [tensors, chip] = [this.scene.memory, this.scene.chip].map((items) =>
      items.map((it) => `${it.label} ${it.about}`).join(", "));
    this.element.ariaLabel = `Tensors: ${tensors}. On the chip: ${chip}.`;
  }

  /** Draw anew, as large as fits. */
  fit(size) {
    const { width, height, beside } = (this.size = size);
    const best = arranged(this.scene, size);
    this.boxes = best.boxes;
    const { bands } = best;
    // The chip is as large as there is room, and what it holds last is in the middle.
    const spare = Math.max(0, height - best.height);
    bands.at(-1).height += spare;
    for (const box of new Set(best.boxes.values())) {
      if (box.y > bands.at(-1).y) box.y += spare / 2;
    }
    this.high = bands[0].height;
    const text = (kind, x, y, end) =>
      draw("text", { class: kind, x, y, "text-anchor": end ? "end" : "start" });
    const middle = bands[0].height + BUS / 2 + 4;
    this.note = text("quiet", width - PAD, bands.find(({ y }) => y).y + 14, true);
    this.sums = {
      read: text("sum", PAD, middle),
      written: text("sum", width - beside - PAD, middle, true),
      products: text("sum", width - PAD, bands.at(-1).y + 14, true),
    };
    const titles = bands.map(({ name, x, y }) => {
      const title = text("band", x + PAD, y + 14);
      title.append(LEVELS[name],
        draw("tspan", { class: "quiet", dx: 6 }, width < NARROW ? "" : this.sizes[name] ?? ""));
      return title;
    });
    this.parts = new Map();
    const drawn = [...this.scene.memory, ...this.scene.chip].map((it) => this.#item(it));
    this.air = draw("g", { class: "air" });
    this.element.setAttribute("viewBox", `0 0 ${width} ${Math.max(height, best.height)}`);
    this.element.replaceChildren(
      ...bands.map(({ name, x, y, width: across, height: high }) => draw("rect", {
        class: `level ${name}`, x: x + 0.5, y: y + 0.5, width: across - 1, height: high - 1, rx: 5,
      })),
      ...titles, this.note, ...Object.values(this.sums), ...drawn, this.air);
  }

  #item(it) {
    const { x, y, side, room } = this.boxes.get(it);
    const group = draw("g", { class: `item t-${it.colour} ${it.level}` });
    const label = draw("text", { class: "label", x, y: y - 5 }, it.label);
    if (LETTER * it.label.length + 5 + SMALL * it.about.length <= room) {
      label.append(draw("tspan", { class: "quiet", dx: 5 }, it.about));
    }
    group.append(draw("title", {}, `${it.label}: ${it.about}`), label);
    const cells = Array.from({ length: it.rows * it.cols }, (_, index) => {
      const at = placed(it, this.boxes.get(it), index);
      const rect = draw("rect", {
        x: at.x + 0.5, y: at.y + 0.5, width: at.w - 1, height: at.h - 1, rx: 2, class: "cell",
        "fill-opacity": 0.06,
      });
      const cell = { rect, at };
      rect.peek = [it, index, cell];
      group.append(rect);
      if (it.bars) {
        cell.bar = draw("rect", { class: "bar", y: at.y + 0.5, height: at.h - 1, rx: 2 });
        cell.was = draw("path", { class: "was" });
        group.append(cell.bar, cell.was);
      }
      if (it.bars || side >= READABLE) {
        const small = it.bars ? Math.min(12, side - 2) : side / (side < 30 ? 2.3 : 2.9);
        cell.text = draw("text", {
          x: at.x + at.w / 2, y: at.y + at.h / 2, class: "value", "font-size": small,
        });
        group.append(cell.text);
      }
      return cell;
    });
    const outline = draw("path", { class: "outline" });
    group.append(outline);
    this.parts.set(it, { group, cells, outline });
    return group;
  }

  #outline(it, all, kind) {
    const { outline } = this.parts.get(it);
    const parts = bounds(it, this.boxes.get(it), all)?.parts ?? [];
    const path = parts.map(({ x, y, w, h }) => `M${x} ${y}h${w}v${h}h${-w}z`);
    outline.setAttribute("d", path.join(""));
    outline.setAttribute("class", `outline ${kind}`);
  }

  /** Draw a frame; of the one that `secret` names the first number is hidden, `moving` lets tiles fly. */
  show(frame, { secret, moving = false } = {}) {
    const { at, step, memory, chip, sums } = frame;
    const scene = this.scenes.get(kernelOf(this.run, at));
    if (scene !== this.scene) {
      this.scene = scene;
      this.fit(this.size);
    }
    const changed = new Set(Object.keys(step.state ?? {}));
    const uses = new Set([...(step.uses ?? []), ...(step.product?.of ?? [])]);
    for (const it of this.scene.memory) {
      const { values, reads, touched } = memory.get(it.name);
      this.#paint(it, values, { reads });
      this.#outline(it, touched, "");
    }
    for (const it of this.scene.chip) {
      const held = chip.get(it.name);
      const others = this.scene.chip.filter((o) => (o.place ?? o.name) === (it.place ?? it.name));
      const newest = Math.max(-1, ...others.map((o) => chip.get(o.name)?.since ?? -1));
      const shown = held ? held.since === newest : !it.place && newest < 0;
      const { group, cells } = this.parts.get(it);
      group.classList.toggle("away", !shown);
      group.classList.toggle("empty", !held);
      group.classList.toggle("gone", Boolean(held?.gone));
      const old = changed.has(it.name) ? held?.before : null;
      this.#paint(it, held?.values ?? [], { asked: secret?.name === it.name, old });
      const kind = changed.has(it.name) ? "new" : uses.has(it.name) && "uses";
      this.#outline(it, held && kind ? [...cells.keys()] : [], kind);
    }
    const { totals } = this.run;
    const stored = this.scene.memory.filter((it) => it.level !== "map" && it.writes);
    const stores = stored.some((it) => memory.get(it.name).touched.length && step.writes);
    const words = {
      read: ["↓ read", "bytes", step.reads], written: ["↑ written", "bytes", stores],
      products: ["", "multiply-adds", step.product],
    };
    for (const [what, [before, after, moves]] of Object.entries(words)) {
      const [now, all] = [sums[what], totals[what]].map((each) => `${each}`.replace(/\B(?=(\d{3})+$)/g, ","));
      this.sums[what].textContent = totals[what] ? `${before} ${now} of ${all} ${after}` : "";
      this.sums[what].classList.toggle("now", Boolean(moves));
    }
    this.note.textContent = "";
    this.air.replaceChildren();
    if (moving && !still.matches) this.#fly(step, changed, uses);
  }

  #paint(it, values, { reads, asked, old }) {
    const { cells } = this.parts.get(it);
    const digits = it.whole ? 0 : it.bars || this.boxes.get(it).side >= 30 ? 2 : 1;
    for (const [index, cell] of cells.entries()) {
      const value = values[index];
      const hides = asked && !index;
      const now = hides ? NaN : number(value);
      const text = hides ? "?" : written(value, digits);
      const kind = value === null || value === undefined ? "cell none"
        : value === "-inf" ? "cell masked" : value === "nan" ? "cell nan" : "cell";
      const read = reads?.[index];
      // Setting what is there already costs as much as a change.
      const key = `${[text, kind, hides || value, old?.[index], read]}`;
      if (cell.key === key) continue;
      Object.assign(cell, { key, value: hides ? "?" : value });
      const { x, y, w, h } = cell.at;
      if (cell.text) cell.text.textContent = text;
      cell.rect.setAttribute("class", kind);
      if (it.bars) {
        const scale = (each) => x + 1 + ((each - it.low) / (it.high - it.low || 1)) * (w - 2);
        const [from, to] = [scale(0), Number.isNaN(now) ? scale(0) : scale(now)];
        cell.bar.setAttribute("x", Math.min(from, to));
        cell.bar.setAttribute("width", Math.abs(to - from));
        const was = scale(number(old?.[index]));
        cell.was.setAttribute("d", Number.isNaN(was) ? "" : `M${was} ${y + 1}v${h - 2}`);
      } else {
        const strength = Number.isNaN(now) ? 0 : 0.06 + (0.44 * Math.abs(now)) / it.shade;
        cell.rect.setAttribute("fill-opacity", strength.toFixed(3));
      }
      if (cell.mark || read) {
        // A corner for each time that it was read.
        const c = Math.min(6, w / 3.5), far = w - 1;
        const corners = [
          `M${x + 1} ${y + 1}h${c}l${-c} ${c}z`, `M${x + far} ${y + 1}v${c}l${-c} ${-c}z`,
          `M${x + far} ${y + far}h${-c}l${c} ${-c}z`, `M${x + 1} ${y + far}v${-c}l${c} ${c}z`,
        ];
        if (!cell.mark) cell.rect.after((cell.mark = draw("path", { class: "used" })));
        cell.mark.setAttribute("d", corners.slice(0, read).join(""));
      }
    }
  }

  /** What is loaded or stored moves between memory and chip. */
  #fly(step, changed, uses) {
    const tensor = (name) => this.scene.memory.find((it) => it.name === name);
    const chip = (test) => this.scene.chip.find(test);
    const whole = (it) => bounds(it, this.boxes.get(it), [...this.parts.get(it).cells.keys()]);
    const flights = [
      ...(step.reads ?? []).map(([name, spans]) => {
        const from = tensor(name);
        const to = chip((it) => changed.has(it.name) && it.colour === from.colour)
          ?? chip((it) => changed.has(it.name));
        return to && [from, bounds(from, this.boxes.get(from), [...indices(spans)]), whole(to)];
      }),
      ...(step.writes ?? []).map(([name, spans]) => {
        const to = tensor(name);
        const from = chip((it) => uses.has(it.name) && it.colour === to.colour)
          ?? chip((it) => uses.has(it.name) || it.colour === to.colour);
        return to.level !== "map" && from && [to, whole(from), bounds(to, this.boxes.get(to), [...indices(spans)])];
      }),
    ];
    for (const [it, from, to] of flights.filter((each) => each && each.every(Boolean))) {
      const card = draw("rect", {
        class: `card t-${it.colour}`, x: to.x, y: to.y, width: to.w, height: to.h, rx: 3,
      });
      this.air.append(card);
      const start = `translate(${from.x - to.x}px,${from.y - to.y}px) ` +
        `scale(${from.w / to.w},${from.h / to.h})`;
      const frames = [{ transform: start, opacity: 1 }, { opacity: 1, offset: 0.8 },
        { transform: "none", opacity: 0 }];
      card.animate(frames, FLIGHT).finished.finally(() => card.remove());
    }
  }

  #peek({ peek }) {
    if (!peek) return;
    const [it, index, { value }] = peek;
    const place = [Math.floor(index / it.stride), index % it.stride].slice(-it.shape.length);
    const is = value === "?" ? value : written(value, 3) || "empty";
    this.note.textContent = `${it.label}[${place.join(", ")}] = ${is}`;
  }
}
