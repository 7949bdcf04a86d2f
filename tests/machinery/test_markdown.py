"""Pages through the extension: fences, directives, and refusals."""

import html
import re

import pytest
from markdown import Markdown

from tests.machinery.repository import H200, L4, STALE, blocks
from verified_docs.pages.errors import PageError
from verified_docs.pages.markdown import makeExtension, tensors

INCLUDE = '```python\n--8<-- "softmax/online.py:kernel"\n```'


def test_tabs_characters_and_blank_lines_survive(repository):
    page = repository.page(INCLUDE.replace(":kernel", ":demo"))
    shown = 'if __name__ == "__main__":\n\n\tprint("<b>", kernel(1, 2))\n'
    assert blocks(page) == [shown]
    # A section that cuts a function says so.
    part = "part of <code>kernel</code>"
    assert part in repository.page(INCLUDE.replace(":kernel", ":rest"))
    assert part not in repository.page(INCLUDE)


def test_a_notebook_opens_in_colab_where_its_repository_is_known(repository):
    here = "/notebooks/one.ipynb"
    there = f"https://colab.research.google.com/github/owner/name/blob/main{here}"
    addresses = {"": [here], "https://github.com/owner/name": [here, there]}
    for address, links in addresses.items():
        extension = makeExtension(root=str(repository.root), repository=address)
        page = Markdown(extensions=[extension]).convert("```notebook\none.ipynb\n```")
        assert re.findall(r'href="([^"]*)"', page) == links


def test_identifiers_and_lines_are_marked(repository):
    page = repository.page(INCLUDE)
    assert '<span class="t-m">m_i</span>' in page
    assert '<span class="t-l">l_i</span>' in page
    (line,) = re.findall(r'<span data-line="rescale">(.*?\n)</span>', page, re.S)
    text = html.unescape(re.sub(r"<[^>]*>", "", line))
    assert text == "    l_i = l_i * math.exp(\n        -m_i,\n    )\n"


@pytest.mark.parametrize(
    ("step", "tag"),
    [
        ('1. Rescale $x$.\n{: data-line="rescale" }', "li"),
        ('- Rescale. {: data-line="rescale" }\n\n    - deeper', "p"),
        ('- Rescale $x$ {: data-line="rescale" }\n    - deeper', "li"),
        ('- one\n\n- Rescale $x$ {: data-line="rescale" }\n\n- three', "p"),
        ('!!! note\n\n    - Rescale *it* {: data-line="rescale" }', "li"),
    ],
)
def test_a_step_of_an_algorithm_names_its_line(repository, step, tag):
    page = repository.page(step)
    assert page.count('data-line="rescale"') == 1
    assert re.search(r'<(li|p) data-line="rescale">\s*(<p>)?Rescale', page)
    assert f'<{tag} data-line="rescale">' in page
    assert "{:" not in page


def test_a_difference_is_computed(repository):
    page = repository.page(
        '```diff from="softmax/three_pass.py:kernel" to="softmax/online.py:kernel"\n```'
    )
    (shown,) = blocks(page)
    lines = shown.split("\n")
    signed = [line for line in lines if line[:1] in ("-", "+")]
    assert signed == ["-        m_i,", "+        -m_i,"]
    kernel = repository.status().snippet.section("kernel").text.split("\n")
    assert {line[1:] for line in lines} - {"        m_i,"} <= {*kernel}
    assert page.count("<ins>") == page.count("<del>") == 1
    assert "1 line removed, 1 line added" in page


def test_output_is_what_was_recorded(repository):
    fence = '```output from="softmax/online.py"\n\n```'
    assert "not yet recorded" in repository.page(fence)
    repository.verify("", online={"output": "cpu: ω <1>\n"})
    page = repository.page(fence)
    assert blocks(page) == ["cpu: ω <1>\n"]
    assert "interpreter, on the CPU" in page
    repository.verify(H200, online={})
    page = repository.page(fence)
    assert blocks(page) == ["cuda: <1e-7>\n"]
    assert "on H200<" in page
    repository.verify(H200, online=STALE)
    repository.verify("")
    assert "on H200 (stale: the file has changed" in repository.page(fence)


def test_a_table_of_all_snippets(repository):
    repository.verify(H200, online={"skipped": {"a": "b"}})
    repository.verify(L4, three_pass=STALE)
    page = repository.page("```verification\n```")
    text = re.sub(r"<br>|\s+", " ", page)
    heads = re.findall(r'<th scope="col">([^<]*)</th>', page)
    assert heads[:2] == ["file", "state"]
    assert {"NVIDIA H200", "NVIDIA L4"} <= set(heads)
    assert "12 cases passed 1 case not tried" in text
    assert '<td data-label="NVIDIA L4">not run</td>' in page


