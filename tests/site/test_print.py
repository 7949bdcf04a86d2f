"""On paper: the cheat sheet is one page, and nothing there can be clicked."""

import re

from playwright.sync_api import Page

from tests.site.visit import alive


def test_the_cheat_sheet_is_one_page(page: Page, address: str) -> None:
    page.goto(address + "reference/cheat-sheet/")
    alive(page)
    for paper in ("A4", "Letter"):
        printed = page.pdf(format=paper)
        assert re.findall(rb"/Count (\d+)", printed) == [b"1"]


def test_paper_has_no_buttons(page: Page, address: str) -> None:
    page.goto(address + "softmax/online/")
    alive(page)
    page.emulate_media(media="print")
    assert page.locator(".snippet-actions:visible").count() == 0
