"""`python -m verified_docs.pages.archive FOLDER`: what a reader may take at once.

snippets.zip has all snippets, tests.zip also what tests and times them and the records.
A snippet that imports others has a zip of its own, with those others. It is unpacked
beside a reader's code, so the licence lies in snippets/, where it replaces no other.
"""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from verified_docs import layout
from verified_docs.evidence import manifest

LICENCE = f"{layout.SNIPPETS}/LICENSE"
FILES = ("LICENSE", "Makefile", layout.SETTINGS)
SUFFIXES = (".py", ".json")
FOLDERS = ("benchmarks", layout.RECORDS, layout.SNIPPETS, "tests", "verified_docs")


def write(folder: Path, root: Path = Path()) -> None:
    """Write all of them into a folder."""
    found = (path for each in FOLDERS for path in (root / each).rglob("*.*"))
    ours = (path.relative_to(root) for path in found if path.suffix in SUFFIXES)
    tested = sorted(path.as_posix() for path in ours if "__pycache__" not in path.parts)
    files = [name for name in FILES if (root / name).is_file()]
    names = layout.names(root)
    _zip(folder / "snippets.zip", root, map(layout.snippet_file, names))
    _zip(folder / "tests.zip", root, (*files, *tested))
    shutil.rmtree(folder / layout.ZIPS, ignore_errors=True)
    for name in names:
        if len(needed := together(root, name)) > 1:
            _zip(folder / layout.zip_file(name), root, needed)


def together(root: Path, snippet: str) -> list[str]:
    """The files of a snippet and of those that it imports, sorted."""
    reached = manifest.reached(root, [layout.snippet_file(snippet)])
    return sorted(path for path in reached if path.startswith(f"{layout.SNIPPETS}/"))


def _zip(path: Path, root: Path, names: Iterable[str]) -> None:
    """The same bytes for the same files, whenever and wherever they were written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files = {LICENCE: "LICENSE"} | {name: name for name in names}
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, file in files.items():
            archive.writestr(ZipInfo(name), (root / file).read_bytes(), ZIP_DEFLATED)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
