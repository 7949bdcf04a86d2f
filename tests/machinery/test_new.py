"""`make new`: the files of a rung, green at once."""

from pathlib import Path

import pytest

from tests.machinery.repository import Repository
from verified_docs.new import NewError, lay_out

CONFIG = """\
nav:
  - Home: index.md
  # The first part.
  - One:
      - Old: one/old.md
      - Notebook: one/late.ipynb
  - Two: [two/other.md]
"""
SNIPPET = """\
'''What old does.'''

# --8<-- [start:kernel]
def older(x): ...
# --8<-- [end:kernel]
"""
TEST = """from snippets.one import old
from tests.snippets.one import suite

class TestOld:
    pass
"""
SHOWN = """\
```svg
diagrams/one/old.svg
```

```python
--8<-- "one/old.py:kernel"
```
"""
MUTANTS = '"""Bugs that the tests of snippets/one/old.py must catch."""\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    repository = Repository(tmp_path, "one")
    repository.snippet("one/old.py", SNIPPET, TEST)
    more = {"tests/mutants/one/old.py": MUTANTS, "docs/one/old.md": SHOWN}
    repository.write({"mkdocs.yml": CONFIG, **more})
    return tmp_path


def test_a_rung_begins_as_a_copy(root):
    line = "      - Brand new: one/brand-new.md\n"
    wanted = {
        "snippets/one/brand_new.py": ["What brand_new does", "def older"],
        "tests/snippets/one/test_brand_new.py": [
            "from snippets.one import brand_new",
            "class TestBrandNew:",
        ],
        "tests/mutants/one/brand_new.py": ["snippets/one/brand_new.py"],
        "docs/one/brand-new.md": [
            '--8<-- "one/brand_new.py"',
            "```svg\ndiagrams/one/old.svg\n```\n\n## The kernel",
        ],
        "mkdocs.yml": [CONFIG.replace("late.ipynb\n", f"late.ipynb\n{line}")],
    }
    assert lay_out(root, "one/brand_new", "old") == [*wanted]
    for file, texts in wanted.items():
        assert all(text in (root / file).read_text() for text in texts)


@pytest.mark.parametrize(
    ("rung", "origin", "reason"),
    [
        ("one/old", "old", "snippets/one/old.py is there already"),
        ("one/new", "gone", "snippets/one/gone.py is not there"),
        ("two/new", "old", "snippets/two/old.py is not there"),
        ("../new", "old", "is no name"),
        ("", "", "is no name"),
    ],
)
def test_nothing_is_written_where_something_is_wrong(root, rung, origin, reason):
    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
    with pytest.raises(NewError, match=reason):
        lay_out(root, rung, origin)
    assert {p: p.read_bytes() for p in root.rglob("*") if p.is_file()} == before


def test_a_rung_may_begin_a_part(root):
    lay_out(root, "fresh/new", "one/old")
    test = (root / "tests/snippets/fresh/test_new.py").read_text()
    assert "from snippets.fresh import new" in test
    assert "from tests.snippets.one import suite" in test
    added = "late.ipynb\n      - New: fresh/new.md\n"
    config = (root / "mkdocs.yml").read_text()
    assert config == CONFIG.replace("late.ipynb\n", added)
