"""What the reader copies is what the files hold, byte for byte."""

from tests.site.server import ROOT
from tests.site.visit import Visit
from verified_docs.code import snippets

# Press every copy button: [data of the figure, text, action and state of the button,
# what the clipboard was given]. What is seen must be what a pointer meets.
PRESS_ALL = """() => {
    const { clipboard } = navigator;
    const buttons = [...document.querySelectorAll("button[data-copy]")];
    const text = async (item) => (await item.getType("text/plain")).text();
    async function press(button) {
        const given = [];
        clipboard.write = (items) => {
            given.push(...items);
            return Clipboard.prototype.write.call(clipboard, items);
        };
        button.click();
        const patience = performance.now() + 5000;
        while (!button.dataset.state && performance.now() < patience) {
            await new Promise((go) => setTimeout(go, 10));
        }
        const { copy, state } = button.dataset;
        const figure = button.closest("figure, .file");
        const shown = figure.querySelector("pre code")?.textContent;
        const copied = await Promise.all(given.map(text));
        return [{ ...figure.dataset }, shown, copy, state, copied];
    }
    for (const button of buttons) {
        button.scrollIntoView({ block: "center", behavior: "instant" });
        const { x, y, width, height } = button.getBoundingClientRect();
        const met = document.elementFromPoint(x + width / 2, y + height / 2);
        if (button.checkVisibility() && met !== button) {
            throw new Error(`${button.ariaLabel}: under ${met?.outerHTML}`);
        }
    }
    // At once, because each answer is a frame of its own. What is given after a click,
    // and not at it, which a browser may refuse, is found with the last button.
    return Promise.all(buttons.map(press));
}"""


def copy_buttons(visit: Visit) -> None:
    for figure, text, action, state, copied in visit.page.evaluate(PRESS_ALL):
        if name := figure.get("file"):
            wanted = (ROOT / "snippets" / name).read_bytes().decode()
        elif name := figure.get("snippet"):
            shown = snippets.load(ROOT, name).section(figure["section"])
            file = (ROOT / "snippets" / name).read_bytes().decode()
            wanted = {"block": shown.text, "file": file}[action]
        elif figure.get("language") == "console":
            lines = text.splitlines(keepends=True)
            wanted = "".join(line[2:] for line in lines if line.startswith("$ "))
        else:
            wanted = text
        assert (state, copied) == ("done", [wanted]), name
