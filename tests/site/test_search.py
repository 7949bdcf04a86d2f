"""The search finds what a reader types, and costs nothing until it opens."""

from contextlib import suppress

from playwright.sync_api import Page, TimeoutError, expect

from tests.site.visit import go

INDEX = "search/search_index.json"
FIRST = 3
FOUND = (
    ("online softmax", "softmax/online/"),
    ("overflow", "reference/glossary/#overflow"),
    ("tl.max", "start/triton-in-ten-minutes/"),
    ("program_id", "reference/glossary-gpu/#program"),
    ("program_id", "start/triton-in-ten-minutes/"),
    ("tl.program_id", "reference/glossary-gpu/#program"),
    ("cdiv", "reference/glossary-gpu/#cdiv"),
    ("exp2", "reference/glossary/#exp2"),
    ("GQA", "reference/glossary/#grouped-query-attention"),
    ("ping-pong", "reference/glossary-gpu/#ping-pong"),
    ("softcap", "companions/change-the-kernel/#softcap"),
    ("vLLM", "reference/glossary/#vllm"),
    ("warp specialization", "hopper/specialised/"),
    ("mbarrier", "hopper/hardware/#tma-and-mbarriers"),
    ("setmaxnreg", "reference/glossary-gpu/#register-reallocation"),
    ("wgmma", "hopper/hardware/#warp-groups-and-wgmma"),
    ("Hopper", "hopper/hardware/"),
    ("backward pass in Gluon", "hopper/backward/"),
    ("flash attention", "attention/flash-attention-2/"),
    ("paged attention", "attention/paged-attention/"),
    ("naive attention", "attention/naive/"),
    ("block pointer", "reference/glossary-gpu/#block-pointer"),
    ("out of memory", "reference/glossary-gpu/#out-of-memory"),
    ("rmsnorm", "reference/glossary/#rms-norm"),
)


# What was searched for stands in an address, so that its page marks the words.
LINKS = ".md-search-result__link"
FINDS = """([links, wanted, first]) => [...document.querySelectorAll(links)]
    .slice(0, first).some(link => link.href.replace(/\\?h=[^#]*/, "") === wanted)"""


def test_search_finds(page: Page, address: str) -> None:
    go(page, address)
    typed = page.locator(".md-search__input:focus")
    with page.expect_navigation():
        page.keyboard.press("/")
        # As fast as people type, and they need not wait.
        page.keyboard.type("softmax", delay=120)
    expect(typed).to_have_value("softmax")
    for query, expected in FOUND:
        typed.press("Control+a")
        typed.press("Delete")
        page.locator(LINKS).first.wait_for(state="detached")
        # At once: what the first letters find would come and go meanwhile.
        typed.fill(query)
        typed.press("End")
        wanted = [LINKS, address + expected, FIRST]
        with suppress(TimeoutError):
            page.wait_for_function(FINDS, arg=wanted)
        assert page.evaluate(FINDS, wanted), query


def test_the_index_waits_until_the_search_opens(page: Page, address: str) -> None:
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(address, wait_until="networkidle")
    assert address + INDEX not in fetched
    with page.expect_request(address + INDEX):
        page.locator(".md-search__input").click()
