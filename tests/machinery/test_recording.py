"""`make gpu` and the recording plugin, on two snippets and a GPU that is made up."""

import json
import os
import signal
import sys
from typing import Any

import pytest

from tests.machinery.repository import ROOT, Repository
from verified_docs import layout
from verified_docs.evidence import gpu, machine, manifest

RECORD = "records/nvidia-h200/verification.json"
KEY = "torch 2.11.0, triton 3.6.0"

FAKE_TORCH = """
class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 1)
    get_device_name = staticmethod(lambda device=0: "NVIDIA H200")
    get_device_capability = staticmethod(lambda: (9, 0))
    is_initialized = is_available
    reserved = 0
    memory_reserved = staticmethod(lambda: cuda.reserved)

    def empty_cache():
        cuda.reserved = 0

    def graph(captured):
        raise RuntimeError("no memory is left")

class version:
    cuda = "13.0"
"""
FILES = {
    "tests/__init__.py": "",
    "tests/snippets/conftest.py": """
import pytest
from tests.harness import rule
from verified_docs.evidence import plugin

def pytest_assertion_pass():
    plugin.checked()

@pytest.fixture
def accurate():
    return rule.accurate
""",
    "tests/harness/rule.py": """
from verified_docs.evidence.plugin import record_accuracy

def accurate(dtype, error, bound):
    if error > bound:
        raise AssertionError("above the bound")
    record_accuracy(dtype, error, bound)
""",
    "tests/snippets/part/shared.py": "SHARED = 1\n",
    "tests/snippets/part/suite.py": "def test_shared():\n    assert 1\n",
    "gpu/torch.py": FAKE_TORCH,
    "gpu/torch-2.11.0.dist-info/METADATA": "Name: torch\nVersion: 2.11.0\n",
    "gpu/triton-3.6.0.dist-info/METADATA": "Name: triton\nVersion: 3.6.0\n",
}
SCRIPTS = {
    "gpu/nvidia-smi": """case "$*" in
*memory.total*) echo '30720 MiB';;
*) echo '580.1, 700.00 W, 1980 MHz, [N/A]';;
esac""",
    # Its options have a value each, and it has found an error in b.
    "gpu/compute-sanitizer": """while [ "${1#--}" != "$1" ]; do shift 2; done
[ "$PYTORCH_NO_CUDA_MEMORY_CACHING" = 1 ] || exit 1
"$@" && case "$*" in *test_b.py*) exit 9;; esac""",
}
SNIPPET = """VALUE = 1
# --8<-- [start:demo]
print('{name} é')
# --8<-- [end:demo]
"""
TESTS = """
import importlib
import os
import pytest
from snippets.{part} import {name}
from tests.snippets.part.suite import *

shared = importlib.import_module("tests.snippets.part.shared")

@pytest.mark.parametrize("case", range(9))
def test_cases(case, accurate):
    accurate("float32", case * 1e-7, 9e-7)
    assert {name}.VALUE == 1

class TestMore:
    def test_accuracy(self, accurate):
        accurate("float16", 1e-3, 2e-3)
        accurate("float16", 2e-4, 3e-3)

@pytest.mark.skipif(True, reason="no second GPU")
def test_elsewhere():
    pass
"""


