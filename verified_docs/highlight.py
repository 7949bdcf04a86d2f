"""Code as HTML, one string a line, whose text is exactly the code."""

import html
from collections.abc import Mapping

from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES, Token, _TokenType


def highlight(
    text: str, language: str, identifiers: Mapping[str, str] | None = None
) -> list[str]:
    """The lines of `text` with a span for each token.

    `identifiers` maps a name to a further class of its spans. Lines keep their
    newlines: the text of the joined result is `text`, character for character.
    Raises pygments.util.ClassNotFound for an unknown language.
    """
    lexer = get_lexer_by_name(language)
    lines = [""]
    # Not get_tokens(), which adds and strips newlines.
    for _, token, value in lexer.get_tokens_unprocessed(text):
        classes = [_class(token)]
        if token in Token.Name and identifiers and value in identifiers:
            classes.append(identifiers[value])
        name = " ".join(filter(None, classes))
        first, *rest = value.split("\n")
        lines[-1] += _span(name, first)
        for part in rest:
            lines[-1] += "\n"
            lines.append(_span(name, part))
    if not lines[-1]:
        lines.pop()
    return lines


def _span(name: str, text: str) -> str:
    shown = html.escape(text, quote=False)
    return f'<span class="{name}">{shown}</span>' if name and text else shown


def _class(token: _TokenType) -> str:
    """Pygments' short name of a kind of token, or of the nearest kind that has one."""
    while token not in STANDARD_TYPES:
        assert token.parent is not None
        token = token.parent
    return STANDARD_TYPES[token] if token is not Token.Text.Whitespace else ""
