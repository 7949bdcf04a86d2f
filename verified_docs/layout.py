"""Where things are: what belongs to a snippet, written once.

A snippet is named by its path below snippets/, such as `softmax/online.py`. All paths
are relative to the root of the repository, with slashes.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from verified_docs import languages

SNIPPETS = "snippets"
TESTS = "tests/snippets"
MUTANTS = "tests/mutants"
RECORDS = "records"
VERIFICATION = "verification.json"
MEMCHECK = "memcheck.json"
SANITIZED = "sanitized.json"
VERDICTS = "mutants.json"
COMPILED = "records/interpreter/compiled.json"
REPLAYS = "tests/replays"
REPLAYED = "records/interpreter/replays"
NOTEBOOKS = "notebooks"
SETTINGS = "pytest.ini"
ZIPS = "zips"

# What a page writes to show a snippet, or a section of it after a colon.
INCLUDE = re.compile(r'--8<-- "([^"\s]+)"')


def names(root: Path) -> list[str]:
    """The names of all snippets, sorted."""
    folder = root / SNIPPETS
    return sorted(
        Path(place, file).relative_to(folder).as_posix()
        for place, _, files in os.walk(folder)
        if not place.endswith("__pycache__")
        for file in files
        if file.endswith(tuple(languages.LANGUAGES))
    )


def parts(root: Path) -> list[str]:
    """The parts of the site: the folders of snippets, each with one benchmark."""
    return sorted({part(name) for name in names(root)})


def part(snippet: str) -> str:
    """`softmax/online.py` -> `softmax`."""
    return PurePosixPath(snippet).parts[0]


def is_wrong(snippet: str) -> bool:
    """Whether a snippet is wrong on purpose, by its name."""
    return PurePosixPath(snippet).name.startswith("wrong_")


def zip_file(snippet: str) -> str:
    """`hopper/autograd.py` -> `zips/hopper/autograd.zip`, with what it imports."""
    return PurePosixPath(ZIPS, snippet).with_suffix(".zip").as_posix()


def snippet_file(snippet: str) -> str:
    """`softmax/online.py` -> `snippets/softmax/online.py`."""
    return f"{SNIPPETS}/{snippet}"


def module(snippet: str) -> str:
    """`softmax/online.py` -> `snippets.softmax.online`, as Python imports it."""
    return ".".join(PurePosixPath(snippet_file(snippet)).with_suffix("").parts)


def _place(pattern: str) -> Callable[[str], str]:
    """Where something of a snippet is, by its folder and its name without suffix."""

    def place(snippet: str) -> str:
        name = PurePosixPath(snippet)
        return pattern.format(name.parent, name.stem)

    return place


test_file = _place(f"{TESTS}/{{}}/test_{{}}.py")
mutants_file = _place(f"{MUTANTS}/{{}}/{{}}.py")
replay_file = _place(f"{REPLAYS}/{{}}/{{}}.py")
replay_record = _place(f"{REPLAYED}/{{}}/{{}}.json")


def replayed(root: Path) -> list[str]:
    """The snippets that have a description of their replays."""
    return [name for name in names(root) if (root / replay_file(name)).is_file()]


def tested_by(root: Path) -> dict[str, str]:
    """The snippet that each test module mirrors, by the path of the module."""
    return {test_file(name): name for name in names(root)}


def around(test: str) -> list[str]:
    """What pytest reads for a test module by its place alone, there or not."""
    folders, names = PurePosixPath(test).parents, ("__init__.py", "conftest.py")
    return [SETTINGS, *((each / name).as_posix() for each in folders for name in names)]


def verification_files(root: Path) -> list[Path]:
    """The record of what was verified on every GPU."""
    found = (root / RECORDS).glob(f"*/{VERIFICATION}")
    return sorted({*found} - {root / verification_file()})


def verdict_files(root: Path) -> list[Path]:
    """The records of the mutants' verdicts: the interpreter's and the GPUs'."""
    return sorted((root / RECORDS).glob(f"*/{VERDICTS}"))


def benchmark_files(root: Path) -> list[Path]:
    """The record of every part on every GPU."""
    found = (root / RECORDS).glob("*/*.json")
    others = {VERIFICATION, MEMCHECK, SANITIZED, VERDICTS, PurePosixPath(COMPILED).name}
    return sorted(path for path in found if path.name not in others)


def benchmark_list(record: str, name: str) -> str:
    """What measures one list of a record: `benchmarks/parts/softmax/backward.py`."""
    return f"benchmarks/parts/{record}/{name}.py"


def slug(gpu: str) -> str:
    """The folder of a GPU's records: `NVIDIA H200` -> `nvidia-h200`.

    Of no GPU, "", it is that of Triton's interpreter.
    """
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") or "interpreter"


def verification_file(gpu: str = "") -> str:
    """`NVIDIA H200` -> `records/nvidia-h200/verification.json`; "": the interpreter."""
    return f"{RECORDS}/{slug(gpu)}/{VERIFICATION}"


def verdicts_file(gpu: str = "") -> str:
    """`NVIDIA H200` -> `records/gpu/mutants.json`; "" is the interpreter.

    All GPUs share one: a bug need not be caught twice.
    """
    return f"{RECORDS}/{'gpu' if gpu else 'interpreter'}/{VERDICTS}"


def benchmark_file(gpu: str, part: str, records: str = RECORDS) -> str:
    """`NVIDIA H200`, `softmax` -> `records/nvidia-h200/softmax.json`."""
    return f"{records}/{slug(gpu)}/{part}.json"
