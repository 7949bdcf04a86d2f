"""`python -m verified_docs check`, `status`, `pages` and `gpu`: see their help."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from verified_docs import layout
from verified_docs.evidence import gpu, table
from verified_docs.evidence.records import RecordError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what follows `check` is for the check itself."""
    parser = argparse.ArgumentParser(
        prog="python -m verified_docs", description=__doc__
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "check",
        help="compare the built site with its sources (check --help)",
        add_help=False,
    )
    shown = commands.add_parser(
        "status", help="a table: snippet, pages, interpreter, records"
    )
    asked = commands.add_parser("pages", help="the pages of a snippet, for pytest -k")
    asked.add_argument("snippet", help="such as softmax/online.py")
    tested = commands.add_parser(
        "gpu", help="run the snippets' tests on this machine's GPU and record them"
    )
    for each in (shown, asked, tested):
        each.add_argument("--root", type=Path, default=Path(), help="the repository")
    tested.add_argument(
        "--all", action="store_true", help="run all of them, not only what is stale"
    )
    tested.add_argument(
        "--records", default=layout.RECORDS, help="the folder to write into"
    )
    known, rest = parser.parse_known_args(arguments)

    if known.command == "check":
        from verified_docs import check

        return check.main(rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        if known.command == "gpu":
            return gpu.main(known.root.resolve(), known.all, known.records)
        if known.command == "pages":
            pages = table.pages(known.root, known.snippet)
            print(" or ".join(page.rpartition(".")[0] for page in pages) or "none")
            return 0
        print(table.table(known.root))
    except RecordError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
