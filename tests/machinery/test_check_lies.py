"""Lies, planted in pages and in built HTML: which rule of the check refuses each.

A lie is code, a figure or a state of verification that comes from no file. All pages
with lies are built and checked at once; those that the build refuses are apart.
"""

import pytest

from tests.machinery import small_site
from verified_docs.pages.errors import PageError

# Rules, by words of their reasons.
ELEMENT = "is nothing that a page may hold"
AGAIN = "can no longer be made"
NOW = "is not what its files say now"
LISTING = "a line of a listing"
LINES = "inline code of several lines"
FORMULA = "code in a formula"
KATEX = "KaTeX makes something else"
TYPED = "typed-in measurement"
UNRENDERED = "left unrendered"
UNSEEN = "characters that nobody sees"
FRAME = "outside the article"
ABROAD = "is neither of this site nor of"
COMMAND = "which README does not list"

MADE = "data-made='{}'"
BADGE = '<details class="badge badge-verified"><summary>fine</summary></details>'
QUERY = '["measured", "part seconds kernel=part/two.py n=4 | us"]'

# Of a page: (rule, Markdown). They build.
PAGES = [
    # Code in elements that preformat, in whatever they stand.
    (ELEMENT, "<pre><code>x = 1</code></pre>"),
    (ELEMENT, "> <pre>x = 1</pre>"),
    (ELEMENT, "- a\n\n    - b\n\n        <pre>x = 1</pre>"),
    (ELEMENT, '=== "Tab"\n\n    <pre>x = 1</pre>'),
    (ELEMENT, "!!! note\n\n    <pre>x = 1</pre>"),
    (ELEMENT, "<textarea>x = 1</textarea>"),
    (ELEMENT, "<xmp>x = 1</xmp>"),
    (ELEMENT, "<listing>x = 1</listing>"),
    (ELEMENT, "<plaintext>x = 1"),
    (ELEMENT, "<samp>x = 1</samp>"),
    (ELEMENT, "<kbd>x = 1</kbd>"),
    (ELEMENT, "<tt>x = 1</tt>"),
    (ELEMENT, '<font face="monospace">x = 1</font>'),
    # Code and figures by style, and what is hidden.
    (ELEMENT, '<p style="font-family: monospace">x = 1</p>'),
    (ELEMENT, '<div style="white-space: pre">x = 1</div>'),
    (ELEMENT, 'Fast\n{: style="font-family: monospace" }'),
    (ELEMENT, "<style>p { font-family: monospace }</style>"),
    (ELEMENT, "<style>.badge summary::after { content: '9 ms' }</style>"),
    (ELEMENT, "<span hidden>x</span>"),
    (ELEMENT, '<p aria-hidden="true">x</p>'),
    (ELEMENT, "<p contenteditable>x = 1</p>"),
    (ELEMENT, '<p title="in 4 ms">x</p>'),
    (ELEMENT, "<ins>x</ins>"),
    (ELEMENT, "<del>x</del>"),
    (ELEMENT, "<mark>x</mark>"),
    (ELEMENT, "one<br>two"),
    # Other documents and programs.
    (ELEMENT, "<script>document.write('x')</script>"),
    (ELEMENT, '<p onclick="x()">x</p>'),
    (ELEMENT, '<iframe srcdoc="<pre>x = 1</pre>"></iframe>'),
    (ELEMENT, '<object data="x.html"></object>'),
    (ELEMENT, '<embed src="x.html">'),
    (ELEMENT, "<form><button>x</button></form>"),
    (ELEMENT, '<input value="x = 1">'),
    (ELEMENT, '<meta http-equiv="refresh" content="0; url=//h.example">'),
    (ELEMENT, '<base href="//h.example/">'),
    (ELEMENT, '<link rel="stylesheet" href="//h.example/x.css">'),
    (ELEMENT, "<template><pre>x = 1</pre></template>"),
    (ELEMENT, "<noscript><pre>x = 1</pre></noscript>"),
    (ELEMENT, "<dialog open>x = 1</dialog>"),
    (ELEMENT, "<canvas>x = 1</canvas>"),
    # Pictures of code.
    (ELEMENT, '<svg role="img" aria-label="a"><text>x = 1</text></svg>'),
    (ELEMENT, "<math><mtext>x = 1</mtext></math>"),
    (ELEMENT, "![The kernel: x = 1](../assets/dot.svg)"),
    (ELEMENT, '<img alt="x" src="data:image/png;base64,AAAA">'),
    (ELEMENT, '<video poster="x.png"></video>'),
    (ELEMENT, '<picture><source srcset="x.png"></picture>'),
    # The machinery's classes and its stamp.
    (ELEMENT, BADGE),
    (ELEMENT, '<b class="badge">verified</b>'),
    (ELEMENT, "*7*{: .measured }"),
    (ELEMENT, "All is well.\n{: .verified-summary }"),
    (ELEMENT, "[7](../index.md){: .snippet }"),
    (ELEMENT, '<div markdown="1" class="highlight">\n\nx = 1\n\n</div>'),
    (ELEMENT, '<figure class="snippet" data-snippet="part/one.py">x = 1</figure>'),
    (ELEMENT, '<data class="measured" value="9">9 µs</data>'),
    (ELEMENT, '<div class="cell-output"><b>7</b></div>'),
    (ELEMENT, "As before[^1].\n\n[^1]: `x = 1`"),
    (NOW, f"<data {MADE.format(QUERY)}>9 µs</data>"),
    (NOW, f"<p {MADE.format(QUERY)}>x = 1</p>"),
    (AGAIN, f"<p {MADE.format('[]')}>x = 1</p>"),
    (AGAIN, f"""<p {MADE.format('["python", "x = 1", {}]')}>x = 1</p>"""),
    (AGAIN, f"""<p {MADE.format('["markdown", "x = 1", {}]')}>x = 1</p>"""),
    # Comments that a browser ends before Markdown does, and the like.
    (ELEMENT, "<!-- x = 1 -->"),
    (ELEMENT, "<!--><pre>x = 1</pre>-->"),
    (ELEMENT, "<!-- a --!><pre>x = 1</pre> -->"),
    (ELEMENT, "<?php x = 1 ?>"),
    # The end of the article.
    (FRAME, "</article><p>So it is the fastest.</p>"),
    (FRAME, "</div></article><pre>x = 1</pre>"),
    (FRAME, "</article><div style='font-family: monospace'>x</div>"),
    # Listings of inline code.
    (LISTING, "| a |\n|---|\n| `x = 1` |\n| `y = x` |"),
    (LISTING, "- `x = 1`\n- `return x`"),
    (LISTING, "1. `for i in range(3):`"),
    (LISTING, "> `x += 1`"),
    (LISTING, '=== "Tab"\n\n    `import torch`'),
    (LISTING, '!!! note "Code"\n\n    `def f(x):`'),
    (LISTING, "It\n:   `x = 1`"),
    (LISTING, "### `x = 1`"),
    (LISTING, "**`x = 1`** `y = 2`."),
    (LINES, "Run `a =\n1` now."),
    # Code and figures in formulas.
    (FORMULA, r"So $\texttt{x = 1}$ and"),
    (FORMULA, r"So $\mathtt{for\ i\ in\ x:}$ and"),
    (KATEX, '<span class="katex">x = 1</span>'),
    (TYPED, r"It runs at $610\,\mathrm{TFLOP/s}$."),
    (TYPED, r"It reaches $95\,\%$ of it."),
    # Figures that name no source.
    (TYPED, "It takes 3.5 µs here."),
    (TYPED, "It takes 12&nbsp;s here."),
    (TYPED, "It takes 1&#50; ms here."),
    (TYPED, "It takes **12** ms here."),
    (TYPED, "| a |\n|---|\n| 4.2 TB/s |"),
    (TYPED, "- runs at 610 TFLOP/s"),
    (TYPED, "> reaches 95 % of it"),
    (TYPED, "At 4 terabytes per second."),
    (TYPED, "It is 3.1 times faster."),
    (TYPED, "It is twice as fast."),
    (TYPED, "A speed-up of 2.5x."),
    (TYPED, "It is off by 0.01."),
    (TYPED, '!!! note "After 5 ns"\n\n    Text.'),
    (TYPED, '[x](../index.md "in 4 ms")'),
    (TYPED, "It\n:   takes 5 ns."),
    # Text that looks otherwise than it reads.
    (UNSEEN, "abc \u202e cba"),
    (UNSEEN, "abc &#8238; cba"),
    (UNSEEN, "kern\u200bel"),
    (UNSEEN, "soft\u00adly"),
    (UNSEEN, "tag\U000e0041"),
    (UNSEEN, "own \ue123"),
    # What was meant to be replaced.
    (UNRENDERED, '--8<-- "part/one.py"'),
    (UNRENDERED, "Look at [start:kernel]."),
    (UNRENDERED, "{: .x } y"),
    (UNRENDERED, "<div>\\(x^2\\)</div>"),
    (UNRENDERED, "<p>$$x$$ so</p>"),
    # Addresses.
    (ABROAD, '<a href="javascript:x()">x</a>'),
    (ABROAD, '<a href="data:text/html,<pre>x = 1</pre>">x</a>'),
    (ABROAD, '<a href="vbscript:x">x</a>'),
    ("leads to no file of the site", '<a href="../gone/">x</a>'),
    ("has no anchor 'lost'", '<a href="#lost">x</a>'),
    ("breaks below a sub-path", '<a href="/part/page/">x</a>'),
    ("leaves the site", '<a href="../../../x.html">x</a>'),
    ("needs a / at its end", '<a href="../../part/page">x</a>'),
    ("2 elements have the id", '## Twofold\n\n<span id="twofold">x</span>'),
    ("no line of code is marked", "- x\n{: data-line='gone' }"),
    ("does not link its source", '<a class="stated" href="../">7 ms</a>'),
    # Commands.
    (COMMAND, "```console\n$ rm -r x\n```"),
    ("typed-in output", "```console\n$ make site\ndone\n```"),
]

