"""The built site in a real browser: the chromium it finds, else Playwright's own."""

import os
import shutil
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, sync_playwright

from tests.site.server import AtTheTop, pages, serve
from tests.site.visit import DESKTOP, Visit


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    with serve() as url:
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
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


NOT_FOUND = "404.html"


@pytest.fixture(
    scope="session", params=[NOT_FOUND, *pages()], ids=lambda path: path or "home"
)
def visit(
    request: pytest.FixtureRequest, browser: Browser, address: str
) -> Iterator[Visit]:
    """Every page of the site, loaded once for all tests that take it as it is."""
    top = request.param == NOT_FOUND
    with serve(AtTheTop) if top else nullcontext(address) as at:
        visit = Visit(browser, at, request.param)
        yield visit
        visit.context.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport=DESKTOP)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()
