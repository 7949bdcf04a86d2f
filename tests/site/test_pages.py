"""Every page: quiet, light, accessible, and as wide as the phone that shows it."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request

from tests.site.conftest import AXE
from tests.site.server import pages

WEIGHT = 350_000  # bytes over the wire, everything that a first visit fetches


def weigh(page: Page, url: str) -> int:
    """Bytes over the wire of a first visit."""
    requests: list[Request] = []
    page.on("request", lambda request: requests.append(request))
    page.goto(url, wait_until="networkidle")
    sizes = [r.sizes() for r in requests if urlsplit(r.url).netloc]
    return sum(s["responseBodySize"] + s["responseHeadersSize"] for s in sizes)


@pytest.mark.parametrize("path", pages())
def test_quiet_and_light(page: Page, address: str, path: str) -> None:
    messages: list[str] = []
    requests: list[Request] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request))

    weight = weigh(page, address + path)

    assert messages == []
    hosts = {urlsplit(request.url).netloc for request in requests} - {""}
    assert hosts == {urlsplit(address).netloc}
    failed = [r.url for r in requests if (a := r.response()) and a.status >= 400]
    assert failed == []
    assert weight <= WEIGHT


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", pages())
def test_axe_finds_nothing(
    browser: Browser, address: str, path: str, scheme: str
) -> None:
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": 1280, "height": 900}
    )
    page = context.new_page()
    page.goto(address + path, wait_until="load")
    # What is folded is read too.
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.add_script_tag(path=AXE)
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    context.close()
    assert [
        (violation["id"], node["target"], node["failureSummary"])
        for violation in result["violations"]
        for node in violation["nodes"]
    ] == []


@pytest.mark.parametrize("path", pages())
def test_fits_a_phone(browser: Browser, address: str, path: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(address + path, wait_until="load")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    width = page.evaluate("document.documentElement.scrollWidth")
    context.close()
    assert width <= 390


@pytest.mark.parametrize("path", pages())
def test_math_is_rendered_and_readable(page: Page, address: str, path: str) -> None:
    page.goto(address + path)
    text = page.inner_text("article")
    assert "\\(" not in text
    assert "$$" not in text
    # Every formula carries MathML, which is what a screen reader speaks.
    formulas = page.locator(".katex").count()
    assert page.locator(".katex math").count() == formulas


def test_every_page_of_the_sources_was_built(address: str) -> None:
    docs = Path(__file__).parents[2] / "docs"
    sources = {
        str(p.relative_to(docs).with_suffix("")).removesuffix("index")
        for p in docs.rglob("*")
        if p.suffix in (".md", ".ipynb")
    }
    assert {p.rstrip("/") for p in pages()} == {s.rstrip("/") for s in sources}
