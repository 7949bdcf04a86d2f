// The glossary's entry of a term, while a pointer or the keyboard is on it, and after the
// first tap. A click follows the link, and so does a second tap.

import { make } from "./elements.mjs";

const PATIENCE = 200; // milliseconds that a pointer rests before an entry opens
const MARGIN = 8; // pixels between an entry and the edge of the window

const note = make("div", {
  id: "term-note", className: "md-typeset", role: "tooltip", popover: "manual",
});
const pages = new Map(); // from the address of a glossary to its page
let wanted = null; // the term whose entry is open, or about to be

async function fetched(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(answer.statusText);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

/** What stands between the heading of an entry and the next; links in it are words. */
async function entry({ origin, pathname, hash }) {
  const address = origin + pathname;
  if (!pages.has(address)) pages.set(address, fetched(address));
  const heading = (await pages.get(address)).getElementById(hash.slice(1));
  const parts = [];
  let next = heading.nextElementSibling;
  while (next && !next.matches("h2, h3, [data-end]")) {
    parts.push(next.cloneNode(true));
    next = next.nextElementSibling;
  }
  for (const part of parts) {
    for (const link of part.querySelectorAll("a")) link.replaceWith(...link.childNodes);
  }
  return [make("strong", { textContent: heading.firstChild.textContent }), ...parts];
}

/** Below the term where there is room, else above it, and inside the window. */
function place(term) {
  const { left, top, bottom } = term.getClientRects()[0];
  const { width, height } = note.getBoundingClientRect();
  const end = document.documentElement.clientWidth - width - MARGIN;
  const below = bottom + height <= innerHeight;
  note.style.left = `${scrollX + Math.max(MARGIN, Math.min(left, end))}px`;
  note.style.top = `${scrollY + (below ? bottom : top - height)}px`;
}

async function show(term, delay = 0) {
  if (wanted === term) return;
  hide();
  wanted = term;
  await new Promise((resolve) => setTimeout(resolve, delay));
  if (wanted !== term) return;
  const parts = await entry(term);
  if (wanted !== term) return;
  note.replaceChildren(...parts);
  note.showPopover();
  place(term);
  term.setAttribute("aria-describedby", note.id);
}

function hide() {
  wanted?.removeAttribute("aria-describedby");
  wanted = null;
  note.hidePopover();
}

document.querySelector("main").append(note); // All that is read stands in a landmark.
const over = (element) =>
  element && (note.contains(element) || element.closest("a.term") === wanted);
addEventListener("keydown", ({ key }) => {
  if (key === "Escape") hide();
});
addEventListener("pointerdown", ({ target }) => { if (!over(target)) hide(); });
note.addEventListener("pointerleave", ({ relatedTarget }) => { if (!over(relatedTarget)) hide(); });
for (const term of document.querySelectorAll("a.term")) {
  let first = false; // whether this is a tap, and the first one
  term.addEventListener("pointerenter", ({ pointerType }) => {
    if (pointerType !== "touch") show(term, PATIENCE).catch(hide);
  });
  term.addEventListener("pointerleave", ({ pointerType, relatedTarget }) => {
    if (pointerType !== "touch" && !over(relatedTarget)) hide();
  });
  term.addEventListener("pointerdown", ({ pointerType }) => {
    first = pointerType === "touch" && wanted !== term;
  });
  term.addEventListener("focus", () => {
    if (term.matches(":focus-visible")) show(term).catch(hide);
  });
  term.addEventListener("blur", hide);
  term.addEventListener("click", (event) => {
    if (!first) return;
    event.preventDefault();
    show(term).catch(() => {
      location.href = term.href;
    });
  });
}
