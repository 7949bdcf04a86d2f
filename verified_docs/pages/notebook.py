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
from datetime import date
from importlib.metadata import version
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from verified_docs.code import snippets
from verified_docs.pages.errors import PageError

COMMAND = "python -m verified_docs.pages.notebook"


def read(path: Path) -> NotebookNode:
    """The notebook. Raises PageError where the file is none."""
    try:
        notebook: NotebookNode = nbformat.read(path, 4)  # type: ignore[no-untyped-call]
        nbformat.validate(notebook)
    except (ValueError, nbformat.ValidationError) as error:
        raise PageError(f"{path}: it is no notebook: {error}") from None
    return notebook


def compose(path: Path, root: Path) -> str:
    """The Markdown of the page.

    Raises PageError where a code cell is not the section that it names, or was not run.
    """
    notebook = read(path)
    name = path.relative_to(root / "docs").as_posix()
    # JSON is YAML, too.
    blocks = [f"---\n{json.dumps(notebook.metadata.get('page', {}))}\n---"]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            blocks.append(cell.source)
        elif cell.cell_type == "code":
            reference = cell.metadata.get("snippet")
            where = f"{path}: cell {cell.id!r}"
            if not reference:
                such = '"snippet", such as "softmax/safe.py:demo"'
                raise PageError(f"{where}: its metadata has no {such}")
            if cell.source != text(root, reference):
                how = f"which `{COMMAND} {path}` copies into it"
                raise PageError(f"{where}: it differs from {reference}, {how}")
            blocks.append(f'```python\n--8<-- "{reference}"\n```')
            if cell.outputs:
                blocks.append(f'```cell notebook="{name}" id="{cell.id}"\n```')
    ran(path, notebook)
    return "\n\n".join(blocks)


def output(path: Path, cell: str) -> tuple[str, dict[str, str]]:
    """What the cell printed, and the facts of that run. Raises PageError."""
    notebook = read(path)
    facts = ran(path, notebook)
    return {name: text for name, _, text in cells(notebook)}[cell], facts


def ran(path: Path, notebook: NotebookNode) -> dict[str, str]:
    """The facts of its run. Raises PageError unless that printed what it shows now."""
    facts: dict[str, str] = notebook.metadata.get("run", {})
    if facts.get("sha256") != digest(notebook):
        raise PageError(f"{path}: it changed since it ran: `{COMMAND} {path}`")
    return facts


def cells(notebook: NotebookNode) -> list[tuple[str, str, str]]:
    """Each code cell: its id, its code and what it printed. Raises PageError."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if any(part.get("name") != "stdout" for part in cell.outputs):
                raise PageError(f"cell {cell.id!r} does more than print")
            printed = "".join(part.text for part in cell.outputs)
            found.append((cell.id, cell.source, printed))
    return found


def digest(notebook: NotebookNode) -> str:
    """A hash over the code cells and what they printed."""
    return hashlib.sha256(json.dumps(cells(notebook)).encode()).hexdigest()


def text(root: Path, reference: str) -> str:
    """The section without its last line end, as a notebook keeps a cell."""
    name, _, section = reference.partition(":")
    return snippets.load(root, name).section(section).text.rstrip("\n")


def run(path: Path, root: Path) -> None:
    """Copy each section into the cell that names it, and run the notebook."""
    from nbclient import NotebookClient

    notebook = read(path)
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
