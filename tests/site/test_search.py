"""The search finds what a reader types, and costs nothing until it opens."""

import pytest
from playwright.sync_api import Page

from tests.site.visit import alive

INDEX = "search/search_index.json"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("online softmax", "softmax/online/"),
        ("overflow", "softmax/definition/"),
        ("tl.max", "start/triton-in-ten-minutes/"),
    ],
)
def test_search_finds(page: Page, address: str, query: str, expected: str) -> None:
    page.goto(address)
    alive(page)
    with page.expect_navigation():
        page.keyboard.press("/")
    page.locator(".md-search__input:focus").wait_for()
    page.keyboard.type(query)
    results = page.locator(".md-search-result__link")
    results.first.wait_for(state="visible")
    found = results.evaluate_all("links => links.map(link => link.href)")
    assert any(link.startswith(address + expected) for link in found[:5]), found


def test_the_index_waits_until_the_search_opens(page: Page, address: str) -> None:
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(address, wait_until="networkidle")
    assert address + INDEX not in fetched
    with page.expect_request(address + INDEX):
        page.locator(".md-search__input").click()


def test_a_page_that_search_led_to_marks_the_words(page: Page, address: str) -> None:
    page.goto(f"{address}softmax/definition/?h=overflow")
    page.locator("article mark", has_text="overflow").first.wait_for()
