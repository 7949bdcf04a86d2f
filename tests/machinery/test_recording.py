"""The recording plugin, on a tree of three snippets and a GPU that is made up."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORD = "records/nvidia-h200/verification.json"

FAKE_TORCH = """
class cuda:
    is_available = staticmethod(lambda: True)
    get_device_name = staticmethod(lambda: "NVIDIA H200")
    get_device_capability = staticmethod(lambda: (9, 0))

class version:
    cuda = "13.0"
"""
TESTS = """
import pytest
from snippets.part import {name}
from verified_docs.evidence.plugin import record_accuracy

@pytest.mark.parametrize("case", range(3))
def test_cases(case):
    record_accuracy("float32", [1e-7, 3e-7, 2e-7][case], 9e-7)
    assert {name}.VALUE == 1

class TestMore:
    def test_accuracy(self):
        record_accuracy("float16", 1e-3, 2e-3)
        record_accuracy("float16", 2e-4, 3e-3)

@pytest.mark.skipif(True, reason="no second GPU")
def test_elsewhere():
    pass
"""


class Tree:
    """A repository to record in."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
        self.pytester = pytester
        self.root = pytester.path
        self.write("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = ['.']\n")
        options = "addopts = ['--import-mode=importlib', '--strict-markers']\n"
        self.write("pyproject.toml", self.read("pyproject.toml") + options)
        self.write(
            "conftest.py", "pytest_plugins = ['verified_docs.evidence.plugin']\n"
        )
        self.write("gpu/torch.py", FAKE_TORCH)
        self.write("gpu/nvidia-smi", "#!/bin/sh\necho 580.1\n")
        (self.root / "gpu/nvidia-smi").chmod(0o755)
        for name in ("a", "b", "c"):
            self.write(f"snippets/part/{name}.py", f"VALUE = 1\nprint('{name} é')\n")
            self.write(f"tests/snippets/part/test_{name}.py", TESTS.format(name=name))
        monkeypatch.setenv("PYTHONPATH", f"{self.root / 'gpu'}:{ROOT}")
        monkeypatch.setenv("PATH", str(self.root / "gpu"), prepend=":")
        monkeypatch.delenv("TRITON_INTERPRET", raising=False)
        monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")

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

    def run(self, *arguments: str) -> pytest.RunResult:
        return self.pytester.runpytest_subprocess(*arguments)

    def record(self, *arguments: str) -> pytest.RunResult:
        return self.run(*(arguments or ["tests"]), "--record")

    def entries(self, name: str = RECORD) -> dict[str, dict]:
        return json.loads(self.read(name))["snippets"]

    def names(self) -> str:
        """The recorded snippets, as in "abc"."""
        return "".join(name.removeprefix("part/")[0] for name in self.entries())


