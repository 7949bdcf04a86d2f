"""What the site's own templates add: the card of a link, and ways to the repository."""

import re
import shutil

import pytest

from tests.machinery.repository import ROOT
from tests.machinery.small_site import PAGE, SmallSite

HOST = "https://github.com/someone/kernels"
LINKS = {f"{HOST}/{end}" for end in ("", "edit/main/" + PAGE, "issues/new?title=Page")}


@pytest.fixture
def dressed(site: SmallSite) -> SmallSite:
    """The small site with the templates of this one."""
    shutil.copytree(ROOT / "overrides", site.root / "overrides")
    site.edit("mkdocs.yml", "  font: false", "  font: false\n  custom_dir: overrides")
    return site


def built(site: SmallSite) -> str:
    site.build()
    return site.read("site/part/page/index.html")


def test_a_link_to_a_page_has_a_card_and_a_repository_has_links(dressed):
    page = built(dressed)
    assert (ROOT / "docs/assets/card.png").is_file()
    card = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]*)">', page))
    assert card["title"] == "Page"
    assert card["description"] == "A page with one of everything."
    assert card["image"] == "http://127.0.0.1:8000/assets/card.png"
    assert not any(each in page for each in ("issues/new", "md-source", "/edit/"))
    dressed.edit("mkdocs.yml", "theme:\n", f"repo_url: {HOST}/\ntheme:\n")
    page = built(dressed)
    assert set(re.findall(r'href="([^"]*)"', page)) >= LINKS
    # The theme would ask the host for its stars.
    assert 'data-md-component="source"' not in page
