"""Notebook pages: composed from sections, shown as they last ran, refused if stale."""

import json
import re
import shutil
import sys
import tomllib

import pytest
from nbformat import NotebookNode, v4

from tests.machinery.repository import ROOT, Repository
from tests.machinery.small_site import SmallSite
from verified_docs import layout
from verified_docs.code.sections import SnippetError
from verified_docs.pages import notebook
from verified_docs.pages.errors import PageError

SNIPPET = """\
# --8<-- [start:one]
value = 6 * 7
# --8<-- [end:one]

# --8<-- [start:two]
print(f"<{value}>", flush=True)
print("second")
# --8<-- [end:two]
"""
JUPYTER = f"""plugins:
  - mkdocs-jupyter: {{execute: false, cache: false, include: ["*.ipynb"]}}
hooks: [{ROOT}/verified_docs/pages/hooks.py]
"""
PAGE, FILE = "docs/page.ipynb", "snippets/part/file.py"


def code(name: str) -> NotebookNode:
    snippet = {"snippet": f"part/file.py:{name}"}
    return v4.new_code_cell(id=f"cell-{name}", metadata=snippet)


START = v4.new_markdown_cell("# A page\n\n[Home](index.md)")
END = v4.new_markdown_cell("## More")
KERNEL = {"display_name": "", "language": "", "name": "python3"}
NOTEBOOK = v4.new_notebook(
    cells=[START, code("one"), code("two"), END],
    metadata={"kernelspec": KERNEL, "page": {"description": "told"}},
)
FILES = {PAGE: json.dumps(NOTEBOOK), FILE: SNIPPET}


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A notebook that has run."""
    site = Repository(tmp_path_factory.mktemp("site"))
    site.write(FILES)
    notebook.run(site.root / PAGE, site.root)
    return site.read(PAGE)


@pytest.fixture
def site(site: SmallSite, ran: str) -> SmallSite:
    """A site with a notebook page."""
    site.write({**FILES, PAGE: ran})
    site.edit("mkdocs.yml", "plugins: [search]\n", JUPYTER)
    return site


def test_a_notebook_is_a_page_like_any_other(site, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # Nothing runs.
    site.build()
    page = site.read("site/page/index.html")
    assert ">&lt;42&gt;\nsecond\n</code>" in page
    assert re.search(r"Output, with PyTorch \S+ on a CPU, \d", page)
    assert 'href=".."' in page or 'href="../"' in page
    assert 'content="told"' in page
    assert "jp-" not in page
    order = [page.index(text) for text in ("6", "&lt;42&gt;", 'id="more"')]
    assert order == sorted(order)


# Edits of files, and why the notebook is refused then.
BROKEN = [
    ([PAGE], '"nbformat_minor": 5\n}', "", "page.ipynb: it is no notebook: .*JSON"),
    ([PAGE], '"cells"', '"rows"', "page.ipynb: it is no notebook"),
    ([PAGE], ":one", ":gone", "there is no section 'gone'"),
    ([PAGE], '"snippet"', '"x"', "'cell-one': its metadata has no"),
    ([FILE], "6 * 7", "7 * 6", "'cell-one': it differs from part/file"),
    ([PAGE, FILE], "6 * 7", "7 * 6", "it changed since it ran"),
    ([PAGE], "<42>", "<43>", "it changed since it ran"),
    ([PAGE], '"stdout"', '"stderr"', "'cell-two' does more than print"),
]


@pytest.mark.parametrize(("files", "old", "new", "reason"), BROKEN)
def test_a_broken_notebook_is_refused(site, files, old, new, reason):
    for name in files:
        site.edit(name, old, new)
    with pytest.raises((PageError, SnippetError), match=reason):
        notebook.compose(site.root / PAGE, site.root)


DOWNLOADED = sorted((ROOT / layout.NOTEBOOKS).glob("*.ipynb"))


@pytest.mark.parametrize("path", DOWNLOADED, ids=lambda path: path.stem)
def test_a_notebook_to_download_runs_without_a_gpu(path, tmp_path, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    shutil.copy(path, tmp_path)
    notebook.run(tmp_path / path.name, ROOT)
    files = path, tmp_path / path.name
    there, again = map(notebook.read, files)
    assert there.metadata["run"]["sha256"] == notebook.digest(there)
    sources, wanted = ([c.source for c in n.cells] for n in (there, again))
    assert sources == wanted
    # The first cell sets up. All others are files, and their demos print.
    start, *files = [c for c in again["cells"] if c["cell_type"] == "code"]
    for cell in files:
        assert cell["metadata"]["snippet"]
        assert "largest error" in cell["outputs"][0]["text"]
    pinned = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    kernels = " ".join(pinned["optional-dependencies"]["kernels"])
    [package] = re.findall(r"pip install .*?(\S+==\S+)", "".join(start["source"]))
    assert package in kernels
    assert (ROOT / "docs" / layout.NOTEBOOKS / path.name).samefile(path)
