"""What the reader copies or downloads is what the files hold, byte for byte."""

from pathlib import Path
from zipfile import ZipFile

from playwright.sync_api import Page

from tests.site.server import SITE
from tests.site.visit import Visit
from verified_docs import layout
from verified_docs.code import snippets

ROOT = Path(__file__).parents[2]

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
            await new Promise((go) => setTimeout(go));
            if (performance.now() > patience) throw new Error(`${name}: no answer`);
        }
        const figure = button.closest("figure");
        const text = figure.querySelector("pre code").textContent;
        const found = await navigator.clipboard.readText();
        copied.push([{ ...figure.dataset }, text, button.dataset.copy, found]);
    }
    return copied;
}"""


def test_copy_buttons(visit: Visit) -> None:
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


def test_download_is_the_file(page: Page, address: str) -> None:
    page.goto(address + "softmax/online/")
    link = page.locator("figure[data-snippet='softmax/online.py'] a[download]").first
    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == "online.py"
    file = ROOT / "snippets/softmax/online.py"
    assert Path(download.value.path()).read_bytes() == file.read_bytes()


def test_every_snippet_is_a_file_of_the_site_and_in_the_zip() -> None:
    with ZipFile(SITE / "snippets.zip") as archive:
        assert "MIT License" in archive.read("LICENSE").decode()
        for name in layout.names(ROOT):
            data = (ROOT / "snippets" / name).read_bytes()
            assert (SITE / "snippets" / name).read_bytes() == data
            assert archive.read(f"snippets/{name}") == data
