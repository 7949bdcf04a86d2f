"""A first visit to a page of the site, in a fresh browser context."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Request

AXE = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
# What axe-core judges by colours. All else is the same in both schemes.
COLOUR_RULES = ["color-contrast", "link-in-text-block"]


def alive(page: Page) -> None:
    """Wait for the scripts of the page, which begin after it is painted."""
    page.wait_for_selector(".md-search[aria-label]", state="attached")


class Visit:
    """A page that has come to rest, in the light scheme.

    Attributes:
        page: the page, for more tests than one: they leave its width as it was.
        messages: what the console said, and errors that no script caught.
        requests: everything that was asked for.
        weight: bytes over the wire until the network was idle.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self.context = browser.new_context(
            viewport=DESKTOP,
            color_scheme="light",
            reduced_motion="reduce",
            permissions=["clipboard-read", "clipboard-write"],
        )
        self.page = self.context.new_page()
        self.messages: list[str] = []
        self.requests: list[Request] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request))
        self.page.goto(url, wait_until="networkidle")
        alive(self.page)
        self.page.evaluate("document.fonts.ready.then(() => null)")
        fetched = [r.sizes() for r in self.requests if urlsplit(r.url).netloc]
        self.weight = sum(
            size["responseBodySize"] + size["responseHeadersSize"] for size in fetched
        )

    def unfold(self) -> None:
        """Open everything that is folded."""
        self.page.evaluate(
            "document.querySelectorAll('details').forEach(d => { d.open = true })"
        )

    def switch(self, scheme: str) -> None:
        """Show the page "light" or "dark", as a reader does: by the button."""
        name = {"light": "default", "dark": "slate"}[scheme]
        body = self.page.locator("body")
        if body.get_attribute("data-md-color-scheme") != name:
            self.page.locator("label[for^=__palette]:visible").click()
        self.page.wait_for_selector(f"body[data-md-color-scheme={name}]")

    def axe(self, rules: list[str] | None = None) -> list[tuple[Any, ...]]:
        """What axe-core finds wrong, folded text included; all its rules by default."""
        self.unfold()
        if not self.page.evaluate("'axe' in window"):
            self.page.add_script_tag(path=AXE)
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = {"type": "rule", "values": rules}
        result = self.page.evaluate("options => axe.run(document, options)", options)
        return [
            (violation["id"], node["target"], node["failureSummary"])
            for violation in result["violations"]
            for node in violation["nodes"]
        ]
