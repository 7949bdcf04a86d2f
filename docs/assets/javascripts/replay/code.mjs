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

/** Line of the file: { range, block }, from the page's blocks of a file or section. */
export function linesOf(snippet, section) {
  const lines = new Map();
  const only = section ? `[data-section="${section}"]` : "";
  for (const block of document.querySelectorAll(`figure[data-snippet="${snippet}"]${only}`)) {
    const all = ranges(block.querySelector("pre code"));
    for (const [n, line] of block.dataset.lines.split(" ").map(Number).entries()) {
      lines.set(line, [...(lines.get(line) ?? []), { range: all[n], block }]);
    }
  }
  return lines;
}

/** Mark the lines from `first` to `last` in the blocks that show them, or none. */
export function light(lines, first, last, on) {
  for (const { block } of new Set([...lines.values()].flat())) {
    block.querySelector(".replay-line")?.classList.add("off");
  }
  if (!on) return;
  for (const { range, block } of lines.get(first) ?? []) {
    const box = block.querySelector(".highlight");
    let bar = box.querySelector(".replay-line");
    if (!bar) box.prepend((bar = document.createElement("div")));
    bar.className = "replay-line";
    const end = lines.get(last)?.find((each) => each.block === block)?.range ?? range;
    const top = range.getBoundingClientRect().top;
    bar.style.setProperty("--top", `${top - box.getBoundingClientRect().top}px`);
    bar.style.setProperty("--tall", `${end.getBoundingClientRect().bottom - top}px`);
  }
}
