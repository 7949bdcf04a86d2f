// What is drawn of a run, and where it stands.

export const PAD = 10, BUS = 30; // pixels
export const READABLE = 22; // of a cell that holds a number
const NARROW = 480, HEAD = 20, LABEL = 18, LETTER = 8, BAR = 44;
const SMALLEST = 14, LARGEST = 38; // of a cell on the chip
const TINY = 7; // of a cell in memory

export const number = (value) => (typeof value === "number" ? value : NaN);
const total = (numbers) => numbers.reduce((sum, each) => sum + each, 0);
const rows = (shape) => shape.slice(0, -1).reduce((count, each) => count * each, 1);

/** What is drawn of a run: items with their rows and columns, in order. */
export function scene(run) {
  const item = (it, key, values) => {
    const bars = key === "chip" && it.shape.length < 2;
    const size = bars ? [it.shape[0] ?? 1, 1] : [rows(it.shape), it.shape.at(-1)];
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
    if (product) above.set(at(product.gives), find(product.of[1]));
  }
  const lifted = new Set(above.values());
  const columns = chip
    .filter((it) => !it.place && !lifted.has(it))
    .map((it) => [it, above.get(it.name)]);
  return { memory, chip, columns };
}

/** Where all stands if a cell of the chip is `cell` wide: boxes, bands, the height. */
function arrange({ memory, chip, columns }, width, cell, ratio) {
  const boxes = new Map();
  const bands = [];
  const room = width - 2 * PAD;
  const gap = width < NARROW ? 10 : 14;
  let y = 0;
  let fits = true;
  // Whoever sees a matrix that is never stored should read that it is not.
  const named = (it) => it.label.length + (it.level === "map" && width >= NARROW ? it.about.length : 0);
  const wide = (it, side) =>
    it ? Math.max(it.bars ? BAR : it.cols * side, LETTER * named(it)) : 0;
  const wrapped = (all, side) => {
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
  const place = (line, row, side) => {
    const high = Math.max(...line.map(([column]) => column[row]?.rows ?? 0)) * side;
    let x = (width + gap - total(line.map(([, size]) => size + gap))) / 2;
    for (const [column, size] of line) {
      const it = column[row];
      if (it) boxes.set(it, { x, y: y + LABEL, side, across: it.bars ? BAR : side, room: size });
      x += size + gap;
    }
    y += LABEL + high + 7;
  };
  const band = (name, lines, row, side) => {
    bands.push({ name, y });
    y += HEAD;
    for (const line of lines) place(line, row, side);
    bands.at(-1).height = y - bands.at(-1).y;
  };
  const small = Math.max(TINY, Math.floor(cell * ratio));
  band("memory", wrapped(memory.map((it) => [it]), small), 0, small);
  y += BUS;
  // An operand stands above its product, if all of the chip is on one line.
  const lines = wrapped(columns, cell);
  const shared = chip.filter((it) => it.level === "shared");
  if (lines.length === 1 && columns.some(([, above]) => above)) {
    band("shared", lines, 1, cell);
    band("registers", lines, 0, cell);
    // Shared memory reaches down to what it holds beside the registers.
    const left = lines[0].filter(([[it]]) => it.level === "shared").map(([[it]]) => it);
    bands.at(-1).x = Math.max(0, ...left.map((it) => boxes.get(it).x + wide(it, cell) + gap / 2));
    bands.at(-2).height = y - bands.at(-2).y;
  } else {
    const flat = (items) => wrapped(items.map((it) => [it]), cell);
    if (shared.length) {
      band("shared", flat(shared), 0, cell);
      y += 5;
    }
    band("registers", flat(chip.filter((it) => !it.place && !shared.includes(it))), 0, cell);
  }
  for (const it of chip.filter((each) => each.place)) {
    boxes.set(it, boxes.get(chip.find((each) => each.name === it.place)));
  }
  return { boxes, bands, height: y, fits };
}

/** The best arrangement that fits into a box: numbers on the chip, then in memory, and
 * then the largest cells. */
export function arranged(scene, width, height) {
  let best = arrange(scene, width, SMALLEST, 0.4);
  let most = -1;
  for (let cell = LARGEST; cell >= SMALLEST; cell -= 1) {
    for (const ratio of [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]) {
      const worth = 100 * (cell >= READABLE) + 50 * (cell * ratio >= READABLE) + cell + ratio;
      if (worth <= most) continue;
      const tried = arrange(scene, width, cell, ratio);
      if (tried.fits && tried.height <= height) [best, most] = [tried, worth];
    }
  }
  return best;
}