@pytest.fixture
def tree(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Tree:
    return Tree(pytester, monkeypatch)


@pytest.fixture(scope="session")
def first_record() -> dict[str, str]:
    """What the first recording of the tree wrote: the same in each test."""
    return {}


@pytest.fixture
def recorded(tree: Tree, first_record: dict[str, str]) -> Tree:
    """A tree whose three snippets have an entry."""
    if not first_record:
        assert tree.record().ret == 0
        first_record[RECORD] = tree.read(RECORD)
    tree.write(RECORD, first_record[RECORD])
    assert tree.names() == "abc"
    return tree


def test_an_entry_says_what_ran_where_and_how_well(tree: Tree) -> None:
    result = tree.record()
    result.assert_outcomes(passed=15, skipped=3)
    result.stdout.fnmatch_lines([f"{RECORD}: 3 snippets recorded"])
    entry = tree.entries()["part/a.py"]
    assert entry.pop("environment").items() >= {
        ("gpu", "NVIDIA H200"),
        ("capability", "9.0"),
        ("driver", "580.1"),
        ("cuda", "13.0"),
        ("python", sys.version.split()[0]),
        ("date", time.strftime("%Y-%m-%d", time.gmtime())),
    }
    assert all(len(entry.pop(key)) == 64 for key in ("sha256", "test_sha256"))
    assert entry == {
        "test": "tests/snippets/part/test_a.py",
        "cases": 5,
        "skipped": ["test_elsewhere: no second GPU"],
        "errors": {
            "float16": {
                "error": 1e-3,
                "bound": 2e-3,
                "case": "TestMore::test_accuracy",
            },
            "float32": {"error": 3e-7, "bound": 9e-7, "case": "test_cases[1]"},
        },
        "output": "a é\n",
    }


def test_under_xdist_the_record_is_the_same(recorded: Tree) -> None:
    pytest.importorskip("xdist")
    alone = recorded.read(RECORD)
    (recorded.root / RECORD).unlink()
    result = recorded.record("tests", "-n", "2")
    result.assert_outcomes(passed=15, skipped=3)
    assert json.loads(recorded.read(RECORD)) == json.loads(alone)


def test_a_second_run_changes_no_byte(recorded: Tree) -> None:
    before = recorded.read(RECORD)
    recorded.record()
    assert recorded.read(RECORD) == before


def test_the_folder_can_be_named(tree: Tree) -> None:
    tree.run("tests", "--record", "elsewhere/mine")
    assert len(tree.entries("elsewhere/mine/verification.json")) == 3


@pytest.mark.parametrize(
    "selection",
    [
        ["tests/snippets/part/test_b.py", "-k", "cases"],
        ["tests/snippets/part/test_b.py::test_cases"],
        ["tests/snippets/part/test_b.py::TestMore"],
        ["tests/snippets/part/test_b.py::demo"],
        ["tests/snippets/part/test_b.py", "-m", "not demo"],
        [
            "tests/snippets/part/test_b.py",
            "--deselect",
            "tests/snippets/part/test_b.py::TestMore::test_accuracy",
        ],
    ],
    ids=["-k", "function", "class", "demo", "-m", "deselect"],
)
def test_a_snippet_run_in_part_loses_its_entry_and_the_others_stay(
    recorded: Tree, selection: list[str]
) -> None:
    result = recorded.record(*selection)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["not recorded: part/b.py: its tests did not all run"])
    assert recorded.names() == "ac"


def test_one_module_alone_is_recorded_and_the_others_stay(recorded: Tree) -> None:
    recorded.replace("snippets/part/a.py", "a é", "now")
    recorded.replace("snippets/part/b.py", "b é", "now")
    assert recorded.record("tests/snippets/part/test_a.py").ret == 0
    assert recorded.names() == "abc"
    assert recorded.entries()["part/a.py"]["output"] == "now\n"
    assert recorded.entries()["part/b.py"]["output"] == "b é\n"


def test_node_ids_that_make_a_whole_are_a_whole(recorded: Tree) -> None:
    test = "tests/snippets/part/test_b.py"
    (recorded.root / RECORD).unlink()
    names = ["test_cases", "TestMore", "test_elsewhere", "demo"]
    recorded.record(*(f"{test}::{name}" for name in names))
    assert recorded.names() == "b"


def test_last_failed_is_a_part(recorded: Tree) -> None:
    recorded.replace("tests/snippets/part/test_b.py", "VALUE == 1", "VALUE == case")
    assert recorded.record().ret == 1
    assert recorded.names() == "ac"
    recorded.replace("tests/snippets/part/test_b.py", "VALUE == case", "VALUE == 1")
    assert recorded.record("tests", "--lf").ret == 0
    assert recorded.names() == "ac"
    assert recorded.record().ret == 0
    assert recorded.names() == "abc"


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("tests/snippets/part/test_b.py", "VALUE == 1", "VALUE == case", "test_cases"),
        ("snippets/part/b.py", "VALUE = 1", "VALUE = 2", "test_cases[[]0]"),
        ("snippets/part/b.py", "print", "VALUE or print", "demo"),
        ("snippets/part/b.py", "print", "if __name__ == '__main__': 1 / 0 #", "demo"),
        ("snippets/part/b.py", "VALUE", "VALUE VALUE", "its tests cannot be collected"),
        (
            "tests/snippets/part/test_b.py",
            "@pytest.mark.param",
            "@pytest.fixture(autouse=True)\ndef late():\n    yield\n    assert 0\n\n"
            "@pytest.mark.param",
            "test_cases[[]0]",
        ),
    ],
    ids=["test", "snippet", "silent demo", "failing demo", "syntax", "teardown"],
)
def test_a_snippet_that_fails_loses_its_entry(
    recorded: Tree, file: str, old: str, new: str, reason: str
) -> None:
    recorded.replace(file, old, new)
    result = recorded.record()
    assert result.ret != 0
    result.stdout.fnmatch_lines([f"not recorded: part/b.py: {reason}*"])
    assert recorded.names() == "ac"


