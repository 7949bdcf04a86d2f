"""What the build adds: the line below a title, links of terms, the map at home."""

import re
from types import SimpleNamespace

import pytest
from markdown import Markdown
from markdown.treeprocessors import Treeprocessor

from tests.machinery.repository import Repository
from verified_docs.pages.errors import PageError
from verified_docs.pages.ladder import Navigation, render
from verified_docs.pages.opening import PACE, Opening
from verified_docs.pages.site import Site
from verified_docs.pages.terms import Terms

NAV = [
    {"Home": "index.md"},
    {"One": [{"First": "one/a.md"}, {"Second: it's longer": "one/b.md"}]},
    {"Two": [{"Third": "two/c.md"}]},
    {"Reference": [{"Glossary": "reference/glossary.md"}]},
]
ENTRIES = ("Softcap", "Copy")
GPU_ENTRIES = (
    "Warp",
    "Warp group",
    "Matrix unit (tensor core, MMA) { #matrix-unit }",
    "L2 cache",
)


class Built(Repository):
    """A page below docs/ with its front matter, as MkDocs has it made."""

    goal = ""

    def __call__(self, text, front="idea: it\ngives: all of it", page="one/b.md"):
        self.write({f"docs/{page}": f"---\n{front}\n---\n\n{text}"})
        md = Markdown(extensions=["pymdownx.details", "tables", "attr_list"])
        relpath = Treeprocessor(md)
        relpath.file = SimpleNamespace(src_uri=page)
        navigation = Navigation(self.root / "docs", NAV, self.goal)
        site = Site(self.evidence(), navigation, everyday=["copy"])
        md.treeprocessors.register(Terms(md, site), "terms", 5)
        md.treeprocessors.register(Opening(md, site), "opening", 4)
        md.treeprocessors.register(relpath, "relpath", 0)
        return md.convert(text)


@pytest.fixture
def built(tmp_path) -> Built:
    built = Built(tmp_path)
    for name, entries in (("glossary", ENTRIES), ("glossary-gpu", GPU_ENTRIES)):
        text = "\n".join(f"### {each}" for each in entries)
        built.write({f"docs/reference/{name}.md": text})
    return built


def opening(html: str) -> str:
    return "".join(re.findall(r'<div class="quiet".*?</div>', html))


def test_a_page_needs_the_one_before_it_in_its_part(built):
    html = built("# B\n\nSome words.")
    assert html.index("<h1>") < html.index("quiet") < html.index("Some words")
    line = opening(html)
    assert "<strong>1 min</strong>" in line
    assert 'You need: <a href="a.md">First</a>. You will have: all of it.' in line
    assert "You need" not in opening(built("# A", page="one/a.md"))
    assert "You need" not in opening(built("# C", page="two/c.md"))


def test_a_page_says_what_it_needs(built):
    front = "gives: it\nneeds: [one/b.md, two/c.md]"
    line = opening(built("# C", front, "one/a.md"))
    assert '<a href="b.md">Second</a>, <a href="../two/c.md">Third</a>.' in line
    with pytest.raises(PageError, match=r"one/a\.md: needs: two/d\.md, which is no"):
        built("# A", "gives: it\nneeds: [two/d.md]", "one/a.md")
    with pytest.raises(PageError, match=r"one/a\.md: front matter: no YAML"):
        built("# A", "gives: a norm: fast", "one/a.md")


def test_a_side_road_says_where_the_short_way_goes_on(built):
    built.goal = "two/c.md"
    built.write(
        {f"docs/{page}.md": "---\nidea: it\n---\n" for page in ("one/a", "two/c")}
    )
    line = opening(built("# B"))
    third = '<a href="../two/c.md">Third</a>'
    assert f"short way to {third} goes on with {third}." in line
    rung = "idea: it\ngives: it"
    # The goal, no rung, and a page that the navigation lacks, as MkDocs then says.
    for text, page in ((rung, "two/c.md"), ("gives: it", "one/b.md"), (rung, "x.md")):
        assert "short way" not in opening(built("# X", text, page))


