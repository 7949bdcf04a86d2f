// Copying code, linking lines of code to steps of an algorithm, and keyboard access to
// what scrolls.

const SCROLLING = ".scroll, .md-typeset__scrollwrap, div.math, pre > code";
const SHOWN_FOR = 2000; // milliseconds that a button shows what came of a click

/** The text a copy button stands for. */
async function textFor(button) {
  const figure = button.closest("figure, .file");
  if (button.dataset.copy === "file") {
    const answer = await fetch(figure.querySelector("a[download]").href);
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.text();
  }
  const text = figure.querySelector("pre code").textContent;
  if (figure.dataset.language !== "console") return text;
  const commands = text.split("\n").filter((line) => line.startsWith("$ "));
  return commands.map((line) => `${line.slice(2)}\n`).join("");
}

// Screen readers speak what it says when that changes.
const status = document.createElement("div");
status.id = "copy-status";
status.ariaLive = "polite";
document.body.prepend(status);

async function copy(button) {
  if (button.dataset.state) return;
  const { textContent: label, ariaLabel: name } = button;
  let state = "done";
  try {
    // A promise in an item: Safari forgets the click while the text is fetched.
    const text = textFor(button).then((it) => new Blob([it], { type: "text/plain" }));
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": text })]);
  } catch {
    state = "failed";
  }
  const message = state === "done" ? "Copied" : "Could not copy";
  button.dataset.state = state;
  button.textContent = message;
  // Speech commands name a button by what it shows.
  status.textContent = button.ariaLabel = `${message}: ${name}`;
  setTimeout(() => {
    button.textContent = label;
    button.ariaLabel = name;
    delete button.dataset.state;
    status.textContent = "";
  }, SHOWN_FOR);
}

/** Point at a step or a line, and what belongs to it is marked.
 *
 * Lines of one file with one name belong together, in however many blocks they stand. A
 * step belongs to the next line with its name.
 */
function linkLines() {
  const linked = [...document.querySelectorAll("[data-line]")];
  const file = (element) => element.closest("figure.snippet")?.dataset.snippet;
  const groups = Map.groupBy(linked, (element, place) => {
    const { line } = element.dataset;
    const code = linked.slice(place).find((it) => it.dataset.line === line && file(it));
    return `${code && file(code)}:${line}`;
  });
  for (const group of groups.values()) {
    if (group.length < 2) continue;
    const mark = (on) => () =>
      group.forEach((element) => element.toggleAttribute("data-linked", on));
    for (const element of group) {
      element.tabIndex = 0;
      element.addEventListener("pointerenter", mark(true));
      element.addEventListener("pointerleave", mark(false));
      element.addEventListener("focus", mark(true));
      element.addEventListener("blur", mark(false));
    }
  }
}

const sizes = new ResizeObserver((entries) => {
  // One that has left the page has no box.
  const boxes = [...new Set(entries.map(({ target }) => target.closest(SCROLLING)))].filter(Boolean);
  // What is measured after a change is laid out once more.
  const wide = boxes.map((box) => box.scrollWidth > box.clientWidth);
  for (const [i, box] of boxes.entries()) {
    if (wide[i]) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
});

// Material's search is a dialog without a name.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}
linkLines();
// Material puts tables into boxes that scroll once the page is there.
const watch = () => {
  for (const box of document.querySelectorAll(SCROLLING)) {
    sizes.observe(box);
    // A font that comes late makes what is in the box wider, and not the box.
    if (box.firstElementChild) sizes.observe(box.firstElementChild);
  }
};
if (document.readyState === "complete") watch();
else addEventListener("load", watch);
if (document.querySelector("a.term")) import("./terms.mjs");
if (document.querySelector("form.confirm")) import("./confirm.mjs");
for (const name of ["replay", "shift", "roofline"]) {
  if (document.querySelector(`verified-${name}`)) import(`./${name}.mjs`);
}