@pytest.mark.parametrize("old", ["= 1", "VALUE"], ids=["test", "syntax"])
def test_under_xdist_a_failure_does_too(recorded: Tree, old: str) -> None:
    pytest.importorskip("xdist")
    recorded.replace("snippets/part/b.py", old, f"{old} 2")
    assert recorded.record("tests", "-n", "2").ret != 0
    assert recorded.names() == "ac"


def test_a_demo_that_fails_shows_its_own_words(tree: Tree) -> None:
    tree.replace("snippets/part/b.py", "print", "if __name__ == '__main__': 1 / 0 #")
    result = tree.record()
    result.stdout.fnmatch_lines(
        ["python snippets/part/b.py: exit status 1", "ZeroDivisionError: *"]
    )


def test_stopping_at_the_first_failure_leaves_what_did_not_start(
    recorded: Tree,
) -> None:
    recorded.replace("tests/snippets/part/test_b.py", "VALUE == 1", "VALUE == case")
    recorded.record("tests", "-x")
    assert recorded.names() == "ac"


@pytest.mark.parametrize(
    "file", ["snippets/part/b.py", "tests/snippets/part/test_b.py"]
)
@pytest.mark.parametrize("during", ["test_b.py", "test_c.py"])
def test_a_file_edited_during_the_run_loses_its_entry(
    recorded: Tree, file: str, during: str
) -> None:
    recorded.write("tests/snippets/part/cases.py", "")
    shared = "import pytest\nimport tests.snippets.part.cases\n"
    recorded.replace("tests/snippets/part/test_b.py", "import pytest\n", shared)
    edit = f"    open({str(recorded.root / file)!r}, 'a').write('\\n')\n"
    test = f"tests/snippets/part/{during}"
    recorded.replace(test, "    assert", f"{edit}    assert")
    result = recorded.record()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*part/b.py: a file changed during the run"])
    assert "b" not in recorded.names()


def interrupt(tree: Tree, number: int, *arguments: str) -> None:
    """Send a signal to a recording run while the tests of b are under way."""
    tree.replace(
        "tests/snippets/part/test_b.py",
        "    assert",
        f"    open({str(tree.root / 'started')!r}, 'w')\n"
        "    import time; time.sleep(60)\n    assert",
    )
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "tests", "--record", *arguments],
        cwd=tree.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        # A shell has its background jobs, and so this suite, ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not (tree.root / "started").exists() or "now" not in tree.read(RECORD):
        assert run.poll() is None, run.stdout.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run.send_signal(number)
    output, _ = run.communicate(timeout=60)
    assert run.returncode != 0, output.decode()


def test_ctrl_c_keeps_what_finished_and_what_did_not_start(recorded: Tree) -> None:
    recorded.replace("snippets/part/a.py", "a é", "now")
    interrupt(recorded, signal.SIGINT)
    assert recorded.names() == "ac"
    assert recorded.entries()["part/a.py"]["output"] == "now\n"


def test_ctrl_c_under_xdist_too(recorded: Tree) -> None:
    pytest.importorskip("xdist")
    recorded.replace("snippets/part/a.py", "a é", "now")
    interrupt(recorded, signal.SIGINT, "-n", "2", "--dist", "loadfile")
    assert "b" not in recorded.names()
    assert recorded.entries()["part/a.py"]["output"] == "now\n"


