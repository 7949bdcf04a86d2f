"""`make gpu` and the recording plugin, on three snippets and a GPU that is made up."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from verified_docs.evidence.status import Evidence

ROOT = Path(__file__).parents[2]
RECORD = "records/nvidia-h200/verification.json"
KEY = "torch 2.11.0, triton 3.6.0"

FAKE_TORCH = """
class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 1)
    get_device_name = staticmethod(lambda device=0: "NVIDIA H200")
    get_device_capability = staticmethod(lambda: (9, 0))

class version:
    cuda = "13.0"
"""
FILES = {
    "tests/__init__.py": "",
    "tests/conftest.py": """
import pytest
pytest.register_assert_rewrite("tests.harness", "tests.snippets")
pytest_plugins = ["verified_docs.evidence.plugin"]
""",
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
    "gpu/nvidia-smi": "#!/bin/sh\necho '580.1, 700.00 W, 1980 MHz, [N/A]'\n",
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
from snippets.part import {name}
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


class Tree:
    """A repository to record in."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
        self.pytester = pytester
        self.root = pytester.path
        self.write("pytest.ini", (ROOT / "pytest.ini").read_text())
        for name, text in FILES.items():
            self.write(name, text)
        (self.root / "gpu/nvidia-smi").chmod(0o755)
        for name in ("a", "b", "c"):
            self.add(name)
        monkeypatch.setenv("PYTHONPATH", f"{self.root / 'gpu'}:{ROOT}")
        monkeypatch.setenv("PATH", str(self.root / "gpu"), prepend=":")
        monkeypatch.setenv("COMMIT", "0123456789abcdef")
        monkeypatch.delenv("TRITON_INTERPRET", raising=False)
        monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def add(self, name: str, part: str = "part") -> None:
        self.write(f"snippets/{part}/{name}.py", SNIPPET.format(name=name))
        text = TESTS.format(name=name).replace("snippets.part import", "snippets."
            + part.replace("/", ".") + " import")  # fmt: skip
        self.write(f"tests/snippets/{part}/test_{name}.py", text)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def read(self, name: str) -> str:
        return (self.root / name).read_text("utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        text = self.read(name)
        assert old in text
        self.write(name, text.replace(old, new))

    def pytest(self, *arguments: str) -> pytest.RunResult:
        """Ordinary pytest, without the plugins that happen to be installed."""
        return self.pytester.runpytest_subprocess(*arguments)

    def gpu(self, *arguments: str) -> tuple[int, str]:
        """The exit status and the words of `make gpu`."""
        command = [sys.executable, "-m", "verified_docs", "gpu", *arguments]
        run = subprocess.run(command, cwd=self.root, capture_output=True, text=True)
        assert "Traceback" not in run.stderr, run.stderr
        return run.returncode, run.stdout + run.stderr

    def record(self, name: str = RECORD) -> dict[str, Any]:
        return json.loads(self.read(name))

    def entry(self, name: str, record: str = RECORD) -> dict[str, Any]:
        return self.record(record)["snippets"][f"part/{name}.py"][KEY]

    def state(self, name: str = "b") -> tuple[str, list[str]]:
        """What is known of a snippet, and the files that make it stale."""
        status = Evidence(self.root).status(f"part/{name}.py")
        return status.state, [file for run in status.runs for file in run.changed]


@pytest.fixture
def tree(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Tree:
    return Tree(pytester, monkeypatch)


@pytest.fixture(scope="session")
def first_record() -> list[str]:
    """What the first run on the tree wrote: the same in each test."""
    return []


@pytest.fixture
def recorded(tree: Tree, first_record: list[str]) -> Tree:
    """A tree whose three snippets have passed."""
    if not first_record:
        status, told = tree.gpu()
        assert status == 0, told
        first_record.append(tree.read(RECORD))
    tree.write(RECORD, first_record[0])
    assert tree.state() == ("verified", [])
    return tree


TEST_B = "tests/snippets/part/test_b.py"


def test_an_entry_says_what_ran_where_and_how_well(recorded: Tree) -> None:
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
    entry = recorded.entry("a")
    assert all(len(each) == 64 for each in entry["manifest"].values())
    assert list(entry.pop("manifest")) == [
        "pytest.ini",
        "snippets/part/a.py",
        "tests/__init__.py",
        "tests/conftest.py",
        "tests/harness/rule.py",
        "tests/snippets/conftest.py",
        "tests/snippets/part/shared.py",
        "tests/snippets/part/suite.py",
        "tests/snippets/part/test_a.py",
    ]
    assert entry == {
        "run": run,
        "state": "passed",
        "failed": [],
        "cases": 12,
        "skipped": {"test_elsewhere": "no second GPU"},
        "errors": {
            "float16": {
                "error": 1e-3,
                "bound": 2e-3,
                "case": "TestMore::test_accuracy",
            },
            "float32": {"error": 8e-7, "bound": 9e-7, "case": "test_cases[8]"},
        },
        "no_accuracy": "",
        "output": "a é\n",
    }


def test_what_is_stale_runs_and_all_only_if_asked(recorded: Tree) -> None:
    before = recorded.record()
    assert "0 of 0 snippets that were due" in recorded.gpu()[1]
    assert recorded.record() == before
    recorded.replace("snippets/part/b.py", "b é", "now")
    recorded.add("d", "part/deep")
    status, told = recorded.gpu()
    assert (status, told.count("cases passed")) == (0, 2)
    assert recorded.entry("deep/d")["state"] == "passed"
    assert recorded.entry("b")["output"] == "now\n"
    assert recorded.entry("a") == before["snippets"]["part/a.py"][KEY]
    (recorded.root / "snippets/part/c.py").unlink()
    (recorded.root / "tests/snippets/part/test_c.py").unlink()
    status, told = recorded.gpu("--all", "--records", "elsewhere")
    assert (status, told.count("cases passed")) == (0, 3)
    (recorded.root / TEST_B).unlink()
    status, told = recorded.gpu()
    assert (status, told.count("part/b.py: not run")) == (1, 1)
    assert recorded.entry("b")["state"] == "passed"
    there = recorded.record("elsewhere/nvidia-h200/verification.json")
    assert "part/c.py" not in there["snippets"]
    assert len(there["runs"]) == 1
    assert len(recorded.record()["runs"]) == 2


def test_gpus_and_versions_stand_side_by_side(recorded: Tree) -> None:
    folder = recorded.root / "gpu"
    (folder / "torch-2.11.0.dist-info").rename(folder / "torch-2.12.0.dist-info")
    recorded.replace("gpu/torch-2.12.0.dist-info/METADATA", "2.11.0", "2.12.0")
    assert recorded.gpu()[0] == 0
    newer = "torch 2.12.0, triton 3.6.0"
    assert list(recorded.record()["snippets"]["part/b.py"]) == [KEY, newer]
    recorded.replace("gpu/torch.py", "H200", "H100")
    recorded.replace(TEST_B, "VALUE == 1", "VALUE > case / 8")
    assert recorded.gpu()[0] == 1
    runs = Evidence(recorded.root).status("part/b.py").runs
    assert [(run.gpu, str(run.state)) for run in runs] == [
        ("NVIDIA H100", "failed"),
        ("NVIDIA H200", "stale"),
        ("NVIDIA H200", "stale"),
    ]
    assert recorded.state("b")[0] == "failed"
    assert recorded.state("a")[0] == "verified"


LATE = "@pytest.fixture(autouse=True)\ndef late():\n    yield\n    assert 0\n\n"
LOOP = "def pytest_runtestloop():"
TEST = "def pytest_runtest_protocol():"
RAISES = "pytest.raises(ZeroDivisionError, lambda *_: 1 / 0, "
SKIP = '@pytest.mark.skipif(True, reason="no second GPU")'
BODY = "def test_elsewhere():\n    "
LATE = "@pytest.fixture(autouse=True)\ndef late():\n    yield\n    assert 0\n\n"
# Planted in the tests of a snippet, or in itself: [old, new, what is said to fail].
IN_TESTS = [
    ("VALUE == 1", "VALUE > case / 8", "test_cases[8]"),
    ("class", f"{LATE}class", "test_shared"),
    (SKIP, "@pytest.mark.xfail", "test_elsewhere"),
    (SKIP, "@pytest.mark.xfail(run=False)", "test_elsewhere"),
    (f"{SKIP}\n{BODY}pass", f"{BODY}pytest.xfail()", "test_elsewhere"),
    (SKIP, "@pytest.mark.skip", "test_elsewhere"),
    (SKIP, "@pytest.mark.leaves_tensors", "pytest ended with status 4"),
    (f"{SKIP}\n{BODY}pass", f"{BODY}pytest.exit()", "pytest ended with status 2"),
    (f"{SKIP}\n{BODY}pass", f"{BODY}os._exit(0)", "its tests did not run"),
    ("2e-4, 3e-3", "3e-3, 2e-4", "TestMore::test_accuracy"),
    ("2e-4,", "float('nan'),", "TestMore::test_accuracy"),
    ("2e-4,", "-1,", "TestMore::test_accuracy"),
    ("accurate(", RAISES, "NO_ACCURACY says why nothing is measured"),
]
IN_SNIPPET = [
    ("print", "VALUE or print", "demo"),
    ("print", "if __name__ == '__main__': 1 / 0 #", "demo"),
    ("VALUE", "import no\nVALUE", "pytest ended with status"),
]


def test_a_snippet_that_fails_is_recorded_as_failed(tree: Tree) -> None:
    said = {}
    for folder, faults in (("tests/snippets", IN_TESTS), ("snippets", IN_SNIPPET)):
        for old, new, failed in faults:
            name = f"n{len(said)}"
            tree.add(name)
            prefix = "test_" * (folder != "snippets")
            tree.replace(f"{folder}/part/{prefix}{name}.py", old, new)
            said[name] = failed
    status, told = tree.gpu()
    assert status == 1
    assert f"3 of {3 + len(said)} snippets that were due passed" in told
    for name, failed in said.items():
        entry = tree.entry(name)
        assert entry["state"] == "failed"
        assert failed in entry["failed"][0]
        assert f"part/{name}.py: failed: {entry['failed'][0]}" in told
        assert tree.state(name) == ("failed", [])
    assert tree.state("b") == ("verified", [])


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("pytest.ini", "addopts =", "addopts = --collect-only"),
        ("pytest.ini", "addopts =", "addopts = -k cases"),
        ("pytest.ini", "addopts =", "addopts = -k no_test"),
        ("tests/conftest.py", "pytest_plugins", f"{LOOP} return True\npytest_plugins"),
        ("tests/snippets/conftest.py", "def", f"{TEST} return True\ndef"),
    ],
)
def test_a_run_in_which_nothing_ran_is_no_proof(
    recorded: Tree, file: str, old: str, new: str
) -> None:
    recorded.replace(file, old, new)
    status, told = recorded.gpu("--all")
    assert status == 1
    assert "0 of 3 snippets that were due passed" in told
    assert recorded.state()[0] == "failed"


