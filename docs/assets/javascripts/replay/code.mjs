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

/** Line of the file: { range, block, text }, from all blocks of the page that show it. */
export function linesOf(snippet) {
  const lines = new Map();
  for (const block of document.querySelectorAll(`figure[data-snippet="${snippet}"]`)) {
    const all = ranges(block.querySelector("pre code"));
    for (const [n, line] of block.dataset.lines.split(" ").map(Number).entries()) {
      const shown = { range: all[n], block, text: all[n].toString() };
      lines.set(line, [...(lines.get(line) ?? []), shown]);
    }
  }
  return lines;
}

/** The lines of the statement that starts at a line: until its brackets are closed. */
export function statement(lines, first) {
  const found = [];
  let open = 0;
  for (let line = first; lines.has(line); line += 1) {
    found.push(line);
    const code = lines.get(line)[0].text.replace(/#.*/, "");
    open += code.replace(/[^([{]/g, "").length - code.replace(/[^)\]}]/g, "").length;
    if (open <= 0) break;
  }
  return found;
}

/** Mark lines in the blocks that show them, where `on` is true; else no line. */
export function light(lines, marked, on) {
  for (const { block } of new Set([...lines.values()].flat())) {
    block.querySelector(".replay-line")?.classList.add("off");
  }
  if (!on) return;
  for (const { range, block } of lines.get(marked[0]) ?? []) {
    const box = block.querySelector(".highlight");
    let bar = box.querySelector(".replay-line");
    if (!bar) box.prepend((bar = document.createElement("div")));
    bar.className = "replay-line";
    const last = lines.get(marked.at(-1)).find((each) => each.block === block) ?? { range };
    const top = range.getBoundingClientRect().top;
    bar.style.setProperty("--top", `${top - box.getBoundingClientRect().top}px`);
    bar.style.setProperty("--tall", `${last.range.getBoundingClientRect().bottom - top}px`);
  }
}
