"""On paper: the cheat sheet is one page, and nothing there can be clicked."""

import re

from playwright.sync_api import Page

from tests.site.visit import go


def test_the_cheat_sheet_is_one_page(page: Page, address: str) -> None:
    go(page, address + "reference/cheat-sheet/")
    for paper in ("A4", "Letter"):
        printed = page.pdf(format=paper)
        assert re.findall(rb"/Count (\d+)", printed) == [b"1"]


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


def test_paper_is_light_and_unfolded_and_has_no_buttons(
    page: Page, address: str
) -> None:
    page.emulate_media(reduced_motion="reduce")
    go(page, address + "softmax/online/")
    light, dark = page.evaluate(PAINTED)
    assert light != dark
    folds = page.locator("details:not(.badge) > :not(summary)")
    assert not folds.first.is_visible()
    # The theme opens badges before a page is printed.
    page.evaluate("document.querySelector('details.badge').open = true")
    page.emulate_media(media="print")
    light, dark = page.evaluate(PAINTED)
    assert light == dark
    assert all(fold.bounding_box()["height"] for fold in folds.all())
    assert not page.locator(".badge-facts").first.is_visible()
    assert page.locator(".snippet-actions:visible").count() == 0
