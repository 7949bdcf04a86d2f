"""The short way on the home page's map."""

from pathlib import Path

from tests.machinery.repository import Repository
from verified_docs.pages.ladder import render, way

NAV = [
    {"Home": "index.md"},
    {"One": [{"First": "one/a.md"}, {"Not a rung": "one/b.md"}, {"Last": "one/c.md"}]},
    {"Two": [{"Again <1>": "two/d.ipynb"}]},
    {"Reference": [{"Words": "words.md"}]},
]
PAGES = {
    "one/a.md": "---\nidea: begin & end\n---\n# A\n",
    "one/b.md": "# B\n",
    "one/c.md": "---\nidea: the third\n---\n",
    "two/d.ipynb": '{"cells": [], "metadata": {"page": {"idea": "it", "after": "%s"}}}',
    "words.md": "---\ndescription: no rung\n---\n",
}


def write(docs: Path, after: str) -> Path:
    pages = {name: text.replace("%s", after) for name, text in PAGES.items()}
    Repository(docs).write(pages)
    return docs


def test_the_short_way_is_made_of_what_pages_need(tmp_path):
    docs = write(tmp_path, "one/a.md")
    goal = {"one/c.md": "---\nidea: third\nneeds: [two/d.ipynb]\n---\n"}
    Repository(docs).write(goal)
    found = way(docs, NAV, "one/c.md")
    assert found == {"one/c.md": "Last", "two/d.ipynb": "Again <1>"}
    # Without `needs` a page needs the one before it, which is no rung here.
    Repository(docs).write({"one/c.md": PAGES["one/c.md"]})
    found = way(docs, NAV, "one/c.md")
    assert found == {"one/a.md": "First", "one/c.md": "Last"}
    shown = render(docs, NAV, "../", found)
    assert 'way to <a href="../one/c/">Last</a>, 2 pages.' in shown
    assert '<strong><a href="../one/a/">' in shown
    assert '<li><a href="../two/d/">' in shown
