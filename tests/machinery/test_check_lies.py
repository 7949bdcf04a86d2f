"""Lies, planted in pages and in the built site: which rule of the check refuses each.

A lie is code, a figure or a state of verification that comes from no file. All pages
with lies are built and checked at once.
"""

import re
import shutil

from tests.machinery.small_site import PAGE
from verified_docs import check
from verified_docs.check import files

# Rules, by words of their reasons.
ELEMENT = "is nothing that a page may hold"
LISTING = "a line of a listing"
LINES = "inline code of several lines"
FORMULA = "code in a formula"
TYPED = "typed-in measurement"
UNRENDERED = "left unrendered"
UNSEEN = "characters that nobody sees"
ABROAD = "is neither of this site nor of"
COMMAND = "which README does not list"
MARKUP = "markup around the article"
DTYPE = "beside the words"

TABLE = "record: part\nrows: kernel\ncolumns: n\nvalue: seconds\nformat: us\n"

ERROR = "{measured: error part/one.py float32}"
ONE = "{file: part/one.py}"
TWO = "{measured: part seconds kernel=part/two.py n=4 | us}"

# What attribute lists may not say.
ATTRIBUTES = [
    'style="font-family: monospace"',
    'hidden=""',
    'aria-hidden="true"',
    'title="in 4 ms"',
    'onclick="x()"',
    ".measured",
    ".holds",
    ".highlight",
    """data-made='["", "python", "x = 1", {}]'""",
]
# Of a page: (rule, Markdown). They build.
PAGES = [
    *((ELEMENT, f"x = 1\n{{: {attribute} }}") for attribute in ATTRIBUTES),
    (ELEMENT, "A\n\n    x = 1\n"),
    (ELEMENT, "A  \nB"),
    (ELEMENT, "![The kernel: x = 1](../assets/dot.svg)"),
    # Listings of inline code.
    (LISTING, "| a |\n|---|\n| `x = 1` |\n| `y = x` |"),
    (LISTING, "1. `for i in range(3):`"),
    (LISTING, "### `x = 1`"),
    (LISTING, "**`x = 1`** `y = 2`."),
    (LINES, "Run `a =\n1` now."),
    (LINES, '```python hl_lines=1\n--8<-- "part/one.py"\n```'),
    # Code and figures in formulas.
    (FORMULA, r"So $\texttt{x = 1}$ and"),
    (FORMULA, r"So $\mathtt{for\ i\ in\ x:}$ and"),
    (TYPED, r"It runs at $610\,\mathrm{TFLOP/s}$."),
    (TYPED, r"It reaches $95\,\%$ of it."),
    # Figures that name no source.
    (TYPED, "It takes 3.5 µs here."),
    (TYPED, "It takes **12** ms here."),
    (TYPED, "It is 3.1 times faster."),
    (TYPED, "It is twice as fast."),
    (
        TYPED,
        "It {holds: takes 3 ms}.\n\n"
        "```claims\ntakes 3 ms: part seconds kernel=part/two.py > 0\n```",
    ),
    (TYPED, "A speed-up of 2.5x."),
    (TYPED, "It is off by 0.01."),
    (TYPED, '!!! note "After 5 ns"\n\n    Text.'),
    (TYPED, '[x](../index.md "in 4 ms")'),
    (TYPED, f"```measurements\n{TABLE}title: Twice as fast\n```"),
    # Text that looks otherwise than it reads.
    (UNSEEN, "abc \u202e cba"),
    (UNSEEN, "a\u034f\ufe0fb"),
    (TYPED, "It moves 600 GB/second."),
    (TYPED, "It moves 600 GBps."),
    (TYPED, "It moves 600 GB per sec."),
    (TYPED, "It reaches 610 TFLOPs."),
    (TYPED, "It reaches 610 teraFLOPS."),
    (TYPED, "It takes 3 hours."),
    (TYPED, "It does 610 trillion operations per second."),
    # Words and figures that are of something else.
    ("in the row of part/one.py", f"| a | b |\n|---|---|\n| {ONE} | {TWO} |"),
    ("a link to a file that", "[two.py](../snippets/part/one.py)"),
    # Where the number and its unit stand apart.
    (TYPED, "It reaches `610` TFLOP/s."),
    (TYPED, "It reaches `610 TFLOP/s`."),
    (TYPED, "It reaches $610$ TFLOP/s."),
    (TYPED, r"It is $2\times$ faster."),
    (TYPED, "| kernel | speed (TFLOP/s) |\n|---|---|\n| ours | **610** |"),
    (TYPED, '| a |\n|---|\n| x {: data-label="610 TFLOP/s" } |'),
    (TYPED, "| kernel | ours |\n|---|---|\n| time, ms | `0.61` |"),
    (UNSEEN, "own \ue123"),
    (UNSEEN, "a line \u2028 x = 1"),
    (TYPED, "It is a third slower."),
    (TYPED, "It runs at 0.9 of the copy."),
    (TYPED, "It is faster by a factor of 2.5."),
    (TYPED, "The error in float16 is 0.0003."),
    # An error of another dtype than the words say.
    (DTYPE, f"In bf16, the error is {ERROR}."),
    (DTYPE, f"| | fp32 | float16 |\n|---|---|---|\n| a | {ERROR} | {ERROR} |"),
    (DTYPE, f"| dtype | error |\n|---|---|\n| float32 | {ERROR} |\n| fp16 | {ERROR} |"),
    # What was meant to be replaced.
    (UNRENDERED, '--8<-- "part/one.py"'),
    (UNRENDERED, "Look at [start:kernel]."),
    (UNRENDERED, "```python title=a b\nx"),
    (UNRENDERED, "{: .x } y"),
    # Addresses.
    (ABROAD, "[x](javascript:x())"),
    ("is of this site", "[two.py](http://127.0.0.1:8000/snippets/part/one.py)"),
    ("leads to no file of the site", "[x](../gone/)"),
    ("has no anchor 'lost'", "[x](#lost)"),
    ("breaks below a sub-path", "[x](/part/page/)"),
    ("leads to no file of the site", "[x](../../../x.html)"),
    ("needs a / at its end", "[x](../../part/page)"),
    ("2 elements have the id", "x\n{: #twice }\n\ny\n{: #twice }"),
    ("no line of code is marked", "- x\n{: data-line='gone' }"),
    # Commands.
    (COMMAND, "```console\n$ rm -r x\n```"),
    ("typed-in output", "```console\n$ make site\ndone\n```"),
]
# Of what stands before a page: (rule, front matter), in all forms that MkDocs knows.
FRONT = [
    (TYPED, "---\ndescription: Runs at 610 TFLOP/s\n---"),
    (MARKUP, """---\ndescription: '"><script>x()</script>'\n---"""),
    ("front matter has 'title'", "---\ntitle: x = 1\n---"),
    ("front matter has 'title'", "--- \ntitle: x = 1\n..."),
    ("front matter has 'title'", "\ufefftitle: x = 1\n"),
]
# Of what the theme puts around a page.
BANNER = """{% extends "base.html" %}
{% block announce %}Now at <b>610</b> TFLOP/s{% endblock %}
"""
LOST = """{% extends "main.html" %}
{% block header %}{{ super() }}<i class="badge">GPU-verified</i>{% endblock %}
{% block content %}<pre>x = 1</pre>{% endblock %}
"""


