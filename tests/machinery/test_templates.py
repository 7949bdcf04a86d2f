"""What the site's own templates add: the card of a link, and ways to the repository."""

import re
import shutil

import pytest

from tests.machinery.repository import ROOT
from tests.machinery.small_site import PAGE, SmallSite
from verified_docs.check import findings

HOST = "https://github.com/someone/kernels"
LINKS = {f"{HOST}/{end}" for end in ("", "edit/main/" + PAGE, "issues/new?title=Page")}
NEEDED = ("docs/assets/javascripts/search.js", "docs/assets/card.png")


@pytest.fixture
def dressed(site: SmallSite) -> SmallSite:
    """The small site with the templates of this one."""
    shutil.copytree(ROOT / "overrides", site.root / "overrides")
    template = site.read("overrides/main.html")
    fonts = re.findall(r'"([\w-]+-(?:wght|\d+))"', template)
    made = [f"fonts/{font}-normal.woff2" for font in fonts]
    of_formulas = re.findall(r'"(\w+-(?:Regular|Italic))"', template)
    made += [f"katex/fonts/KaTeX_{font}.woff2" for font in of_formulas]
    site.write({f"docs/assets/vendor/{name}": b"" for name in made})
    site.write({name: (ROOT / name).read_bytes() for name in NEEDED})
    site.edit("mkdocs.yml", "  font: false", "  font: false\n  custom_dir: overrides")
    return site


def built(site: SmallSite) -> str:
    site.build()
    assert findings(site.root, site.root / "site") == []
    return site.read("site/part/page/index.html")


def test_a_link_to_a_page_has_a_card_and_a_repository_has_links(dressed):
    page = built(dressed)
    card = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]*)">', page))
    assert card["title"] == "Page"
    assert card["description"] == "A page with one of everything."
    assert card["image"] == "http://127.0.0.1:8000/assets/card.png"
    assert (dressed.root / "site/assets/card.png").is_file()
    assert not any(each in page for each in ("issues/new", "md-source", "/edit/"))
    dressed.edit("mkdocs.yml", "theme:\n", f"repo_url: {HOST}/\ntheme:\n")
    page = built(dressed)
    assert set(re.findall(r'href="([^"]*)"', page)) >= LINKS
    # The theme would ask the host for its stars.
    assert 'data-md-component="source"' not in page
