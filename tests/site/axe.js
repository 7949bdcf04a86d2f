// axe-core's violations, of colours or of all else. Each element costs it time, and most
// are parts of formulas, code and drawings: meanwhile, they are plain text or nothing.
async (colours) => {
  const COLOURS = ["color-contrast", "link-in-text-block"];
  const SEVERAL = 3; // Some it cannot judge, because something lies over them.
  const grounds = new Map([[null, ""]]);

  /** All that is painted behind an element. */
  function ground(element) {
    if (!grounds.has(element)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(element);
      const own = `${backgroundColor} ${backgroundImage} ${opacity}`;
      const below = ground(element.parentElement);
      grounds.set(element, /^rgba\(0, 0, 0, 0\) none 1$/.test(own) ? below : `${below}, ${own}`);
    }
    return grounds.get(element);
  }

  /** All that the colours of a text are judged by. */
  function look(element) {
    const { color, fontSize, fontWeight } = getComputedStyle(element);
    const large = parseFloat(fontSize) >= (fontWeight >= 700 ? 18.5 : 24);
    const link = element.closest("a") && getComputedStyle(element.closest("a").parentElement).color;
    return `${color} on ${ground(element)}, ${large}, ${link}`;
  }

  /** Several elements of each look. Of text, axe judges no single letter. */
  function* several() {
    const seen = new Map();
    const { FILTER_ACCEPT, FILTER_REJECT, SHOW_ELEMENT, SHOW_TEXT } = NodeFilter;
    const walker = document.createTreeWalker(document.body, SHOW_ELEMENT | SHOW_TEXT, (node) =>
      node instanceof Element && (node.matches("svg, .katex-mathml") || !node.checkVisibility())
        ? FILTER_REJECT
        : FILTER_ACCEPT,
    );
    while (walker.nextNode()) {
      const text = walker.currentNode;
      if (text instanceof Element || text.data.trim().length < 2) continue;
      const its = look(text.parentElement);
      seen.set(its, (seen.get(its) ?? 0) + 1);
      if (seen.get(its) <= SEVERAL) yield text.parentElement;
    }
  }

  const undo = [];
  const reduce = (element, ...rest) => {
    const parts = [...element.childNodes];
    element.replaceChildren(...rest);
    undo.push(() => element.replaceChildren(...parts));
  };
  const formulas = [...document.querySelectorAll(".katex")];
  for (const code of document.querySelectorAll("pre > code")) reduce(code, code.textContent);
  const few = colours ? [...several()] : formulas.slice(0, SEVERAL);
  for (const formula of formulas) {
    if (!few.some((one) => formula.contains(one))) reduce(formula, "formula");
  }
  if (colours) for (const svg of document.querySelectorAll("article svg")) reduce(svg);
  const rules = Object.fromEntries(COLOURS.map((rule) => [rule, { enabled: false }]));
  const { violations } = await axe.run(
    { include: colours ? few : ["html"] },
    {
      resultTypes: ["violations"],
      ...(colours ? { runOnly: { type: "rule", values: COLOURS } } : { rules }),
    },
  );
  while (undo.length) undo.pop()();
  return violations;
}
