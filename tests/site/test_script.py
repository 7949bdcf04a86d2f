"""The script on a page of its own: copying, linked lines, what scrolls."""

import textwrap
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page

from tests.machinery.repository import ONLINE, Repository
from tests.site.test_pages import SEEN

SCRIPTS = Path(__file__).parents[2] / "docs/assets/javascripts"
ADDRESS = "http://localhost/"  # A clipboard needs a secure context.
TEXT = """\
```python
--8<-- "softmax/online.py:kernel"
```

1. Begin.
2. Rescale. {: data-line="rescale" }

```console
$ make serve
serving at some address
$ make test
```

$$
ROOM
$$
"""


TWO_FILES = """\
1. Rescale. {: data-line="rescale" }

```python
--8<-- "softmax/online.py:kernel"
```

1. Rescale again. {: data-line="rescale" }

```python
--8<-- "softmax/three_pass.py:kernel"
```

The whole of the first file:

```python
--8<-- "softmax/online.py"
```
"""


@pytest.fixture
def shown(page: Page, tmp_path: Path) -> Page:
    """The text as a page; ROOM is a formula too wide for it."""
    repository = Repository(tmp_path)
    repository.snippet("softmax/online.py", ONLINE.replace("\n", "\r\n").encode())
    return show(
        page, tmp_path, repository.page(TEXT.replace("ROOM", " + ".join(["x"] * 200)))
    )


def show(page: Page, root: Path, body: str) -> Page:
    """The body in the browser, with the script and the snippets below the root."""
    style = "div.math { overflow-x: auto } .visually-hidden { position: absolute }"
    html = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>t</title>
        <style>{style}</style>{body}<script type="module" src="verified.mjs"></script>
        """
    page.route(
        f"{ADDRESS}**", lambda route: route.fulfill(body=html, content_type="text/html")
    )
    for files, folder in (("*.mjs", SCRIPTS), ("snippets/**", root)):
        page.route(
            ADDRESS + files,
            lambda route, _, folder=folder: route.fulfill(
                path=folder / urlsplit(route.request.url).path[1:]
            ),
        )
    page.goto(ADDRESS)
    page.wait_for_selector("button[data-copy]:visible")
    return page


def clipboard(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_copying_the_file_keeps_its_line_ends(shown: Page) -> None:
    shown.click("button[data-copy=file]")
    shown.wait_for_selector("button[data-state=done]")
    assert clipboard(shown) == ONLINE.replace("\n", "\r\n")


def test_copying_is_seen_and_said_and_passes(shown: Page) -> None:
    button = shown.locator("button[data-copy=block]").first
    label = button.text_content()
    button.click()
    shown.wait_for_selector("button[data-state=done]")
    assert button.text_content() == "Copied"
    said = shown.locator("[aria-live=polite]").text_content()
    assert said == "Copied: Copy block: softmax/online.py, kernel"
    shown.wait_for_selector("button[data-state=done]", state="detached")
    assert button.text_content() == label
    assert clipboard(shown) == textwrap.dedent(clipboard(shown))


def test_a_refused_clipboard_is_said(shown: Page) -> None:
    shown.evaluate("void (navigator.clipboard.write = () => Promise.reject())")
    button = shown.locator("button[data-copy=block]").first
    button.click()
    shown.wait_for_selector("button[data-state=failed]")
    assert button.text_content() == "Could not copy"


def test_only_the_commands_of_a_console_are_copied(shown: Page) -> None:
    shown.click("button[data-copy=plain]")
    shown.wait_for_selector("button[data-state=done]")
    assert clipboard(shown) == "make serve\nmake test\n"


@pytest.mark.parametrize("first", ["li", "code span"])
def test_a_step_and_its_line_show_each_other(shown: Page, first: str) -> None:
    pointed = shown.locator(f"{first}[data-line=rescale]")
    linked = shown.locator("[data-linked]")
    pointed.hover()
    assert linked.count() == 2
    shown.mouse.move(0, 0)
    assert linked.count() == 0
    pointed.focus()
    assert linked.count() == 2
    pointed.evaluate("element => element.blur()")
    assert linked.count() == 0


def test_a_step_belongs_to_the_nearest_file(page: Page, tmp_path: Path) -> None:
    show(page, tmp_path, Repository(tmp_path).page(TWO_FILES))
    marked = """elements => elements.map(
        element => element.closest("figure")?.dataset.snippet ?? "step")"""
    for step, file, count in (
        (0, "softmax/online.py", 3),
        (1, "softmax/three_pass.py", 2),
    ):
        page.locator("li[data-line=rescale]").nth(step).hover()
        found = page.locator("[data-linked]").evaluate_all(marked)
        assert len(found) == count
        assert set(found) == {"step", file}


def test_only_what_scrolls_takes_the_keyboard(shown: Page) -> None:
    shown.wait_for_selector("div.math[tabindex='0']")
    shown.evaluate("document.querySelector('div.math').style.width = '999999px'")
    shown.wait_for_selector("div.math:not([tabindex])")


HIDDEN = {
    "a line": "code [data-line] { visibility: hidden }",
    "its letters": "code { color: transparent }",
    "its size": "code [data-line] { font-size: 1px }",
    "its place": "code [data-line] { position: relative; top: -4em }",
    "below another": "pre { position: relative } pre::after { content: ''; "
    "position: absolute; inset: 0; background: white }",
    "more of it": "code [data-line]::before { content: 'not ' }",
    "a badge": "summary { opacity: 0 }",
}


@pytest.mark.parametrize("hidden", [None, *HIDDEN])
def test_what_a_stylesheet_hides_or_adds_is_found(
    shown: Page, hidden: str | None
) -> None:
    if hidden:
        shown.add_style_tag(content=HIDDEN[hidden])
    seen = shown.evaluate(SEEN.replace("article ", ""))
    found = [
        *(
            fault
            for kind in ("blocks", "badges")
            for x in seen[kind]
            for fault in x["faults"]
        ),
        *(sign for block in seen["blocks"] for sign in block["signs"]),
    ]
    assert bool(found) == bool(hidden), found
