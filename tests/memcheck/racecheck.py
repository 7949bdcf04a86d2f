"""What racecheck, of compute-sanitizer, reports, and what of it is Triton's own.

Where a kernel calls `warp_specialize`, Triton tells each warp of a worker by a byte in
shared memory which partition to run, or to end, and hands over the values that the
partitions use. A barrier of the whole block lies between writing and reading, but
racecheck reports them. The compiler gives these accesses the line of the kernel's `def`
or that of the statement with the call, and no other load or store of shared memory. So
the rule is: a hazard is Triton's own if all of its accesses have these lines.
"""

import ast
import re
from pathlib import Path

from verified_docs import layout

Line = tuple[str, int]  # of a file that is called so

REPORT = re.compile(r"^=+ \w+: Race reported between .*(?:\n=+  +\S.*)*", re.MULTILINE)
ACCESS = re.compile(r"\w+ access at .*")
PLACE = re.compile(r" in (?:\S*/)?([^\s:/]+):(\d+)(?: \[\d+ hazards?\])?$")
SUMMARY = re.compile(r"RACECHECK SUMMARY: (\d+) hazards? displayed")


def dispatch(path: Path) -> set[Line]:
    """The lines of a file that Triton's own accesses have."""
    text = path.read_text("utf-8")
    if "gl.warp_specialize(" not in text:
        return set()
    found = [
        (kernel, statement)
        for kernel in ast.parse(text).body
        if isinstance(kernel, ast.FunctionDef)
        for statement in kernel.body
        if "gl.warp_specialize(" in ast.unparse(statement)
    ]
    return {(path.name, node.lineno) for pair in found for node in pair}


def of_snippets(root: Path) -> set[Line]:
    """Those of all snippets."""
    paths = [root / layout.snippet_file(name) for name in layout.names(root)]
    return set().union(*map(dispatch, paths))


def races(told: str, own: set[Line]) -> list[str]:
    """The reported hazards that have an access on another line than these.

    Raises ValueError: racecheck did not end, or counts others than are found here.
    """
    found: list[str] = REPORT.findall(told)
    counted = SUMMARY.findall(told)
    if counted != [str(len(found))]:
        raise ValueError(f"{len(found)} hazards are found; racecheck says {counted}")
    return [report for report in found if not _places(report) <= own]


def _places(report: str) -> set[Line | None]:
    """Where the accesses of a hazard are; None of one without a line."""
    places = (PLACE.search(access) for access in ACCESS.findall(report))
    return {place and (place[1], int(place[2])) for place in places}
