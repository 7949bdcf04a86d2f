"""Every page: quiet, light, accessible, and seen as it is written."""

from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect
from selectolax.lexbor import LexborHTMLParser

from tests.site.server import read
from tests.site.visit import Visit, go

WEIGHT = 250_000  # bytes over the wire, what a first visit fetches before replays load
SIGNS = {f'"{sign}" / ""' for sign in "✓↻○?!✗"}
SEEN = Path(__file__).with_name("seen.js").read_text(encoding="utf-8")


def test_quiet_and_light(visit: Visit) -> None:
    assert visit.messages == []
    hosts = {urlsplit(request.url).netloc for request in visit.requests} - {""}
    assert hosts == {urlsplit(visit.page.url).netloc}
    answers = [request.response() for request in visit.requests]
    assert [a.url for a in answers if a and a.status >= 400] == []
    assert visit.weight <= WEIGHT


SCRIPT = """() => {
    const script = document.createElement("script")
    script.textContent = "window.ran = true"
    document.querySelector("article").append(script)
}"""


def test_a_policy_says_what_may_run(page: Page, address: str) -> None:
    visit = Visit(page, address, "")
    # Scripts of an author are refused, and the test above would hear of it.
    page.evaluate(SCRIPT)
    assert not page.evaluate("window.ran")
    assert "Content Security Policy" in visit.messages.pop()
    visit.close()


def test_code_and_badges_are_seen_as_they_are_written(visit: Visit) -> None:
    seen = visit.page.evaluate(SEEN)
    shown = LexborHTMLParser(read(visit.path))
    within = ("blocks", "pre > code"), ("badges", ".badge > :is(summary, a)")
    for kind, selector in within:
        written = [each.text() for each in shown.css(f"article {selector}")]
        assert [each["text"] for each in seen[kind]] == written
        assert [each["faults"] for each in seen[kind] if each["faults"]] == []
    assert [each["signs"] for each in seen["blocks"] if each["signs"]] == []
    for badge in seen["badges"]:
        assert len(badge["signs"]) == 1
        assert set(badge["signs"]) <= SIGNS


def test_a_link_opens_the_badge_again_that_a_reader_closed(
    page: Page, address: str
) -> None:
    go(page, address + "companions/layer-norm/")
    link = page.locator(".badge > a").first
    badge = page.locator("details", has=page.locator(link.get_attribute("href") or ""))
    for _ in range(2):
        expect(badge).not_to_have_attribute("open", "")
        link.click()
        expect(badge).to_have_attribute("open", "")
        expect(badge.locator("summary")).to_be_in_viewport()
        badge.locator("summary").click()
