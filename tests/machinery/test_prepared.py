"""A demo in a fork says what it says in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    (root / "part").mkdir()
    (root / "part/own.py").write_text("x = 1")
    return root


@pytest.mark.parametrize("file", FILES)
def test_the_same_as_alone(root: Path, file: str) -> None:
    (root / "part/one.py").write_text(FILES[file])
    alone = subprocess.run(
        [sys.executable, "part/one.py"], cwd=root, capture_output=True, text=True
    )
    found = prepared.run(root, "part/one.py", 60)
    assert (found.returncode, found.stdout) == (alone.returncode, alone.stdout)
    assert found.stderr.split("\n")[-2:] == alone.stderr.split("\n")[-2:]


def test_it_may_not_take_too_long(root: Path) -> None:
    (root / "part/one.py").write_text("while True: pass")
    assert prepared.run(root, "part/one.py", 1).returncode == -14
    (root / "part/one.py").write_text("print(1)")
    assert prepared.run(root, "part/one.py", 60).stdout == "1\n"
