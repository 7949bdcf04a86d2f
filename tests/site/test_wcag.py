"""What axe-core finds, of which the pages have nothing (test_pages.py)."""

from playwright.sync_api import Page

from tests.site.visit import Visit

# One word of a formula, and its paragraph.
WORD = """() => {
    const word = document.querySelector("p mtext:not(:has(*))")
    word.id = "word"
    word.closest("p").id = "around"
}"""
PALE = {
    "nothing": ("light dark", ""),
    "a word": ("light", "#word { color: #ccc }"),
    "that is small": ("light", "#word { color: #888; font-size: 9px }"),
    "on dark ground": ("light", "#around { background: #555 }"),
    "of the text": ("light", "#around { color: #ccc }"),
    "in dark": ("light dark", "[data-md-color-scheme=slate] #word { color: #444 }"),
}


def test_axe_finds_what_is_pale(page: Page, address: str) -> None:
    visit = Visit(page, address, "reference/glossary/")
    page.evaluate(WORD)
    style = page.add_style_tag(content=" ")
    for pale, (names, rule) in PALE.items():
        schemes = names.split()
        style.evaluate("(style, rule) => { style.textContent = rule }", rule)
        found = {(scheme, rule) for scheme, rule, *_ in visit.axe(*schemes)}
        assert found == ({(schemes[-1], "color-contrast")} if rule else set()), pale
    visit.close()
