"""`python -m verified_docs.code.archive ZIP`: all snippets and the licence."""

import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from verified_docs import layout


def write(path: Path, root: Path = Path()) -> None:
    """The same bytes for the same files, whenever and wherever they were written."""
    names = map(layout.snippet_file, layout.names(root))
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name in ("LICENSE", *names):
            archive.writestr(ZipInfo(name), (root / name).read_bytes(), ZIP_DEFLATED)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
