// The lines of a snippet as the blocks of the page show them.

/** A range for each line of a block. */
function ranges(code) {
  const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  const found = [];
  let range = null;
  while (walker.nextNode()) {
    const { data } = walker.currentNode;
    for (let at = 0; at < data.length; at += 1) {
      if (!range) (range = document.createRange()).setStart(walker.currentNode, at);
      if (data[at] !== "\n") continue;
      range.setEnd(walker.currentNode, at);
      found.push(range);
      range = null;
    }
  }
  return found;
}

/** Line of the file: { range, block }, from the page's blocks of a file. */
export function linesOf(snippet) {
  const lines = new Map();
  for (const block of document.querySelectorAll(`figure[data-snippet="${snippet}"]`)) {
    const all = ranges(block.querySelector("pre code"));
    for (const [n, line] of block.dataset.lines.split(" ").map(Number).entries()) {
      lines.set(line, [...(lines.get(line) ?? []), { range: all[n], block }]);
    }
  }
  return lines;
}

/** Top and bottom of a line in its block, asked once. */
function place(shown) {
  if (!shown.bottom) {
    const box = shown.block.querySelector(".highlight").getBoundingClientRect();
    const { top, bottom } = shown.range.getBoundingClientRect();
    Object.assign(shown, { top: top - box.top, bottom: top && bottom - box.top });
  }
  return shown;
}

/** Mark the lines from `first` to `last` in the blocks that show them, or none. */
export function light(lines, first, last, on) {
  const starts = new Map((on && lines.get(first)?.map((it) => [it.block, place(it)])) || []);
  for (const block of new Set([...lines.values()].flat().map((shown) => shown.block))) {
    const start = starts.get(block);
    let bar = block.querySelector(".replay-line");
    if (!bar && start) {
      bar = document.createElement("div");
      block.querySelector(".highlight").prepend(bar);
    }
    if (bar) bar.className = `replay-line ${start ? "" : "off"}`;
    if (!start) continue;
    const end = lines.get(last)?.map(place).find((it) => it.block === block) ?? start;
    bar.style.top = `${start.top}px`;
    bar.style.height = `${end.bottom - start.top}px`;
  }
}
