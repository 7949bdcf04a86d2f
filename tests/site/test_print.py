"""On paper: the cheat sheet is one page, and nothing there can be clicked."""

import re

from playwright.sync_api import Page

from tests.site.visit import go


def test_the_cheat_sheet_is_one_page(page: Page, address: str) -> None:
    go(page, address + "reference/cheat-sheet/")
    for paper in ("A4", "Letter"):
        printed = page.pdf(format=paper)
        assert re.findall(rb"/Count (\d+)", printed) == [b"1"]


def test_paper_has_no_buttons(page: Page, address: str) -> None:
    go(page, address + "softmax/online/")
    page.emulate_media(media="print")
    assert page.locator(".snippet-actions:visible").count() == 0


# The colours of everything, in both schemes, of one and the same moment.
PAINTED = """() => {
    const all = [...document.querySelectorAll("body, article, article *")]
    return ["default", "slate"].map(scheme => {
        document.body.dataset.mdColorScheme = scheme
        return all.map(each => {
            const { color, backgroundColor } = getComputedStyle(each)
            return [color, backgroundColor]
        }).join()
    })
}"""


def test_paper_is_light_in_the_dark_scheme(page: Page, address: str) -> None:
    page.emulate_media(reduced_motion="reduce")
    go(page, address + "softmax/online/")
    light, dark = page.evaluate(PAINTED)
    assert light != dark
    page.emulate_media(media="print")
    light, dark = page.evaluate(PAINTED)
    assert light == dark


def test_what_is_folded_is_unfolded_on_paper(page: Page, address: str) -> None:
    go(page, address + "softmax/online/")
    folds = page.locator("details:not(.badge) > :not(summary)")
    badge = page.locator(".badge-facts").first
    assert not folds.first.is_visible()
    page.emulate_media(media="print")
    assert all(fold.bounding_box()["height"] for fold in folds.all())
    assert not badge.is_visible()