def test_accuracy_that_is_not_measured_is_declared(recorded: Tree) -> None:
    recorded.replace(TEST_B, "accurate(", RAISES)
    recorded.replace(TEST_B, "class", "NO_ACCURACY = 'it copies'\n\nclass")
    assert recorded.gpu()[0] == 0
    assert recorded.entry("b")["no_accuracy"] == "it copies"


def test_options_are_not_inherited(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    assert tree.gpu()[0] == 0
    assert tree.entry("b")["cases"] == 12


def test_too_many_skips_are_no_proof(recorded: Tree) -> None:
    recorded.replace(TEST_B, "    assert", "    pytest.skip('no')\n    assert")
    status, told = recorded.gpu()
    assert status == 1
    assert "part/b.py: skipped too much: test_cases[0], " in told
    assert recorded.state()[0] == "skipped too much"


def test_a_test_that_checks_nothing_does_not_count(recorded: Tree) -> None:
    checks = "with pytest.raises(KeyError):\n        {}[1]"
    raises = f"    pass\n\ndef test_raises():\n    {checks}\n"
    recorded.replace(TEST_B, "    pass", raises)
    recorded.replace(TEST_B, SKIP, "")
    recorded.replace("tests/snippets/part/suite.py", "1", "all([])")
    assert recorded.gpu()[0] == 0
    entry = recorded.entry("b")
    assert entry["cases"] == 13
    assert entry["skipped"] == {"test_elsewhere": "it checks nothing"}


def test_whatever_is_loaded_is_hashed(tree: Tree) -> None:
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
    for file in files:
        tree.write(file, "help_me = 1\n")
    lines = "\n".join([*ways, "from snippets.part import a", "shared ="])
    tree.replace(TEST_B, "shared =", lines)
    assert tree.gpu()[0] == 0
    for file in (*files, "snippets/part/a.py"):
        before = tree.read(file)
        tree.write(file, f"{before}\n")
        assert tree.state() == ("stale", [file])
        tree.write(file, before)
    assert tree.state("c") == tree.state() == ("verified", [])


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("snippets/part/b.py", "VALUE", "VALUE "),
        (TEST_B, "VALUE == 1", "True"),
        ("tests/harness/rule.py", "if error > bound", "if False"),
        ("tests/snippets/conftest.py", "rule.accurate", "lambda *_: None"),
        ("tests/conftest.py", "import pytest", "import pytest  # AssertionError"),
        ("tests/snippets/part/suite.py", "assert 1", "return"),
        ("tests/snippets/part/shared.py", "1", "2"),
        ("pytest.ini", "addopts =", "addopts = --collect-only"),
    ],
)
def test_a_changed_judge_makes_stale(
    recorded: Tree, file: str, old: str, new: str
) -> None:
    recorded.replace(file, old, new)
    assert recorded.state() == ("stale", [file])


