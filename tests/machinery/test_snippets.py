"""Sections, marked lines, hashes and differences of snippet files."""

import hashlib
import re
import textwrap
from pathlib import Path

import pytest

from tests.machinery.repository import ONLINE, Repository
from verified_docs import layout
from verified_docs.code import snippets
from verified_docs.code.sections import SnippetError


def parse(text: str | bytes) -> snippets.Snippet:
    data = text if isinstance(text, bytes) else text.encode()
    return snippets.parse("part/name.py", data, Path("snippets/part/name.py"))


def section(body: str) -> str:
    return f"# --8<-- [start:a]\n{body}\n# --8<-- [end:a]\n"


# The lines of each section, and the function of which it shows only a part. Blank lines
# around markers count once.
SECTIONS = {
    "": ([1, 2, 3, 4, 5, 7, 9, 10, 11, 13, 15, 16, 21, 22, 23], ""),
    "kernel": ([7, 9, 10, 11, 13], ""),
    "rest": ([13], "kernel"),
    "demo": ([21, 22, 23], ""),
}


def test_a_section_is_its_lines_without_markers():
    found = parse(ONLINE)
    assert [*found.sections] == [*SECTIONS][1:]
    lines = ONLINE.split("\n")
    for name, shown in SECTIONS.items():
        each = found.section(name)
        assert (each.numbers, each.cut) == shown
        text = textwrap.dedent("\n".join(lines[n - 1] for n in each.numbers))
        assert each.text == f"{text}\n"
    assert found.section("kernel").marks == {"rescale": range(1, 4)}
    assert found.sha256 == hashlib.sha256(ONLINE.encode()).hexdigest()


def test_a_mark_passes_comments_and_may_lie_inside_a_statement():
    text = section(
        "# --8<-- [line:call]\n# Why.\n\ny = max(\n    1,\n"
        "    # --8<-- [line:two]\n    2,\n)\n"
        "# --8<-- [line:head]\n@decorated\ndef f(\n    x,\n):\n    # Why.\n    pass"
    )
    shown = parse(text).section("a")
    marks = {"call": range(2, 6), "two": range(4, 5), "head": range(6, 10)}
    assert shown.marks == marks
    lines = shown.text.split("\n")
    assert (lines[2], lines[4], lines[9]) == ("y = max(", "    2,", "):")


def test_other_scripts_and_separators_survive():
    text = 's = "π Ω 語 \xa0 \x0c 😀"'
    assert parse(section(text)).section("a").text == text + "\n"


LINE = "# --8<-- [line:z]\n"
SHOWN = section("def kernel():\n    return 1")
ACTING = (
    "kernel.fn = 1",
    "lambda x: 2 * x",
    "exec('kernel = 1')",
    "globals().update(kernel=1)",
    "[setattr(kernel, 'fn', x) for x in range(1)]",
)
REBOUND = section("if X:\n    kernel = 1").replace(":a]", ":b]")
FAULTS = [
    ("X = 1\n# --8<-- [start:a]\nY = 1\n", 2, "section 'a' has no [end:a] after"),
    ("X = 1\n# --8<-- [end:a]\n", 2, "[end:a] ends no open section"),
    ("X = 1\n" + section("\n"), 2, "section 'a' is empty"),
    (section("x = 1") + section("y = 1"), 4, "[start:a] stands already at line 1"),
    (
        section("# --8<-- [start:b]\nx = 1") + "# --8<-- [end:b]\n",
        4,
        "[end:a] ends no open section; the open one is 'b'",
    ),
    (section("x = 1").replace(":a]", ":A-1]"), 1, "names match [a-z]"),
    ("# --8<-- [start:a\nx = 1\n", 1, "is no marker"),
    ("x = 1  # --8<-- [start:a]\n", 1, "is no marker"),
    ('# --8<-- "other.py"\nx = 1\n', 1, "is no marker"),
    (section(f"x = 1\n{LINE}"), 3, "[line:z] names no line"),
    (section(f"{LINE}x = 1\n{LINE}y = 1"), 4, "[line:z] stands already at line 2"),
    ("x = 1\ny = (\n", 2, "syntax error: '(' was never closed"),
    ("\n", 1, "the file is empty"),
    # What a page would show never runs.
    (f'TEXT = """\n{SHOWN}"""\n', 2, "is no marker"),
    (f"def hidden():\n    pass\n\n{SHOWN}", 1, "code outside all sections"),
    (f"{SHOWN}if True:\n    kernel = None\n", 5, "code outside all sections"),
    (f"{SHOWN}kernel = None\n", 5, "code outside all sections"),
    (f"{SHOWN}'text'\n", 5, "code outside all sections"),
    (f"{SHOWN}from other import kernel\n", 5, "kernel is bound a second time"),
    (f"import kernel.more\n{SHOWN}", 3, "kernel is bound a second time"),
    (f"{section('K = 1')}K = 2\n", 4, "K is bound a second time; line 2 binds"),
    (f"{SHOWN}{SHOWN.replace(':a]', ':b]')}", 6, "kernel is bound a second time"),
    (f"{SHOWN}from other import *\n", 5, "import * binds names that nobody sees"),
    (f"{SHOWN}X = (kernel := None)\n", 5, "code outside all sections"),
    *((f"{SHOWN}X = {it}\n", 5, "code outside all sections") for it in ACTING),
    (f"{SHOWN}{REBOUND}", 6, "kernel is bound a second"),
    (f"@other\n{SHOWN}", 3, "code outside all sections"),
    # What a copier may not have.
    (f"import torch\nimport numpy as np\n{SHOWN}", 2, "numpy is imported; what may be"),
    (
        section("def kernel():\n    from a.b import c"),
        3,
        "a.b is imported; what may be",
    ),
    (f"from transformers import x\n{SHOWN}", 1, "transformers is imported; what may"),
    (f"from .other import x\n{SHOWN}", 1, ".other is imported; what may be"),
    # Half of a statement.
    (f"X = (\n{section('1')})\n", 2, "[start:a] is in the midst of a statement"),
    # What a reader cannot see.
    (section("\uff58 = 1"), 2, "is not in ASCII letters"),
    (section("x = 1  # \u202e1 = x"), 2, "the character U+202E cannot be seen"),
    *(
        (section(f"x = 'a{sign}b'"), 2, f"the character U+{ord(sign):04X} cannot be")
        for sign in "\u200b\u034f\ufe0f\x08\x1b\U000e0100\u2028\u2029\ue123"
    ),
]


