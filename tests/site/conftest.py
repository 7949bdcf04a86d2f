"""The built site in a real browser: the chromium it finds, else Playwright's own."""

import os
import shutil
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.site.server import pages, serve
from tests.site.visit import DESKTOP, PHONE, Visit


class ByPage(LoadScopeScheduling):
    """One worker sees all of a page, whose name ends what a test of it is called.

    Not by marks: --dist loadgroup of pytest-xdist 3.8 does nothing under pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("[")[2] or nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByPage:
    return ByPage(config, log)


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


def tab(browser: Browser) -> Iterator[Page]:
    """A tab of its own; to begin with another takes a second of the processor's."""
    context = browser.new_context(
        viewport=DESKTOP,
        color_scheme="light",
        permissions=["clipboard-read", "clipboard-write"],
    )
    yield context.new_page()
    context.close()


visited = pytest.fixture(tab, scope="session", name="visited")
used = pytest.fixture(tab, scope="session", name="used")


NOT_FOUND = "404.html"
PAGES = [pytest.param(path, id=path or "home") for path in (NOT_FOUND, *pages())]


@pytest.fixture(scope="session", params=PAGES)
def visit(
    request: pytest.FixtureRequest, visited: Page, address: str
) -> Iterator[Visit]:
    """Every page of the site, loaded once for all tests that take it as it is."""
    top = request.param == NOT_FOUND
    # At the top, the one place where its links lead anywhere: they are absolute.
    with serve("/") if top else nullcontext(address) as at:
        visit = Visit(visited, at, request.param)
        yield visit
        visit.close()


@pytest.fixture
def page(used: Page) -> Iterator[Page]:
    """A tab for one test, which may do with it as it likes."""
    yield used
    used.unroute_all()
    used.emulate_media(media="null")
    used.set_viewport_size(DESKTOP)
    used.goto("about:blank")


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """A tab of a phone, which a finger touches."""
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    yield context.new_page()
    context.close()