def test_pipes_of_directives_end_no_cell(repository):
    entries = "### a sheet\n\n### another book\n"
    repository.write({"docs/reference/bibliography.md": entries})
    row = "| {stated: ‖x‖ | y | a sheet, <3>} | `{stated: x | y}` |"
    page = repository.page(f"| a | b |\n|---|---|\n{row}")
    assert page.count("<td>") == 2
    href = 'href="/reference/bibliography/#a-sheet"'
    assert f'<a class="stated" {href} title="a sheet, &lt;3&gt;">‖x‖ | y</a>' in page
    assert "<code>{stated: x | y}</code>" in page


def test_the_cells_of_a_wide_row_name_their_column(repository):
    def table(first: str, second: str) -> str:
        rows = f"| 128 | b | {'c' * 80} |\n| a | b | c |"
        return repository.page(f"| {first} | {second} | *C* |\n|---|---|---|\n{rows}")

    shown = table("A", "B")
    assert '<td data-label="A">128</td>' in shown
    assert "<td>a</td>" in shown
    assert shown.count('<td data-label="B">') == shown.count('<td data-label="C">') == 2
    assert "data-label" not in table("A", "$b$")
    assert "data-label" not in repository.page(
        "| A | B | C |\n|---|---|---|\n| a | b | c |"
    )


def test_a_file_to_take(repository):
    page = repository.page("{file: softmax/online.py}")
    assert '<a download href="/snippets/softmax/online.py">online.py</a>' in page
    assert 'data-copy="file"' in page
    assert "badge" not in page
    page = repository.page("{file: softmax/online.py | badge}")
    assert '<a href="#badge-softmax-online">' in page
    other = '"""Calls."""\n\nfrom snippets.softmax.online import online\n'
    repository.snippet("softmax/calls.py", other)
    page = repository.page("{file: softmax/calls.py}")
    zipped = '<a download href="/zips/softmax/calls.zip">a zip of 2 files</a>'
    assert f"</code> in {zipped}" in page
    assert "button" not in page
    page = repository.page('```python\n--8<-- "softmax/calls.py"\n```')
    assert 'href="/zips/softmax/calls.zip"' in page
    assert "Copy file" not in page
    repository.snippet("softmax/wrong_tail.py", '"""Wrong on purpose."""\n\nX = 1\n')
    with pytest.raises(PageError, match="not for taking"):
        repository.page("{file: softmax/wrong_tail.py}")


def test_no_header_of_a_table_is_empty(repository):
    rule = "|---|---|---|\n| a | b | c |"
    none = repository.page(f"| | | |\n{rule}")
    assert "<thead>" not in none
    assert none.count("<td>") == 3
    some = repository.page(f"| | $x$ | $x$ and *y* |\n{rule}")
    assert re.findall(r"<t[hd]>(?=(.?))", some)[:3] == ["<", "\u2060", "\u2060"]
    assert some.count("<th>") == 2


HTML = [
    "<pre>\nx = 1\n</pre>",
    "It is <del>not</del> so.",
    "!!! note\n\n    <pre>x = 1</pre>",
    "</article><p>So it is the fastest.</p>",
    "<!-- x = 1 -->",
    "<!--><pre>x = 1</pre>-->",
    "<!-- a --!><pre>x = 1</pre> -->",
    "<img src=x onerror=y>",
    "A\n{: .x }\n<script>x()</script>",
]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("```python\nprint(1)\n```", "code comes from snippets"),
        ('```python\n--8<-- "softmax/online.py:kernel"\nx = 1\n```', "code comes from"),
        ("```markdown\n# x\n```", "a fence in 'markdown' is not published"),
        ("```\nprint(1)\n```", "a fence without a language is not published"),
        ('```python\n--8<-- "softmax/online.py:kernal"\n```', "no section 'kernal'"),
        (INCLUDE.replace("python", 'python title="x"'), "takes no options"),
        ("```diff\n```", 'a diff fence takes from="..." to="..."'),
        ('```diff from="softmax/online.py" to="softmax/online.py"\n```', "do not diff"),
        ('```diff from="softmax/online.py" to="x.py"\n-x\n```', "its body is computed"),
        ('```output from="softmax/online.py"\ncuda: 1\n```', "its body is computed"),
        (
            '```roofline record="softmax" bandwidth="9" fp32="9" bf16="9" '
            'source="a"\n```',
            "'a' names no entry of reference/bibliography.md",
        ),
        ("{stated: 4.8 TB/s}", "it is written {stated: figure | source}"),
        ("{stated: 4.8 TB/s |}", "it is written {stated: figure | source}"),
        ("{stated: | a sheet}", "it is written {stated: figure | source}"),
        ("{stated: 4.8 TB/s | a sheet}", "'a sheet' names no entry of"),
        ("# A title with $x$", "TeX in the heading"),
        *((text, "a page holds no HTML") for text in HTML),
    ],
)
def test_what_stops_the_build(repository, text, reason):
    with pytest.raises(PageError, match=re.escape(reason)):
        repository.page(text)


def test_an_identifier_is_of_one_tensor():
    with pytest.raises(ValueError, match="'a' is of two tensors"):
        tensors({"q": {"code": ["a"]}, "k": {"code": ["a"]}})
