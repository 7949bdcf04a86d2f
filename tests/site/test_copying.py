"""What the reader copies or downloads is what the files hold, byte for byte."""

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Locator, Page

from tests.site.server import SITE, pages
from verified_docs import snippets

SNIPPETS = Path(__file__).parents[2] / "snippets"


def copied(page: Page, button: Locator) -> str:
    """Press a copy button and read the clipboard."""
    page.evaluate("navigator.clipboard.writeText('nothing was copied')")
    button.click()
    page.wait_for_function(
        "navigator.clipboard.readText().then(text => text != 'nothing was copied')"
    )
    return page.evaluate("navigator.clipboard.readText()")


def embedded() -> dict[tuple[str, str], bytes]:
    """Every file that a page offers as a download: (page, file) -> bytes."""
    found = {}
    for path in pages():
        html = BeautifulSoup((SITE / path / "index.html").read_bytes(), "html.parser")
        for figure in html.select("figure.snippet[data-snippet]"):
            link = figure.select_one("a[download]")
            data = base64.b64decode(link["href"].partition(",")[2])
            known = found.setdefault((path, figure["data-snippet"]), data)
            assert known == data
    return found


@pytest.mark.parametrize("path", pages())
def test_copy_buttons(page: Page, address: str, path: str) -> None:
    page.goto(address + path)
    page.wait_for_load_state("networkidle")
    # A folded answer may hold a block.
    page.evaluate("""document.querySelectorAll('details:not(.badge)')
        .forEach(details => details.open = true)""")
    for figure in page.locator("figure.snippet[data-snippet]:visible").all():
        name = figure.get_attribute("data-snippet")
        section = figure.get_attribute("data-section")
        reference = f"{name}:{section}" if section else name
        _, expected = snippets.resolve(SNIPPETS, reference)
        block = figure.locator("button[data-copy=block]")
        assert copied(page, block) == expected.text
        file = figure.locator("button[data-copy=file]")
        assert copied(page, file).encode() == (SNIPPETS / name).read_bytes()
    for figure in page.locator("figure.snippet.diff:visible").all():
        text = copied(page, figure.locator("button[data-copy=block]"))
        assert text == figure.locator("pre code").text_content()


def test_copying_is_announced(page: Page, address: str) -> None:
    page.goto(address + "softmax/online/")
    button = page.locator("button[data-copy=block]").first
    button.focus()
    page.keyboard.press("Enter")
    page.locator("[aria-live]:has-text('opied')").first.wait_for(state="attached")


def test_download_is_the_file(page: Page, address: str) -> None:
    page.goto(address + "softmax/online/")
    link = page.locator("figure[data-snippet='softmax/online.py'] a[download]").first
    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == "online.py"
    file = SNIPPETS / "softmax/online.py"
    assert Path(download.value.path()).read_bytes() == file.read_bytes()


def test_pages_offer_every_snippet_as_it_is() -> None:
    offered = embedded()
    assert {name for _, name in offered} == set(snippets.names(SNIPPETS))
    for (path, name), data in offered.items():
        assert data == (SNIPPETS / name).read_bytes(), (path, name)


@pytest.mark.parametrize("name", snippets.names(SNIPPETS))
def test_file_from_the_page_runs_alone(name: str, tmp_path: Path) -> None:
    """In an empty folder, from the HTML of the page, under the interpreter."""
    data = next(data for (_, offered), data in embedded().items() if offered == name)
    (tmp_path / "copied.py").write_bytes(data)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    run = subprocess.run(
        [sys.executable, "-I", "copied.py"],
        cwd=tmp_path,
        env=kept | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
