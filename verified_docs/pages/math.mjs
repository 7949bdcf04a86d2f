// A formula as MathML. The build runs this after Temml, which is the global `temml`.

/**
 * As in TeX: no room around an operator in a script, and an accent on its letter. The rest
 * is for browsers: WebKit puts a bar far above its letter unless it stretches, and draws
 * nothing of what has no height; Firefox takes ⊙ for a large operator, and puts an index
 * below the depth that a name might have.
 */
function tidied(node, inScript) {
  const scripts = /^m(sub|sup|under|over)/.test(node.type);
  const [first, second] = node.children ?? [];
  if (inScript && node.type === "mo")
    node.attributes = { lspace: "0", rspace: "0", ...node.attributes };
  if (node.type === "mo" && first?.text === "⊙") node.setAttribute("largeop", "false");
  if (node.type === "mover" && second.style?.mathDepth) {
    node.setAttribute("accent", "true");
    if (second.children[0].text === "‾") {
      second.setAttribute("stretchy", "true");
      second.classes = [];
    }
  }
  if (node.type === "mpadded" && node.attributes.height === "0px")
    node.setAttribute("height", "1px");
  if (node.type === "msub" && first.type === "mpadded")
    first.setAttribute("depth", "0px");
  node.children?.forEach((each, i) => tidied(each, inScript || (scripts && i > 0)));
  return node;
}

function tree(formula, displayMode, macros) {
  return temml.__renderToMathMLTree(formula, {
    displayMode,
    wrap: "tex",
    throwOnError: true,
    // Classes are the only HTML that a formula may bring along: of tensors, and of code.
    trust: (context) => {
      if (/^(t-[a-z]+|code)$/.test(context.class)) return true;
      throw new Error(`${context.command} is not allowed`);
    },
    // A name of the code has the letters of the code.
    macros: { ...JSON.parse(macros), "\\texttt": "\\class{code}{\\text{#1}}" },
  });
}

/** The markup, or why there is none. */
export function mathml(formula, displayMode, macros) {
  try {
    return [tidied(tree(formula, displayMode, macros)).toMarkup(), ""];
  } catch (error) {
    return ["", error.message];
  }
}
