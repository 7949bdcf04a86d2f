"""The record of the mutants' verdicts: which test caught each, and on which files.

A verdict is fresh as long as the mutant, its snippet, all that the snippet's tests load
and what judges them are what they were. Those of kernels that only a GPU runs are in
the record of that GPU, and are read wherever one has them.
"""

import json
from collections.abc import Mapping
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
        gpu: the GPU that judges them now; "" for the interpreter.
    """

    def __init__(self, root: Path, snippet: str, gpu: str = "") -> None:
        self.root = root
        self.path = root / layout.verdicts_file(gpu)
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

    def save(self, caught: Mapping[Mutant, str]) -> None:
        """Write down which tests caught the mutants, unless a file has changed since.

        Another process may do so meanwhile for another snippet.
        """
        if records.changed(self.root, self.manifest):
            return
        with records.alone(self.path.parent):
            record = _read(self.path)
            record["snippets"][self.snippet] = {
                "manifest": self.manifest,
                "caught": {mutant.key: test for mutant, test in caught.items()},
            }
            for name in record["snippets"].keys() - layout.names(self.root):
                del record["snippets"][name]
            text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False)
            records.write(self.path, text + "\n")


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"format": FORMAT, "snippets": {}}
    return json.loads(path.read_text("utf-8"))
