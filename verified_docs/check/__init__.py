"""`python -m verified_docs check`: the built site, held against its sources.

Reads the pages, snippets, tests and records, and the HTML in site/. Prints one line
`file:line: reason` for each fault and exits with 1 if there is one.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from verified_docs.check import coverage, files, frame, links, markup, prose, replays
from verified_docs.check.site import Finding, Missing, Site, Weight

__all__ = ["Finding", "Missing", "Site", "Weight", "findings", "main"]


def findings(root: Path, built: Path) -> Iterator[Finding]:
    """Everything that is wrong with the site in `built`, made from `root`.

    Raises Missing where there is nothing to check.
    """
    site = Site(root.resolve(), built.resolve())
    for part in (coverage, files, frame, links, markup, prose, replays):
        yield from part.check(site)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the findings; 1 if one of them is a fault, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m verified_docs check",
        description="Compare the built site with its sources.",
    )
    parser.add_argument("--root", type=Path, default=Path(), help="the repository")
    parser.add_argument("--site", type=Path, help="the built site (ROOT/site)")
    parser.add_argument(
        "--require",
        choices=["gpu"],
        help="gpu: refuse what has no fresh record of a GPU, as publishing does",
    )
    options = parser.parse_args(arguments)
    worst = Weight.RECORD if options.require == "gpu" else Weight.FAULT
    try:
        found = sorted(
            set(findings(options.root, options.site or options.root / "site"))
        )
    except Missing as error:
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
