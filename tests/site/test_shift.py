"""What stands on a page stays there, though the fonts come late."""

import pytest
from playwright.sync_api import Browser, Route

from tests.site.visit import PHONE

LIMIT = 0.1  # what web.dev calls good
WATCH = """window.shift = 0
new PerformanceObserver(list => list.getEntries().forEach(it => { shift += it.value }))
    .observe({ type: "layout-shift", buffered: true })"""
FRAMES = """() => document.fonts.ready.then(() => new Promise(done =>
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100)))))"""


@pytest.mark.parametrize("size", [{"width": 1440, "height": 900}, PHONE], ids=str)
@pytest.mark.parametrize("path", ["", "attention/fp8/", "backward/two-kernels/"])
def test_late_fonts_move_little(
    browser: Browser, address: str, path: str, size: dict[str, int]
) -> None:
    late: list[Route] = []
    with browser.new_page(viewport=size) as page:  # type: ignore[arg-type]
        page.route("**/*.woff2", lambda route: late.append(route))
        page.add_init_script(WATCH)
        page.goto(address + path, wait_until="domcontentloaded")
        page.wait_for_selector(".md-search[aria-label]", state="attached")
        page.wait_for_timeout(300)  # it is painted with the letters that stand in
        assert late
        for route in late:
            route.continue_()
        page.unroute_all()
        page.evaluate(FRAMES)
        assert page.evaluate("document.fonts.check('1em \"Source Sans 3\"')")
        assert page.evaluate("shift") <= LIMIT
