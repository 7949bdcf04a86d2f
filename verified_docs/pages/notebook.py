"""Notebook pages, executed by mkdocs-jupyter and shown like any other page.

mkdocs-jupyter runs the cells. The HTML it leaves brings half a megabyte of styles, a
script from another host, Markdown that has not met the site's extensions, and code
without badges. This MkDocs hook keeps the outputs and composes the page again from the
cells: Markdown as it stands, code as an include of the section that the cell's metadata
names, `{"snippet": "softmax/numerics.py:errors"}`. MkDocs then renders it as a page.

A builder that ignores hooks shows mkdocs-jupyter's own HTML, which the check refuses.
"""

import json
import re
import sys
from collections.abc import Container, Iterable
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, Tag
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from verified_docs.code import snippets
from verified_docs.pages import sources
from verified_docs.pages.sources import SourceError

TEXT = "text/plain"


class NotebookError(ValueError):
    """A notebook that cannot be published, with the id of the cell and the reason."""

    def __init__(self, cell: str, reason: str) -> None:
        super().__init__(f"cell {cell!r}: {reason}")
        self.cell = cell


def on_page_read_source(*, page: Page, config: MkDocsConfig) -> None:
    """MkDocs event: of a file that cannot be read, tell the line."""
    path = Path(page.file.abs_src_path or "")
    try:
        if path.suffix == ".ipynb":
            sources.notebook(path)
        elif path.is_file():
            sources.read(path)
    except SourceError as error:
        raise PluginError(str(error)) from None


def on_page_content(
    html: str, *, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """MkDocs event: replace the HTML that mkdocs-jupyter made of a notebook."""
    path = Path(page.file.abs_src_path or "")
    if path.suffix != ".ipynb":
        return html
    folder = Path(config.config_file_path).parent
    try:
        notebook = sources.notebook(path)
        shown = outputs(html)
        page.markdown = compose(notebook, folder, shown)
    except NotebookError as error:
        line = sources.line_of_cell(path, error.cell)
        raise PluginError(f"{path}:{line}: {error}") from error
    page.meta.update(notebook["metadata"].get("page", {}))
    Page.render(page, config, files)  # The instance's own method is mkdocs-jupyter's.
    return re.sub(
        placeholder(r"([\w-]+)"), lambda match: shown[match[1]], page.content or ""
    )


def placeholder(cell: str) -> str:
    """What stands in the Markdown where the output of the cell with this id belongs."""
    return f'<div class="cell-output" data-cell="{cell}"></div>'


def outputs(html: str) -> dict[str, str]:
    """The output of each code cell by its id, as HTML, from mkdocs-jupyter's page.

    Text is preformatted, HTML and SVG are as the cell displayed them; cells without
    output are left out. Raises NotebookError if a cell wrote to standard error.
    """
    found = {}
    for cell in BeautifulSoup(html, "html.parser").select(".jp-CodeCell[id]"):
        name = str(cell["id"]).removeprefix("cell-id=")
        parts = cell.select(".jp-OutputArea-output")
        for part in parts:
            if part["data-mime-type"] == "application/vnd.jupyter.stderr":
                reason = f"it wrote to standard error: {part.get_text().strip()}"
                raise NotebookError(name, reason)
        if parts:
            found[name] = f'<div class="cell-output">\n{_show(parts)}\n</div>'
    return found


def _show(parts: Iterable[Tag]) -> str:
    """Neighbouring texts in one block: a cell may print in several messages."""
    shown = []
    for text, group in groupby(parts, lambda part: part["data-mime-type"] == TEXT):
        if not text:
            shown += [part.decode_contents().strip() for part in group]
            continue
        lines = "".join(part.get_text().strip("\n") + "\n" for part in group)
        shown.append(
            '<figure class="snippet output"><figcaption><span class="snippet-name">'
            "Output, computed when this page was built</span></figcaption>"
            '<div class="highlight"><pre><code class="language-text">'
            f"{escape(lines, quote=False)}</code></pre></div></figure>"
        )
    return "\n".join(shown)


def compose(notebook: dict[str, Any], folder: Path, shown: Container[str]) -> str:
    """The Markdown of the page, with a placeholder for each output that is shown.

    Raises NotebookError where a code cell is not the section that it names.
    """
    blocks = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            blocks.append(source)
        elif cell["cell_type"] == "code":
            reference = cell["metadata"].get("snippet")
            if not reference:
                reason = 'its metadata has no "snippet", such as "softmax/safe.py:demo"'
                raise NotebookError(cell["id"], reason)
            try:
                wanted = text(folder, reference)
            except snippets.SnippetError as error:
                raise NotebookError(cell["id"], str(error)) from error
            if source.rstrip("\n") != wanted:
                reason = (
                    f"it differs from {reference}, which "
                    "python -m verified_docs.pages.notebook NOTEBOOK copies into it"
                )
                raise NotebookError(cell["id"], reason)
            blocks.append(f'```python\n--8<-- "{reference}"\n```')
            if cell["id"] in shown:
                blocks.append(placeholder(cell["id"]))
    return "\n\n".join(blocks)


def text(folder: Path, reference: str) -> str:
    """The section without its last line end, as a notebook keeps a cell."""
    return snippets.resolve(folder, reference)[1].text.rstrip("\n")


def refresh(path: Path, folder: Path) -> bool:
    """Copy each section into the cell that names it. True if the notebook changed.

    Raises OSError, SourceError and SnippetError, and then leaves the file as it was.
    """
    notebook = sources.notebook(path)
    old = path.read_text(encoding="utf-8")
    for cell in notebook["cells"]:
        if reference := cell["metadata"].get("snippet"):
            cell["source"] = text(folder, reference).splitlines(keepends=True)
    new = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    if new != old:
        path.write_text(new, encoding="utf-8")
    return new != old


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        try:
            changed = refresh(Path(argument), Path())
        except (OSError, SourceError, snippets.SnippetError) as error:
            sys.exit(str(error))
        print(f"{argument}: {'refreshed' if changed else 'already fresh'}")
