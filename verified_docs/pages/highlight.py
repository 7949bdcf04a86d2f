"""Code as HTML, one string a line, whose text is exactly the code."""

import html
from collections.abc import Mapping
from itertools import groupby

from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES, Token, _TokenType

PLAIN = {Token.Text, Token.Text.Whitespace, Token.Name}
# All that differs in what is typed into a shell, whose lexer takes the first digit of
# torch==2.13.0 for a number.
TYPED = (Token.Generic, Token.Comment)


def highlight(
    text: str, language: str, identifiers: Mapping[str, str] | None = None
) -> list[str]:
    """The lines of `text` with spans for its tokens.

    `identifiers` maps a name to a further class of its spans. Lines keep their
    newlines: the text of the joined result is `text`, character for character.
    Raises pygments.util.ClassNotFound for an unknown language.
    """
    lexer = get_lexer_by_name(language)
    lines: list[list[tuple[str, str]]] = [[]]
    # Not get_tokens(), which adds and strips newlines.
    for _, token, value in lexer.get_tokens_unprocessed(text):
        if language == "console" and not any(token in kind for kind in TYPED):
            token = Token.Text
        name = _classes(token, value, identifiers or {})
        first, *rest = value.split("\n")
        lines[-1].append((name, first))
        lines += [[(name, part)] for part in rest]
    shown = ["".join(map(_span, _merged(line))) for line in lines]
    last = shown.pop()
    return [line + "\n" for line in shown] + [last] * bool(last)


def _merged(line: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The parts of a line, neighbours of one class joined."""
    return [
        (name, "".join(part for _, part in parts))
        for name, parts in groupby(line, key=lambda part: part[0])
    ]


def _span(part: tuple[str, str]) -> str:
    name, text = part
    shown = html.escape(text, quote=False)
    return f'<span class="{name}">{shown}</span>' if name and text else shown


def _classes(token: _TokenType, value: str, identifiers: Mapping[str, str]) -> str:
    """Pygments' short name of the kind of token, and the identifier's own class."""
    own = identifiers.get(value, "") if token[:1] == ("Name",) else ""
    while token not in STANDARD_TYPES and token.parent is not None:
        token = token.parent
    kind = "" if token in PLAIN else STANDARD_TYPES[token]
    return f"{kind} {own}".strip()
