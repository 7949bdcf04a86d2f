"""The button for dark and light, which is the site's own."""

import pytest
from playwright.sync_api import Browser, Error, expect

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
    errors: list[Error] = []
    with browser.new_page(color_scheme="dark") as page:
        page.add_init_script(storage)
        page.on("pageerror", lambda error: errors.append(error))
        go(page, address)
        assert page.evaluate(LOOKS) == DARK
        page.emulate_media(color_scheme="light")
        # A later frame tells the page of it.
        body = page.locator("body")
        expect(body).to_have_attribute("data-md-color-scheme", "default")
        assert page.evaluate(LOOKS) == LIGHT
        page.get_by_role("button", name="Dark scheme").click()
        assert page.evaluate(LOOKS) == DARK
        go(page, address + "take/")
        assert page.evaluate(LOOKS) == (LIGHT if storage else DARK)
    assert errors == []
