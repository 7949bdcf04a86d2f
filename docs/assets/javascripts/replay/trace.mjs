// What a recorded run says.

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
    const empty = Array(shape.reduce((size, each) => size * each, 1)).fill(null);
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
