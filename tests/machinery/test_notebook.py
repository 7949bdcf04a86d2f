"""Notebook pages: executed, composed from sections, refused where they differ."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from verified_docs.pages import notebook

ROOT = Path(__file__).resolve().parents[2]
SNIPPET = """\
# --8<-- [start:one]
value = 6 * 7
# --8<-- [end:one]

# --8<-- [start:two]
print(f"<{value}>", flush=True)
print("second")
# --8<-- [end:two]

# --8<-- [start:three]
class Plot:
    def _repr_html_(self):
        return "<p class='plot'>drawn</p>"


Plot()
# --8<-- [end:three]
"""
CONFIG = """\
site_name: a small site
theme: {{name: material, font: false}}
hooks: [{root}/verified_docs/pages/notebook.py]
plugins:
  - mkdocs-jupyter:
      {{execute: true, allow_errors: false, cache: false, include: ["*.ipynb"]}}
markdown_extensions:
  - md_in_html
  - pymdownx.superfences
  - pymdownx.snippets: {{base_path: ["{site}/snippets"], dedent_subsections: true}}
"""


def code(name: str, source: str = "") -> dict:
    metadata = {"snippet": f"part/file.py:{name}"} if name else {}
    return {
        "cell_type": "code",
        "id": f"cell-{name or 'none'}",
        "metadata": metadata,
        "execution_count": None,
        "outputs": [],
        "source": source,
    }


def prose(source: str) -> dict:
    return {"cell_type": "markdown", "id": "prose", "metadata": {}, "source": source}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of one notebook page, whose cells are fresh."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "snippets/part").mkdir(parents=True)
    (tmp_path / "snippets/part/file.py").write_text(SNIPPET)
    (tmp_path / "mkdocs.yml").write_text(CONFIG.format(root=ROOT, site=tmp_path))
    (tmp_path / "docs/index.md").write_text("# Home\n\n[There](page.ipynb#more)\n")
    cells = [prose("# A page\n\n[Home](index.md)"), code("one"), code("two")]
    write(tmp_path, [*cells, prose("## More") | {"id": "more"}, code("three")])
    notebook.refresh(tmp_path / "docs/page.ipynb", tmp_path)
    return tmp_path


def write(site: Path, cells: list[dict]) -> None:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "page": {"description": "told"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (site / "docs/page.ipynb").write_text(json.dumps(content))


def build(site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=site,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_executed_page_is_like_any_other(site: Path) -> None:
    result = build(site)
    assert result.returncode == 0, result.stderr
    page = (site / "site/page/index.html").read_text()
    assert ">&lt;42&gt;\nsecond\n</code>" in page
    assert '<p class="plot">drawn</p>' in page
    assert 'href=".."' in page or 'href="../"' in page
    assert 'content="told"' in page
    assert "jp-" not in page
    assert "cdnjs" not in page
    assert "data-cell" not in page
    order = [page.index(text) for text in ("6", "&lt;42&gt;", 'id="more"', "drawn")]
    assert order == sorted(order)


def test_broken_link_in_a_notebook_fails_the_build(site: Path) -> None:
    cells = [prose("# A page\n\n[Nowhere](nowhere.md)"), prose("## More")]
    cells[1]["id"] = "more"
    write(site, cells)
    result = build(site)
    assert result.returncode != 0
    assert "nowhere.md" in result.stderr


def test_cell_that_fails_fails_the_build(site: Path) -> None:
    failing = SNIPPET.replace("6 * 7", "1 // 0")
    (site / "snippets/part/file.py").write_text(failing)
    notebook.refresh(site / "docs/page.ipynb", site)
    result = build(site)
    assert result.returncode != 0
    assert "ZeroDivisionError" in result.stderr


def test_cell_that_differs_from_its_section_fails_the_build(site: Path) -> None:
    snippet = site / "snippets/part/file.py"
    snippet.write_text(SNIPPET.replace("6 * 7", "7 * 6"))
    result = build(site)
    assert result.returncode != 0
    assert "cell 'cell-one': it differs from part/file.py:one" in result.stderr
    assert notebook.refresh(site / "docs/page.ipynb", site)
    assert not notebook.refresh(site / "docs/page.ipynb", site)
    assert build(site).returncode == 0


def test_cell_without_a_snippet_is_refused(site: Path) -> None:
    cells = {"cells": [code("", "1 + 1")]}
    with pytest.raises(notebook.NotebookError, match=r"cell-none.*snippet"):
        notebook.compose(cells, site, {})


def test_standard_error_is_refused() -> None:
    html = (
        '<div class="jp-CodeCell" id="cell-id=a"><div class="jp-OutputArea-output" '
        'data-mime-type="application/vnd.jupyter.stderr"><pre>careful</pre></div></div>'
    )
    with pytest.raises(notebook.NotebookError, match=r"'a'.*careful"):
        notebook.outputs(html)


def test_published_notebooks_are_fresh() -> None:
    for path in (ROOT / "docs").rglob("*.ipynb"):
        content = json.loads(path.read_text(encoding="utf-8"))
        for cell in content["cells"]:
            assert not cell.get("outputs"), f"{path}: stored outputs; clear them"
        assert notebook.compose(content, ROOT, {})


BROKEN = {
    "cut short": (lambda text: text[: len(text) // 2], r"page.ipynb:\d+: not JSON"),
    "no id": (lambda text: text.replace('"id": "cell-one",', ""), "1: cell 2 has no"),
    "no cells": (lambda text: "[]", "page.ipynb:1: it is no notebook"),
    "bytes": (
        lambda text: text.replace("A page", "\udcf6"),
        "7: the file is not UTF-8",
    ),
    "section": (lambda text: text.replace(":one", ":gone"), r"'cell-one': .*'gone'"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_notebook_is_named_without_a_traceback(site: Path, fault: str) -> None:
    path = site / "docs/page.ipynb"
    change, reason = BROKEN[fault]
    broken = change(path.read_text("utf-8")).encode("utf-8", "surrogateescape")
    path.write_bytes(broken)
    result = build(site)
    assert result.returncode != 0
    assert re.search(reason, result.stderr)
    assert "Traceback" not in result.stderr
    told = copy(site, "docs/page.ipynb")
    assert told.returncode == 1
    assert "Traceback" not in told.stderr
    assert "page.ipynb" in told.stderr or fault == "section"
    assert path.read_bytes() == broken


def test_a_notebook_that_is_not_there(site: Path) -> None:
    told = copy(site, "docs/gone.ipynb")
    assert told.returncode == 1
    assert "docs/gone.ipynb" in told.stderr
    assert "Traceback" not in told.stderr


def copy(site: Path, name: str) -> subprocess.CompletedProcess[str]:
    """The command that copies sections into cells."""
    return subprocess.run(
        [sys.executable, "-m", "verified_docs.pages.notebook", name],
        cwd=site,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
