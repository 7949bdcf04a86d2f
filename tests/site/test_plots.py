"""Plots: values for pointer, touch and keyboard."""

import pytest
from playwright.sync_api import Locator, Page

from tests.site.visit import go

PAGE = "attention/choosing/"


@pytest.fixture
def plot(page: Page, address: str) -> Locator:
    """The first plot of a page, in a window as wide as a desk has."""
    go(page, address + PAGE)
    plot = page.locator("figure.plot").first
    plot.scroll_into_view_if_needed()
    page.evaluate("document.fonts.ready.then(() => null)")
    return plot


def shown(plot: Locator) -> list[str]:
    """The columns whose values are seen."""
    columns = plot.locator("svg:visible .plot-column")
    seen = columns.filter(has=plot.page.locator("text:visible"))
    return [each.get_attribute("aria-label") or "" for each in seen.all()]


def test_a_column_shows_its_values_to_pointer_and_keyboard(plot: Locator) -> None:
    page = plot.page
    columns = plot.locator("svg:visible .plot-column")
    names = [each.get_attribute("aria-label") for each in columns.all()]
    assert len(names) > 3
    assert shown(plot) == names[-1:]
    box = plot.bounding_box()
    for n, name in enumerate(names):
        columns.nth(n).locator("rect").hover()
        assert shown(plot) == [name]
    page.mouse.move(0, 0)
    columns.first.focus()
    for name in names:
        assert shown(plot) == [name]
        page.keyboard.press("Tab")
    # The pointer is asked before the focus.
    columns.nth(1).focus()
    columns.nth(2).locator("rect").hover()
    assert shown(plot) == names[2:3]
    assert plot.bounding_box() == box


def test_a_finger_shows_the_values_of_a_column(phone: Page, address: str) -> None:
    go(phone, address + PAGE)
    plot = phone.locator("figure.plot").first
    column = plot.locator("svg:visible .plot-column").nth(2)
    column.locator("rect").tap()
    assert shown(plot) == [column.get_attribute("aria-label")]
