"""What a page was made from, written into the page itself.

What the machinery makes carries, in `data-made`, the text that it was made from: a
fence or a directive. At the end of the page stands the hash of its source. The check
makes the one again and computes the other, so neither can be old, nor typed by hand.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from html import escape

from markdown import Markdown
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor

from verified_docs import layout
from verified_docs.pages import badges, blocks, figures
from verified_docs.pages.site import Site


def fence(site: Site, language: str, body: str, options: Mapping[str, str]) -> str:
    """The HTML of a fence. Raises what is wrong with it."""
    html = blocks.render(site, language, body, options)
    return _stamp(html, language, body, dict(options))


def directive(site: Site, kind: str, text: str) -> str:
    """The HTML of {measured: text} and its kin. Raises what is wrong."""
    if kind == "stated":
        return _stamp(figures.stated(text, site.works, site.base), kind, text)
    if kind == "measured":
        return _stamp(figures.measured(site.evidence, text), kind, text)
    if text != "summary":
        raise ValueError("it is written {verified: summary}")
    evidence = site.evidence
    statuses = [evidence.status(name) for name in layout.names(evidence.root)]
    return _stamp(badges.summary(statuses), kind, text)


def again(site: Site, made: str) -> str:
    """The HTML made once more from a `data-made`. Raises what is wrong with it."""
    parts = json.loads(made)
    return directive(site, *parts) if len(parts) == 2 else fence(site, *parts)


def _stamp(html: str, *parts: object) -> str:
    made = escape(json.dumps(parts, ensure_ascii=False))
    return re.sub(r"<[\w-]+", lambda tag: f'{tag[0]} data-made="{made}"', html, count=1)


def digest(markdown: str) -> str:
    """The hash of a page's Markdown, which is without its front matter."""
    return hashlib.sha256(markdown.strip().encode()).hexdigest()


class Source(Preprocessor):
    """Hashes the page before anything changes it."""

    digest = ""

    def run(self, lines: list[str]) -> list[str]:
        """The page as it was."""
        self.digest = digest("\n".join(lines))
        return lines


class Stamp(Postprocessor):
    """Ends the page with the hash of its source."""

    def __init__(self, md: Markdown, source: Source) -> None:
        super().__init__(md)
        self.source = source

    def run(self, text: str) -> str:
        """The page with one more element, which nobody sees."""
        return f'{text}\n<div data-source="{self.source.digest}" hidden></div>'
