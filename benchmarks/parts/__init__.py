"""What is timed: `<part>/<list>.py` says what one list of the part's record holds."""

import importlib
from pathlib import Path

from benchmarks.part import Part

HERE = Path(__file__).parent


def names() -> list[str]:
    """`attention/decode` and so on."""
    modules = HERE.glob("*/[!_]*.py")
    return sorted(path.relative_to(HERE).with_suffix("").as_posix() for path in modules)


def load(name: str) -> Part:
    """The list of such a name."""
    return importlib.import_module(f"benchmarks.parts.{name.replace('/', '.')}").PART
