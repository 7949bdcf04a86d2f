"""Code in colours: the lexer is quicker than Pygments' own, and finds the same."""

import pytest
from pygments.lexers.python import PythonLexer

from tests.machinery.repository import ROOT
from verified_docs import layout
from verified_docs.pages.highlight import Quick


@pytest.mark.parametrize("part", layout.parts(ROOT))
def test_the_tokens_are_those_of_pygments(part):
    files = (ROOT / layout.snippet_file(name) for name in layout.names(ROOT))
    texts = [path.read_text("utf-8") for path in files if path.parent.name == part]
    found, wanted = (
        list(lexer.get_tokens_unprocessed(max(texts, key=len)))
        for lexer in (Quick(), PythonLexer())
    )
    assert found == wanted
