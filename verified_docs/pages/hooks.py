"""A MkDocs hook: mkdocs-jupyter makes a notebook a page, and here is its Markdown."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

from verified_docs.code.snippets import SnippetError
from verified_docs.pages import notebook
from verified_docs.pages.sources import SourceError


def on_page_read_source(*, page: Page, config: MkDocsConfig) -> str | None:
    """MkDocs event: the text of a page, if it is a notebook."""
    path = Path(page.file.abs_src_path or "")
    if path.suffix != ".ipynb":
        return None
    # mkdocs-jupyter's own way, whose HTML has met none of the site's extensions.
    page.__dict__.pop("render", None)
    try:
        return notebook.compose(path, Path(config.config_file_path).parent)
    except (notebook.NotebookError, SourceError, SnippetError) as error:
        raise PluginError(str(error)) from error
