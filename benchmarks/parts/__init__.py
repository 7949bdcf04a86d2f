"""What is timed: `<part>/<list>.py` says what one list of the part's record holds."""

import importlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from benchmarks.part import Part

HERE = Path(__file__).parent


def names() -> list[str]:
    """`attention/decode` and so on."""
    modules = HERE.glob("*/[!_]*.py")
    return sorted(path.relative_to(HERE).with_suffix("").as_posix() for path in modules)


def within(names: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Those of the lists that are wanted, or whose part is."""
    return [name for name in names if {name, name.partition("/")[0]} & {*wanted}]


def load(name: str) -> Part:
    """The list of such a name."""
    module = importlib.import_module(f"benchmarks.parts.{name.replace('/', '.')}")
    return replace(module.PART, name=name)
