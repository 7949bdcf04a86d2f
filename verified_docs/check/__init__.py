"""`python -m verified_docs check`: the built site, held against its sources.

Builds the site once more, from the pages, snippets and records of now: site/ has to be
the same, byte for byte. Then the pages are held against the rules of what a page may
say. Prints one line `file:line: reason` for each fault, and exits with 1 if there is
one.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from verified_docs.check import around, coverage, files, links, markup, prose
from verified_docs.check.site import Finding, Missing, Site, Weight
from verified_docs.code.sections import SnippetError
from verified_docs.evidence.records import RecordError

__all__ = ["Finding", "Missing", "Site", "Weight", "findings", "main", "rules"]


def findings(root: Path, built: Path) -> list[Finding]:
    """All that is wrong with the site in `built`.

    Raises Missing if nobody can say, SnippetError or RecordError.
    """
    if not (built / "index.html").is_file():
        raise Missing(f"{built}: no built site; run `make site` first")
    with TemporaryDirectory() as folder:
        site = Site(root.resolve(), Path(folder).resolve())
        return sorted({*files.check(site, built), *rules(site)})


def rules(site: Site) -> Iterator[Finding]:
    """All that is wrong with the pages, and with what stands behind them."""
    for part in (around, coverage, links, markup, prose):
        yield from part.check(site)


def main(root: Path, strict: bool = False) -> int:
    """Print the findings; 1 if one of them is a fault, else 0.

    What has no fresh record of a GPU is a fault if `strict`, or else a warning.
    """
    worst = Weight.RECORD if strict else Weight.FAULT
    try:
        found = findings(root, root / "site")
    except (Missing, SnippetError, RecordError) as error:
        print(error, file=sys.stderr)
        return 1
    faults = [finding for finding in found if finding.weight <= worst]
    for finding in found:
        if finding.weight > worst:
            print(f"{finding.path}:{finding.line}: warning: {finding.reason}")
    for finding in faults:
        print(finding)
    warnings = len(found) - len(faults)
    print(f"{len(faults)} faults, {warnings} warnings", file=sys.stderr)
    return 1 if faults else 0