class Tree(Repository):
    """A repository to record in."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester.path, "part")
        # Ordinary pytest, without the plugins that happen to be installed.
        self.pytest = pytester.runpytest_subprocess
        self.write(FILES)
        for name in ("pytest.ini", "tests/conftest.py"):
            self.write({name: (ROOT / name).read_bytes()})
        for name, text in SCRIPTS.items():
            self.script(name, text)
        self.add("a")
        self.add("b")

    def add(self, name: str, part: str = "part", more: str = "") -> None:
        tests = TESTS.format(name=name, part=part.replace("/", ".")) + more
        self.snippet(f"{part}/{name}.py", SNIPPET.format(name=name), tests)

    def gpu(self, *arguments: str) -> tuple[int, str]:
        """The exit status and the words of `make gpu`, on the GPU of gpu/torch.py."""
        command = sys.executable, "-m", "verified_docs", "gpu", *arguments
        run = self.run(*command, **os.environ)
        return run.returncode, run.stdout

    def record(self, name: str = RECORD) -> dict[str, Any]:
        return json.loads(self.read(name))

    def seen(self, name: str, record: str = RECORD) -> dict[str, Any]:
        return self.record(record)["snippets"][f"part/{name}.py"][KEY]

    def state(self, name: str = "b") -> tuple[str, list[str]]:
        """What is known of a snippet, and the files that make it stale."""
        status = self.status(f"part/{name}.py")
        return status.state, [file for run in status.runs for file in run.changed]


@pytest.fixture
def tree(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Tree:
    tree = Tree(pytester)
    for name in ("TRITON_INTERPRET", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PYTHONPATH", f"{tree.root / 'gpu'}:{ROOT}")
    monkeypatch.setenv("PATH", str(tree.root / "gpu"), prepend=":")
    monkeypatch.setenv("COMMIT", "0123456789abcdef")
    return tree


@pytest.fixture
def recorded(tree: Tree) -> Tree:
    """A tree whose two snippets have passed."""
    assert tree.gpu()[0] == 0
    assert tree.state() == ("verified", [])
    return tree


TEST_A, TEST_B, TEST_C = (f"tests/snippets/part/test_{name}.py" for name in "abc")


def test_what_ran_under_memcheck_has_a_record_of_its_own(recorded):
    leaves = "\n@pytest.mark.leaves_tensors\ndef test_leaves():\n    assert 0\n"
    captures = "\ndef test_captures():\n    with torch.cuda.graph(0): assert 0\n"
    recorded.add("wrong_c", more=f"import torch\n{leaves}{captures}")
    before = recorded.read(RECORD)
    status, told = recorded.gpu("--memcheck")
    assert status == 1
    assert "part/b.py: failed: pytest ended with status 9" in told
    assert recorded.read(RECORD) == before
    thin = f"records/nvidia-h200/{layout.MEMCHECK}"
    assert recorded.seen("wrong_c", thin)["state"] == "passed"
    skipped = recorded.seen("wrong_c", thin)["skipped"]
    assert "no memory of its own" in skipped["test_captures"]
    # All but the demo.
    cases = recorded.seen("a")["cases"] - 1
    assert recorded.seen("a", thin)["cases"] == cases
    assert [run.memchecked for run in recorded.status("part/a.py").runs] == [cases]
    assert [run.memchecked for run in recorded.status("part/b.py").runs] == [0]
    recorded.edit(TEST_A, "range(9)", "range(8)")
    assert [run.memchecked for run in recorded.status("part/a.py").runs] == [0]


def test_an_entry_says_what_ran_where_and_how_well(recorded):
    record = recorded.record()
    ((run, facts),) = record["runs"].items()
    packages = facts.pop("packages")
    assert f"pytest=={pytest.__version__}" in packages
    assert run.endswith("Z 0123456789ab")
    assert facts == {
        "gpu": "NVIDIA H200",
        "gpus": ["NVIDIA H200"],
        "capability": "9.0",
        "cuda": "13.0",
        "driver": "580.1",
        "power limit": "700.00 W",
        "largest SM clock": "1980 MHz",
        "torch": "2.11.0",
        "triton": "3.6.0",
        "python": sys.version.split()[0],
        "date": run[:10],
        "commit": "0123456789abcdef",
    }
    entry = recorded.seen("a")
    assert all(len(each) == 64 for each in entry.pop("manifest").values())
    assert entry == {
        "run": run,
        "state": "passed",
        "failed": [],
        "cases": 12,
        "skipped": {"test_elsewhere": "no second GPU"},
        "errors": {
            "float16": dict(error=1e-3, bound=2e-3, case="TestMore::test_accuracy"),
            "float32": dict(error=8e-7, bound=9e-7, case="test_cases[8]"),
        },
        "no_accuracy": "",
        "output": "a é\n",
    }


def test_what_is_stale_or_named_runs_and_all_only_if_asked(recorded):
    before = recorded.record()
    assert "0 of 0 snippets that were due" in recorded.gpu()[1]
    assert recorded.record() == before
    recorded.edit("snippets/part/b.py", "b é", "now")
    recorded.add("d", "part/deep")
    assert "there is no part or snippet b, other" in recorded.gpu("b", "other")[1]
    assert recorded.gpu("part/b")[1].count("cases passed") == 1
    assert recorded.seen("b")["output"] == "now\n"
    status, told = recorded.gpu("part")
    assert (status, told.count("cases passed")) == (0, 1)
    assert recorded.seen("deep/d")["state"] == "passed"
    assert recorded.seen("a") == before["snippets"]["part/a.py"][KEY]
    (recorded.root / "snippets/part/a.py").unlink()
    status, told = recorded.gpu("--all", "--records", "elsewhere")
    assert (status, told.count("cases passed")) == (0, 2)
    (recorded.root / TEST_B).unlink()
    status, told = recorded.gpu()
    assert (status, told.count("part/b.py: not run")) == (1, 1)
    assert recorded.seen("b")["state"] == "passed"
    there = recorded.record("elsewhere/nvidia-h200/verification.json")
    assert "part/a.py" not in there["snippets"]
    assert len(there["runs"]) == 1


def test_gpus_that_are_alike_test_as_many_at_a_time_as_have_room(tree, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7,GPU-x")
    found = gpu._places({"gpu": "H100", "gpus": ["H100", "A40", "H100"]}, tree.root)
    each = [found.get()["CUDA_VISIBLE_DEVICES"] for _ in range(found.qsize())]
    assert each == ["5", "GPU-x"] * 3


def test_a_test_has_a_gpu_and_gives_back_what_it_took_of_it(tree, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    taken = """
def test_takes():
    import os, tempfile, torch
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7"
    assert tempfile.gettempdir().endswith("/7")
    torch.cuda.reserved = 2**31

