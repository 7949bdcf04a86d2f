"""Every page: quiet, light, accessible, and seen as it is written."""

from contextlib import nullcontext, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, TimeoutError, expect
from selectolax.lexbor import LexborHTMLParser

from tests.site.copying import copy_buttons
from tests.site.server import pages, read, serve
from tests.site.visit import Visit, go
from tests.site.widths import three_widths

WEIGHT = 250_000  # bytes over the wire, what a first visit fetches before replays load
SIGNS = {f'"{sign}" / ""' for sign in "✓↻○?!✗"}
SEEN = Path(__file__).with_name("seen.js").read_text(encoding="utf-8")


def quiet_and_light(visit: Visit) -> None:
    assert visit.messages == []
    hosts = {urlsplit(request.url).netloc for request in visit.requests} - {""}
    assert hosts == {urlsplit(visit.page.url).netloc}
    answers = [request.response() for request in visit.requests]
    assert [a.url for a in answers if a and a.status >= 400] == []
    assert visit.weight <= WEIGHT


def code_and_badges_are_seen_as_they_are_written(visit: Visit) -> None:
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


# For each step of an algorithm: its name, and the names and files of all that is marked
# while it has the keyboard's focus.
STEPS = "[data-line]:not(figure *)"
LINKED = """steps => [...document.querySelectorAll(steps)].map(step => {
    step.focus()
    const marked = [...document.querySelectorAll("[data-linked]")].map(element => [
        element.dataset.line, element.closest("figure")?.dataset.snippet ?? ""])
    step.blur()
    return [step.dataset.line, marked]
})"""


def a_step_marks_its_lines_in_one_file(visit: Visit) -> None:
    for name, marked in visit.page.evaluate(LINKED, STEPS):
        assert {line for line, _ in marked} == {name}
        assert len({file for _, file in marked} - {""}) == 1
        assert "" in {file for _, file in marked}
    assert visit.page.locator("[data-linked]").count() == 0


def what_scrolls_and_only_that_takes_the_keyboard(visit: Visit) -> None:
    wrong = """() => [...document.querySelectorAll(".scroll, div.math, pre > code")]
        .filter(each => (each.scrollWidth > each.clientWidth) !== (each.tabIndex === 0))
        .map(each => each.outerHTML.slice(0, 200))"""
    with suppress(TimeoutError):  # The page notices a frame after its layout changed.
        ready = f"() => ({wrong})().length === 0"
        visit.page.wait_for_function(ready, polling=50, timeout=3000)
    assert visit.page.evaluate(wrong) == []


def axe_finds_nothing(visit: Visit) -> None:
    assert visit.axe("light", "dark") == []


# The last leaves another width, and what axe-core took out is laid out again in it.
CHECKS = (
    quiet_and_light,
    code_and_badges_are_seen_as_they_are_written,
    copy_buttons,
    a_step_marks_its_lines_in_one_file,
    what_scrolls_and_only_that_takes_the_keyboard,
    axe_finds_nothing,
    three_widths,
)
NOT_FOUND = "404.html"


@pytest.mark.parametrize("path", [NOT_FOUND, *pages()], ids=lambda path: path or "home")
def test_every_page(
    page: Page, address: str, subtests: pytest.Subtests, path: str
) -> None:
    # At the top, the one place where its links lead anywhere: they are absolute.
    with serve("/") if path == NOT_FOUND else nullcontext(address) as at:
        visit = Visit(page, at, path)
        for check in CHECKS:
            with subtests.test(check.__name__):
                check(visit)
        visit.close()


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
