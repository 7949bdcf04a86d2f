"""The check: a sound site passes, and each planted fault is the one that is found."""

import pytest

from tests.machinery import small_site

PAGE = "docs/part/page.md"
BUILT = "site/part/page/index.html"
ONE = "snippets/part/one.py"
RAW = "<pre><code>x = 1</code></pre>"
NO_INCLUDE = "code that is no include of a snippet: 'x = 1'"

# Markdown that builds and is wrong: (name, text, where in it, reason).
IN_PAGES = [
    ("raw pre", RAW, RAW, NO_INCLUDE),
    ("raw pre in a quote", f"> {RAW}", RAW, NO_INCLUDE),
    ("raw pre in a list", f"- a\n\n    - b\n\n        {RAW}", RAW, NO_INCLUDE),
    ("raw pre in a tab", f'=== "Tab"\n\n    {RAW}', RAW, NO_INCLUDE),
    ("raw pre in an admonition", f"!!! note\n\n    {RAW}", RAW, NO_INCLUDE),
    ("raw pre in details", f'??? note "Open"\n\n    {RAW}', RAW, NO_INCLUDE),
    ("textarea", "<textarea>y = 2</textarea>", "y = 2", "no include of a snippet"),
    ("xmp", "<xmp>y = 3</xmp>", "y = 3", "no include of a snippet"),
    ("lines of inline code", "Run `a =\n1` now.", "Run `a =", "inline code of several"),
    ("broken inline code", "<code>a<br>b</code>", "<code>a<br>", "inline code of sev"),
    ("lines of output", "<samp>p<br>q</samp>", "<samp>p<br>", "inline code of sev"),
    ("unknown command", "```console\n$ rm -r x\n```", "$ rm", "README does not list"),
    ("typed output", "```console\n$ make site\ndone\n```", "done", "typed-in output"),
    ("fake badge", '<b class="badge">fine</b>', "fine", "'badge' is the machinery's"),
    ("fake figure", "*7*{: .measured }", ".measured", "'measured' is the machinery's"),
    ("literal include", '--8<-- "part/one.py"', "--8<--", "directive printed"),
    ("literal section", "Look at [start:kernel].", "[start", "directive printed"),
    ("literal admonition", '!!! "No kind"', "No kind", "directive printed"),
    ("literal list", "{: .x } y", "{: .x }", "directive printed"),
    ("raw TeX in HTML", r"<div>\(x^2\)</div>", r"\(x^2\)", "mathematics did not"),
    ("raw TeX in a cell", "<p>$$x$$ so</p>", "$$x$$", "mathematics did not"),
    ("stray command", r"So <i>\alpha</i>.", r"\alpha", "mathematics did not"),
    ("broken link", "[away](nowhere.md)", "nowhere.md", "leads to no file"),
    ("broken anchor", "[away](page.md#nope)", "#nope", "no anchor 'nope'"),
    ("broken raw link", '<a href="../gone/">x</a>', "../gone/", "leads to no file"),
    ("broken raw anchor", '<a href="#lost">x</a>', "#lost", "no anchor 'lost'"),
    ("absolute link", '<a href="/part/page/">x</a>', "/part/page/", "below a sub-path"),
    ("link out", '<a href="../../../x.html">x</a>', "../x.html", "leaves the site"),
    ("no slash", '<a href="../page">x</a>', '"../page"', "needs a / at its end"),
    ("no alt", "![](../assets/dot.png)", "![]", "<img> has no alt text"),
    ("raw no alt", '<img src="data:,">', "data:,", "has no alt text"),
    ("no name", '<svg role="img"><path/></svg>', "<svg role", "has no name"),
    ("neither", "<svg><text>hi</text></svg>", "<svg><text", "neither role="),
    ("image", '<img alt="i" src="https://h1.example/x.png">', "h1.", "another host"),
    ("srcset", '<img alt="i" srcset="//h2.example/x 2x">', "h2.", "another host"),
    ("frame", '<iframe src="http://h3.example"></iframe>', "h3.", "another host"),
    ("style", '<p style="color: url(//h4.example/c)">x</p>', "h4.", "another host"),
    ("sheet", "<style>@import 'http://h5.example';</style>", "h5.", "another host"),
    ("script", '<script>import("https://h6.example/m")</script>', "h6", "another host"),
    ("video", '<video poster="//h7.example/p"></video>', "h7.", "another host"),
    ("lost file", '<video src="no.mp4"></video>', "no.mp4", "leads to no file"),
    ("mermaid", '<div class="mermaid">a</div>', "mermaid", "fetches Mermaid"),
    ("same id", '## Twofold\n\n<i id="twofold">x</i>', "twofold", "2 elem"),
    ("no line", "- x\n{: data-line='gone' }", "'gone'", "points at no line of code"),
    ("no source", '<p title="in 4 ms">x</p>', "in 4 ms", "typed-in measurement '4 ms'"),
    ("time", "It takes 3.5 µs here.", "3.5 µs", "typed-in measurement '3.5 µs'"),
    ("seconds", "It takes 12 s here.", "12 s", "typed-in measurement '12 s'"),
    ("rate", "| a |\n|---|\n| 4.2 TB/s |", "4.2 TB/s", "typed-in measurement '4.2"),
    ("flops", "- runs at 610 TFLOP/s", "610", "typed-in measurement '610 TFLOP"),
    ("words", "At 4 terabytes per second.", "4 tera", "measurement '4 terabytes per"),
    ("share", "> reaches 95 % of it", "95 %", "typed-in measurement '95 %'"),
    ("faster", "It is 3.1 times faster.", "3.1", "typed-in measurement '3.1 times"),
    ("twice", "It is twice as fast.", "twice as", "typed-in measurement 'twice as"),
    ("factor", "A speed-up of 2.5x.", "2.5x", "typed-in measurement '2.5x'"),
    ("error", "It is off by 0.01.", "0.01", "typed-in measurement 'off by 0.01"),
    ("drawn", "<svg role='img' aria-label='a'><text>9 ms</text></svg>", "9 ms", "9 ms"),
    ("in a note", "!!! note\n\n    After 5 ns.", "5 ns", "typed-in measurement '5 ns"),
    ("titled plot", "```plot\nrecord: part\nx: n\ny: seconds\nseries: kernel\n"
     "title: 8 ms\n```", "title: 8 ms", "typed-in measurement '8 ms' in a plot"),
]  # fmt: skip
# Markdown that looks wrong and is not.
SOUND = """\
Arithmetic is no measurement: 4096 \u00d7 128 numbers of 4 bytes are 2 MiB,
$x < 3\\,\\mathrm{s}$, and `sleep(3 s)` is code. In the 1990s,
2 \u00d7 3 tiles and rows 1 and 2 s-shaped curves.
It stops after two passes, off by one. `--8<-- "in/code.py"` and `{: .x }` are code.
"""


