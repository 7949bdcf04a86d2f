"""Notebook pages: cells are sections of snippets, outputs are those of the last run.

The Markdown of such a page is its text as it stands, its code as an include of the
section that the cell's metadata names, `{"snippet": "softmax/numerics.py:errors"}`, and
what the cell printed as a fence. So it is rendered like any other page, and building
it runs nothing.

`python -m verified_docs.pages.notebook NOTEBOOK` copies the sections into the cells,
runs them, and stores what they print with a hash over both.
"""

import hashlib
import json
import platform
import sys
from collections.abc import Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from verified_docs.code import snippets
from verified_docs.pages import sources
from verified_docs.pages.errors import PageError

COMMAND = "python -m verified_docs.pages.notebook"


def compose(path: Path, root: Path) -> str:
    """The Markdown of the page.

    Raises PageError where a code cell is not the section that it names.
    """
    notebook = sources.notebook(path)
    name = path.relative_to(root / "docs").as_posix()
    # JSON is YAML, too.
    blocks = [f"---\n{json.dumps(notebook['metadata'].get('page', {}))}\n---"]
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            blocks.append(source)
        elif cell["cell_type"] == "code":
            reference = cell["metadata"].get("snippet")
            where = f"{path}: cell {cell['id']!r}"
            if not reference:
                such = '"snippet", such as "softmax/safe.py:demo"'
                raise PageError(f"{where}: its metadata has no {such}")
            if source != text(root, reference):
                how = f"which `{COMMAND} {path}` copies into it"
                raise PageError(f"{where}: it differs from {reference}, {how}")
            blocks.append(f'```python\n--8<-- "{reference}"\n```')
            if cell["outputs"]:
                blocks.append(f'```cell notebook="{name}" id="{cell["id"]}"\n```')
    return "\n\n".join(blocks)


def output(path: Path, cell: str) -> tuple[str, dict[str, str]]:
    """What the cell printed, and the facts of that run.

    Raises PageError unless the outputs are those of the cells as they are now.
    """
    notebook = sources.notebook(path)
    run = notebook["metadata"].get("run", {})
    printed = {name: text for name, _, text in cells(notebook)}
    if run.get("sha256") != digest(notebook):
        raise PageError(f"{path}: it changed since it ran: `{COMMAND} {path}`")
    if cell not in printed:
        raise PageError(f"{path}: there is no code cell {cell!r}")
    return printed[cell], run


def cells(notebook: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Each code cell: its id, its code and what it printed. Raises PageError."""
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        for part in cell["outputs"]:
            if (part["output_type"], part.get("name")) != ("stream", "stdout"):
                raise PageError(f"cell {cell['id']!r} does more than print: {part}")
        printed = "".join("".join(part["text"]) for part in cell["outputs"])
        yield cell["id"], "".join(cell["source"]), printed


def digest(notebook: dict[str, Any]) -> str:
    """A hash over the code cells and what they printed."""
    return hashlib.sha256(json.dumps(list(cells(notebook))).encode()).hexdigest()


def text(root: Path, reference: str) -> str:
    """The section without its last line end, as a notebook keeps a cell."""
    return snippets.resolve(root, reference)[1].text.rstrip("\n")


def run(path: Path, root: Path) -> None:
    """Copy each section into the cell that names it, and run the notebook."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        if reference := cell.metadata.get("snippet"):
            cell.source = text(root, reference)
    NotebookClient(notebook, record_timing=False, coalesce_streams=True).execute()
    notebook.metadata["run"] = {
        "date": str(date.today()),
        "python": platform.python_version(),
        "torch": version("torch"),
        "sha256": digest(notebook),
    }
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        run(Path(argument), Path())
