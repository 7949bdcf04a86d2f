"""`python -m verified_docs check`, `gpu`, `new`: see their help."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from verified_docs import layout, new
from verified_docs.evidence import gpu
from verified_docs.evidence.records import RecordError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status."""
    known = parser().parse_args(arguments)
    root: Path = known.root
    if known.command == "check":
        from verified_docs import check  # It needs what builds pages.

        return check.main(root, strict=known.require == "gpu")
    try:
        if known.command == "gpu":
            chosen = known.all, known.records, known.parts, known.memcheck
            return gpu.main(root.resolve(), *chosen)
        print(*new.lay_out(root, known.rung, known.origin), sep="\n")
    except (RecordError, new.NewError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    whole = argparse.ArgumentParser(prog="python -m verified_docs", description=__doc__)
    whole.add_argument("--root", type=Path, default=Path(), help="the repository")
    commands = whole.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="compare the built site with its sources")
    what = "gpu: refuse what has no fresh record of a GPU, as publishing does"
    check.add_argument("--require", choices=["gpu"], help=what)
    rung = commands.add_parser("new", help="lay out a rung that begins as a copy")
    rung.add_argument("rung", help="such as softmax/log_softmax")
    rung.add_argument("origin", help="such as one_row, or attention/flash2")
    what = "run the snippets' tests on this machine's GPU and record them"
    add = commands.add_parser("gpu", help=what).add_argument
    add("parts", nargs="*", help="such as softmax or softmax/online")
    add("--all", action="store_true", help="run all of them, not only what is stale")
    add("--memcheck", action="store_true", help="a few cases, under compute-sanitizer")
    add("--records", default=layout.RECORDS, help="the folder to write into")
    return whole


if __name__ == "__main__":
    sys.exit(main())
