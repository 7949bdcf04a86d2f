"""`python -m verified_docs.code.archive FOLDER`: what a reader may take at once.

snippets.zip has all snippets, tests.zip also what tests and times them and the records.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from verified_docs import layout

FILES = ("LICENSE", "Makefile", layout.SETTINGS)
SUFFIXES = (".py", ".json")
FOLDERS = ("benchmarks", layout.RECORDS, layout.SNIPPETS, "tests", "verified_docs")


def write(folder: Path, root: Path = Path()) -> None:
    """Write both into a folder."""
    found = (path for each in FOLDERS for path in (root / each).rglob("*.*"))
    names = (path.relative_to(root) for path in found if path.suffix in SUFFIXES)
    tested = sorted(
        path.as_posix() for path in names if "__pycache__" not in path.parts
    )
    files = [name for name in FILES if (root / name).is_file()]
    snippets = map(layout.snippet_file, layout.names(root))
    _zip(folder / "snippets.zip", root, ("LICENSE", *snippets))
    _zip(folder / "tests.zip", root, (*files, *tested))


def _zip(path: Path, root: Path, names: Iterable[str]) -> None:
    """The same bytes for the same files, whenever and wherever they were written."""
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(ZipInfo(name), (root / name).read_bytes(), ZIP_DEFLATED)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