def test_a_lie_is_refused_by_its_rule_and_no_other_page_is_blamed(site):
    texts = [f"# A lie\n\nBefore.\n\n{text}\n" for _, text in PAGES]
    texts += [f"{front}\n# A lie\n" for _, front in FRONT]
    pages = {f"docs/part/{n}.md": text for n, text in enumerate(texts)}
    site.write({**pages, "theirs/main.html": BANNER, "theirs/404.html": LOST})
    site.edit("mkdocs.yml", "A small site", "Done in 4 ms\ncopyright: <b>x</b>")
    site.edit("mkdocs.yml", "- Home", "- At 610 TFLOP/s")
    site.edit("mkdocs.yml", "- Page", '- "<pre>x = 1</pre>"')
    site.edit("mkdocs.yml", "  font: false", "  font: false\n  custom_dir: theirs")
    said: dict[str, str] = {}
    for finding in site.found():
        path = finding.partition(":")[0]
        said[path] = said.get(path, "") + finding
    around = said.pop("mkdocs.yml")
    assert (around.count(TYPED), around.count(MARKUP)) == (2, 2)
    lost = said.pop("site/404.html")
    badge = f"<i> outside the article {ELEMENT}"
    for reason in (f"{TYPED} '610 TFLOP/s'", f"<pre> {ELEMENT}", badge):
        assert f"site/404.html:1: {reason}" in lost
    assert said.keys() == pages.keys()
    refused = zip(PAGES + FRONT, (said[path] for path in pages), strict=True)
    assert [(lie, told) for lie, told in refused if lie[0] not in told] == []
    for path in [*pages][len(PAGES) :]:  # at the lines of the front matter
        assert re.match(rf"{path}:[12]: ", said[path])


