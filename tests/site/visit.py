"""A first visit to a page of the site, in a fresh browser context."""

import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page, Request

from tests.site.server import ROOT

AXE = (ROOT / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
LOOK = Path(__file__).with_name("axe.js").read_text(encoding="utf-8")
DESKTOP = {"width": 1280, "height": 900}
REPLAY = re.compile(r"/replays?[/.]")
UNFOLD = "document.querySelectorAll('details').forEach(d => { d.open = true })"
PHONE = {"width": 390, "height": 844}


def counts(url: str) -> bool:
    """Whether it crosses the wire, and not only when a reader comes near a replay."""
    address = urlsplit(url)
    return bool(address.netloc) and not REPLAY.search(address.path)


def go(page: Page, url: str) -> None:
    """Go to a page, and wait for its script, which names the search."""
    page.goto(url)
    page.wait_for_selector(".md-search[aria-label]", state="attached")


class Visit:
    """A page that has come to rest, in the light scheme, with nothing folded.

    Its tests leave its width as it was, but for the last, because each width is another
    layout.
    """

    def __init__(self, page: Page, address: str, path: str) -> None:
        self.path = path  # relative to the site
        self.page = page
        # What the console said, the policy refused, and no script caught.
        self.messages: list[str] = []
        self.requests: list[Request] = []
        self._listeners: dict[str, Callable[[Any], None]] = {
            "console": lambda message: self.messages.append(message.text),
            "pageerror": lambda error: self.messages.append(str(error)),
            "request": lambda request: self.requests.append(request),
        }
        page.emulate_media(reduced_motion="reduce")
        # As on a first visit, nothing of the site is there.
        page.context.new_cdp_session(page).send("Network.clearBrowserCache")
        for event, listener in self._listeners.items():
            page.on(event, listener)  # type: ignore[call-overload]
        go(page, address + path)
        page.evaluate("document.fonts.ready.then(() => null)")
        # Not as an element of the page, which the policy would refuse.
        page.evaluate(AXE)
        page.evaluate(UNFOLD)

    @cached_property
    def weight(self) -> int:
        """Bytes over the wire until the network was idle, those of replays left out.

        Half a second without a request: other tests have mostly passed it already.
        """
        self.page.wait_for_load_state("networkidle")
        fetched = [r.sizes() for r in list(self.requests) if counts(r.url)]
        parts = "responseBodySize", "responseHeadersSize"
        return sum(size[part] for size in fetched for part in parts)

    def close(self) -> None:
        """Leave the tab as if nobody had been there."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)
        self.page.evaluate("localStorage.clear(), sessionStorage.clear()")

    def axe(self, *schemes: str) -> list[list[Any]]:
        """What axe-core finds in "light" or "dark": [scheme, rule, where, why]."""
        found: list[list[Any]] = self.page.evaluate(LOOK, schemes)
        return found
