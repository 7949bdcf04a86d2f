// What is drawn of a run, and where it stands. The build runs it too (pages/replays.py).

export const PAD = 8, LINE = 17, BUS = 22; // pixels
export const LETTER = 7.5, SMALL = 6.2; // of a label, and of what is said beside it
export const READABLE = 22; // of a cell that holds a number
export const NARROW = 480; // a stage
export const LEVELS = {
  memory: "GPU memory", map: "Not in memory", chip: "On the chip",
  shared: "Shared memory", registers: "Registers",
};
const BAR = 42;
const TITLE = 86; // of the frame beside memory
const SMALLEST = 11, LARGEST = 34; // of a cell on the chip
const TINY = 6; // of a cell in memory
const GOOD = 26; // cells beyond it are worth a little

export const number = (value) => (typeof value === "number" ? value : NaN);
const total = (numbers) => numbers.reduce((sum, each) => sum + each, 0);
const count = (shape) => shape.reduce((product, each) => product * each, 1);

/** What is drawn of a run: items with their rows and columns, in order. */
export function scene(run) {
  const item = (it, key, values) => {
    const bars = key === "chip" && it.shape.length < 2;
    const size = bars ? [it.shape[0] ?? 1, 1] : [count(it.shape.slice(0, -1)), it.shape.at(-1)];
    const [high, wide] = it.turned ? size.toReversed() : size;
    const label = it.label ?? it.name;
    const about = it.title ?? it.shape.join(" × ");
    const finite = values.flat().map(number).filter(Number.isFinite);
    return {
      ...it, key, label, about, bars, rows: high, cols: wide, stride: size[1], low: Math.min(0, ...finite),
      high: Math.max(0, ...finite), most: Math.max(...finite.map(Math.abs), 1e-9),
      whole: finite.every(Number.isInteger),
    };
  };
  const memory = run.tensors.map((it) => {
    const writes = run.steps.flatMap(({ writes = [] }) => writes);
    const stored = writes.filter(([name]) => name === it.name).map(([, , values]) => values);
    return item(it, "memory", [it.values ?? [], ...stored]);
  });
  const chip = run.state.map((it) =>
    item(it, "chip", run.steps.flatMap(({ state }) => (state?.[it.name] ? [state[it.name]] : []))),
  );
  // Equal values of equal colour look alike, wherever they are.
  const grids = [...memory, ...chip].filter((it) => !it.bars);
  for (const it of grids) {
    it.shade = Math.max(...grids.filter((o) => o.colour === it.colour).map((o) => o.most));
  }
  const find = (name) => chip.find((it) => it.name === name);
  for (const it of chip) if (!find(it.place)) it.place = null;
  const at = (name) => find(name)?.place ?? name;
  const above = new Map();
  for (const { product } of run.steps) {
    const right = find(product?.of[1]);
    if (right?.level === "shared") above.set(at(product.gives), right);
  }
  const lifted = new Set(above.values());
  // Of each column what registers hold, and the operand that shared memory holds above it.
  const columns = chip
    .filter((it) => !it.place && !lifted.has(it))
    .map((it) => (it.level === "shared" ? [null, it] : [it, above.get(it.name)]));
  return { memory, chip, columns };
}

/** The kernel that a step belongs to, if there are several. */
export const kernelOf = (run, at) => run.programs.findLast(({ start }) => start <= at)?.kernel;

/** Of each kernel what is drawn: it has a chip of its own. */
export function scenes(run) {
  const held = new Map();
  for (const [n, { state = {} }] of run.steps.entries()) {
    const kernel = kernelOf(run, n);
    held.set(kernel, [...(held.get(kernel) ?? []), ...Object.keys(state)]);
  }
  return new Map([...held].map(([kernel, names]) =>
    [kernel, scene({ ...run, state: run.state.filter(({ name }) => names.includes(name)) })]));
}

/** Where all stands with cells of this size on the chip, and `small` ones in memory. */
function arrange({ memory, chip, columns }, { width, beside }, cell, small) {
  const boxes = new Map();
  const bands = [];
  const gap = width < NARROW ? 5 : 10;
  let y = 0;
  let fits = true;
  // It must be read that a matrix is never stored.
  const told = (it) => (it.level === "map" && width >= NARROW ? 5 + SMALL * it.about.length : 0);
  const wide = (it, side) =>
    it ? Math.max(it.bars ? BAR : it.cols * side, LETTER * it.label.length + 3 + told(it)) : 0;
  const wrapped = (all, side, room) => {
    const lines = [];
    let used = Infinity;
    for (const column of all) {
      const size = Math.max(...column.map((it) => wide(it, side)));
      if (used + size > room) used = lines.push([]) && 0;
      fits &&= size <= room;
      lines.at(-1).push([column, size]);
      used += size + gap;
    }
    return lines;
  };
  const band = (name, all, row, side, left = 0, across = width) => {
    bands.push({ name, y, x: left, width: across });
    y += LINE;
    for (const line of wrapped(all, side, across - 2 * PAD)) {
      const high = Math.max(...line.map(([column]) => column[row]?.rows ?? 0)) * side;
      let x = left + (across + gap - total(line.map(([, size]) => size + gap))) / 2;
      for (const [column, size] of line) {
        const it = column[row];
        if (it) boxes.set(it, { x, y: y + LINE, side, across: it.bars ? BAR : side, room: size });
        x += size + gap;
      }
      y += LINE + high + 6;
    }
    bands.at(-1).height = y - bands.at(-1).y;
  };
  const flat = (items) => items.map((it) => [it]);
  // What is never stored has a frame of its own, beside memory.
  const maps = memory.filter((it) => it.level === "map");
  const apart = maps.length && Math.ceil(Math.max(TITLE, ...maps.map((it) => wide(it, small)))) + 2 * PAD;
  const across = width - beside - (apart && apart + gap);
  band("memory", flat(memory.filter((it) => !maps.includes(it))), 0, small, 0, across);
  if (apart) {
    const low = y;
    y = 0;
    band("map", flat(maps), 0, small, across + gap, apart);
    y = Math.max(low, y);
    for (const each of bands) each.height = y;
  }
  y += BUS;
  const shared = chip.filter((it) => it.level === "shared");
  // An operand stands above its product, if all of the chip is on one line.
  const aligned = shared.length && wrapped(columns, cell, width - 2 * PAD).length === 1;
  const held = chip.filter((it) => !it.place && !shared.includes(it));
  if (shared.length) {
    band("shared", ...(aligned ? [columns, 1] : [flat(shared), 0]), cell);
    y += 5;
  }
  band(shared.length ? "registers" : "chip", aligned ? columns : flat(held), 0, cell);
  for (const it of chip.filter((each) => each.place)) {
    boxes.set(it, boxes.get(chip.find((each) => each.name === it.place)));
  }
  return { boxes, bands, height: y, fits };
}