def test_a_kill_leaves_a_whole_file(recorded: Tree) -> None:
    recorded.replace("snippets/part/a.py", "a é", "now")
    interrupt(recorded, signal.SIGKILL)
    assert recorded.names() == "abc"
    assert recorded.entries()["part/a.py"]["output"] == "now\n"
    assert recorded.record("tests/snippets/part/test_c.py").ret == 0


@pytest.mark.parametrize("interpret", [True, False])
def test_recording_needs_a_gpu(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, interpret: bool
) -> None:
    if interpret:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    else:
        tree.replace("gpu/torch.py", "lambda: True", "lambda: False")
    result = tree.record()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --record (make gpu) needs a GPU*make test*"])
    assert not (tree.root / "records").exists()


def test_a_record_that_cannot_be_read_stops_the_run(recorded: Tree) -> None:
    cut = recorded.read(RECORD)[:100]
    recorded.write(RECORD, cut)
    result = recorded.record()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *verification.json: not JSON*", "Restore *"])
    assert recorded.read(RECORD) == cut


def test_tests_are_no_folder_for_records(tree: Tree) -> None:
    result = tree.run("--record", "tests/snippets")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --record would write into tests/snippets*"])


def test_without_record_a_gpu_writes_nothing(tree: Tree) -> None:
    tree.run("tests").assert_outcomes(passed=15, skipped=3)
    assert not (tree.root / "records").exists()
    assert not (tree.root / ".cache").exists()


def test_the_interpreter_always_records_in_the_cache(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    tree.write(".cache/interpreter.json", "{cut sho")
    tree.run("tests").assert_outcomes(passed=15, skipped=3)
    entries = tree.entries(".cache/interpreter.json")
    assert len(entries) == 3
    assert entries["part/a.py"]["environment"]["gpu"] == ""


def test_what_mirrors_nothing_is_not_recorded(tree: Tree) -> None:
    tree.write("tests/snippets/part/test_none.py", "def test(): pass\n")
    tree.write("tests/machinery/test_a.py", "def test(): assert 0\n")
    tree.record()
    assert tree.names() == "abc"


def test_an_expected_failure_is_named(tree: Tree) -> None:
    tree.replace("tests/snippets/part/test_b.py", "skipif(True", "xfail(True")
    tree.replace("tests/snippets/part/test_b.py", "    pass", "    assert 0")
    tree.record()
    (reason,) = tree.entries()["part/b.py"]["skipped"]
    assert reason == "test_elsewhere: expected to fail: no second GPU"
    assert tree.entries()["part/b.py"]["cases"] == 5


def test_thin_takes_one_large_test_of_a_module_and_takes_it_last(tree: Tree) -> None:
    large = """
import pytest

@pytest.mark.large
@pytest.mark.parametrize("case", range(4))
def test_large(case):
    pass

@pytest.mark.large
def test_larger():
    pass
"""
    tree.write("tests/snippets/part/test_c.py", large + TESTS.format(name="c"))
    result = tree.run("tests/snippets/part/test_c.py", "--thin", "2", "-v")
    ran = [line.split()[0] for line in result.outlines if " PASSED " in line]
    assert len(ran) == 4
    assert ["test_large" in name for name in ran] == [False, False, False, True]


def test_thin_takes_a_few_cases_of_each_and_records_nothing(tree: Tree) -> None:
    marked = "@pytest.mark.leaves_tensors\n@pytest.mark.skipif(False,"
    tree.replace("tests/snippets/part/test_b.py", "@pytest.mark.skipif(True,", marked)
    result = tree.run("tests", "--thin", "2")
    result.assert_outcomes(passed=9, skipped=2, deselected=7)
    assert not (tree.root / ".cache").exists()
    again = tree.run("tests", "--thin", "2", "-v")
    assert [line for line in again.outlines if "b.py::test_cases" in line] == [
        line
        for line in tree.run("tests", "--thin=2", "-v").outlines
        if "b.py::test_cases" in line
    ]
    result = tree.record("tests", "--thin")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --record and --thin exclude each other*"])
