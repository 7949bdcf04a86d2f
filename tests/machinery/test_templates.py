"""What the site's own templates add: the card of a link, and ways to the repository."""

import re
import shutil

from tests.machinery.repository import ROOT
from tests.machinery.small_site import PAGE

HOST = "https://github.com/someone/kernels"
LINKS = {f"{HOST}/{end}" for end in ("", "edit/main/" + PAGE, "issues/new?title=Page")}


def test_a_link_to_a_page_has_a_card_and_a_repository_has_links(site):
    def built() -> str:
        site.build()
        return site.read("site/part/page/index.html")

    shutil.copytree(ROOT / "overrides", site.root / "overrides")
    site.edit("mkdocs.yml", "  font: false", "  font: false\n  custom_dir: overrides")
    page = built()
    assert (ROOT / "docs/assets/card.png").is_file()
    card = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]*)">', page))
    assert card["title"] == "Page"
    assert card["description"] == "A page with one of everything."
    assert card["image"] == "http://127.0.0.1:8000/assets/card.png"
    assert not any(each in page for each in ("issues/new", "md-source", "/edit/"))
    site.edit("mkdocs.yml", "theme:\n", f"repo_url: {HOST}/\ntheme:\n")
    page = built()
    assert set(re.findall(r'href="([^"]*)"', page)) >= LINKS
    # The theme would ask the host for its stars.
    assert 'data-md-component="source"' not in page
