"""The script of the pages: linked lines, and what a button says."""

from playwright.sync_api import Page

from tests.site.test_pages import SEEN
from tests.site.visit import Visit, go

PAGE = "softmax/persistent-programs/"
BUTTON = "button[data-copy=block]"


def test_a_pointer_marks_a_line_and_its_step(page: Page, address: str) -> None:
    go(page, address + PAGE)
    page.locator("code [data-line]").first.hover()
    assert page.locator("li[data-linked], p[data-linked]").count() == 1
    page.mouse.move(0, 0)
    assert page.locator("[data-linked]").count() == 0


def test_copying_is_seen_and_said_and_passes(page: Page, address: str) -> None:
    go(page, address + PAGE)
    button = page.locator(BUTTON).first
    label = button.text_content()
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("button[data-state=done]")
    assert button.text_content() == "Copied"
    said = page.locator("#copy-status[aria-live=polite]").text_content()
    assert said == f"Copied: {button.get_attribute('aria-label').partition(': ')[2]}"
    assert "softmax/persistent.py" in said
    block = page.locator("figure.snippet").first.locator("pre code")
    assert page.evaluate("navigator.clipboard.readText()") == block.text_content()
    page.wait_for_selector("button[data-state=done]", state="detached")
    assert button.text_content() == label


def test_a_refused_clipboard_is_said(page: Page, address: str) -> None:
    go(page, address + PAGE)
    page.evaluate("void (navigator.clipboard.write = () => Promise.reject())")
    page.locator(BUTTON).first.click()
    page.wait_for_selector("button[data-state=failed]:text('Could not copy')")


HIDDEN = {
    "a line": "code [data-line] { visibility: hidden }",
    "its letters": "code { color: transparent !important }",
    "its size": "code [data-line] { font-size: 1px !important }",
    "its place": "code [data-line] { position: relative; top: -4em }",
    "below another": "pre { position: relative } pre::after { content: ''; "
    "position: absolute; inset: 0; background: white }",
    "more of it": "code [data-line]::before { content: 'not ' }",
    "a badge": "summary { opacity: 0 }",
}


def test_what_a_stylesheet_hides_or_adds_is_found(page: Page, address: str) -> None:
    visit = Visit(page, address, PAGE)
    style = page.add_style_tag(content=" ")
    for hidden, rule in {"nothing": "", **HIDDEN}.items():
        style.evaluate("(style, rule) => { style.textContent = rule }", rule)
        seen = page.evaluate(SEEN)
        found = [each["faults"] for kind in ("blocks", "badges") for each in seen[kind]]
        found += [block["signs"] for block in seen["blocks"]]
        assert any(found) == bool(rule), hidden
    visit.close()
