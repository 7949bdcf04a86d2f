// Every block of code and every badge of the page, as a reader meets it: its text, the
// signs that stylesheets add, and why a part of it is not seen as it is written.
() => {
  const STYLE = {
    visibility: "visible", textTransform: "none", direction: "ltr", filter: "none",
    clipPath: "none", maskImage: "none", transform: "none", webkitTextSecurity: "none",
  };

  /** Why an element is not seen as it is written. */
  function* faults(element) {
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) {
      yield "not visible";
    }
    const style = getComputedStyle(element);
    for (const [name, value] of Object.entries(STYLE)) {
      if (style[name] !== value) yield `${name}: ${style[name]}`;
    }
    const fill = style.webkitTextFillColor;
    if (fill !== style.color || /^rgba/.test(fill)) yield `color: ${fill}`;
    if (parseFloat(style.fontSize) < (element.closest("pre") ? 13 : 9)) yield `font-size: ${style.fontSize}`;
  }

  const signs = (element) =>
    ["::before", "::after"]
      .filter((pseudo) => getComputedStyle(element, pseudo).display !== "none")
      .map((pseudo) => getComputedStyle(element, pseudo).content)
      .filter((content) => !["none", "normal"].includes(content));

  /** Each line of a text: a range from its first letter to its last. */
  function* lines(root) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    let range = null;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (let at = 0; at < node.data.length; at += 1) {
        if (node.data[at] === "\n") {
          if (range) yield range;
          range = null;
        } else if (node.data[at].trim()) {
          if (!range) {
            range = document.createRange();
            range.setStart(node, at);
          }
          range.setEnd(node, at + 1);
        }
      }
    }
    if (range) yield range;
  }

  function look(root) {
    const elements = [root, ...root.querySelectorAll("*")];
    const found = elements.flatMap((element) => [...faults(element)]);
    let bottom = -Infinity;
    for (const range of lines(root)) {
      const text = range.toString();
      // Far from what sticks to an edge of the window; each step of a page costs time.
      const top = range.getBoundingClientRect().y / innerHeight;
      if (top < 0.25 || top > 0.75) {
        scrollBy({ top: (top - 0.25) * innerHeight, behavior: "instant" });
      }
      const first = document.createRange();
      first.setStart(range.startContainer, range.startOffset);
      first.setEnd(range.startContainer, range.startOffset + 1);
      const { x, y, width, height } = first.getBoundingClientRect();
      const met = document.elementFromPoint(x + width / 2, y + height / 2);
      if (!root.contains(met)) found.push(`${text}: under ${met?.outerHTML}`);
      if (range.getBoundingClientRect().width < 2.5 * text.length) {
        found.push(`${text}: squeezed`);
      }
      if (y + scrollY < bottom - 1) found.push(`${text}: not below the line before`);
      bottom = y + scrollY + height / 2;
    }
    const text = root.textContent;
    return { text, signs: elements.flatMap(signs), faults: found };
  }

  return {
    blocks: [...document.querySelectorAll("article pre > code")].map(look),
    badges: [...document.querySelectorAll(".badge > :is(summary, a)")].map(look),
  };
}