def test_what_is_left():
    import torch
    assert torch.cuda.reserved == 0
"""
    tree.edit(TEST_B, "class TestMore", f"{taken}\nclass TestMore")
    status, told = tree.gpu()
    assert status == 0, told


RAISES = "pytest.raises(ZeroDivisionError, lambda *_: 1 / 0, "
SKIP = '@pytest.mark.skipif(True, reason="no second GPU")'
BODY = "def test_elsewhere():\n    "
LATE = "@pytest.fixture(autouse=True)\ndef late():\n    yield\n    assert 0\n\n"
# Planted in the tests of a snippet, or in itself: [old, new, what is said to fail].
JUDGED = [
    ("VALUE == 1", "VALUE > case / 8", "test_cases[8]"),
    ("class", f"{LATE}class", "test_shared"),
    (SKIP, "@pytest.mark.xfail", "test_elsewhere"),
    (SKIP, "@pytest.mark.xfail(run=False)", "test_elsewhere"),
    (f"{SKIP}\n{BODY}pass", f"{BODY}pytest.xfail()", "test_elsewhere"),
    (SKIP, "@pytest.mark.skip", "test_elsewhere"),
    ("2e-4, 3e-3", "3e-3, 2e-4", "TestMore::test_accuracy"),
    ("2e-4,", "float('nan'),", "TestMore::test_accuracy"),
    ("2e-4,", "-1,", "TestMore::test_accuracy"),
    ("accurate(", RAISES, "NO_ACCURACY says why nothing is measured"),
    ("print", "VALUE or print", "demo"),
    ("print", "if __name__ == '__main__': 1 / 0 #", "demo"),
]
AWAY = "TRITON_INTERPRET was set on the way"
# Those that end the process.
ENDED = [
    (SKIP, "@pytest.mark.leaves_tensors", "pytest ended with status 4"),
    (f"{SKIP}\n{BODY}pass", f"{BODY}pytest.exit()", "pytest ended with status 2"),
    (f"{SKIP}\n{BODY}pass", f"{BODY}os._exit(0)", "its tests did not run"),
    ("VALUE", "import snippets.no\nVALUE", "pytest ended with status"),
]
# Those that leave the GPU, in each of Triton's words for it.
LEFT = [
    ("assert", f"os.environ['TRITON_INTERPRET'] = {yes!r}\n    assert", AWAY)
    for yes in ("1", "True", "on")
]


def plant(tree: Tree, faults: list[tuple[str, str, str]]) -> dict[str, str]:
    """Put each fault into a snippet of its own; what is said to fail, by its name."""
    said = {}
    for old, new, failed in faults:
        name = f"n{len(said)}"
        tree.add(name)
        file_of = layout.snippet_file if old in SNIPPET else layout.test_file
        tree.edit(file_of(f"part/{name}.py"), old, new, -1)
        said[name] = failed
    return said


def test_a_snippet_that_fails_is_recorded_as_failed(tree):
    said = plant(tree, [JUDGED[0], *ENDED, *LEFT])
    status, told = tree.gpu()
    assert status == 1
    assert f"2 of {2 + len(said)} snippets that were due passed" in told
    for name, failed in said.items():
        entry = tree.seen(name)
        assert entry["state"] == "failed"
        assert failed in entry["failed"][0]
        assert f"part/{name}.py: failed: {entry['failed'][0]}" in told
        assert tree.state(name) == ("failed", [])
    assert tree.state("b") == ("verified", [])


RAN = "def pytest_runtest_protocol(item):\n    return 'shared' in item.name or None"
# Edits by which pytest ends well, though not every test has run.
NOT_ALL = [
    ("pytest.ini", "addopts =", "addopts = --collect-only"),
    ("pytest.ini", "addopts =", "addopts = -k cases"),
    ("tests/snippets/conftest.py", "def", f"{RAN}\n\ndef"),
]


def test_a_run_in_which_a_test_did_not_run_is_no_proof(recorded):
    first = recorded.read(RECORD)
    for file, old, new in NOT_ALL:
        before = recorded.read(file)
        recorded.edit(file, old, new)
        status, told = recorded.gpu("--all")
        assert status == 1
        assert "0 of 2 snippets that were due passed" in told
        assert recorded.state()[0] == "failed"
        recorded.write({file: before, RECORD: first})


def test_what_is_declared_and_what_neither_counts_nor_is_inherited(
    recorded, monkeypatch
):
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    recorded.edit(TEST_A, "accurate(", RAISES, -1)
    recorded.edit(TEST_A, "class", "NO_ACCURACY = 'it copies'\n\nclass")
    checks = "with pytest.raises(KeyError):\n        {}[1]"
    raises = f"    pass\n\ndef test_raises():\n    {checks}\n"
    recorded.edit(TEST_B, "    pass", raises)
    recorded.edit(TEST_B, SKIP, "")
    recorded.edit("tests/snippets/part/suite.py", "1", "all([])")
    recorded.add("c")
    recorded.edit(TEST_C, "    assert", "    pytest.skip('no')\n    assert")
    status, told = recorded.gpu()
    assert (status, told.count("cases passed")) == (1, 2)
    assert recorded.seen("a")["no_accuracy"] == "it copies"
    assert recorded.seen("b")["cases"] == 13
    assert recorded.seen("b")["skipped"] == {"test_elsewhere": "it checks nothing"}
    assert "part/c.py: skipped too much: test_cases[0], " in told
    assert recorded.state("c")[0] == "skipped too much"


SUITE = "tests/snippets/part/suite.py"
# What the verdict rests on, which somebody may soften.
JUDGES = [
    "snippets/part/b.py",
    TEST_B,
    SUITE,
    "tests/snippets/part/shared.py",
    "tests/harness/rule.py",
    "tests/snippets/conftest.py",
    "tests/conftest.py",
    "pytest.ini",
]


def test_whatever_is_loaded_is_hashed(tree):
    ways = [
        "from tests.snippets.part.h0 import help_me",
        "from .h1 import help_me",
        "from . import h2",
        "import tests.snippets.part.h3 as helper",
        "def test_late():\n    from . import h4\n    assert h4.help_me",
        "importlib.import_module('tests.snippets.part.h5')",
        "importlib.import_module('.h6', 'tests.snippets.part')",
        "importlib.import_module('tests.snippets.' + 'part.h7')",
    ]
    files = [f"tests/snippets/part/h{n}.py" for n in range(len(ways))]
    tree.write(dict.fromkeys(files, "help_me = 1\n"))
    lines = "\n".join([*ways, "from snippets.part import a", "shared ="])
    tree.edit(TEST_B, "shared =", lines)
    tree.write({"tests/mutants/part/b.py": ""})
    # The imports themselves lead to all but the last two; a process shows those.
    assert {*files} - manifest.imported(tree.root, "part/b.py") == {*files[-2:]}
    assert tree.gpu()[0] == 0
    for file in (*files, *JUDGES, "tests/__init__.py", "snippets/part/a.py"):
        before = tree.read(file)
        tree.edit(file, "", "\n")
        assert tree.state() == ("stale", [file])
        tree.write({file: before})
    tree.write({"tests/mutants/part/b.py": "MUTANTS = []\n"})
    assert tree.state("a") == tree.state() == ("verified", [])


def test_a_snippet_that_is_edited_while_it_runs_does_not_pass(tree):
    tree.edit("gpu/nvidia-smi", "30720", "8192")  # so that a ends before b begins
    file = str(tree.root / "snippets/part/a.py")
    edit = f"    open({file!r}, 'a').write('\\n')\n"
    tree.edit(TEST_A, "    assert", f"{edit}    assert")
    status, told = tree.gpu()
    assert status == 1
    assert "part/a.py: failed: its tests did not run" in told
    assert tree.state() == ("verified", [])


def test_a_history_is_asked_for_the_files_of_a_commit_that_is_told(tree, monkeypatch):
    told = {"commit": "0123456789abcdef"}
    assert machine.commit(tree.root) == told
    tree.commit()
    assert machine.commit(tree.root) == told
    monkeypatch.setenv("COMMIT", "HEAD")
    assert machine.commit(tree.root)["dirty"] == "no"
    for file in ("snippets/part/a.py", "snippets/part/c.py"):
        tree.write({file: "x = 1\n"})
        assert machine.commit(tree.root)["dirty"] == "yes"
        tree.commit()


def test_an_interrupted_run_keeps_the_record(recorded):
    first = recorded.read(RECORD)
    end = f"    os.kill(os.getppid(), {signal.SIGTERM:d})\n    assert"
    recorded.edit(TEST_A, "    assert", end)
    assert recorded.gpu("--all")[0] == -signal.SIGTERM
    assert recorded.read(RECORD) == first
    assert len(list((recorded.root / "records").rglob("*"))) == 2


def test_what_stops_a_run(tree, monkeypatch):
    record = {RECORD: "{cut sho"}
    tree.write(record)
    status, told = tree.gpu()
    assert status == 1
    assert "verification.json: not JSON" in told
    with monkeypatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        interpreted = tree.gpu()
    tree.edit("gpu/torch.py", "lambda: True", "lambda: False")
    told = "make gpu: no GPU is seen here, or TRITON_INTERPRET is set\n"
    assert interpreted == tree.gpu() == (1, told)
    assert tree.read(RECORD) == record[RECORD]


# Under the interpreter.


LOCAL = "records/interpreter/verification.json"


@pytest.fixture
def interpreted(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    return tree


def test_the_interpreter_records_what_ran(interpreted):
    interpreted.add("c")
    interpreted.write({"tests/snippets/part/only_c.py": ""})
    interpreted.edit(TEST_C, "shared =", "from . import only_c\nshared =")
    interpreted.edit(
        "snippets/part/c.py", "VALUE", "from snippets.part import a\nVALUE"
    )
    interpreted.edit("snippets/part/c.py", "'c é'", "a.VALUE")
    interpreted.pytest("tests").assert_outcomes(passed=36, skipped=3)
    record = interpreted.record(LOCAL)
    ((_, facts),) = record["runs"].items()
    assert "gpu" not in facts
    assert len(record["snippets"]) == 3
    files = {name: interpreted.seen(name, LOCAL)["manifest"] for name in "bc"}
    assert "tests/harness/rule.py" in files["b"]
    assert not any("_c.py" in file or "test_a" in file for file in files["b"])
    assert files["c"].keys() >= {"tests/snippets/part/only_c.py", "snippets/part/a.py"}
    # What the other snippet prints when it is imported, and its own line.
    assert interpreted.seen("c", LOCAL)["output"] == "a é\n1\n"
    assert interpreted.state() == ("interpreter", [])


def test_a_known_snippet_is_tried_in_one_case_of_each_test(interpreted):
    whole = interpreted.pytest("tests", "--due").parseoutcomes()
    assert "deselected" not in whole  # nothing is known yet
    known = interpreted.record(LOCAL)
    some = interpreted.pytest("tests", "--due").parseoutcomes()
    spared = some.pop("deselected")
    assert spared == sum(whole.values()) - sum(some.values()) > 0
    assert interpreted.record(LOCAL) == known
    interpreted.edit("snippets/part/a.py", "a é", "now")
    # Of a all cases, which are recorded; of b what it was.
    mixed = interpreted.pytest("tests", "--due", "-p", "xdist", "-n", "2")
    assert some["passed"] < mixed.parseoutcomes()["passed"] < whole["passed"]
    assert interpreted.seen("a", LOCAL)["output"] == "now\n"
    b = known["snippets"]["part/b.py"]
    assert interpreted.seen("b", LOCAL) == b[KEY]

    def unknown(record: dict[str, Any]) -> None:
        """What failed is not known, nor what ran with other versions."""
        record["snippets"]["part/a.py"][KEY]["state"] = "failed"
        record["snippets"]["part/b.py"] = {"triton 3.6.1": b[KEY]}

    interpreted.change(interpreted.root / LOCAL, unknown)
    assert interpreted.pytest("tests", "--due").parseoutcomes() == whole


def test_what_counts_as_a_failure_under_xdist_too(interpreted):
    said = plant(interpreted, JUDGED)
    result = interpreted.pytest("tests")
    for name, failed in said.items():
        entry = interpreted.seen(name, LOCAL)
        assert entry["state"] == "failed"
        assert failed in entry["failed"][0]
    assert interpreted.seen("b", LOCAL)["state"] == "passed"
    # A demo that fails shows its own words.
    words = [f"snippets/part/{name}.py: exit status 1", "ZeroDivisionError: *"]
    result.stdout.fnmatch_lines(words)
    alone = interpreted.record(LOCAL)["snippets"]
    (interpreted.root / LOCAL).unlink()
    interpreted.pytest("tests", "-p", "xdist", "-n", "2")
    shared = interpreted.record(LOCAL)["snippets"]
    for entries in (*shared.values(), *alone.values()):
        entries[KEY].pop("run")
        entries[KEY]["failed"].sort()
    assert shared == alone


def test_a_part_of_the_tests_is_not_recorded(interpreted):
    for selection in (
        [TEST_B, "-k", "cases"],
        [f"{TEST_B}::test_cases"],
        [TEST_B, "-m", "not demo"],
        [TEST_B, "--deselect", f"{TEST_B}::TestMore"],
        [TEST_B, "--maxfail=1", "--lf"],
    ):
        interpreted.pytest(*selection)
        assert not (interpreted.root / LOCAL).exists()


def test_without_make_gpu_a_gpu_records_nothing(tree):
    tree.pytest("tests").assert_outcomes(passed=24, skipped=2)
    assert not (tree.root / "records").exists()
