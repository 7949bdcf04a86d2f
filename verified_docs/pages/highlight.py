"""Code as HTML, one string a line, whose text is exactly the code."""

import functools
import html
from collections.abc import Mapping
from itertools import groupby
from keyword import kwlist, softkwlist

from pygments.lexer import inherit, words
from pygments.lexers import get_lexer_by_name
from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES, Token, _TokenType

PLAIN = {Token.Text, Token.Text.Whitespace, Token.Name}


# Each word that Pygments knows as more than a name.
KNOWN = {
    word
    for rules in PythonLexer.tokens.values()
    for rule in rules
    if isinstance(rule, tuple) and isinstance(rule[0], words)
    for word in rule[0].words
}
KNOWN |= {*kwlist, *softkwlist, "Ellipsis", "NotImplemented", "cls", "lazy", "self"}


class Quick(PythonLexer):
    """Pygments' lexer in a third of the time: it tries the most frequent first.

    A name, a sign and a space between two are four of five tokens, and come after
    fifty other rules there.
    """

    tokens = {  # noqa: RUF012
        "root": [
            (r"(?<=\S) +(?=\S)", Token.Text),
            (r"[\[\](),]", Token.Punctuation),
            (rf"(?!(?:{'|'.join(KNOWN)})\b)[A-Za-z]\w*(?![\w\"'])", Token.Name),
            (r"!=|==|<<|>>|:=|[-~+/*%=<>&^|]|\.(?!\d)", Token.Operator),
            inherit,
        ]
    }


def highlight(
    text: str, language: str, identifiers: Mapping[str, str] | None = None
) -> list[str]:
    """The lines of `text` with spans for its tokens.

    `identifiers` maps a name to a further class of its spans. Lines keep their
    newlines: the text of the joined result is `text`, character for character.
    Raises pygments.util.ClassNotFound for an unknown language.
    """
    lines: list[list[tuple[str, str]]] = [[]]
    own = identifiers or {}
    for token, value in _tokens(text, language):
        name = _kind(token)
        if value in own and token[:1] == ("Name",):
            name = f"{name} {own[value]}".lstrip()
        first, *rest = value.split("\n")
        lines[-1].append((name, first))
        lines += [[(name, part)] for part in rest]
    shown = ["".join(map(_span, _merged(line))) for line in lines]
    last = shown.pop()
    return [line + "\n" for line in shown] + [last] * bool(last)


@functools.lru_cache(maxsize=1024)  # A section is shown, and in two differences.
def _tokens(text: str, language: str) -> list[tuple[_TokenType, str]]:
    """The tokens of a text, which together are the text."""
    lexer = Quick() if language == "python" else get_lexer_by_name(language)
    # Not get_tokens(), which adds and strips newlines.
    return [(token, value) for _, token, value in lexer.get_tokens_unprocessed(text)]


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


@functools.cache
def _kind(token: _TokenType) -> str:
    """Pygments' short name of the kind of token."""
    while token not in STANDARD_TYPES and token.parent is not None:
        token = token.parent
    return "" if token in PLAIN else STANDARD_TYPES[token]