BUILT = "site/part/page/index.html"
OTHERWISE = "the built site is not of its sources"
NOWHERE = "it is of neither docs nor the theme nor the build"
# Edits of the built site, and what is said of the file.
EDITS = {
    (BUILT, "script-src 'self'", "script-src 'unsafe-inline'"): OTHERWISE,
    ("site/index.html", "data-end", 'data-made="x" data-end'): OTHERWISE,
    ("site/search/search_index.json", "It doubles", "x = 1"): OTHERWISE,
    ("site/snippets/part/one.py", "-m_i", "+m_i"): OTHERWISE,
    ("site/assets/new.js", "", "x = 1"): NOWHERE,
}


def test_a_lie_in_the_built_site(site, tmp_path):
    site.write({name: "" for name, old, _ in EDITS if not old})
    for edit in EDITS:
        site.edit(*edit)
    (site.root / "site/404.html").unlink()
    made = check.Site(site.root, tmp_path / "made")
    found = {each.path: each.reason for each in files.check(made, site.root / "site")}
    said = {edit[0]: reason for edit, reason in EDITS.items()}
    said |= {PAGE: said.pop(BUILT), "docs/index.md": said.pop("site/index.html")}
    said["site/404.html"] = "the built site lacks it; run `make site`"
    assert found.keys() == said.keys()
    assert all(found[path].startswith(reason) for path, reason in said.items())


HTML = '<!doctype html><html><head><meta charset="utf-8"></head><pre>x = 1</pre>'
MISPLACED = {
    "docs/assets/lie.html": HTML,
    "docs/part/lie.htm": HTML,
    "docs/part/lie.markdown": "    x = 1\n",
    "docs/part/bare": "x = 1",
    "docs/lie.js": "x = 1",
    "snippets/part/lie.txt": "x = 1",
    "records/lie.json": "{}",
    "records/test-gpu/more/part.json": "{}",
}


def test_a_file_that_is_no_page_has_a_place_of_its_own_and_is_no_copy(site):
    site.write(MISPLACED)
    copy = site.root / "docs/snippets"  # once a link
    copy.unlink()
    shutil.copytree(site.root / "snippets", copy)
    site.edit("docs/snippets/part/one.py", "-m_i", "+m_i")
    site.build()
    found = check.findings(site.root, site.root / "site")
    lies = [f.path for f in found if "no other file has this place" in f.reason]
    assert len(lies) == len(MISPLACED)
    assert [f.path for f in found if OTHERWISE in f.reason] == [
        "site/snippets/part/one.py"
    ]
