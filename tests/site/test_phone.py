"""On a phone wide tables are cards, and those of numbers keep their first column."""

import pytest
from playwright.sync_api import Page, expect

from tests.site.visit import DESKTOP, PHONE, UNFOLD

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


@pytest.mark.parametrize(
    ("path", "selector", "label"),
    [
        ("reference/verification/", "table.verification", "none"),
        ("attention/choosing/", "table:has(td[data-label])", '"Take: "'),
    ],
)
def test_a_wide_row_is_a_card(
    page: Page, address: str, path: str, selector: str, label: str
) -> None:
    page.set_viewport_size(PHONE)
    page.goto(address + path)
    page.evaluate(UNFOLD)
    table = page.locator(selector).first
    row = table.locator("> tbody > tr").first
    first, second, *_ = row.locator("> *").all()
    assert not table.evaluate(WIDE)
    assert first.bounding_box()["x"] == row.bounding_box()["x"]
    assert second.bounding_box()["y"] > first.bounding_box()["y"]
    shown = second.evaluate("cell => getComputedStyle(cell, '::before').content")
    assert shown == label
    for badge in row.locator("details.badge").all():
        expect(badge.locator(".badge-facts")).to_be_visible()
        assert not table.evaluate(WIDE)
    page.set_viewport_size(DESKTOP)
    assert table.locator("> thead").is_visible()


def test_wide_tables_keep_their_first_column(page: Page, address: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(address + "reference/measurements/")
    page.evaluate(UNFOLD)
    scrolled = []
    for box in page.locator("figure.measurements .scroll").all():
        far, (name, *numbers) = box.evaluate(MOVES)
        assert name == pytest.approx(0, abs=0.5)
        assert numbers == pytest.approx(len(numbers) * [far], abs=0.5)
        scrolled.append(far)
    assert any(scrolled)