def test_a_test_that_moves_from_file_to_file_makes_stale(recorded: Tree) -> None:
    moved = recorded.read("tests/snippets/part/suite.py")
    recorded.write("tests/snippets/part/suite.py", "")
    recorded.write(TEST_B, recorded.read(TEST_B) + moved)
    assert recorded.state() == ("stale", ["tests/snippets/part/suite.py", TEST_B])


def test_a_new_conftest_makes_stale_and_mutants_do_not(recorded: Tree) -> None:
    recorded.write("tests/mutants/part/b.py", "MUTANTS = []\n")
    recorded.write("tests/snippets/other/conftest.py", "")
    assert recorded.state() == ("verified", [])
    recorded.write("tests/snippets/part/conftest.py", "")
    assert recorded.state() == ("stale", ["tests/snippets/part/conftest.py"])


@pytest.mark.parametrize("file", ["snippets/part/b.py", TEST_B])
def test_a_file_edited_during_the_run_does_not_pass(recorded: Tree, file: str) -> None:
    edit = f"    open({str(recorded.root / file)!r}, 'a').write('\\n')\n"
    recorded.replace(TEST_B, "    assert", f"{edit}    assert")
    status, told = recorded.gpu()
    assert status == 1
    assert "part/b.py: failed: its tests did not run" in told