# Of a page that no build takes: (reason, Markdown).
REFUSED = [
    ("code comes from snippets", "```python\nx = 1\n```"),
    ("code comes from snippets", "- a\n\n    ```python\n    x = 1\n    ```"),
    ("an indented code block", "A\n\n    x = 1\n"),
    ("'markdown' is not published", "````markdown\n```python\nx = 1\n```\n````"),
    ("'text' is not published", "```text\nx = 1\n```"),
    ("without a language", "```\nx = 1\n```"),
    ("its body is computed", '```output from="part/one.py"\nx = 1\n```'),
    ("opens no fence", "```python title=a b\nx"),
    ("a python fence takes", '```python hl_lines="1"\n--8<-- "part/one.py"\n```'),
    ("no such snippet", '```output from="part/gone.py"\n```'),
    ("there is no section 'gone'", '```python\n--8<-- "part/one.py:gone"\n```'),
    ("names no entry", "{stated: 4 TB/s | my own guess}"),
    ("seconds is shown as ms or us", "{measured: part seconds n=4 | TFLOP/s}"),
    ("seconds is shown as ms or us", "{measured: part seconds n=4}"),
    ("there is no record 'prat'", "{measured: prat seconds n=4 | us}"),
    ("no measurement has 'kernle'", "{measured: part seconds kernle=x | us}"),
    ("there is no kernel 'part/tow.py'", "{measured: part n kernel=part/tow.py}"),
    ("part has no measurement with n=5", "{measured: part seconds n=5 | us}"),
    ("'forwrad' is no list", "{measured: part seconds part=forwrad | us}"),
    ("the record has nothing at '/a/b'", "{measured: part /a/b}"),
    ("there is no such snippet", "{measured: error part/tow.py float32}"),
    ("no error of 'float23'", "{measured: error part/one.py float23}"),
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return small_site.sound(tmp_path_factory.getbasetemp() / "sound")


@pytest.fixture(scope="module")
def lying(sound, tmp_path_factory):
    """What the check says of each page with a lie, by its number."""
    root = small_site.copy(sound, tmp_path_factory.mktemp("lying"))
    for number, (_, text) in enumerate(PAGES):
        page = f"# A lie\n\nBefore.\n\n{text}\n"
        (root / f"docs/part/{number}.md").write_text(page, encoding="utf-8")
    small_site.build(root)
    return small_site.found(root)


@pytest.mark.parametrize("number", range(len(PAGES)), ids=lambda n: PAGES[n][1][:40])
def test_a_lie_in_a_page(lying, number):
    rule, _ = PAGES[number]
    found = [f for f in lying if f.path == f"docs/part/{number}.md"]
    assert any(rule in f.reason for f in found), found


def test_no_other_page_is_blamed(lying):
    lies = {f"docs/part/{number}.md" for number in range(len(PAGES))}
    assert {f.path for f in lying} - lies <= {"site/search/search_index.json"}


@pytest.mark.parametrize(("reason", "text"), REFUSED, ids=[t[:40] for _, t in REFUSED])
def test_a_lie_that_no_build_takes(sound, tmp_path, reason, text):
    with pytest.raises(PageError) as caught:
        small_site.convert(sound, text)
    assert reason in str(caught.value)


BUILT = "site/part/page/index.html"
# Edits of the built site: (reason, file, old text, new text).
EDITS = [
    (NOW, BUILT, "zweimal", "dreimal"),
    (NOW, BUILT, "</code></pre>", "\n</code></pre>"),
    (NOW, BUILT, "</code></pre>", "</code></pre><pre>x = 1</pre>"),
    (NOW, BUILT, "<ins>+", "<ins>#"),
    (NOW, BUILT, "is 4", "is 5"),
    (NOW, BUILT, "on Test GPU", "on every GPU"),
    (NOW, BUILT, "badge-verified", "badge-wrong"),
    (NOW, BUILT, 'value="1.5e-06"', 'value="2.5e-06"'),
    (NOW, BUILT, "µs</data>", "9</data>"),
    (NOW, BUILT, "µs</td>", "9</td>"),
    (NOW, BUILT, "<figure data-made", '<figure style="x" data-made'),
    (NOW, BUILT, "snippets/part/one.py", "snippets/part/two.py"),
    (NOW, BUILT, 'cx="5"', 'cx="6"'),
    (KATEX, BUILT, "<mn>2</mn>", "<mn>3</mn>"),
    ("does not link its source", BUILT, 'title="A datasheet', 'title="Nobody'),
    ("is not of this text", BUILT, 'data-source="', 'data-source="0'),
    (FRAME, BUILT, "</header>", "<p>It never fails</p></header>"),
    (FRAME, BUILT, "</footer>", "<pre>x = 1</pre></footer>"),
    (FRAME, BUILT, "</main>", "It never fails</main>"),
    (FRAME, BUILT, "A page with one of everything", "It never fails"),
    (FRAME, BUILT, "<body ", '<body onload="x()" '),
    (FRAME, BUILT, '<nav class="md-nav', '<nav aria-label="It never fails" class="'),
    (FRAME, "site/404.html", "404 - Not found", "It never fails"),
    ("its page does not show", "site/search/search_index.json", "It doubles", "x = 1"),
    ("it has 0 Content-Security", BUILT, '"Content-Security-Policy"', '"x"'),
    ("its policy allows", BUILT, "default-src 'none'", "default-src h.example"),
    ("its policy allows", BUILT, "script-src 'self'", "script-src 'unsafe-inline'"),
    ("its policy lacks", BUILT, "base-uri 'none'; ", ""),
    ("the policy does not know", BUILT, "</head>", "<script>x()</script></head>"),
    ("comes before the policy", BUILT, "<meta charset", "<link><meta charset"),
    ("it is of neither docs", "site/assets/small.css", "body", "p"),
    ("it is of neither docs", "site/snippets/part/one.py", "x + x", "x * x"),
    ("it is of neither docs", f"site/records/{small_site.GPU}/part.json", "4", "5"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "name", "old", "new"), EDITS)
def test_a_lie_in_the_built_site(sound, tmp_path, reason, name, old, new):
    root = small_site.copy(sound, tmp_path / "copy")
    small_site.edit(root, name, old, new)
    found = small_site.found(root)
    assert any(reason in f.reason for f in found), found


@pytest.mark.parametrize("name", ["new.js", "new/index.html", "a.css", "b.png"])
def test_a_file_from_nowhere(sound, tmp_path, name):
    root = small_site.copy(sound, tmp_path / "copy")
    (root / "site" / name).parent.mkdir(exist_ok=True)
    (root / "site" / name).write_text("x = 1")
    assert any("it is of neither docs" in f.reason for f in small_site.found(root))


def test_a_zip_that_is_old(sound, tmp_path):
    root = small_site.copy(sound, tmp_path / "copy")
    data = (root / "site/snippets.zip").read_bytes()
    (root / "site/snippets.zip").write_bytes(data[:-30])
    (found,) = small_site.found(root)
    assert "its files are not those of now" in found.reason


SOUND = """\
Arithmetic is no measurement: 4096 \u00d7 128 numbers of 4 bytes are 2 MiB,
$2x$, and `sleep(3 s)` is code. In the 1990s,
2 \u00d7 3 tiles and rows 1 and 2 s-shaped curves.
It stops after two passes, off by one; with `x = 1` it begins.
`--8<-- "in/code.py"` and `{: .x }` are code.

| call | meaning |
|:-----|--------:|
| `tl.load(x)` | reads |
| `part/one.py` | $\\texttt{BLOCK\\_M}$ |
"""


def test_what_only_looks_like_a_lie(sound, tmp_path):
    root = small_site.copy(sound, tmp_path / "copy")
    (root / "docs/part/fine.md").write_text(f"# Fine\n\n{SOUND}", encoding="utf-8")
    small_site.build(root)
    assert small_site.found(root) == []


def test_the_sound_site_passes_below_any_path(sound, tmp_path, monkeypatch):
    assert small_site.found(sound) == []
    monkeypatch.setenv("SITE_URL", "https://docs.example/below/here/")
    root = small_site.copy(sound, tmp_path / "copy")
    small_site.build(root)
    assert small_site.found(root) == []
