"""What the reader copies or downloads is what the files hold, byte for byte."""

import base64
import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, SoupStrainer
from playwright.sync_api import Page

from tests.site.server import SITE, pages
from tests.site.visit import Visit, alive
from verified_docs import layout
from verified_docs.code import snippets

ROOT = Path(__file__).parents[2]
ALONE = Path(__file__).with_name("alone.py")

# Press every copy button and read the clipboard each time: [data of the figure, text,
# action of the button, what was copied]. What is seen must be what a pointer meets.
PRESS_ALL = """async () => {
    const copied = [];
    for (const button of document.querySelectorAll("button[data-copy]")) {
        const name = button.ariaLabel;
        button.scrollIntoView({ block: "center", behavior: "instant" });
        const { x, y, width, height } = button.getBoundingClientRect();
        const met = document.elementFromPoint(x + width / 2, y + height / 2);
        if (button.checkVisibility() && met !== button) {
            throw new Error(`${name}: under ${met?.outerHTML}`);
        }
        await navigator.clipboard.writeText("nothing was copied");
        button.click();
        const patience = performance.now() + 5000;
        while (!button.dataset.state) {
            await new Promise(requestAnimationFrame);
            if (performance.now() > patience) throw new Error(`${name}: no answer`);
        }
        const figure = button.closest("figure");
        const text = figure.querySelector("pre code").textContent;
        const found = await navigator.clipboard.readText();
        copied.push([{ ...figure.dataset }, text, button.dataset.copy, found]);
    }
    return copied;
}"""


@functools.cache
def embedded() -> dict[tuple[str, str], bytes]:
    """Every file that a page offers as a download: (page, file) -> bytes."""
    found: dict[tuple[str, str], bytes] = {}
    figures = SoupStrainer("figure", attrs={"data-snippet": True})
    for path in pages():
        text = (SITE / path / "index.html").read_text(encoding="utf-8")
        html = BeautifulSoup(text, "html.parser", parse_only=figures)
        for figure in html.select("figure.snippet[data-snippet]"):
            link = figure.select_one("a[download]")
            data = base64.b64decode(link["href"].partition(",")[2])
            known = found.setdefault((path, figure["data-snippet"]), data)
            assert known == data
    return found


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen]:
    """The process of alone.py, away from the repository."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    with subprocess.Popen(
        [sys.executable, "-I", ALONE],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        env=kept | {"TRITON_INTERPRET": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        yield process


def test_copy_buttons(visit: Visit) -> None:
    visit.unfold()  # An answer may hold a block.
    for figure, text, action, copied in visit.page.evaluate(PRESS_ALL):
        if name := figure.get("snippet"):
            section = figure["section"]
            _, shown = snippets.resolve(ROOT, f"{name}:{section}".rstrip(":"))
            file = (ROOT / "snippets" / name).read_bytes().decode()
            assert copied == {"block": shown.text, "file": file}[action], name
        elif figure.get("language") == "console":
            lines = text.splitlines(keepends=True)
            commands = [line[2:] for line in lines if line.startswith("$ ")]
            assert copied == "".join(commands)
        else:
            assert copied == text


def test_copying_is_announced(page: Page, address: str) -> None:
    page.goto(address + "softmax/online/")
    alive(page)
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
    file = ROOT / "snippets" / "softmax/online.py"
    assert Path(download.value.path()).read_bytes() == file.read_bytes()


def test_pages_offer_every_snippet_as_it_is() -> None:
    offered = embedded()
    assert {name for _, name in offered} == set(layout.names(ROOT))
    for (path, name), data in offered.items():
        assert data == (ROOT / "snippets" / name).read_bytes(), (path, name)


@pytest.mark.parametrize("name", layout.names(ROOT))
def test_file_from_the_page_runs_alone(
    name: str, runner: subprocess.Popen, tmp_path: Path
) -> None:
    """In an empty folder, from the HTML of the page, under the interpreter."""
    data = next(data for (_, offered), data in embedded().items() if offered == name)
    folder = tmp_path / "empty"
    folder.mkdir()
    (folder / "copied.py").write_bytes(data)
    print(folder, file=runner.stdin)
    exit_code = runner.stdout.readline().strip()
    output = (tmp_path / "output.txt").read_text()
    assert exit_code == "0", output
    assert output.strip()
