"""The button for dark and light, which is the site's own."""

import pytest
from playwright.sync_api import Browser, expect

from tests.site.visit import go

LOOKS = """() => [document.body.dataset.mdColorScheme,
    document.querySelector('#dark').ariaPressed === 'true']"""
DARK, LIGHT = ["slate", True], ["default", False]
REFUSED = """Object.defineProperty(window, "localStorage", {
    get() { throw new DOMException("denied", "SecurityError") } })"""


@pytest.mark.parametrize("storage", ["", REFUSED], ids=["kept", "refused"])
def test_the_scheme_is_the_systems_until_the_reader_chooses(
    browser: Browser, address: str, storage: str
) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.add_init_script(storage)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    go(page, address)
    assert page.evaluate(LOOKS) == DARK
    page.emulate_media(color_scheme="light")
    # A later frame tells the page of it.
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "default")
    assert page.evaluate(LOOKS) == LIGHT
    page.get_by_role("button", name="Dark scheme").click()
    assert page.evaluate(LOOKS) == DARK
    go(page, address + "take/")
    assert page.evaluate(LOOKS) == (LIGHT if storage else DARK)
    assert errors == []
    context.close()
