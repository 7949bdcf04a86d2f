"""The search box finds what a reader types."""

import pytest
from playwright.sync_api import Page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("online softmax", "softmax/online/"),
        ("overflow", "softmax/definition/"),
        ("tl.max", "softmax/"),
    ],
)
def test_search_finds(page: Page, address: str, query: str, expected: str) -> None:
    page.goto(address)
    page.keyboard.press("/")
    page.keyboard.type(query)
    results = page.locator(".md-search-result__link")
    results.first.wait_for(state="visible")
    found = results.evaluate_all("links => links.map(link => link.href)")
    assert any(link.startswith(address + expected) for link in found[:5]), found
