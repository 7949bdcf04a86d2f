"""The Makefile: what its targets say where something is lacking, and what they keep."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GPU_TARGETS = ("gpu", "memcheck", "bench")
pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")


class Tree:
    """A repository with all that the targets install, and a mkdocs that is made up."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = f"{root / 'bin'}:{os.environ['PATH']}"
        shutil.copy(ROOT / "Makefile", root)
        shutil.copytree(ROOT / "verified_docs", root / "verified_docs")
        for name in ("pyproject.toml", "constraints.txt", "package.json"):
            (root / name).touch()
        (root / "package-lock.json").touch()
        for stamp in (
            ".venv/site-installed",
            "node_modules/installed",
            ".venv/test-installed",
        ):
            (root / stamp).parent.mkdir(exist_ok=True)
            (root / stamp).touch()
        self.script("docs/assets/vendor/.installed", "")
        self.script("docs/snippets.zip", "")
        self.script(".venv/bin/python", f'exec {sys.executable} "$@"')
        self.script("bin/compute-sanitizer", "echo sanitizer")

    def script(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def make(self, *arguments: str) -> tuple[int, str]:
        run = subprocess.run(
            ["make", *arguments],
            cwd=self.root,
            env={"PATH": self.path, "HOME": str(self.root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        assert "Traceback" not in run.stdout
        return run.returncode, run.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.parametrize("target", [*GPU_TARGETS, ".venv/site-installed"])
def test_a_python_that_is_too_old(tree: Tree, target: str) -> None:
    (tree.root / ".venv/site-installed").unlink()
    old = tree.root / "old.py"
    old.write_text(
        "import runpy, sys\nsys.path[0] = '.'\nsys.version_info = (3, 9, 18)\n"
        "sys.argv = sys.argv[2:]\nrunpy.run_module(sys.argv[0], run_name='__main__')\n"
    )
    code, told = tree.make(target, f"PYTHON={sys.executable} {old}")
    assert code
    assert "is Python 3.9; it must be 3.11 or newer" in told
    assert not (tree.root / ".venv/site-installed").exists()


@pytest.mark.parametrize("target", GPU_TARGETS)
def test_a_python_without_packages(tree: Tree, target: str) -> None:
    code, told = tree.make(target, f"PYTHON={sys.executable} -S")
    assert code
    assert f"make {target}: {sys.executable} lacks torch, triton" in told


@pytest.mark.parametrize("target", GPU_TARGETS)
def test_a_machine_without_a_gpu(tree: Tree, target: str) -> None:
    tree.script("torch.py", "").write_text(
        "class cuda:\n    is_available = staticmethod(lambda: False)\n"
    )
    for name in ("triton", "numpy", "pytest", "hypothesis"):
        (tree.root / f"{name}.py").touch()
    code, told = tree.make(target, f"PYTHON={sys.executable}")
    assert code
    assert "sees no GPU here; nothing was run, and no record was touched" in told


def test_a_machine_without_compute_sanitizer(tree: Tree) -> None:
    (tree.root / "bin/compute-sanitizer").unlink()
    tree.path = f"{tree.root / 'bin'}:/usr/bin:/bin"
    if shutil.which("compute-sanitizer", path=tree.path):
        pytest.skip("it is here")
    code, told = tree.make("memcheck")
    assert code
    assert "make memcheck: compute-sanitizer is not on the path" in told


@pytest.mark.parametrize("target", GPU_TARGETS)
def test_a_gpu_is_used_with_the_python_of_the_machine(tree: Tree, target: str) -> None:
    tree.script("bin/python3", "echo that of the machine; exit 1")
    tree.script(".venv/bin/python3", "echo that of .venv; exit 1")
    assert "that of the machine" in tree.make(target)[1]


def test_what_is_asked_of_the_gpu(tree: Tree) -> None:
    script = tree.script("bin/python9", 'echo python "$@"')
    said = [
        tree.make("gpu", f"PYTHON={script}", *arguments)[1].splitlines()[-1]
        for arguments in ((), ("ALL=1", "RECORDS=/elsewhere"))
    ]
    assert said == [
        "python -m verified_docs gpu --records records",
        "python -m verified_docs gpu --all --records /elsewhere",
    ]


def test_a_port_that_is_taken(tree: Tree) -> None:
    tree.script(".venv/bin/mkdocs", 'echo mkdocs "$@"')
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        code, told = tree.make("serve", f"ADDRESS={address}")
        assert code
        assert f"make serve: cannot serve at {address}" in told
        assert "ADDRESS=" in told
    code, told = tree.make("serve", f"ADDRESS={address}")
    assert code == 0
    assert f"mkdocs serve --dirty --livereload --dev-addr {address}" in told


def test_a_build_that_fails_leaves_the_site_of_before(tree: Tree) -> None:
    new = "mkdir -p .cache/site; echo new >.cache/site/index.html"
    tree.script(".venv/bin/mkdocs", f"{new}; exit 1")
    tree.script("site/index.html", "before")
    tree.script("site/gone.html", "before")
    assert tree.make("site")[0]
    assert "before" in (tree.root / "site/index.html").read_text()
    code, told = tree.make("check")
    assert code
    assert "the last build did not end well" in told
    tree.script(".venv/bin/mkdocs", new)
    assert tree.make("site")[0] == 0
    assert (tree.root / "site/index.html").read_text() == "new\n"
    assert not (tree.root / "site/gone.html").exists()
    tree.script(".venv/bin/python", 'echo python "$@"')
    assert "python -m verified_docs check --x" in tree.make("check", "ARGS=--x")[1]


def test_what_is_installed_is_not_installed_again(tree: Tree) -> None:
    _, told = tree.make("--dry-run", "lint", "site", "check", "status")
    assert "mkdocs build" in told
    assert not any(word in told for word in ("pip", "npm", "venv .venv", "cp "))


def test_npm_says_why_it_fails(tree: Tree) -> None:
    os.utime(tree.root / "node_modules/installed", (0, 0))
    tree.script(".venv/bin/npm", 'echo "npm $@"; exit 1')
    code, told = tree.make("site")
    assert code
    assert "npm ci --loglevel=error" in told


def test_help_names_every_target(tree: Tree) -> None:
    targets = [
        line.split(":")[0]
        for line in (ROOT / "Makefile").read_text().split("\n")
        if "  ## " in line
    ]
    _, told = tree.make("help")
    assert [line.split()[0] for line in told.strip().split("\n")] == targets
