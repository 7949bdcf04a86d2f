"""What a test module loads: all that must stay as it was for its record to hold.

It is what the imports of the module and of each conftest.py above it lead to, and the
settings of pytest. On the GPU each module has a process of its own: every file below
tests/ and snippets/ that this process has loaded is in it, too.
"""

import ast
import functools
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from verified_docs import layout

FOLDERS = ("tests", layout.SNIPPETS)
MODULE = re.compile(r"(?!verified_docs\b)[^\W\d]\w*(\.\w+)*")


def everything(root: Path) -> set[str]:
    """Every file that a test module may load."""
    places = ("*.py", *(f"{each}/**/*.py" for each in FOLDERS))
    found = (path for each in places for path in root.glob(each))
    return {path.relative_to(root).as_posix() for path in found} | {layout.SETTINGS}


def beside(root: Path, snippet: str) -> set[str]:
    """What counts whether or not it is loaded: it is found by its place."""
    test = layout.test_file(snippet)
    wanted = (layout.snippet_file(snippet), test, *layout.around(test))
    return {path for path in wanted if (root / path).is_file()}


def loaded(root: Path, snippet: str) -> set[str]:
    """The files of a test module that has this process for itself."""
    modules = list(sys.modules.values())
    files = [Path(file) for each in modules if (file := getattr(each, "__file__", ""))]
    below = {
        file.relative_to(root).as_posix()
        for file in files
        if any(file.is_relative_to(root / folder) for folder in FOLDERS)
    }
    return below | imported(root, snippet)


def imported(root: Path, snippet: str) -> set[str]:
    """The files that the imports of a test module and its conftests lead to."""
    return reached(root, beside(root, snippet))


def reached(root: Path, files: Iterable[str]) -> set[str]:
    """These files, and those that their imports lead to."""
    found: set[str] = set()
    ahead = [*files]
    while ahead:
        path = ahead.pop()
        if path not in found and (root / path).is_file():
            found.add(path)
            if path.endswith(".py"):
                package = PurePosixPath(path).parent.parts
                ahead += _imports((root / path).read_bytes(), package)
    return found


@functools.lru_cache(maxsize=1024)  # Most files are reached from many snippets' tests.
def _imports(source: bytes, package: tuple[str, ...]) -> list[str]:
    """Where the modules may lie that a file of a package names; broken, it has none."""
    try:
        names = dict.fromkeys(_names(source, package))
    except SyntaxError:
        return []
    return [file for name in names for file in _files(name)]


def _names(source: bytes, package: tuple[str, ...]) -> Iterator[str]:
    """What a file names as a module: in an import, or as text for importlib."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value if "." in node.value else ""


def _files(name: str) -> Iterator[str]:
    """Where a module of ours would lie, and the packages around it.

    Those around the parts of the benchmarks only say which parts there are.
    """
    if MODULE.fullmatch(name):
        parts = name.split(".")
        for end in range(3 if parts[0] == "benchmarks" else 1, len(parts) + 1):
            yield f"{'/'.join(parts[:end])}.py"
            yield f"{'/'.join(parts[:end])}/__init__.py"