KERNEL = '--8<-- "part/one.py:kernel"'
DEMO = '--8<-- "part/one.py:demo"'
DIFF = "```diff"
END = "</article>"
HEAD = "</head>"
JS = "site/assets/small.mjs"
CSS = "site/assets/small.css"
# Edits of the built site: (name, file, old, new, the file found, where in it, reason).
IN_BUILT = [
    ("code", BUILT, "zweimal", "zw", PAGE, KERNEL, "line 2 is"),
    ("a line end", BUILT, "</code></pre>", "\n</code></pre>", PAGE, KERNEL, "5 lines"),
    ("difference", BUILT, "<ins>+", "<ins>#", PAGE, DIFF, "is not the difference of"),
    ("output", BUILT, "is 4", "is 5", PAGE, "```output", "is not that of the record"),
    ("download", BUILT, "base64,", "base64,AAAA", PAGE, KERNEL, "byte for byte"),
    ("its name", BUILT, 'download="one.py"', 'download="1"', PAGE, KERNEL, "called"),
    ("badge", BUILT, "on Test GPU", "on any GPU", PAGE, KERNEL, "badge of part/one.py"),
    ("no badge", BUILT, '"badge ', '"', PAGE, KERNEL, "has 0 badges, not 1"),
    ("figure", BUILT, "1.5e-06", "2e-06", PAGE, "{measured", "now says 1.5e-06"),
    ("its text", BUILT, "µs</data>", "9</data>", PAGE, "{measured", "is not"),
    ("table", BUILT, "µs</td>", "9</td>", PAGE, "```meas", "not that of the"),
    ("source", BUILT, '"a datasheet"', '""', PAGE, "{stated", "names no source"),
    ("line", BUILT, '<span data-line="add">', "<span>", PAGE, "{: data", "no line"),
    ("formula", BUILT, '"katex"', '"katex-error"', PAGE, "$2x", "KaTeX refused"),
    ("old text", BUILT, "It doubles", "It halves", PAGE, "It doubles", "does not have"),
    ("more text", BUILT, END, f"<p>Once.</p>{END}", BUILT, "Once", "not have 'Once"),
    ("notebook cell", BUILT, END, f'<div class="jp-InputArea">{RAW}</div>{END}', BUILT,
     RAW, NO_INCLUDE),
    ("cdn", BUILT, HEAD, f"<script src='//h.example/x.js'></script>{HEAD}", BUILT,
     "h.example", "<script> fetches '//h.example/x.js' from another host"),
    ("fonts", BUILT, HEAD, f"<link rel=preconnect href='https://h.example'>{HEAD}",
     BUILT, "h.example", "<link> fetches 'https://h.example' from another host"),
    ("icon", BUILT, HEAD, f"<link rel=icon href='/favicon.ico'>{HEAD}", BUILT,
     "favicon.ico", "breaks below a sub-path"),
    ("stars", BUILT, END, f'<a data-md-component="source"></a>{END}', BUILT,
     'component="source"', "repo_url makes Material fetch"),
    ("css import", CSS, "body", "@import '//h.example/c';\nbody",
     "docs/assets/small.css", "url(", "fetches '//h.example/c' from another host"),
    ("css font", CSS, "body", "p { src: url(no.woff2) } body",
     "docs/assets/small.css", "url(", "'no.woff2', which leads to no file"),
    ("worker", JS, "export", 'new Worker("https://h.example/w.js"); export',
     "docs/assets/small.mjs", "export", "'https://h.example/w.js' from another host"),
    ("address", JS, "export", 'const u = "//h.example/w"; export',
     "docs/assets/small.mjs", "export", "'//h.example/w' from another host"),
    ("import", JS, "export", 'import x from "./gone.mjs"; export',
     "docs/assets/small.mjs", "export", "'./gone.mjs', which leads to no file"),
]  # fmt: skip
# Edits of the sources that no build is needed for, in the same form.
IN_SOURCES = [
    ("line numbers", PAGE, "```python", '```python hl_lines="1"', PAGE, "hl_lines",
     "name lines by [line:...] markers"),
    ("nav", "mkdocs.yml", "- Page:", "- Lost: lost.md\n  - Page:", "mkdocs.yml",
     "lost.md", "nav names lost.md, which is no page"),
    ("new text", PAGE, "It doubles.", "It doubles. It is new.", PAGE, "It is new",
     "the built page does not have"),
]  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return small_site.sound(tmp_path_factory.getbasetemp() / "sound")


