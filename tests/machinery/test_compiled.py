"""What is known to compile: of the files and the Triton as they are, and no other."""

import json

from tests.compile import compiled
from verified_docs import layout

ONLINE, OTHER = "softmax/online.py", "softmax/three_pass.py"
BESIDE = "snippets/softmax/x.py", "tests/compile/compiler.py", "benchmarks/calls.py"


def test_what_is_known_until_a_file_or_triton_is_another(repository, monkeypatch):
    root, imports = repository.root, "from snippets.softmax import x"
    repository.write(dict.fromkeys(BESIDE, ""))
    repository.edit(layout.snippet_file(ONLINE), "import math", imports)
    compiled.note(root, ONLINE)
    assert not compiled.known(root, OTHER)
    for file in BESIDE:
        assert compiled.known(root, ONLINE)
        repository.write({file: "# changed\n"})
        assert not compiled.known(root, ONLINE)
        repository.write({file: ""})
    # What is no snippet any more goes.
    (root / layout.snippet_file(ONLINE)).unlink()
    compiled.note(root, OTHER)
    ((_, names),) = json.loads(repository.read(layout.COMPILED)).items()
    assert list(names) == [OTHER]
    monkeypatch.setattr(compiled, "VERSION", "triton 0")
    assert not compiled.known(root, OTHER)
    compiled.note(root, OTHER)
    assert list(json.loads(repository.read(layout.COMPILED))) == ["triton 0"]
