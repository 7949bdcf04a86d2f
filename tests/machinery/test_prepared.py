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
    "an error": "print('so far'); 1 / 0",
    "a message": "import sys; sys.exit('no')",
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_the_same_as_alone(tmp_path, monkeypatch, content: str) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    file = tmp_path / "one.py"
    file.write_text(content)
    alone = subprocess.run([sys.executable, file], capture_output=True, text=True)
    found = prepared.run(ROOT, [str(file)], 60)
    assert (found.returncode, found.stdout) == (alone.returncode, alone.stdout)
    assert found.stderr.split("\n")[-2:] == alone.stderr.split("\n")[-2:]


def test_it_may_not_take_too_long(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text("while True: pass")
    assert prepared.run(ROOT, [str(file)], 1).returncode == -9
    file.write_text("print(1)")
    assert prepared.run(ROOT, [str(file)], 60).stdout == "1\n"
