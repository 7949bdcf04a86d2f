"""MkDocs hooks: evidence, the Markdown of notebooks, what `make serve` makes anew."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import CombinedEvent, event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from verified_docs.evidence.status import Evidence
from verified_docs.pages import notebook

EXTENSION = "verified_docs.pages.markdown"
# What the search leaves out, if it holds no other element of its kind: its start tag,
# and all up to its end tag.
UNSEARCHED = re.compile(
    r"(<([\w-]+)[^<>]* data-search-exclude[^<>]*>)(?:(?!<\2).)*?(</\2>)", re.DOTALL
)
# To the search, `tl.program_id` is one word, which nobody finds by its second half.
NAME = re.compile(r"(?<=<code>)[tg]l\.(\w+)")


def on_pre_build(*, config: MkDocsConfig) -> None:
    """MkDocs event: what is known of the snippets is read once for all pages."""
    options = config.mdx_configs[EXTENSION]
    root = Path(config.config_file_path).parent
    options["evidence"] = Evidence(root, options.get("gpu", ""))


def on_page_read_source(*, page: Page, config: MkDocsConfig) -> str | None:
    """MkDocs event: the text of a page, if it is a notebook."""
    path = Path(page.file.abs_src_path or "")
    if path.suffix != ".ipynb":
        return None
    # mkdocs-jupyter's own way, whose HTML has met none of the site's extensions.
    page.__dict__.pop("render", None)
    try:
        return notebook.compose(path, Path(config.config_file_path).parent)
    except ValueError as error:
        raise PluginError(str(error)) from error


def on_files(files: Files, *, config: MkDocsConfig) -> None:
    """MkDocs event: with --dirty, MkDocs builds the pages whose Markdown is newer.

    A page older than a snippet or a record is built again as well.
    """
    root = Path(config.config_file_path).parent
    inputs = [*root.glob("snippets/**/*.py"), *root.glob("records/*/*.json")]
    newest = max((path.stat().st_mtime for path in inputs), default=0)
    for file in files.documentation_pages():
        built = Path(file.abs_dest_path)
        if built.is_file() and built.stat().st_mtime < newest:
            built.unlink()


def searched(html: str) -> str:
    """The page as the search is to read it: code, formulas and numbers are empty.

    What a sentence calls `tl.program_id` is called `program_id`, too.

    The search plugin reads whatever it then leaves out tag by tag, which took a third
    of the time of a build.
    """
    return NAME.sub(r"\1 \g<0>", UNSEARCHED.sub(r"\1\3", html))


@event_priority(100)
def _before_search(context: dict[str, Any], /, *, page: Page, **_: Any) -> None:
    context["whole"] = page.content
    page.content = searched(page.content or "")


@event_priority(-100)
def _after_search(context: dict[str, Any], /, *, page: Page, **_: Any) -> None:
    page.content = context.pop("whole")


on_page_context = CombinedEvent(_before_search, _after_search)
