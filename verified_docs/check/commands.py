"""What a console block may say: commands that README lists or a test runs."""

import re
from collections.abc import Iterator

from verified_docs.check.site import Site, read, short
from verified_docs.code import snippets

RUNS = re.compile(r"(?:TRITON_INTERPRET=1 )?python ((?:-m )?snippets\S+)")


def faults(site: Site, text: str) -> Iterator[tuple[str, str]]:
    """Lines that are no known command, each with the reason."""
    for line in text.rstrip("\n").split("\n"):
        command = line.removeprefix("$ ").strip()
        if not line.startswith("$ "):
            yield line, f"typed-in output {short(line)}: use an output fence"
        elif not known(site, command):
            reason = f"command {short(command)}, which README does not list"
            yield line, f"{reason} and no test runs"


def known(site: Site, command: str) -> bool:
    """Does README list this command, behind a $ or quoted, or a test run it?"""
    if runs := RUNS.fullmatch(command):
        runnable = (snippets.arguments(site.root, name) for name in site.snippets)
        return runs[1].split() in runnable
    it = re.escape(command)
    listed = re.compile(rf"""(["'`]){it}\1|^\s*\$ {it}(?:\s+#.*)?$""", re.MULTILINE)
    files = [*site.root.glob("README.md"), *(site.root / "tests").rglob("*.py")]
    return any(listed.search(read(path)) for path in files)
