"""On a phone wide tables are cards, and those of numbers keep their first column."""

import pytest
from playwright.sync_api import Page, expect

from tests.site.visit import DESKTOP, PHONE

WIDE = """table => table.getBoundingClientRect().right > innerWidth"""
# How far a box scrolls, and how far each cell of its first row moves with it.
MOVES = """box => {
    const row = [...box.querySelector("tbody tr").children];
    const places = () => row.map(cell => cell.getBoundingClientRect().x);
    const before = places();
    box.scrollLeft = box.scrollWidth;
    const after = places();
    return [box.scrollLeft, before.map((x, cell) => x - after[cell])];
}"""


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


def test_a_wide_row_is_a_card(page: Page, address: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(address + "attention/choosing/")
    table = page.locator("table:has(td[data-label])").first
    first, second, *_ = table.locator("tbody > tr").first.locator("td").all()
    assert not table.evaluate(WIDE)
    assert second.bounding_box()["y"] > first.bounding_box()["y"]
    label = second.evaluate("cell => getComputedStyle(cell, '::before').content")
    assert label == '"Take: "'
    page.set_viewport_size(DESKTOP)
    assert table.locator("thead").is_visible()
    assert second.bounding_box()["y"] == first.bounding_box()["y"]


def test_wide_tables_keep_their_first_column(page: Page, address: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(address + "reference/measurements/")
    page.locator("details").evaluate_all("all => all.forEach(it => it.open = true)")
    scrolled = []
    for box in page.locator("figure.measurements .scroll").all():
        far, (name, *numbers) = box.evaluate(MOVES)
        assert name == pytest.approx(0, abs=0.5)
        assert numbers == pytest.approx(len(numbers) * [far], abs=0.5)
        scrolled.append(far)
    assert any(scrolled)