def test_an_interrupted_run_keeps_the_record(recorded: Tree) -> None:
    recorded.replace("snippets/part/a.py", "a é", "now")
    started = recorded.root / "started"
    wait = f"    open({str(started)!r}, 'w')\n    __import__('time').sleep(60)\n"
    recorded.replace(TEST_B, "    assert", f"{wait}    assert")
    before = recorded.read(RECORD)
    run = subprocess.Popen(
        [sys.executable, "-m", "verified_docs", "gpu"],
        cwd=recorded.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        # A shell has its background jobs, and so this suite, ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    while not started.exists():
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)
    output, _ = run.communicate(timeout=60)
    assert run.returncode != 0, output.decode()
    assert recorded.read(RECORD) == before
    assert len(list((recorded.root / "records").rglob("*"))) == 2


@pytest.mark.parametrize("interpret", [True, False])
def test_recording_needs_a_gpu(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, interpret: bool
) -> None:
    if interpret:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    else:
        tree.replace("gpu/torch.py", "lambda: True", "lambda: False")
    assert tree.gpu() == (
        1,
        "make gpu: no GPU is seen here, or TRITON_INTERPRET is set\n",
    )
    assert not (tree.root / "records").exists()


def test_a_record_that_cannot_be_read_stops_the_run(recorded: Tree) -> None:
    cut = recorded.read(RECORD)[:100]
    recorded.write(RECORD, cut)
    status, told = recorded.gpu()
    assert status == 1
    assert "verification.json: not JSON" in told
    assert recorded.read(RECORD) == cut


# Under the interpreter.


CACHE = ".cache/interpreter.json"


