"""A demo in a fork says what it says in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.machinery.repository import ROOT
from verified_docs.evidence import prepared

FILES = {
    "sound": "import torch, triton\nprint(torch.ones(2) @ torch.ones(2))",
    "who it is": "import sys; print(__name__, __file__, sys.argv[1:], sys.path[0])",
    "an import is missing": "print(torch.ones(2))",
    "of the tests": "import tests.harness",
    "of the machinery": "import evidence, prepared",
    "a neighbour": "import own; print(own.x)",
    "an error": "print('so far'); 1 / 0",
    "an exit": "import sys; sys.exit(3)",
    "a message": "import sys; sys.exit('no')",
    "nothing": "",
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_the_same_as_alone(tmp_path, monkeypatch, content: str) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    file = tmp_path / "one.py"
    file.write_text(content)
    (tmp_path / "own.py").write_text("x = 1")
    alone = subprocess.run([sys.executable, file], capture_output=True, text=True)
    found = prepared.run(ROOT, [str(file)], 60)
    assert (found.returncode, found.stdout) == (alone.returncode, alone.stdout)
    assert found.stderr.split("\n")[-2:] == alone.stderr.split("\n")[-2:]


def test_a_module_as_alone(tmp_path: Path) -> None:
    file = tmp_path / "snippets/part/one.py"
    file.parent.mkdir(parents=True)
    file.with_name("two.py").write_text("x = 1")
    file.write_text(f"from snippets.part.two import x; print(x); {FILES['who it is']}")
    command = "-m", "snippets.part.one"
    python = [sys.executable, *command]
    alone = subprocess.check_output(python, cwd=tmp_path, text=True)
    found = prepared.run(tmp_path, [*command], 60)
    assert found.stdout == alone == f"1\n__main__ {file} [] {tmp_path}\n"


def test_it_may_not_take_too_long(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text("while True: pass")
    assert prepared.run(ROOT, [str(file)], 1).returncode == -9
    file.write_text("print(1)")
    assert prepared.run(ROOT, [str(file)], 60).stdout == "1\n"
