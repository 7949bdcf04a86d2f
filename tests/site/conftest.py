"""The built site in a real browser: the chromium it finds, else Playwright's own."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright

from tests.site.server import serve
from tests.site.visit import DESKTOP, PHONE


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    with serve() as url:
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"),
                # Each worker has a processor, and its scripts no more than that.
                args=["--no-sandbox", "--js-flags=--single-threaded"],
            )
        except Error as error:
            reason = (
                "browser tests need chromium: `apt-get install chromium` or "
                f"`playwright install chromium` ({str(error).splitlines()[0]})"
            )
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def used(browser: Browser) -> Iterator[Page]:
    """A tab for test after test; to begin with another takes a second."""
    with browser.new_page(
        viewport=DESKTOP,
        color_scheme="light",
        permissions=["clipboard-read", "clipboard-write"],
    ) as page:
        yield page


@pytest.fixture
def page(used: Page) -> Iterator[Page]:
    """A tab for one test, which may do with it as it likes; no script may break."""
    errors: list[Error] = []

    def broken(error: Error) -> None:
        errors.append(error)

    used.on("pageerror", broken)
    yield used
    used.remove_listener("pageerror", broken)
    used.unroute_all()
    used.emulate_media(media="null")
    used.set_viewport_size(DESKTOP)
    used.goto("about:blank")
    assert errors == []


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """A tab of a phone, which a finger touches."""
    with browser.new_page(viewport=PHONE, has_touch=True, is_mobile=True) as page:
        yield page
