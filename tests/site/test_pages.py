"""Every page: quiet, light, accessible, and as wide as the phone that shows it."""

from pathlib import Path
from urllib.parse import urlsplit

from tests.site.server import pages
from tests.site.visit import COLOUR_RULES, DESKTOP, PHONE, Visit

WEIGHT = 350_000  # bytes over the wire, everything that a first visit fetches


def test_quiet_and_light(visit: Visit, address: str) -> None:
    assert visit.messages == []
    hosts = {urlsplit(request.url).netloc for request in visit.requests} - {""}
    assert hosts == {urlsplit(address).netloc}
    answers = [request.response() for request in visit.requests]
    assert [a.url for a in answers if a and a.status >= 400] == []
    assert visit.weight <= WEIGHT


def test_axe_finds_nothing_in_the_light_scheme(visit: Visit) -> None:
    visit.switch("light")
    assert visit.axe() == []


def test_axe_finds_nothing_in_the_dark_scheme(visit: Visit) -> None:
    visit.switch("dark")
    assert visit.axe(COLOUR_RULES) == []


def test_fits_a_phone(visit: Visit) -> None:
    visit.unfold()
    visit.page.set_viewport_size(PHONE)
    width = visit.page.evaluate("document.documentElement.scrollWidth")
    visit.page.set_viewport_size(DESKTOP)
    assert width <= PHONE["width"]


def test_diagrams_hold_their_text(visit: Visit) -> None:
    visit.unfold()
    outside = """() => [...document.querySelectorAll("article svg text")].filter(
    text => {
        const inner = text.getBoundingClientRect()
        const outer = text.ownerSVGElement.getBoundingClientRect()
        return inner.width && (inner.left < outer.left - 1 || inner.top < outer.top - 1
            || inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1)
    }
    ).map(text => text.textContent)"""
    assert visit.page.evaluate(outside) == []


def test_math_is_rendered_and_readable(visit: Visit) -> None:
    text = visit.page.inner_text("article")
    assert "\\(" not in text
    assert "$$" not in text
    # Every formula carries MathML, which is what a screen reader speaks.
    formulas = visit.page.locator(".katex").count()
    assert visit.page.locator(".katex math").count() == formulas


def test_the_height_of_a_formula_is_known_before(visit: Visit) -> None:
    # What is out of sight is not laid out, and may not move the page when it is.
    visit.unfold()
    errors = """() => [...document.querySelectorAll("article div.math")].map(
    formula => {
        const [before, after] = ["hidden", "visible"].map(value => {
            formula.style.contentVisibility = value
            return formula.getBoundingClientRect().height
        })
        formula.style.contentVisibility = ""
        return Math.abs(after - before)
    }
    )"""
    assert max(visit.page.evaluate(errors), default=0) < 3  # pixels


def test_every_page_of_the_sources_was_built() -> None:
    docs = Path(__file__).parents[2] / "docs"
    sources = {
        str(p.relative_to(docs).with_suffix("")).removesuffix("index")
        for p in docs.rglob("*")
        if p.suffix in (".md", ".ipynb")
    }
    assert {p.rstrip("/") for p in pages()} == {s.rstrip("/") for s in sources}
