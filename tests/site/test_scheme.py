"""Light or dark: as the system has it, until the reader chooses."""

import pytest
from playwright.sync_api import Page

SCHEME = "document.body.dataset.mdColorScheme"


@pytest.mark.parametrize(("system", "name"), [("light", "default"), ("dark", "slate")])
def test_the_first_visit_follows_the_system(
    page: Page, address: str, system: str, name: str
) -> None:
    page.emulate_media(color_scheme=system)
    # Scripts that are not on the page itself: it needs none of them.
    page.route("**/*js", lambda route: route.abort())
    page.goto(address)
    assert page.evaluate(SCHEME) == name
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == (
        system
    )


def test_the_choice_is_remembered(page: Page, address: str) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(address)
    page.get_by_title("Switch to the dark scheme").click()
    assert page.evaluate(SCHEME) == "slate"
    page.goto(address + "softmax/online/")
    assert page.evaluate(SCHEME) == "slate"
    page.get_by_title("Switch to the light scheme").click()
    assert page.evaluate(SCHEME) == "default"


def test_the_keyboard_switches(page: Page, address: str) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(address)
    page.get_by_role("radio", name="Switch to the dark scheme").focus()
    page.keyboard.press("Enter")
    assert page.evaluate(SCHEME) == "slate"
    page.keyboard.press("Enter")
    assert page.evaluate(SCHEME) == "default"
