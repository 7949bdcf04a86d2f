"""The figures that compute in the browser: their numbers are those of the formulas."""

import math
import struct

import pytest
from playwright.sync_api import Browser, Page, expect

VALUES = [0.1, 1 / 3, 2049.0, 2051.0, 65519.0, 65520.0, 6e-5, 3.1e-8, 2.9e-8, 1e39]
PAGES = SHIFT, ROOFLINE = "softmax/definition/", "start/memory-and-speed/"
FORMATS = {"e": [11, 15], "f": [24, 127]}  # the codes of struct: bits, largest exponent
pages = pytest.mark.parametrize("path", PAGES)


def stored(code: str, value: float) -> float:
    """What is left of a value in a format."""
    try:
        return float(*struct.unpack(code, struct.pack(code, value)))
    except OverflowError:
        return math.inf


@pytest.mark.parametrize("code", FORMATS)
def test_numbers_are_rounded_as_they_are_stored(
    page: Page, address: str, code: str
) -> None:
    page.goto(address + SHIFT)
    rounded = """async ([address, values, format]) => {
        const { rounded } = await import(address + "assets/javascripts/shift.mjs")
        return values.map(value => rounded(value, format))
    }"""
    found = page.evaluate(rounded, [address, VALUES, FORMATS[code]])
    assert found == [stored(code, value) for value in VALUES]


def test_a_shift_by_the_maximum_saves_every_format(page: Page, address: str) -> None:
    page.goto(address + SHIFT)
    figure = page.locator("verified-shift > .replay")
    figure.get_by_role("button", name="large").click()
    expect(figure.locator(".bad")).to_have_count(3)  # all but float64
    figure.get_by_role("button", name="c = the maximum").click()
    expect(figure.locator(".bad")).to_have_count(0)
    row = [70, 85, 89, 91]
    terms = [math.exp(x - 91) for x in row]
    weights = " ".join(f"{term / sum(terms):.3f}" for term in terms)
    assert weights in figure.locator(".name").last.text_content()
    assert figure.get_by_role("slider", name="Shift c").input_value() == "91"


def test_a_kernel_is_where_its_formula_puts_it(page: Page, address: str) -> None:
    page.goto(address + ROOFLINE)
    figure = page.locator("verified-roofline")
    said = figure.locator(".replay-say")
    said.filter(has_text="0.625 FLOPs per byte. At most 3 TFLOP/s").wait_for()
    figure.get_by_role("button", name="matrix product").click()
    figure.get_by_role("button", name="bf16").click()
    slider = figure.get_by_role("slider")
    for n in (16, 32, 64):
        assert slider.get_attribute("aria-valuetext") == str(n)
        said.filter(has_text=f"{2 * n / 6:.3g} FLOPs per byte").wait_for()
        slider.press("ArrowRight")
    slider.press("End")
    said.filter(has_text="At most 989 TFLOP/s, 100 % of the roof").wait_for()


@pages
def test_without_scripts_a_figure_is_as_it_begins(
    browser: Browser, address: str, page: Page, path: str
) -> None:
    page.goto(address + path)
    begun = page.locator(".replay > .replay-say").filter(has_text=" ")
    with browser.new_page(java_script_enabled=False) as still:
        still.goto(address + path)
        expect(still.locator(".replay-still svg")).to_be_visible()
        expect(still.locator(".replay-still p")).to_have_text(begun.text_content())
    expect(page.locator(".replay-still")).to_be_hidden()


@pages
def test_on_paper_nothing_is_drawn(page: Page, address: str, path: str) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(address + path)
    drawn = page.locator(":is(verified-shift, verified-roofline) .replay .dot").first
    for media in ("null", "print", "null"):
        page.emulate_media(media=media)
        page.evaluate(
            "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
        )
        expect(drawn).to_be_visible(visible=media == "null")
    assert said == []
