"""`python -m verified_docs pages`: which pages a snippet is on."""

import pytest

from verified_docs.__main__ import main

PAGES = {
    "docs/part/page.md": '```python\n--8<-- "softmax/online.py:x"\n```\n',
    "docs/diff.md": '```diff from="softmax/online.py" to="softmax/three_pass.py"\n',
    "docs/book.ipynb": r'"source": ["--8<-- \"softmax/three_pass.py:x\""]',
    "docs/help.md": 'Write `{"snippet": "softmax/none.py:x"}`.\n',
    "docs/cell.ipynb": '{"snippet": "softmax/three_pass.py:x"}\n',
}
ON_PAGES = {
    "none": "none\n",
    "online": "diff or part/page\n",
    "three_pass": "book or cell or diff\n",
}


@pytest.mark.parametrize("name", ON_PAGES)
def test_the_pages_of_a_snippet(repository, capsys, name):
    repository.write(PAGES)
    command = ["--root", str(repository.root), "pages", f"softmax/{name}.py"]
    assert main(command) == 0
    assert capsys.readouterr().out == ON_PAGES[name]