/** What cells of a size are worth, in pixels of height: numbers first, then room for them. */
const worth = (side) =>
  (side >= READABLE ? 150 : 0) + 18 * Math.min(side, GOOD) + 2.5 * Math.max(side - GOOD, 0);

/** The best arrangement that fits into a box: large cells, and a low stage. */
export function arranged(scene, size) {
  let best = arrange(scene, size, SMALLEST, TINY);
  let most = -Infinity;
  for (let cell = LARGEST; cell >= SMALLEST; cell -= 1) {
    for (let small = TINY; small <= cell; small += 1) {
      const tried = arrange(scene, size, cell, small);
      if (!tried.fits || tried.height > size.height) break;
      const sum = 2 * worth(cell) + worth(small) - tried.height;
      if (sum > most) [best, most] = [tried, sum];
    }
  }
  return best;
}

/** The height that the runs need in a box of this size. */
export const needed = (runs, size) =>
  Math.max(...runs.flatMap((run) => [...scenes(run).values()]).map((it) => arranged(it, size).height));

/** The box of the cell with this index in a tensor that stands in `box`. */
export function placed(it, { x, y, side, across }, index) {
  const place = [Math.floor(index / it.stride), index % it.stride];
  const [row, column] = it.turned ? place.toReversed() : place;
  return { x: x + column * across, y: y + row * side, w: across, h: side };
}

/** The smallest box around cells, and the boxes that it falls into if it has holes. */
export function bounds(it, box, all) {
  if (!all.length) return null;
  const boxes = all.map((index) => placed(it, box, index));
  const x = Math.min(...boxes.map((each) => each.x));
  const y = Math.min(...boxes.map((each) => each.y));
  const w = Math.max(...boxes.map((each) => each.x + each.w)) - x;
  const h = Math.max(...boxes.map((each) => each.y + each.h)) - y;
  const whole = Math.abs(w * h - new Set(all).size * boxes[0].w * boxes[0].h) < 1;
  return { x, y, w, h, parts: whole ? [{ x, y, w, h }] : boxes };
}

/** [start, count, start, count, …] as single indices. */
export function* indices(spans) {
  for (let at = 0; at < spans.length; at += 2) {
    for (let i = 0; i < spans[at + 1]; i += 1) yield spans[at] + i;
  }
}

/** A value with so many digits behind the point, fewer if it is large. */
export function written(value, digits) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return { "-inf": "−∞", inf: "∞" }[value] ?? "NaN";
  const large = Math.abs(value) >= 99.5 ? 2 : Math.abs(value) >= 9.95 ? 1 : 0;
  const text = value.toFixed(Math.max(0, digits - large));
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/** Everything as it is after step `at` of a run. */
export function frame(run, at) {
  const memory = new Map();
  for (const { name, shape, values } of run.tensors) {
    const empty = Array(count(shape)).fill(null);
    const reads = empty.map(() => 0);
    memory.set(name, { values: [...(values ?? empty)], reads, touched: [] });
  }
  const bytes = new Map(run.tensors.map((t) => [t.name, t.level === "map" ? 0 : t.bytes]));
  const starts = new Set(run.programs.map(({ start }) => start));
  const sums = { read: 0, written: 0, products: 0 };
  let chip = new Map();
  for (const [n, step] of run.steps.slice(0, at + 1).entries()) {
    // What a step gives up is still there while it is shown, and dim after it.
    for (const name of (n && run.steps[n - 1].drop) || []) {
      if (chip.has(name)) chip.get(name).gone = true;
    }
    if (starts.has(n)) chip = new Map();
    for (const [name, spans] of step.reads ?? []) {
      const tensor = memory.get(name);
      const all = [...indices(spans)];
      for (const index of all) tensor.reads[index] += 1;
      if (n === at) tensor.touched.push(...all);
      sums.read += all.length * bytes.get(name);
    }
    for (const [name, spans, values] of step.writes ?? []) {
      const tensor = memory.get(name);
      const all = [...indices(spans)];
      all.forEach((index, i) => (tensor.values[index] = values[i]));
      if (n === at) tensor.touched.push(...all);
      sums.written += all.length * bytes.get(name);
    }
    for (const [name, values] of Object.entries(step.state ?? {})) {
      const old = chip.get(name);
      chip.set(name, { values, before: old?.gone ? null : old?.values, since: n });
    }
    sums.products += step.product?.count ?? 0;
  }
  return { at, step: run.steps[at], memory, chip, sums };
}