@pytest.fixture
def site(sound, tmp_path):
    return small_site.copy(sound, tmp_path / "copy")


@pytest.fixture(scope="module")
def faulty(sound, tmp_path_factory):
    """A site with a page of all the faults, and one that only looks faulty."""
    root = small_site.copy(sound, tmp_path_factory.mktemp("faulty"))
    small_site.edit(
        root, "mkdocs.yml", "- Page:", "- Faults: part/f.md\n  - Fine: x.md\n  - Page:"
    )
    faults = "\n\n".join(text for _, text, _, _ in IN_PAGES)
    (root / "docs/part/f.md").write_text(f"# Faults\n\n{faults}\n", encoding="utf-8")
    (root / "docs/x.md").write_text(f"# Fine\n\n{SOUND}", encoding="utf-8")
    small_site.build(root)
    return root, small_site.found(root)


def test_the_sound_site_passes(sound):
    assert small_site.found(sound) == []


def test_it_passes_below_a_sub_path(site, monkeypatch):
    monkeypatch.setenv("SITE_URL", "https://docs.example/below/here/")
    small_site.build(site)
    assert small_site.found(site) == []


@pytest.mark.parametrize(("text", "where", "reason"), [f[1:] for f in IN_PAGES], ids=[
    f[0] for f in IN_PAGES
])  # fmt: skip
def test_a_fault_in_a_page(faulty, text, where, reason):
    root, found = faulty
    source = (root / "docs/part/f.md").read_text(encoding="utf-8")
    at = source.index(f"\n\n{text}\n") + 2
    line = source.count("\n", 0, source.index(where, at)) + 1
    here = [f for f in found if f.path == "docs/part/f.md" and f.line == line]
    assert [reason in f.reason for f in here] == [True], (line, here)


def test_no_other_fault_is_found(faulty):
    _, found = faulty
    assert {f.path for f in found} == {"docs/part/f.md"}
    assert len(found) == len(IN_PAGES)


@pytest.mark.parametrize(
    ("name", "old", "new", "path", "where", "reason"),
    [f[1:] for f in IN_BUILT + IN_SOURCES],
    ids=[f[0] for f in IN_BUILT + IN_SOURCES],
)
def test_a_fault_in_a_file(site, name, old, new, path, where, reason):
    small_site.edit(site, name, old, new)
    found = small_site.found(site)
    assert len(found) == 1, found
    assert reason in found[0].reason
    assert found[0].path == path
    read = name if path.startswith("docs/assets") else path
    assert found[0].line == small_site.line_of(site / read, where)


def test_a_library_may_name_addresses_but_not_fetch_them(site):
    path = site / "site/assets/vendor/library.js"
    path.parent.mkdir()
    path.write_text('var home = "https://a.example/";\nimportScripts("//h.example/w");')
    found = [str(f) for f in small_site.found(site)]
    assert found == [
        "site/assets/vendor/library.js:2: fetches '//h.example/w' from another host"
    ]
