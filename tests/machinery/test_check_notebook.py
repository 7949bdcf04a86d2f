"""The check of notebook pages: what slips through in their cells."""

import json

import pytest

from tests.machinery import small_site

BOOK = "docs/part/book.ipynb"
PLUGIN = """\
hooks: [{root}/verified_docs/pages/notebook.py]
plugins:
  - mkdocs-jupyter: {{execute: false, include: ["*.ipynb"], include_requirejs: false}}
"""
# (what a Markdown cell says, where in the JSON, reason)
FAULTS = [
    ("<pre><code>x = 1</code></pre>", "x = 1", "code that is no include of a snippet"),
    ("[away](nowhere.md)", "nowhere.md", "leads to no file of the site"),
    ('<a href="#lost">x</a>', "#lost", "has no anchor 'lost'"),
    ("![](../assets/dot.png)", "dot.png", "<img> has no alt text"),
    ("<img alt='i' src='//h.example/x.png'>", "h.example", "from another host"),
    ("It takes 12 ms.", "12 ms", "typed-in measurement '12 ms'"),
    (r"<p>\(x^2\)</p>", "x^2", "mathematics did not render"),
    ("See [end:kernel].", "[end:", "directive printed literally"),
    ("```console\n$ rm -r x\n```", "rm -r", "which README does not list"),
]


def cell(kind: str, source: str, number: int, **metadata) -> dict:
    """A notebook's cell; kind is "markdown" or "code"."""
    lines = source.splitlines(keepends=True)
    found = {"cell_type": kind, "id": f"c{number}", "metadata": metadata}
    extra = {"execution_count": 1, "outputs": []} if kind == "code" else {}
    return found | extra | {"source": lines}


def write(root, texts) -> None:
    """A notebook page with a verified cell of code and these Markdown cells."""
    kernel = small_site.ONE.split("[start:kernel]\n")[1].split("\n\n\n")[0]
    shown = "\n".join(line for line in kernel.split("\n") if "--8<--" not in line)
    cells = [cell("markdown", "# Book", 0)]
    cells.append(cell("code", shown, 1, snippet="part/one.py:kernel"))
    cells += [cell("markdown", text, n) for n, text in enumerate(texts, 2)]
    spec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {
        "cells": cells,
        "metadata": {"kernelspec": spec},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (root / BOOK).write_text(json.dumps(book, indent=1, ensure_ascii=False))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    root = tmp_path_factory.mktemp("book") / "site"
    small_site.copy(small_site.sound(tmp_path_factory.getbasetemp() / "sound"), root)
    plugin = PLUGIN.format(root=small_site.ROOT)
    small_site.edit(root, "mkdocs.yml", "plugins: []\n", plugin)
    pages = "- Book: part/book.ipynb\n  - Page:"
    small_site.edit(root, "mkdocs.yml", "- Page:", pages)
    return root


def test_a_sound_notebook(site):
    write(site, ["It is *sound*: $x^2$ and [the page](page.md#the-first-rung)."])
    small_site.build(site)
    assert small_site.found(site) == []


def test_faults_in_a_notebook(site):
    write(site, [text for text, _, _ in FAULTS])
    small_site.build(site)
    found = small_site.found(site)
    assert {f.path for f in found} == {BOOK}
    told = {f.line: f.reason for f in found}
    for _, where, reason in FAULTS:
        assert reason in told[small_site.line_of(site / BOOK, where)]
    assert len(found) == len(FAULTS)


def test_a_builder_that_ignores_hooks(site):
    write(site, [])
    config = (site / "mkdocs.yml").read_text()
    hooks = config[config.index("hooks:") : config.index("plugins:")]
    small_site.edit(site, "mkdocs.yml", hooks, "")
    small_site.build(site)
    small_site.edit(site, "mkdocs.yml", "plugins:", f"{hooks}plugins:")
    found = [str(f) for f in small_site.found(site)]
    assert any(f"{BOOK}:" in f and "no include of a snippet" in f for f in found)
