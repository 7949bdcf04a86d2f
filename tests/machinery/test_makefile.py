"""The Makefile: what its targets say where something is lacking, and what they keep."""

import os
import shutil
import sys

import pytest

from tests.machinery.repository import ROOT, Repository
from verified_docs import needs

PYTHON = sys.executable
# With which Python a target is called, and what it says.
LACKING = [
    (f"{PYTHON} -S", f"{PYTHON} lacks torch, triton"),
    ("python3", "that of the machine"),
]
pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")


class Tree(Repository):
    """A repository with all that the targets install, and a mkdocs that is made up."""

    def make(self, *arguments: str) -> tuple[int, str]:
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        run = self.run("make", *arguments, PATH=path, HOME=str(self.root))
        assert "Traceback" not in run.stdout
        return run.returncode, run.stdout


@pytest.fixture
def tree(tmp_path) -> Tree:
    tree = Tree(tmp_path)
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "verified_docs", tmp_path / "verified_docs")
    sources = ("pyproject.toml", "constraints.txt", "package.json", "package-lock.json")
    made = (".venv/site-installed", "node_modules/installed", ".venv/test-installed")
    last = ("docs/assets/vendor/.installed", "docs/snippets.zip")
    # What is made is newer than its sources.
    tree.write(dict.fromkeys((*sources, *made, *last), ""))
    tree.script(".venv/bin/python", f'exec {PYTHON} "$@"')
    tree.script("bin/compute-sanitizer", "echo sanitizer")
    return tree


def test_a_python_that_is_too_old(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 11, 2))
    assert "is Python 3.11.2; it must be 3.11.5 or newer" in needs.lack("make gpu")


@pytest.mark.parametrize("target", ["gpu", "memcheck", "bench"])
def test_what_a_gpu_target_lacks(tree, target):
    tree.script("bin/python3", "echo that of the machine; exit 1")
    tree.script(".venv/bin/python3", "echo that of .venv; exit 1")
    for python, words in LACKING:
        code, told = tree.make(target, f"PYTHON={python}")
        assert code
        assert words in told


def test_what_is_asked_of_the_gpu(tree):
    script = tree.script("bin/python9", 'echo python "$@"')
    for arguments, options in (
        ((), "--records records"),
        (("ALL=1", "RECORDS=/elsewhere"), "--all --records /elsewhere"),
    ):
        for target, asked in (("gpu", "gpu"), ("memcheck", "gpu --memcheck")):
            _, told = tree.make(target, f"PYTHON={script}", *arguments)
            line = f"python -m verified_docs {asked} {options}"
            assert line in told.splitlines()


def test_a_build_that_fails_leaves_the_site_of_before(tree):
    page = '<!doctype html><html><head><meta charset="utf-8">new'
    new = f"mkdir -p .cache/site; echo '{page}' >.cache/site/index.html"
    tree.script(".venv/bin/mkdocs", f"{new}; exit 1")
    tree.script("site/index.html", "before")
    tree.script("site/gone.html", "before")
    assert tree.make("site")[0]
    assert "before" in tree.read("site/index.html")
    code, told = tree.make("check")
    assert code
    assert "the last build did not end well" in told
    tree.script(".venv/bin/mkdocs", new)
    assert tree.make("site")[0] == 0
    assert "new" in tree.read("site/index.html")
    assert not (tree.root / "site/gone.html").exists()
    tree.script(".venv/bin/python", 'echo python "$@"')
    assert "python -m verified_docs check --x" in tree.make("check", "ARGS=--x")[1]


def test_what_is_installed_is_not_installed_again(tree):
    _, told = tree.make("--dry-run", "lint", "site", "check")
    assert "mkdocs build" in told
    assert not any(word in told for word in ("pip", "npm", "venv .venv", "cp "))
