// axe-core's violations. Most elements of a page are parts of formulas, which KaTeX makes
// alike: meanwhile, a formula whose looks several before it have is plain text. A look is a
// colour, on a ground, in large letters or not, of a word: axe judges no single letter.
// Code is plain text, too: its colours are measured where they are set (test_colours.py).
async (options) => {
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

  function look(element) {
    const { color, fontSize, fontWeight } = getComputedStyle(element);
    const large = parseFloat(fontSize) >= (fontWeight >= 700 ? 18.5 : 24);
    return `${color} on ${ground(element)}, ${large}`;
  }

  const seen = new Map();
  const codes = [...document.querySelectorAll("pre > code")];
  const tokens = codes.map((code) => [...code.childNodes]);
  for (const code of codes) code.replaceChildren(code.textContent);
  const texts = [];
  for (const formula of document.querySelectorAll(".katex")) {
    const words = [...formula.querySelectorAll(".katex-html *")].filter(
      (part) => !part.childElementCount && part.textContent.trim().length > 1,
    );
    const looks = new Set(words.map(look));
    if ([...looks].every((each) => seen.get(each) >= SEVERAL)) {
      const tex = formula.querySelector("annotation").textContent;
      texts.push([formula, document.createTextNode(tex)]);
    }
    for (const each of looks) seen.set(each, (seen.get(each) ?? 0) + 1);
  }
  for (const [element, text] of texts) element.replaceWith(text);
  const { violations } = await axe.run({ include: ["html"] }, options);
  for (const [element, text] of texts) text.replaceWith(element);
  codes.forEach((code, n) => code.replaceChildren(...tokens[n]));
  return violations;
}