def test_the_short_way_is_made_of_what_pages_need(built):
    rung, nav = "---\nidea: it\n---\n", (built.root / "docs", NAV, "one/b.md")
    needs = "---\nidea: it\nneeds: [two/c.md]\n---\n"
    built.write({"docs/one/a.md": rung, "docs/one/b.md": needs, "docs/two/c.md": rung})
    assert Navigation(*nav).way == ["one/b.md", "two/c.md"]
    # Without `needs` a page needs the one before it, which may be no rung.
    built.write({"docs/one/b.md": rung})
    assert Navigation(*nav).way == ["one/a.md", "one/b.md"]
    built.write({"docs/one/a.md": "# A\n"})
    assert Navigation(*nav).way == ["one/b.md"]
    shown = render(Navigation(*nav), "../")
    assert 'way to <a href="../one/b/">Second</a>, 1 pages.' in shown
    assert '<strong><a href="../one/b/">' in shown
    assert '<li><a href="../two/c/">' in shown
    with pytest.raises(PageError, match=r"one/a\.md, which is no rung"):
        render(Navigation(*nav[:2], "one/a.md"))


def test_what_is_folded_takes_no_time(built):
    words = "word " * PACE * 2
    assert "<strong>3 min" in opening(built(f"# B\n\n{words}"))
    assert "<strong>1 min" in opening(built(f'# B\n\n??? note "N"\n\n    {words}'))
    # A page that gives nothing has no line.
    assert opening(built("# B", "idea: it")) == opening(built("No title.")) == ""


def test_the_first_place_of_a_term_is_a_link(built):
    words = "The *warps*, a warp group; a warp and\ntensor\ncores.\n\nMMA. An L2 cache."
    html = built(f"# B\n\n{words}")
    link = '<a class="term" href="../reference/glossary-gpu.md#'
    assert f'<em>{link}warp">warps</a></em>, a {link}warp-group">warp group</a>' in html
    assert "; a warp and" in html
    assert f'{link}matrix-unit">tensor\ncores</a>.' in html
    assert f'An {link}l2-cache">L2 cache</a>.' in html
    assert html.count(link) == 4
    # One that is linked is not linked again.
    html = built("# B\n\nA warp. A [group](../reference/glossary-gpu.md#warp).")
    assert '<p>A warp. A <a class="term" href=' in html
    assert html.count("term") == 1


def test_each_glossary_has_terms_and_may_lead_to_the_other(built):
    html = built("# B\n\nA warp, a softcap.")
    assert 'href="../reference/glossary-gpu.md#warp">warp</a>' in html
    assert 'href="../reference/glossary.md#softcap">softcap</a>' in html
    text = "# G\n\n[A](#softcap), a warp, [warps](glossary-gpu.md#warp)."
    html = built(text, "description: terms", "reference/glossary.md")
    assert html.count("term") == 1
    assert '<a class="term" href="glossary-gpu.md#warp">warps</a>' in html


def test_what_is_no_place_for_a_term(built):
    for text in (
        "# A warp",
        "`warp`",
        "[a warp](a.md)",
        "Warped, non-warp and warp-wide",
        '??? note "Warp"\n\n    A warp.',
        "| warp |\n|---|\n| a warp |",
        '- a warp\n{: data-line="x" }',
        "A copy.",
    ):
        assert "glossary" not in built(text)
    # They are linked on rungs.
    assert "glossary" not in built("A warp.", "gives: it")


def test_rungs_are_numbered_in_the_order_of_the_navigation(built):
    rung = "---\nidea: begin & end\n---\n"
    again = '{"metadata": {"page": {"idea": "it", "after": "one/b.md"}}}'
    pages = {"one/a.md": rung, "one/b.md": rung, "two/d.ipynb": again}
    for name in ("index.md", "two/c.md"):
        pages[name] = "---\ndescription: no rung\n---\n"
    built.write({f"docs/{name}": text for name, text in pages.items()})
    more = {"Three": [{"A <1>": "two/d.ipynb"}]}
    nav = Navigation(built.root / "docs", [*NAV, more])
    shown = render(nav)
    assert re.findall('"ladder-part">(.*?)<', shown) == ["One", "Three"]
    first, second = '<a href="one/a/">First</a><span>begin &amp; end</span>', "one/b/"
    assert shown.index(first) < shown.index(second) < shown.index("two/d/")
    assert "A &lt;1&gt;</a><span>it <small>after One 2</small></span>" in shown
    built.write({"docs/two/d.ipynb": again.replace("one/b", "two/c")})
    with pytest.raises(PageError, match=r"two/d.ipynb: after: two/c.md"):
        render(nav)
