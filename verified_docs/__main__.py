"""`python -m verified_docs check` and `python -m verified_docs status`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from verified_docs.evidence import table
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
        "status", help="a table: snippet, pages, tests, records"
    )
    shown.add_argument("--root", type=Path, default=Path(), help="the repository")
    known, rest = parser.parse_known_args(arguments)

    if known.command == "check":
        from verified_docs import check

        return check.main(rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        print(table.table(known.root))
    except RecordError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
