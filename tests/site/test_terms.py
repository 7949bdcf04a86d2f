"""A term of the glossary shows its entry to a pointer, the keyboard and a finger."""

from playwright.sync_api import Page, expect

from tests.site.visit import Visit

PAGE = "reference/notation/"
TERM = "a.term[href$='#running-maximum']"
ENTRY = "#term-note:popover-open"
SAID = "The largest element seen so far"
INSIDE = """entry => {
    const { left, right, top, bottom } = entry.getBoundingClientRect()
    return left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight
}"""


def go(page: Page, address: str) -> None:
    """Open the page, and wait for the script of its terms; a font moves no more."""
    page.goto(address + PAGE, wait_until="networkidle")
    page.locator("#term-note").wait_for(state="attached")


def test_a_pointer_opens_an_entry(page: Page, address: str) -> None:
    go(page, address)
    page.locator(TERM).hover()
    expect(page.locator(ENTRY)).to_contain_text(SAID)
    assert page.locator(ENTRY).evaluate(INSIDE)
    assert page.locator(f"{ENTRY} math").count() == 2
    assert page.locator(f"{ENTRY} a").count() == 0
    page.locator(ENTRY).hover()  # It stays under the pointer.
    expect(page.locator(ENTRY)).to_be_visible()
    page.mouse.move(0, 0)
    expect(page.locator(ENTRY)).to_have_count(0)


def test_the_keyboard_opens_and_closes_an_entry(page: Page, address: str) -> None:
    go(page, address)
    page.locator(TERM).focus()
    expect(page.locator(ENTRY)).to_contain_text(SAID)
    expect(page.locator(TERM)).to_have_attribute("aria-describedby", "term-note")
    page.keyboard.press("Escape")
    expect(page.locator(ENTRY)).to_have_count(0)
    expect(page.locator("[aria-describedby=term-note]")).to_have_count(0)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url == f"{address}reference/glossary/#running-maximum"


def test_a_finger_opens_an_entry_and_follows_it(phone: Page, address: str) -> None:
    go(phone, address)
    phone.locator(TERM).tap()
    expect(phone.locator(ENTRY)).to_contain_text(SAID)
    assert phone.locator(ENTRY).evaluate(INSIDE)
    phone.locator("h1").tap()
    expect(phone.locator(ENTRY)).to_have_count(0)
    assert phone.url == address + PAGE
    phone.locator(TERM).tap()
    expect(phone.locator(ENTRY)).to_be_visible()
    with phone.expect_navigation():
        phone.locator(TERM).tap()
    assert phone.url == f"{address}reference/glossary/#running-maximum"


def test_axe_finds_nothing_in_an_open_entry(page: Page, address: str) -> None:
    visit = Visit(page, address, PAGE)
    page.locator(TERM).hover()
    expect(page.locator(ENTRY)).to_contain_text(SAID)
    assert visit.axe("light", "dark") == []
    visit.close()