BYTES = [
    (b"x = 1\ny = '\xff'\n", 2, "the file is not UTF-8"),
    (b"\xef\xbb\xbfx = 1\n", 1, "U+FEFF"),
    (b"x = 1\ny = 2\r\n", 2, "U+000D cannot be seen"),
    (b"x = 1\0\n", 1, "null bytes"),
]


@pytest.mark.parametrize(("text", "line", "reason"), FAULTS + BYTES)
def test_faults(text, line, reason):
    said = f"^snippets/part/name.py:{line}: .*{re.escape(reason)}"
    with pytest.raises(SnippetError, match=said):
        parse(text)


def test_load_and_its_errors(tmp_path):
    Repository(tmp_path).write({"snippets/part/name.py": ONLINE, "secret.txt": "x"})
    snippet = snippets.load(tmp_path, "part/name.py")
    assert (snippet.name, snippet.section("kernel").name) == ("part/name.py", "kernel")
    assert snippet.section("") == snippet.whole
    assert layout.names(tmp_path) == ["part/name.py"]
    with pytest.raises(SnippetError, match=r"did you mean part/name\.py"):
        snippets.load(tmp_path, "part/nmae.py")
    with pytest.raises(SnippetError, match="the sections are: kernel, rest, demo"):
        snippet.section("kernal")
    outside = "../secret.txt", "secret.txt", "part/../part/name.py", "/etc/hosts"
    for name in outside:
        with pytest.raises(SnippetError, match="there is no such snippet"):
            snippets.load(tmp_path, name)


def test_a_snippet_that_imports_others_runs_as_a_module(tmp_path):
    alone, module = ["snippets/part/one.py"], ["-m", "snippets.part.one"]
    for text, arguments in (
        ("# as snippets do\nimport snippetsuite\n", alone),
        ("from snippets.part.two import x\n", module),
        ("import torch\nimport snippets.part.two\n", module),
    ):
        Repository(tmp_path).write({"snippets/part/one.py": text})
        assert snippets.arguments(tmp_path, "part/one.py") == arguments


def test_wrong_on_purpose_is_in_the_name_of_the_file_and_in_its_words():
    words = b'"""Wrong on purpose: no mask."""\n'
    assert snippets.parse("softmax/wrong_tail.py", words).wrong
    assert not snippets.parse("wrong_part/tail.py", b"X = 1\n").wrong
    for name, data in (("tail.py", words), ("wrong_tail.py", b"X = 1\n")):
        with pytest.raises(SnippetError, match="the docstring of a file wrong_"):
            snippets.parse(f"softmax/{name}", data)


def test_outside_sections_stand_a_docstring_imports_and_constants():
    text = '"""A file."""\n\nimport math\nfrom os import path as where\n\n'
    assert list(parse(f"{text}A: int = 1\nB = C_2 = math.log(A)\n{SHOWN}").sections)
    # What a file is about it may import.
    about = b"import torch.nn\nfrom transformers import Llama\n"
    assert snippets.parse("part/transformers_attention.py", about)


def difference(old: str, new: str) -> str:
    hunks = snippets.hunks(old.split("\n")[:-1], new.split("\n")[:-1])
    shown = ["".join(f"{sign}{line}\n" for sign, line, _ in hunk) for hunk in hunks]
    return "@@\n".join(shown)


def test_a_difference_has_signs_and_gaps_only_and_is_blind_to_indentation():
    old = "".join(f"{n}\n" for n in range(30))
    new = old.replace("\n5\n", "\nfive\n").replace("\n25\n", "\n")
    shown = "2 3 4 -5 +five 6 7 8 @@ 22 23 24 -25 26 27 28"
    assert difference(old, new).split() == shown.split()
    assert difference("\n\na\nb\n\n", "\n\na\nc\n\n") == " a\n-b\n+c\n"
    old, new = "for x in y:\n    a\n    b\n", "a\nc\n"
    assert difference(old, new) == "-for x in y:\n a\n-    b\n+c\n"
