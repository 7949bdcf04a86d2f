"""The record of the mutants' verdicts: which test caught each, and on which files.

A verdict is fresh as long as the mutant, its snippet, all that the snippet's tests load
and what judges them are what they were. Those of kernels that only a GPU runs are in
the record of that GPU, and are read wherever one has them.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.mutants import Mutant
from verified_docs import layout
from verified_docs.evidence import manifest, records

FORMAT = 2


class Verdicts:
    """What was found of one snippet's mutants.

    Args:
        root: the repository.
        snippet: the snippet's name.
    """

    def __init__(self, root: Path, snippet: str) -> None:
        self.root = root
        self.snippet = snippet
        judge = (path.relative_to(root) for path in root.glob(f"{layout.MUTANTS}/*.py"))
        files = manifest.imported(root, snippet) | {path.as_posix() for path in judge}
        self.manifest = records.hashes(root, files)
        found = [_read(path)["snippets"] for path in layout.verdict_files(root)]
        known = [each[snippet] for each in found if snippet in each]
        known.sort(key=lambda was: was["manifest"] != self.manifest)  # the fresh first
        was = known[0] if known else {"manifest": {}, "caught": {}}
        self._fresh = was["manifest"] == self.manifest
        self._caught: dict[str, str] = was["caught"]

    def fresh(self, mutant: Mutant) -> bool:
        """Is it known that the tests, as they are, catch this mutant?"""
        return self._fresh and mutant.key in self._caught

    def hint(self, mutant: Mutant) -> str:
        """The test that caught it before, or one of the same name; "" if none did."""
        names = {key.rpartition(" ")[0]: test for key, test in self._caught.items()}
        return self._caught.get(mutant.key, names.get(mutant.why, ""))

    def save(
        self, caught: Mapping[Mutant, str], others: Iterable[Mutant], gpu: str = ""
    ) -> None:
        """Write down which tests caught the mutants, unless a file has changed since.

        Another process may do so meanwhile, also for other mutants of the snippet.

        Args:
            caught: the test for each.
            others: the mutants that were not tried: what the record has of them stays.
            gpu: the GPU that judged them; "" for the interpreter.
        """
        if records.changed(self.root, self.manifest):
            return
        path = self.root / layout.verdicts_file(gpu)
        with records.alone(path.parent):
            record = _read(path)
            names = layout.names(self.root)
            known = {n: was for n, was in record["snippets"].items() if n in names}
            was = known.get(self.snippet, {"manifest": {}, "caught": {}})
            fresh = was["manifest"] == self.manifest
            keys = {mutant.key for mutant in others if fresh}
            found = {key: test for key, test in was["caught"].items() if key in keys}
            found |= {mutant.key: test for mutant, test in caught.items()}
            if found or fresh:
                known[self.snippet] = {"manifest": self.manifest, "caught": found}
            if known != record["snippets"]:
                record["snippets"] = known
                text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False)
                records.write(path, text + "\n")


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"format": FORMAT, "snippets": {}}
    return json.loads(path.read_text("utf-8"))
