"""Notebook pages: composed from sections, shown as they last ran, refused if stale."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from verified_docs.pages import notebook
from verified_docs.pages.notebook import NotebookError

ROOT = Path(__file__).resolve().parents[2]
SNIPPET = """\
# --8<-- [start:one]
value = 6 * 7
# --8<-- [end:one]

# --8<-- [start:two]
print(f"<{value}>", flush=True)
print("second")
# --8<-- [end:two]
"""
CONFIG = """\
site_name: a small site
theme: {{name: material, font: false}}
hooks: [{root}/verified_docs/pages/hooks.py]
plugins:
  - mkdocs-jupyter: {{execute: false, cache: false, include: ["*.ipynb"]}}
markdown_extensions:
  - md_in_html
  - verified_docs.pages.markdown: {{root: {site}}}
"""


def code(name: str) -> dict:
    return {
        "cell_type": "code",
        "id": f"cell-{name}",
        "metadata": {"snippet": f"part/file.py:{name}"},
        "execution_count": None,
        "outputs": [],
        "source": "",
    }


def prose(source: str, name: str = "prose") -> dict:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of one notebook page, which has run."""
    site = tmp_path_factory.mktemp("site")
    (site / "docs").mkdir()
    (site / "snippets/part").mkdir(parents=True)
    (site / "tests/snippets/part").mkdir(parents=True)
    (site / "snippets/part/file.py").write_text(SNIPPET)
    (site / "mkdocs.yml").write_text(CONFIG.format(root=ROOT, site=site))
    (site / "docs/index.md").write_text("# Home\n\n[There](page.ipynb#more)\n")
    content = {
        "cells": [
            prose("# A page\n\n[Home](index.md)"),
            code("one"),
            code("two"),
            prose("## More", "more"),
        ],
        "metadata": {
            "kernelspec": {"display_name": "", "language": "", "name": "python3"},
            "page": {"description": "told"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (site / "docs/page.ipynb").write_text(json.dumps(content))
    notebook.run(site / "docs/page.ipynb", site)
    return site


@pytest.fixture
def path(ran: Path) -> Path:
    """The notebook of the site, which is put back after a test."""
    path = ran / "docs/page.ipynb"
    before = path.read_bytes()
    yield path
    path.write_bytes(before)
    (ran / "snippets/part/file.py").write_text(SNIPPET)


def build(site: Path) -> subprocess.CompletedProcess[str]:
    """Without torch: nothing runs."""
    (site / "torch.py").write_text("raise ImportError('torch is not needed')\n")
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=site,
        env=os.environ | {"PYTHONPATH": f"{site}:{ROOT}", "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_notebook_is_a_page_like_any_other(path):
    result = build(path.parents[1])
    assert result.returncode == 0, result.stderr
    page = (path.parents[1] / "site/page/index.html").read_text()
    assert ">&lt;42&gt;\nsecond\n</code>" in page
    assert 'href=".."' in page or 'href="../"' in page
    assert 'content="told"' in page
    assert "jp-" not in page
    order = [page.index(text) for text in ("6", "&lt;42&gt;", 'id="more"')]
    assert order == sorted(order)


def test_what_ran_is_copied_and_stamped(path):
    printed, facts = notebook.output(path, "cell-two")
    assert printed == "<42>\nsecond\n"
    assert {"date", "python", "torch", "sha256"} == facts.keys()


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_bytes(text.replace(old, new).encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(("old", "new"), [("<42>", "<43>"), ("6 * 7", "6 * 8")])
def test_an_output_of_other_cells_is_refused(path, old, new):
    edited(path, old, new)
    with pytest.raises(NotebookError, match="it changed since it ran"):
        notebook.output(path, "cell-two")


def test_a_cell_that_is_not_its_section_is_refused(path):
    edited(path.parents[1] / "snippets/part/file.py", "6 * 7", "7 * 6")
    with pytest.raises(NotebookError, match="'cell-one': it differs from part/file"):
        notebook.compose(path, path.parents[1])


@pytest.mark.parametrize("name", ["stderr", "display"])
def test_only_what_is_printed_is_shown(path, name):
    edited(path, '"name": "stdout"', f'"name": "{name}"')
    with pytest.raises(NotebookError, match="'cell-two' does more than print"):
        notebook.output(path, "cell-two")


BROKEN = {
    "cut short": ('"nbformat_minor": 5\n}', "", r"page.ipynb:\d+: not JSON"),
    "no id": ('"id": "cell-one",', "", "1: cell 2 has no"),
    "no cells": ('"cells"', '"rows"', "page.ipynb:1: it is no notebook"),
    "bytes": ("A page", "\udcf6", "8: the file is not UTF-8"),
    "section": (":one", ":gone", "there is no section 'gone'"),
    "snippet": ('"snippet"', '"x"', "'cell-one': its metadata has no"),
    "link": ("(index.md)", "(gone.md)", "gone.md"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_notebook_stops_the_build(path, fault):
    old, new, reason = BROKEN[fault]
    edited(path, old, new)
    result = build(path.parents[1])
    assert result.returncode != 0
    assert re.search(reason, result.stderr)
    assert "Traceback" not in result.stderr


def test_published_notebooks_are_fresh():
    for path in (ROOT / "docs").rglob("*.ipynb"):
        content = json.loads(path.read_text(encoding="utf-8"))
        assert content["metadata"]["run"]["sha256"] == notebook.digest(content)
        assert notebook.compose(path, ROOT)
