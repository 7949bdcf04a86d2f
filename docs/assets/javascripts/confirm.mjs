// Check it yourself: fetch a snippet and what the records say of it, hash the snippet
// here, and show whether the two agree.

import { make } from "./elements.mjs";

const site = new URL("../../", import.meta.url);
const form = document.querySelector("form.confirm");
const result = form.querySelector("output");

async function fetched(path) {
  const answer = await fetch(new URL(path, site), { cache: "no-cache" });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${answer.statusText}`);
  return answer;
}

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** What the runs of a record say of the snippet with this hash. */
function judge(record, snippet, hash, where) {
  const runs = Object.values(record.snippets[snippet] ?? {});
  if (!runs.length) return [make("p", {}, `${where}: not run.`)];
  return runs.map((entry) => {
    const { gpu, date, torch, triton, commit } = record.runs[entry.run];
    const known = entry.manifest[`snippets/${snippet}`];
    const agrees = known === hash;
    const passed = agrees && entry.state === "passed";
    const verdict = !agrees
      ? "The file has changed since it ran."
      : passed
        ? `They agree: ${entry.cases} cases passed on these bytes.`
        : `They agree, but ${entry.failed.length} cases failed.`;
    return make(
      "div",
      { className: passed ? "confirm-good" : "confirm-bad" },
      make("p", {}, make("strong", {}, `${gpu}: ${verdict}`)),
      make("p", {}, "In the record: ", make("code", {}, known)),
      make("p", {}, `${date}, PyTorch ${torch}, Triton ${triton}, commit ${commit}`),
    );
  });
}

async function confirm(snippet) {
  const bytes = await (await fetched(`snippets/${snippet}`)).arrayBuffer();
  const hash = await sha256(bytes);
  const found = [
    make("p", {}, `${snippet}, ${bytes.byteLength} bytes, hashed in your browser: `),
    make("p", {}, make("code", {}, hash)),
  ];
  for (const folder of form.dataset.records.split(" ").filter(Boolean)) {
    const path = `records/${folder}/verification.json`;
    try {
      const record = await (await fetched(path)).json();
      found.push(...judge(record, snippet, hash, folder));
    } catch (error) {
      found.push(make("p", {}, `${folder}: could not be read: ${error.message}`));
    }
  }
  return found;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  result.replaceChildren("Fetching …");
  try {
    result.replaceChildren(...(await confirm(form.elements.snippet.value)));
  } catch (error) {
    result.replaceChildren(`Could not check: ${error.message}`);
  }
});
form.elements.check.disabled = false;
