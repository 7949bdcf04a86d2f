"""What is known to compile: of the files and the Triton as they are, and no other."""

import json

import pytest

from tests.compile import compiled
from verified_docs import layout

ONLINE, OTHER = "softmax/online.py", "softmax/three_pass.py"
JUDGE, CALLS = "tests/compile/compiler.py", "benchmarks/calls.py"


@pytest.fixture
def noted(repository):
    """A repository in which a snippet that imports another has compiled."""
    repository.write({JUDGE: "", CALLS: ""})
    repository.edit(
        "snippets/softmax/online.py", "import math", "from snippets.softmax import x"
    )
    repository.snippet("softmax/x.py", "")
    compiled.note(repository.root, ONLINE)
    assert compiled.known(repository.root, ONLINE)
    assert not compiled.known(repository.root, OTHER)
    return repository


@pytest.mark.parametrize("file", ["snippets/softmax/x.py", JUDGE, CALLS])
def test_a_changed_file_may_not_compile(noted, file):
    noted.write({file: "# changed\n"})
    assert not compiled.known(noted.root, ONLINE)


def test_what_is_no_snippet_any_more_and_another_triton_go(noted, monkeypatch):
    (noted.root / layout.snippet_file(ONLINE)).rename(noted.root / "moved.py")
    compiled.note(noted.root, OTHER)
    ((_, names),) = json.loads(noted.read(layout.COMPILED)).items()
    assert list(names) == [OTHER]
    monkeypatch.setattr(compiled, "VERSION", "triton 0")
    assert not compiled.known(noted.root, OTHER)
    compiled.note(noted.root, OTHER)
    assert list(json.loads(noted.read(layout.COMPILED))) == ["triton 0"]
