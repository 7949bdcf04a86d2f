"""On a phone the table of all files is cards, and a wide one keeps its first column."""

from playwright.sync_api import Page, expect

from tests.site.visit import DESKTOP, PHONE

WIDE = """table => table.getBoundingClientRect().right > innerWidth"""


def test_every_file_has_a_card(page: Page, address: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(address + "reference/verification/")
    table = page.locator("table.verification")
    row = table.locator("> tbody > tr").first
    assert not table.evaluate(WIDE)
    assert row.locator("> th").bounding_box()["x"] == row.bounding_box()["x"]
    below = row.locator("> td").first.bounding_box()["y"]
    assert below > row.locator("> th").bounding_box()["y"]
    row.locator("details.badge").click()
    expect(row.locator(".badge-facts")).to_be_visible()
    assert not table.evaluate(WIDE)
    page.set_viewport_size(DESKTOP)
    assert table.locator("> thead").is_visible()


def test_a_wide_table_keeps_its_first_column(page: Page, address: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(address + "softmax/one-row-per-program/")
    box = page.locator("figure.measurements .scroll").first
    name = box.locator("tbody th").first
    before = name.bounding_box()
    box.evaluate("box => { box.scrollLeft = 100 }")
    page.wait_for_function("box => box.scrollLeft === 100", arg=box.element_handle())
    assert name.bounding_box() == before
    page.set_viewport_size(DESKTOP)
