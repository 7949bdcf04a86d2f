"""The search finds what a reader types, and costs nothing until it opens."""

import re

import pytest
from playwright.sync_api import Page

from tests.site.visit import alive

INDEX = "search/search_index.json"


FIRST = 3
FOUND = {
    "online softmax": "softmax/online/",
    "overflow": "reference/glossary/#overflow",
    "tl.max": "start/triton-in-ten-minutes/",
    "program_id": "reference/glossary/#program",
    "tl.program_id": "reference/glossary/#program",
    "cdiv": "reference/glossary/#cdiv",
    "exp2": "reference/glossary/#exp2",
    "GQA": "reference/glossary/#grouped-query-attention",
    "ping-pong": "reference/glossary/#ping-pong",
    "softcap": "reference/glossary/#softcap",
    "vLLM": "reference/glossary/#vllm",
    "warp specialization": "reference/glossary/#warp-specialization",
}


@pytest.mark.parametrize("query", FOUND)
def test_search_finds(page: Page, address: str, query: str) -> None:
    page.goto(address)
    alive(page)
    with page.expect_navigation():
        page.keyboard.press("/")
    page.locator(".md-search__input:focus").wait_for()
    page.keyboard.type(query)
    results = page.locator(".md-search-result__link")
    results.first.wait_for(state="visible")
    links = results.evaluate_all("links => links.map(link => link.href)")
    # What was searched for stands in the address, so that its page marks the words.
    found = [re.sub(r"\?h=[^#]*", "", link) for link in links]
    assert address + FOUND[query] in found[:FIRST]


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