@pytest.fixture
def interpreted(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    return tree


def test_the_interpreter_records_in_the_cache(interpreted: Tree) -> None:
    interpreted.write(CACHE, "{cut sho")
    interpreted.write("tests/snippets/part/only_c.py", "")
    interpreted.replace(
        "tests/snippets/part/test_c.py", "shared =", "from . import only_c\nshared ="
    )
    interpreted.pytest("tests").assert_outcomes(passed=36, skipped=3)
    record = interpreted.record(CACHE)
    ((_, facts),) = record["runs"].items()
    assert "gpu" not in facts
    assert len(record["snippets"]) == 3
    files = {name: interpreted.entry(name, CACHE)["manifest"] for name in "bc"}
    assert "tests/snippets/part/shared.py" in files["b"]
    assert "tests/harness/rule.py" in files["b"]
    assert not any("_c.py" in file or "test_a" in file for file in files["b"])
    assert "tests/snippets/part/only_c.py" in files["c"]
    assert interpreted.state() == ("interpreter", [])
    interpreted.replace("snippets/part/a.py", "a é", "now")
    interpreted.pytest("tests/snippets/part/test_a.py")
    assert interpreted.entry("a", CACHE)["output"] == "now\n"
    assert interpreted.state() == ("interpreter", [])


def test_under_xdist_the_record_is_the_same(interpreted: Tree) -> None:
    interpreted.replace(TEST_B, "VALUE == 1", "VALUE == 2")
    interpreted.pytest("tests", "-p", "xdist", "-n", "2")
    shared = interpreted.record(CACHE)["snippets"]
    assert shared["part/b.py"][KEY]["state"] == "failed"
    (interpreted.root / CACHE).unlink()
    interpreted.pytest("tests")
    alone = interpreted.record(CACHE)["snippets"]
    for entries in (*shared.values(), *alone.values()):
        entries[KEY].pop("run")
        entries[KEY]["failed"].sort()
    assert shared == alone


@pytest.mark.parametrize(
    "selection",
    [
        [TEST_B, "-k", "cases"],
        [f"{TEST_B}::test_cases"],
        [f"{TEST_B}::demo"],
        [TEST_B, "-m", "not demo"],
        [TEST_B, "--deselect", f"{TEST_B}::TestMore"],
        [TEST_B, "--thin"],
        [TEST_B, "--maxfail=1", "--lf"],
    ],
)
def test_a_part_of_the_tests_is_not_recorded(
    interpreted: Tree, selection: list[str]
) -> None:
    interpreted.pytest(*selection)
    assert not (interpreted.root / CACHE).exists()


def test_without_make_gpu_a_gpu_records_nothing(tree: Tree) -> None:
    tree.write("tests/snippets/part/test_none.py", "def test(): pass\n")
    tree.pytest("tests").assert_outcomes(passed=37, skipped=3)
    assert not (tree.root / "records").exists()
    assert not (tree.root / ".cache").exists()


def test_a_demo_that_fails_shows_its_own_words(interpreted: Tree) -> None:
    interpreted.write("snippets/part/b.py", "VALUE = 1\nif __name__ == '__main__': 1/0")
    result = interpreted.pytest(TEST_B)
    result.stdout.fnmatch_lines(
        ["snippets/part/b.py: exit status 1", "ZeroDivisionError: *"]
    )


# --thin.


def test_thin_takes_one_large_test_of_a_module_and_takes_it_last(tree: Tree) -> None:
    large = """
import pytest

@pytest.mark.large
@pytest.mark.parametrize("case", range(4))
def test_large(case):
    assert True

@pytest.mark.large
def test_larger():
    assert True
"""
    test = "tests/snippets/part/test_c.py"
    tree.write(test, large + TESTS.format(name="c"))
    result = tree.pytest(test, "--thin", "2", "-v")
    ran = [line.split()[0] for line in result.outlines if " PASSED " in line]
    assert len(ran) == 5
    assert ["test_large" in name for name in ran] == [False] * 4 + [True]


def test_thin_takes_a_few_cases_of_each(tree: Tree) -> None:
    tree.add("wrong_b")
    test_b = "tests/snippets/part/test_wrong_b.py"
    tree.replace(test_b, SKIP, "@pytest.mark.leaves_tensors")
    result = tree.pytest("tests", "--thin", "2", "-v")
    result.assert_outcomes(passed=16, skipped=3, deselected=33)
    chosen = [line for line in result.outlines if "wrong_b.py::test_cases" in line]
    again = tree.pytest("tests", "--thin=2", "-v").outlines
    names = [line.split(" ")[0] for line in again if "wrong_b.py::test_cases" in line]
    assert names == [line.split(" ")[0] for line in chosen]
