// axe-core's violations on a page in one scheme after another: all in the first, where it
// reads the page anyway, then those of colours. Each element costs it time, and most are
// parts of formulas and code, which are plain text meanwhile.
async (schemes) => {
  const COLOURS = {
    "color-contrast": "[data-judged]",
    "link-in-text-block": "a[href][data-judged], [role=link][data-judged]",
  };
  const SEVERAL = 3; // Some it cannot judge, because something lies over them.
  const SCHEMES = { light: "default", dark: "slate" };
  const { body } = document;
  const before = body.dataset.mdColorScheme;
  const grounds = new Map();

  /** Paint the page in a scheme, as the theme's button does. */
  function paint(scheme) {
    body.dataset.mdColorScheme = scheme;
    grounds.clear();
    grounds.set(null, "");
  }

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
      node instanceof Element && (node.matches("svg") || !node.checkVisibility())
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

  const formulas = [...document.querySelectorAll("math")];
  const judged = new Map(); // from each scheme to the elements that are judged in it
  for (const scheme of schemes) {
    paint(SCHEMES[scheme]);
    judged.set(scheme, [...several()]);
  }
  paint(before);
  const looked = [...judged.values()].flat();
  const kept = new Set(looked.map((each) => each.closest("math")));
  for (const each of formulas.slice(0, SEVERAL)) kept.add(each);
  for (const code of document.querySelectorAll("pre > code")) reduce(code, code.textContent);
  for (const formula of formulas) if (!kept.has(formula)) reduce(formula, "formula");
  const found = [];
  const options = { resultTypes: ["violations"] };
  const rules = Object.entries(COLOURS).map(([id, selector]) => ({ id, selector }));
  axe.configure({ rules });
  for (const [scheme, few] of judged) {
    paint(SCHEMES[scheme]);
    const texts = new Set(few.flatMap((each) => [each, each.closest("a") ?? each]));
    for (const each of texts) each.dataset.judged = "";
    const { violations } = await axe.run(options);
    for (const each of texts) delete each.dataset.judged;
    for (const { id, nodes } of violations)
      for (const { target, failureSummary } of nodes)
        found.push([scheme, id, target, failureSummary]);
    options.runOnly = Object.keys(COLOURS);
  }
  while (undo.length) undo.pop()();
  paint(before);
  return found;
}
