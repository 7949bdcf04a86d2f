"""Plots: values for pointer, touch and keyboard, and labels that can be read."""

from collections.abc import Iterator
from itertools import combinations

import pytest
from playwright.sync_api import Locator, Page

from tests.site.server import pages, read
from tests.site.visit import PHONE, alive

PAGE = "attention/choosing/"
PLOTTED = [path for path in pages() if 'class="plot"' in read(path)]
SMALL = {"width": 360, "height": 740}
SMALLEST = 11  # pixels of a letter's size

# The letters' size, the text, and the box of every text of a picture that is seen.
TEXTS = """() => [...document.querySelectorAll("figure.plot > svg, figure.heat")].map(
    picture => [...picture.querySelectorAll("text:not(:has(tspan[y])), tspan[y], th, li, "
        + "td > *")].filter(text => text.checkVisibility({visibilityProperty: true})).map(
    text => {
        const { left, top, right, bottom } = text.getBoundingClientRect()
        const svg = text.ownerSVGElement
        const scale = svg ? svg.getScreenCTM().a : 1
        const size = parseFloat(getComputedStyle(text).fontSize) * scale
        return { text: text.textContent, left, top, right, bottom, size }
    }))"""
# How far what is on the page has moved, as a browser counts it.
SHIFTS = """() => new Promise(done => {
    new PerformanceObserver(list => done(list.getEntries().length))
        .observe({ type: "layout-shift", buffered: true })
    setTimeout(() => done(0), 200)
})"""


@pytest.fixture
def plot(page: Page, address: str) -> Iterator[Locator]:
    """The first plot of a page, in a window as wide as a desk has."""
    page.goto(address + PAGE)
    alive(page)
    plot = page.locator("figure.plot").first
    plot.scroll_into_view_if_needed()
    yield plot


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
    before = page.evaluate("[scrollX, document.documentElement.scrollHeight]")
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
    assert page.evaluate("[scrollX, document.documentElement.scrollHeight]") == before
    assert page.evaluate(SHIFTS) == 0


def test_the_values_are_those_of_the_table(plot: Locator) -> None:
    plot.locator("summary").click()
    rows = {
        row.locator("th").inner_text().rpartition("/")[2].removesuffix(".py"): [
            cell.inner_text() for cell in row.locator("td").all()
        ]
        for row in plot.locator("tbody tr").all()
    }
    for n, column in enumerate(plot.locator("svg:visible .plot-column").all()):
        _, _, said = (column.get_attribute("aria-label") or "").partition(": ")
        pairs = {f"{name} {cells[n]}" for name, cells in rows.items()}
        assert set(said.split(", ")) == pairs


def test_a_finger_shows_the_values_of_a_column(page: Page, address: str) -> None:
    browser = page.context.browser
    assert browser
    phone = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    touched = phone.new_page()
    touched.goto(address + PAGE)
    alive(touched)
    plot = touched.locator("figure.plot").first
    column = plot.locator("svg:visible .plot-column").nth(2)
    column.locator("rect").tap()
    assert shown(plot) == [column.get_attribute("aria-label")]
    phone.close()


@pytest.mark.parametrize("path", PLOTTED, ids=lambda path: path or "home")
@pytest.mark.parametrize("width", [1440, 768, 360])
def test_texts_of_pictures_are_large_enough_and_apart(
    page: Page, address: str, path: str, width: int
) -> None:
    page.set_viewport_size(SMALL | {"width": width})
    page.goto(address + path)
    alive(page)
    page.evaluate("document.fonts.ready.then(() => null)")
    page.evaluate(
        "document.querySelectorAll('details').forEach(d => { d.open = true })"
    )
    pictures = [picture for picture in page.evaluate(TEXTS) if picture]
    assert pictures
    small, over = [], []
    for picture in pictures:
        small += [each["text"] for each in picture if each["size"] < SMALLEST]
        over += [
            (one["text"], other["text"])
            for one, other in combinations(picture, 2)
            # The lines of letters stand closer than their boxes, by a few pixels.
            if min(one["right"], other["right"]) - max(one["left"], other["left"]) > 1
            and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > 5
        ]
    assert small == []
    assert over == []
