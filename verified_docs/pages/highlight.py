"""Code as HTML, one string a line, whose text is exactly the code."""

import functools
import html
from itertools import groupby
from operator import itemgetter

from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES, Token

# What has the colour of text. Signs are half of all tokens: each would be an element.
PLAIN = {Token.Text, Token.Text.Whitespace, Token.Name, Token.Keyword.Constant}
PLAIN |= {Token.Operator, Token.Punctuation}
# All that differs in what is typed into a shell, whose lexer takes the first digit of
# torch==2.13.0 for a number.
TYPED = {("Generic",), ("Comment",)}

Identifiers = frozenset[tuple[str, str]]  # a name, and a further class of its spans


@functools.lru_cache(maxsize=256)  # A file is on several pages, and in differences.
def highlight(
    text: str, language: str, identifiers: Identifiers = frozenset()
) -> list[str]:
    """The lines of `text` with spans for its tokens.

    Lines keep their newlines: the text of the joined result is `text`, character for
    character. Raises pygments.util.ClassNotFound for an unknown language.
    """
    own = dict(identifiers)
    parts = []
    # Not get_tokens(), which adds and strips newlines.
    for _, token, value in get_lexer_by_name(language).get_tokens_unprocessed(text):
        typed = language == "console" and token[:1] not in TYPED
        kind = "" if typed or token in PLAIN else STANDARD_TYPES[token]
        if value in own and token[:1] == ("Name",):
            kind = f"{kind} {own[value]}".lstrip()
        parts.append((kind, value))
    shown = "".join(
        _span(name, "".join(value for _, value in run))
        for name, run in groupby(parts, key=itemgetter(0))
    )
    *lines, last = shown.split("\n")
    return [line + "\n" for line in lines] + [last] * bool(last)


def _span(name: str, text: str) -> str:
    """The text, each of its lines in an element of its own if it has a class."""
    shown = html.escape(text, quote=False)
    if not name:
        return shown
    lines = shown.split("\n")
    return "\n".join(line and f'<span class="{name}">{line}</span>' for line in lines)
