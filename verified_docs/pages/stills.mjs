// Key frames of a run as SVG: memory above, the chip below. It stands where
// the stage has it, for paper and for browsers without scripts; only the build runs this
// (replays.py).

import { arranged, bounds, frame, indices, kernelOf, LEVELS, LINE, PAD, placed, READABLE, scenes, written } from "../../docs/assets/javascripts/replay/scene.mjs";

const SIZE = { width: 400, height: 640, beside: 0 };
const DIGIT = 6; // the width of one. A tensor has as many in each frame.

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt()};`);
const short = (length) => +length.toFixed(1);
const of = (kind) => (kind ? ` class="${kind}"` : "");
const rect = (kind, { x, y, w, h }, opacity) =>
  `<rect${of(kind)} x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}"` +
  (opacity ? ` fill-opacity="${opacity.toFixed(2)}"/>` : "/>");
const text = (kind, x, y, words, size = 13, anchor = "start") =>
  `<text${of(kind)} x="${short(x)}" y="${short(y)}" font-size="${size}" text-anchor="${anchor}">${escaped(words)}</text>`;

/** A matrix or the bars of a vector; its cells that are touched now have an outline. */
function item(it, box, values, touched = []) {
  const { x: left, y: top, side, across } = box;
  const scale = (value) => ((value - it.low) / (it.high - it.low || 1)) * across;
  const fits = it.bars || [it.low, it.high].every((end) => DIGIT * written(end, 2).length <= side);
  const digits = it.whole ? 0 : fits ? 2 : 1;
  const [shapes, numbers] = [[], []];
  for (const [index, value] of values.entries()) {
    const { x, y, w, h } = placed(it, box, index);
    const size = Number.isFinite(value) ? value : 0;
    const from = scale(Math.min(0, size));
    const bar = { x: x + from, y: y + 1, w: scale(Math.max(0, size)) - from, h: h - 2 };
    if (it.bars) shapes.push(rect("", bar, 0.25));
    else if (value !== null) shapes.push(rect("", { x, y, w, h }, 0.06 + (0.4 * Math.abs(size)) / it.shade));
    if (value === null || (!it.bars && side < READABLE)) continue;
    const font = Math.min(13, side / 2);
    numbers.push(text("ink", x + w / 2, y + h / 2 + 4, written(value, digits), font, "middle"));
  }
  const many = (count, line) => Array.from({ length: count + 1 }, (_, n) => line(n));
  const lines = [
    ...many(it.rows, (n) => `M${short(left)},${short(top + n * side)}h${short(it.cols * across)}`),
    ...many(it.cols, (n) => `M${short(left + n * across)},${short(top)}v${short(it.rows * side)}`),
  ];
  if (!it.bars) shapes.push(`<path class="line" d="${lines.join("")}" stroke-opacity="0.35"/>`);
  const marks = (bounds(it, box, touched)?.parts ?? []).map((part) => rect("accent", part));
  const kind = it.colour ? `t-${it.colour}` : "ink";
  const label = text("", left, top - 5, it.label);
  return [`<g class="${kind}">`, ...shapes, label, "</g>", ...numbers, ...marks].join("");
}

/** The box of a level with its name; what is never stored has a dashed one. */
const level = ({ name, x, y, width, height }) =>
  rect(name === "map" ? "line dashed" : "soft", { x: x + 1, y: y + 1, w: width - 2, h: height - 2 }) +
  text("ink", x + PAD, y + LINE - 3, LEVELS[name]);

/** The run's key frames. */
export function stills(run, name) {
  const places = new Map([...scenes(run)].map(([kernel, scene]) =>
    [kernel, { scene, ...arranged(scene, SIZE) }]));
  return run.frames.map((n) => {
    const { memory, chip } = frame(run, n);
    const { scene, boxes, bands, height } = places.get(kernelOf(run, n));
    // What the tile has touched so far.
    const begun = run.steps.slice(0, n + 1).findLastIndex(({ mark }) => mark);
    const moved = run.steps.slice(Math.max(0, begun), n + 1)
      .flatMap(({ reads = [], writes = [] }) => [...reads, ...writes]);
    const touched = ({ name }) =>
      moved.filter(([each]) => each === name).flatMap(([, spans]) => [...indices(spans)]);
    // Of those that have one place the newest.
    const held = scene.chip.filter((it) => chip.has(it.name) && !chip.get(it.name).gone);
    const last = new Map(held.toSorted((a, b) => chip.get(a.name).since - chip.get(b.name).since)
      .map((it) => [boxes.get(it), it]));
    const numbers = ({ name, whole }) => chip.get(name).values.map((each) => written(each, whole ? 0 : 2));
    const told = held.map((it) => `${it.label}: ${numbers(it).join(", ")}`);
    const head = escaped(`${name}, step ${n + 1} of ${run.steps.length}`);
    return `<svg class="replay-frame" viewBox="0 0 ${SIZE.width} ${short(height)}" role="img">` +
      `<title>${head}</title><desc>${escaped(`On the chip: ${told.join("; ")}`)}</desc>` +
      bands.map(level).join("") +
      scene.memory.map((it) => item(it, boxes.get(it), memory.get(it.name).values, touched(it))).join("") +
      [...last].map(([box, it]) => item(it, box, chip.get(it.name).values)).join("") + "</svg>";
  });
}
