"""Recorded runs of kernels that a reader steps through: one visit to such a page."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.site.server import SITE, pages, read
from tests.site.visit import DESKTOP, PHONE

PAGE = "softmax/online/"
SCRIPTS = SITE / "assets/javascripts"
RECORDS = SITE / "records/interpreter/replays"
Motion = Literal["reduce", "no-preference"]
BYTES = 15_000  # of script, and 20,000 of a trace, as they are sent

# Each height that the replay has had, and what moved in it though nobody asked.
MOVES = """addEventListener("DOMContentLoaded", () => {
    const replay = document.querySelector("verified-replay")
    window.heights = []
    window.shifts = []
    new ResizeObserver(([{ contentRect }]) => heights.push(contentRect.height))
        .observe(replay)
    new PerformanceObserver(list => {
        for (const { hadRecentInput, sources } of list.getEntries())
            for (const { node } of hadRecentInput ? [] : sources)
                if (node !== replay && replay.contains(node)) shifts.push(node.nodeName)
    }).observe({ type: "layout-shift", buffered: true })
})"""

FITS = """() => {
    const { scrollHeight, clientHeight } = document.querySelector("verified-replay")
    return scrollHeight <= clientHeight
}"""

# At each step, by the keyboard: the sentence, the line that is marked in the replay and
# in the blocks of the page, the slider's text, the counters, milliseconds.
WALK = """() => {
    const replay = document.querySelector("verified-replay > .replay")
    const slider = replay.querySelector("input")
    slider.focus()
    slider.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }))
    const text = (one) => replay.querySelector(one).textContent
    const seen = []
    for (let step = 0; step <= Number(slider.max); step += 1) {
        const blocks = [...document.querySelectorAll(".replay-line:not(.off)")]
        const start = performance.now()
        if (step) slider.dispatchEvent(
            new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }))
        replay.getBoundingClientRect()
        seen.push({
            took: performance.now() - start,
            say: text(".replay-say span:last-child"),
            line: replay.querySelector(".replay-text .lit")?.textContent.trim(),
            blocks: blocks.length,
            name: slider.ariaValueText,
            sums: [...replay.querySelectorAll(".sum")].map(each => each.textContent),
        })
    }
    return seen
}"""

# A replay with a loop, whose lines are moved left. Those whose letters are cut at their
# left or, of a lit statement the first, at their right or below the pane.
LOOP = "backward/one-kernel/"
CUT = """() => [...document.querySelectorAll(".replay-text > div")].filter(line => {
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT)
    const letters = document.createRange()
    letters.selectNodeContents(line)
    while (walker.nextNode()) {
        const at = walker.currentNode.data.search(/\\S/)
        if (at < 0) continue
        letters.setStart(walker.currentNode, at)
        const { left, right, bottom } = letters.getBoundingClientRect()
        if (left < line.getBoundingClientRect().left) return true
        const pane = line.closest(".replay-code").getBoundingClientRect()
        const lit = line.matches(".lit:not(.lit + .lit)")
        return lit && (right > pane.right || bottom > pane.bottom + 1)
    }
}).map(line => line.textContent)"""


# A replay of a function, which has calls in place of programs.
FUNCTION = "softmax/monoid/"

# At every third step of a replay below the header: what is not in sight, or covered.
HIDDEN = """() => {
    const replay = document.querySelector("verified-replay > .replay")
    const slider = replay.querySelector("input")
    const header = document.querySelector(".md-header").getBoundingClientRect().bottom
    scrollBy(0, replay.getBoundingClientRect().top - header)
    const found = []
    for (let step = 0; step <= Number(slider.max); step += 3) {
        slider.value = step
        slider.dispatchEvent(new Event("input"))
        for (const one of ["stage", "code", "say", "play"].map(x => `.replay-${x}`)) {
            const shown = replay.querySelector(one)
            const { left, right, top, bottom } = shown.getBoundingClientRect()
            const seen = [top + 1, bottom - 1].every(y =>
                shown.contains(document.elementFromPoint((left + right) / 2, y)))
            if (!seen) found.push([step, one])
        }
        const { scrollHeight, clientHeight } = replay.querySelector(".replay-say")
        if (scrollHeight > clientHeight) found.push([step, "the end of the sentence"])
        if (!replay.querySelector(".lit")) found.push([step, "the line"])
    }
    return found
}"""
# Which is before the other, the replay or the theme's button.
COVERS = """() => {
    const button = document.querySelector(".md-top")
    const { left, right, top, bottom } = button.getBoundingClientRect()
    const at = document.elementFromPoint((left + right) / 2, (top + bottom) / 2)
    return at.closest(".replay, .md-top")?.className
}"""


@pytest.fixture(scope="module")
def online(browser: Browser, address: str) -> Iterator[Page]:
    with browser.new_page(viewport=DESKTOP, reduced_motion="reduce") as page:
        page.add_init_script(MOVES)
        opened(page, address + PAGE)
        yield page


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads((RECORDS / "softmax/online.json").read_text())
    return record


def test_scripts_and_traces_are_small() -> None:
    def sent(path: Path) -> int:
        return len(gzip.compress(path.read_bytes(), mtime=0))

    names = ("elements.mjs", "replay.mjs", "replay/*.mjs")
    scripts = [path for name in names for path in SCRIPTS.glob(name)]
    assert len(scripts) > len(names)
    assert sum(map(sent, scripts)) <= BYTES
    assert all(sent(trace) <= 20_000 for trace in RECORDS.rglob("*.json"))


def test_nothing_moves_when_a_replay_appears(
    online: Page, record: dict[str, Any]
) -> None:
    assert len(online.evaluate("heights")) == 1
    assert online.evaluate("shifts") == []
    assert online.evaluate(FITS)
    # It begins at the beginning, and says how to go on.
    assert online.locator("verified-replay [type=range]").input_value() == "0"
    said = online.locator(".replay-say").text_content() or ""
    assert record["runs"][0]["steps"][0]["say"] in said
    assert said.endswith("for the next line, or Play.")
    # Nobody has asked for it: the blocks of the page are as they were.
    assert online.locator(".replay-line:not(.off)").count() == 0


def test_each_step_is_told_and_shown(online: Page, record: dict[str, Any]) -> None:
    run = record["runs"][0]
    source = (SITE / "snippets" / record["snippet"]).read_text().split("\n")
    seen = online.evaluate(WALK)
    assert len(seen) == len(run["steps"])
    for n, (step, shown) in enumerate(zip(run["steps"], seen, strict=True)):
        assert shown["say"].startswith(step["say"])
        assert shown["line"].startswith(source[step["line"] - 1].strip())
        assert shown["blocks"] >= 1
        assert shown["name"].startswith(f"Step {n + 1} of {len(seen)}")
    totals = run["totals"]
    read, written, *_ = seen[-1]["sums"]
    assert read == f"↓ read {totals['read']} of {totals['read']} bytes"
    assert written == f"↑ written {totals['written']} of {totals['written']} bytes"
    assert run["formula"]["read"]["text"] in seen[-1]["say"]
    # A frame of the screen; the slower steps may have shared the machine.
    took = sorted(shown["took"] for shown in seen)
    assert took[len(took) // 4] < 16


def test_the_output_is_in_memory_at_the_end(
    online: Page, record: dict[str, Any]
) -> None:
    run = record["runs"][0]
    online.locator(".replay [type=range]").press("End")
    cells = online.locator(".replay .item.memory.t-y .value").all_text_contents()
    stored = {
        start + n: value
        for step in run["steps"]
        for name, (start, count), values in step.get("writes", [])
        for n, value in zip(range(count), values, strict=True)
    }
    assert len(cells) == len(stored) > 0
    for index, text in enumerate(cells):
        assert abs(float(text) - stored[index]) < 0.0051


def test_controls_have_names_and_work(online: Page, record: dict[str, Any]) -> None:
    replay = online.locator(".replay")
    slider = replay.get_by_role("slider", name="Step")
    slider.press("Home")
    # The theme takes the outline from a field.
    expect(slider).to_have_css("outline-style", "solid")
    replay.get_by_role("button", name="Forward").click()
    replay.get_by_role("button", name="Forward").click()
    assert slider.input_value() == "2"
    # In Safari a click focuses no button: keys have to reach the replay all the same.
    replay.locator(".replay-say").click()
    online.keyboard.press("ArrowRight")
    assert slider.input_value() == "3"
    online.keyboard.press("ArrowLeft")
    replay.get_by_role("button", name="tile").click()
    replay.get_by_role("button", name="Forward").click()
    tiles = [n for n, step in enumerate(record["runs"][0]["steps"]) if "mark" in step]
    assert int(slider.input_value()) == next(n for n in tiles if n > 2)
    replay.get_by_role("button", name="Back").click()
    assert int(slider.input_value()) == max(n for n in tiles if n <= 2)
    replay.get_by_role("button", name="line").click()
    second = record["runs"][1]
    replay.get_by_role("button", name=second["title"]).click()
    assert slider.get_attribute("max") == str(len(second["steps"]) - 1)
    replay.get_by_role("button", name="Play").click()
    replay.locator("button[aria-label=Back]:enabled").wait_for()
    assert replay.locator(".replay-say").get_attribute("aria-live") == "off"
    replay.get_by_role("button", name="Pause").click()


def test_parts_merge_in_the_order_that_a_reader_picks(page: Page, address: str) -> None:
    opened(page, address + FUNCTION)
    replay = page.locator(".replay")
    parts = replay.get_by_role("group", name="Parts").get_by_role("button")
    undo = replay.get_by_role("button", name="Undo")
    said = replay.locator(".replay-say")
    # What is no program is not called so.
    replay.get_by_role("button", name="merge").click()
    for merge in ("Merge 1 of 3.", "Merge 2 of 3."):
        expect(said.locator(".replay-program")).to_have_text(merge)
        replay.get_by_role("button", name="Forward").click()
    replay.get_by_role("slider", name="Step").press("Home")
    runs = json.loads((RECORDS / "softmax/monoid.json").read_text())["runs"]
    for run in runs:
        # By keyboard: both parts of each merge, and what is merged has the focus.
        for both, now in zip(run["name"].split("."), run["parts"], strict=False):
            expect(parts).to_have_text([text for _, text in now])
            for part in (name for name, _ in now if {*name} <= {*both}):
                parts.and_(page.locator(f"[value='{part}']")).press("Enter")
            expect(page.locator("button:focus")).to_have_attribute("value", both)
        expect(parts).to_have_text([run["parts"][-1][0][1]])
        expect(said).to_contain_text(run["steps"][-1]["say"])
        for now in run["parts"][-2::-1]:
            undo.click()
            expect(parts).to_have_text([text for _, text in now])
        expect(undo).to_be_disabled()
    # Who thinks better of it presses the part again.
    for pressed in ("true", "false"):
        parts.first.click()
        expect(parts.first).to_have_attribute("aria-pressed", pressed)


def test_no_line_is_cut(page: Page, address: str) -> None:
    opened(page, address + LOOP)
    slider = page.locator("verified-replay [type=range]")
    moved = page.locator(".replay-text[style*='--indent: 8']")
    seen = 0
    for step in range(0, int(slider.get_attribute("max") or 0), 5):
        slider.fill(str(step))
        assert page.evaluate(CUT) == []
        seen += moved.count()
    assert seen
    # Nor where a browser cuts the height of a line to whole pixels, as WebKit does.
    page.add_style_tag(content=".replay-text { line-height: 18px }")
    slider.press("End")
    expect(page.locator(".replay-text > .lit").first).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("size", [PHONE, {"width": 360, "height": 640}])
@pytest.mark.parametrize(
    "name", ["", "attention/flash-attention-2/", "attention/causal/"]
)
def test_a_phone_shows_what_happens_and_what_is_said(
    page: Page, address: str, name: str, size: dict[str, int]
) -> None:
    page.set_viewport_size(size)
    opened(page, address + name)
    assert page.evaluate(HIDDEN) == []
    # Up a little, and the theme offers to lead back to the top.
    page.mouse.wheel(0, 200)
    page.wait_for_timeout(100)
    page.mouse.wheel(0, -200)
    page.wait_for_selector(".md-top:not([hidden])")
    expect(page.locator(".md-top")).to_have_css("opacity", "1")
    assert page.evaluate(COVERS) == "replay"


# How many labels of what is shown run into another.
MET = """() => {
    const labels = [...document.querySelectorAll(".replay .item:not(.away) > .label")]
    const boxes = labels.map(label => label.getBoundingClientRect())
    return boxes.filter((one, n) => boxes.slice(n + 1).some(other =>
        one.left < other.right - 1 && other.left < one.right - 1 &&
        one.top < other.bottom - 2 && other.top < one.bottom - 2)).length
}"""


@pytest.mark.parametrize("name", ["attention/causal/", "companions/layer-norm/"])
def test_a_wide_screen_has_room_for_all(page: Page, address: str, name: str) -> None:
    # The theme's text grows with it, and the drawing does not.
    page.set_viewport_size({"width": 2560, "height": 1440})
    opened(page, address + name)
    assert page.evaluate(HIDDEN) == []
    assert page.evaluate(MET) == 0


def opened(page: Page, address: str, motion: Motion = "reduce") -> None:
    """Go to a page whose replay is there, and at once, unless motion is asked for."""
    page.emulate_media(reduced_motion=motion)
    page.goto(address)
    page.locator("verified-replay").scroll_into_view_if_needed()
    page.wait_for_selector("verified-replay[ready]")


# The pages with a replay.
PAGES = [path for path in pages() if "<verified-replay" in read(path)]
# Every button pressed twice, quicker than what it fetches; and on paper an address that
# leads to a step of another run.
ROUGH = """() => {
    for (const button of document.querySelectorAll(".replay button")) {
        if (!button.checkVisibility()) continue
        button.click()
        button.click()
    }
}"""
LEAD = """() => {
    const { id, view } = document.querySelector("verified-replay")
    location.hash = `${id}=${view.trace.runs.at(-1).name}:2`
}"""


@pytest.mark.parametrize("name", PAGES)
def test_with_motion_every_step_is_shown_and_nothing_breaks(
    page: Page, address: str, name: str
) -> None:
    opened(page, address + name + "#100%", motion="no-preference")
    steps = page.evaluate("document.querySelector('verified-replay').view.steps")
    for step, shown in zip(steps, page.evaluate(WALK), strict=True):
        assert step["say"] in shown["say"]
    page.evaluate(ROUGH)
    replay = page.locator(".replay")
    views = 1 + replay.get_by_role("button", name="Compare").count()
    expect(replay.locator(".replay-stage")).to_have_count(views)
    if views > 1:
        page.wait_for_timeout(300)  # for what the second press may have fetched
        expect(replay.locator(".replay-stage")).to_have_count(views)
    page.emulate_media(media="print")
    page.evaluate(LEAD)
    page.set_viewport_size(PHONE)
    page.emulate_media(media="null")
    expect(replay.locator(".replay-stage .cell").first).to_be_visible()
    assert replay.get_by_role("slider", name="Step").input_value() == "1"


def test_what_does_not_load_leaves_what_is_there(page: Page, address: str) -> None:
    opened(page, address + "softmax/longer-rows/")
    page.route("**/replays/**", lambda route: route.fulfill(status=404, body="no"))
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".replay-say")).to_contain_text("It did not load. ")
    expect(page.locator(".replay .replay-stage")).to_have_count(1)
    with page.expect_response("**/replays/**"):
        page.reload()
        page.locator("verified-replay").scroll_into_view_if_needed()
    page.wait_for_function(FITS)


def test_a_link_in_the_prose_shows_its_step(page: Page, address: str) -> None:
    opened(page, address + PAGE)
    replay = page.locator("verified-replay")
    link = page.locator("article a[href='#step-stays']")
    for _ in range(2):
        # The second time the address has it already, and the reader has gone on.
        link.click()
        expect(replay.locator(".replay-say")).to_contain_text("so the factor is 1")
        expect(replay).to_be_in_viewport(ratio=1)
        assert page.locator(".replay-line:not(.off)").count() >= 1
        replay.get_by_role("button", name="Forward").click()
    page.go_back()
    expect(link).to_be_in_viewport()


def test_one_number_is_to_be_guessed(online: Page, record: dict[str, Any]) -> None:
    replay = online.locator(".replay")
    steps = record["runs"][0]["steps"]
    online.evaluate("location.hash = 'replay-softmax-online=rising:1'")
    replay.get_by_role("link", name=f"1 / {len(steps)}: link").wait_for()
    guess = replay.get_by_role("button", name="Guess the next number")
    slider = replay.locator("[type=range]")
    hidden = replay.locator(".value", has_text="?")
    field = replay.get_by_role("textbox", name="Your guess")
    said = replay.locator(".replay-say")
    for number, verdict in (("0,5", "Right: "), ("", ""), ("-7", "Not quite: ")):
        guess.press("Enter")
        step = int(slider.input_value())
        assert hidden.count() == 1
        assert steps[step]["say"] not in said.inner_text()
        field.fill(number)
        field.press("Enter")
        assert hidden.count() == 0
        ((_, (value,)),) = steps[step]["state"].items()
        assert verdict in said.inner_text()
        assert f" is {value}. {steps[step]['say']}" in said.inner_text()
        expect(guess).to_be_focused()
    # Whoever goes on sees the number too.
    guess.click()
    replay.get_by_role("button", name="Forward").click()
    assert hidden.count() == 0
    expect(field).to_be_hidden()


def test_the_wrong_kernel_runs_beside_the_right_one(page: Page, address: str) -> None:
    opened(page, address + "softmax/longer-rows/")
    replay = page.locator(".replay")
    replay.get_by_role("button", name="Compare with the wrong kernel").click()
    expect(replay.locator(".replay-name")).to_have_text(
        ["three_pass.py", "wrong_blocks.py, wrong on purpose"]
    )
    expect(replay.locator(".replay-result")).to_have_text(
        "At the end a row of the output adds up to 1.00 in three_pass.py, "
        "and to 3.00 in wrong_blocks.py."
    )
    slider = replay.get_by_role("slider", name="Step")
    stored = []
    for step in range(int(slider.get_attribute("max") or 0) + 1):
        slider.fill(str(step))
        assert replay.locator(".lit").count() >= 2
        assert page.evaluate(CUT) == []
        sides = replay.locator(".replay-stage").all()
        stored += [
            [side.locator(".t-y.memory .cell:not(.none)").count() for side in sides]
        ]
    # Both store the same tile at the same step.
    assert all(here == there for here, there in stored)
    assert stored[-1][0] > 0


def test_paper_has_the_key_frames(online: Page) -> None:
    online.emulate_media(media="print")
    assert online.locator("verified-replay > figure").is_visible()
    assert not online.locator("verified-replay > .replay").is_visible()
    online.emulate_media(media="null")
    assert not online.locator("verified-replay > figure").is_visible()


def test_without_scripts_the_figure_stays(browser: Browser, address: str) -> None:
    with browser.new_page(viewport=DESKTOP, java_script_enabled=False) as page:
        page.goto(address + PAGE, wait_until="domcontentloaded")
        replay = page.locator("verified-replay")
        box, frames = replay.bounding_box(), replay.locator("> figure").bounding_box()
        assert box["height"] >= frames["height"] > 0
        page.locator("article a[href='#step-stays']").click()
        expect(replay.locator("figure svg").first).to_be_in_viewport(ratio=1)
