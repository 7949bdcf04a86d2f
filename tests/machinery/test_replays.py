"""Replays: how a run is watched and told, their element on a page, and their check."""

import json
import re
from dataclasses import replace

import pytest
import torch
import triton

from tests.machinery.repository import ROOT
from tests.machinery.small_site import PAGE, SmallSite
from verified_docs import layout
from verified_docs.__main__ import main
from verified_docs.code import snippets
from verified_docs.code.snippets import Snippet
from verified_docs.evidence import records
from verified_docs.pages import replays, stills

if not triton.knobs.runtime.interpret:
    pytest.skip("needs TRITON_INTERPRET=1", allow_module_level=True)

from snippets.backward.autograd import attention
from snippets.softmax.wrong_blocks import softmax
from tests.replays import Show
from tests.replays.sentences import StoryError
from tests.replays.softmax import wrong_blocks
from tests.replays.story import Story
from tests.replays.watch import Watch

KERNEL = snippets.load(ROOT, "softmax/wrong_blocks.py")
LINES = wrong_blocks.REPLAY.lines
ONE = "part/one.py"
RECORD, DESCRIBED = layout.replay_record(ONE), layout.replay_file(ONE)
RUN = {
    "name": "first",
    "title": "The first",
    "tensors": [
        {"name": "x", "label": "x", "colour": "x", "level": "memory", "shape": [2],
         "bytes": 4, "writes": False, "values": [1, "-inf"]},
    ],
    "state": [{"name": "m_i", "label": "m", "colour": "m", "shape": []}],
    "programs": [{"id": [0, 0, 0], "label": "row 0", "start": 0}],
    "steps": [
        {"line": 11, "mark": "program", "reads": [["x", [0, 2]]], "say": "Load < x."},
        {"line": 12, "state": {"m_i": [1]}, "say": "The maximum is 1."},
    ],
    "frames": [0, 1],
    "totals": {"read": 8, "written": 0, "products": 0},
    "formula": {"read": {"text": "C · b", "value": 8}},
}  # fmt: skip


@pytest.fixture(scope="module")
def watch() -> Watch:
    """A run of the kernel with tiles of 2."""
    watch = Watch(KERNEL.path, {"softmax_kernel"}, {}, {})
    with watch.watching():
        softmax(torch.tensor([[1.0, 2.0, 5.0], [0.0, -1.0, 3.0]]), block_cols=2)
    return watch


def told(watch: Watch, snippet: Snippet = KERNEL, **changes: object) -> dict:
    """The story of the kernel's description, with changes, as a record has it."""
    replay = replace(wrong_blocks.REPLAY, **changes)
    return Story(replay, snippet, watch, {}).record("One", "one")


def test_steps_and_state_are_what_a_line_does_and_changes(watch: Watch) -> None:
    said = {"x = tl.load": "Load {count} numbers of tile {tile}: {x}."}
    made = told(watch, lines={**LINES, **said})
    first, second = made["programs"]
    assert (first["label"], second["label"]) == ("row 0", "row 1")
    steps = made["steps"]
    assert len(steps) == 2 * second["start"]
    marks = [step.get("mark") for step in steps]
    assert marks.count("program") == marks.count("tile") == 2
    # Masked lanes are not touched, and what nobody reads any more is dropped.
    read = [step["reads"] for step in steps if "reads" in step]
    assert read == [[["x", [0, 2]]], [["x", [2, 1]]], [["x", [3, 2]]], [["x", [5, 1]]]]
    states = [step["state"] for step in steps[:3]]
    assert states == [{"x": [1, 2]}, {"m_i": [2]}, {"numerator": [0.368, 1]}]
    assert set(steps[3]["drop"]) == {"x", "m_i"}
    assert [steps[n]["say"] for n in (0, 6)] == [
        "Load 2 numbers of tile 1: 1, 2.",
        "Load 1 numbers of tile 2: 5, −∞.",  # noqa: RUF001
    ]
    # What a silent line changes is shown with the next.
    steps = told(watch, lines={**LINES, "m_i = tl.max": ""})["steps"]
    assert set(steps[1]["state"]) == {"m_i", "numerator"}


def test_a_line_sets_what_it_loads_and_a_call_sets_what_it_returns():
    autograd = snippets.load(ROOT, "backward/autograd.py")
    watch = Watch(autograd.path, {"forward_kernel", "tile", "scores"}, {}, {})
    with watch.watching():
        attention(*torch.ones(3, 1, 1, 1, 1))
    steps = told(
        watch,
        autograd,
        memory=[],
        state=[Show(name, name, name) for name in "qkvsp"],
        lines={
            **{f"each tl.{verb}(": verb for verb in ("load", "dot", "store")},
            "p, alpha": "weigh",
        },
        frames="p, alpha",
        names={
            "forward_kernel.a": "q",
            "forward_kernel.b": "k",
            "forward_kernel.return": "s",
        },
    )["steps"]
    states = [[*step.get("state", ())] for step in steps]
    assert states == [["q"], ["k"], ["v"], ["s"], ["p"], [], [], []]
    # A function that returns no number, but pointers, does not keep the scores.
    dropped = [set(step.get("drop", ())) for step in steps]
    assert dropped == [*4 * [set()], {"q", "k"}, {"s"}, {"v", "p"}, set()]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"lines": {**LINES, "softmax(": ""}}, "is on the lines"),
        ({"lines": {**LINES, "m_i": ""}}, "is on the lines"),
        ({"lines": {**LINES, "each m_i": ""}}, "has two sentences"),
        ({"lines": {**LINES, "y = numerator": ""}}, "has two sentences"),
        ({"lines": {**LINES, "m_i = tl.max": "It is {maximum}."}}, "speaks of maximum"),
        ({"lines": {**LINES, "tl.store": ""}}, "is silent, but it loads, stores"),
        ({"lines": dict([*LINES.items()][:-1])}, "has no sentence: tl.store"),
        ({"memory": [Show("z", "x", "none")]}, "no line touches z"),
    ],
)
def test_a_description_that_does_not_fit(watch, changes, reason):
    with pytest.raises(StoryError, match=re.escape(reason)):
        told(watch, **changes)


@pytest.fixture
def replayed(site: SmallSite) -> SmallSite:
    """The sound site with a description and a record of a replay."""
    site.write({DESCRIBED: "REPLAY = None\n"})
    files = [layout.snippet_file(ONE), DESCRIBED]
    record = {"format": 1, "snippet": ONE, "runs": [RUN]}
    record["manifest"] = records.hashes(site.root, files)
    site.write({RECORD: json.dumps(record)})
    return site


FENCE = f"```replay\nreplay: {ONE}\n```"


def test_a_page_has_the_element_and_the_key_frames(replayed):
    html = replayed.page(FENCE)
    assert (
        f'<verified-replay src="/{RECORD}" snippet="{ONE}" data-run="first" '
        'id="replay-part-one" style="--wide:'
    ) in html
    assert html.count("<svg ") == html.count(", step ") == 2
    assert "<p>Load &lt; x.</p>" in html
    assert "Bytes read: C · b = 8." in html
    assert "<p><verified-replay" not in html


def frames(run: dict) -> list[str]:
    """The drawings of the key frames of a run."""
    drawn: list[str] = stills.script("frames", run, "first", replays.FRAME)
    return drawn


def test_a_frame_shows_what_is_where_after_its_step():
    (x,), (m_i,) = RUN["tensors"], RUN["state"]
    y = {**x, "name": "y", "writes": True, "values": [None, None]}
    steps = [
        {"mark": "program", "reads": [["x", [0, 2]]]},
        {"state": {"m_i": [1]}},
        {"mark": "tile", "writes": [["y", [0, 2], [7, 8]]], "state": {"l_i": [2]}},
        {"drop": ["m_i"]},
        {"mark": "program", "reads": [["x", [1, 1]]]},
    ]
    state = [m_i, {**m_i, "name": "l_i", "label": "l < 3"}]
    programs = [{**RUN["programs"][0], "start": n} for n in (0, 4)]
    run = RUN | {"tensors": [x, y], "state": state, "steps": steps}
    run |= {"programs": programs, "frames": [*range(5)]}
    drawn = frames(run)
    told = [re.search('On the chip: (.*?)"', frame)[1] for frame in drawn]
    both = "m: 1; l &#60; 3: 2"
    assert told == ["", "m: 1", both, both, ""]
    stored = [re.findall(">([78])</text>", frame) for frame in drawn]
    assert stored == [[], [], ["7", "8"], ["7", "8"], ["7", "8"]]
    outlined = [re.findall('"outline " d="M[^h]*h([^v]*)', frame) for frame in drawn]
    wide = float(outlined[0][0])
    found = [[float(each) for each in all_] for all_ in outlined]
    assert found == [[wide]] * 4 + [[wide / 2]]


def test_what_is_never_stored_is_not_in_memory():
    (x,) = RUN["tensors"]
    run = RUN | {"tensors": [x, {**x, "name": "S", "label": "S", "level": "map"}]}
    frame = frames(run)[0]
    found = re.findall(r'"level (\w+)" x="(.*?)" y=".*?" width="(.*?)"', frame)
    boxes = {name: (float(x), float(x) + float(wide)) for name, x, wide in found}
    found = re.findall(r'"label" x="(.*?)"[^>]*>(x|S)<', frame)
    labels = {label: float(x) for x, label in found}
    assert ">Not in memory<" in frame
    assert boxes["memory"][1] < boxes["map"][0] < labels["S"] < boxes["map"][1]
    assert labels["x"] < boxes["memory"][1]


@pytest.mark.parametrize(
    ("fence", "reason"),
    [
        ("replay: part/two.py", "no run of part/two.py is recorded: describe it in"),
        (f"replay: {ONE}\nrun: second", "there is no 'second'"),
        (f"replay: {ONE}\nspeed: 2", "there is no option 'speed'"),
        (
            f"replay: {ONE}\nsteps: {{up: It rises}}",
            "of no step is it said that 'It ri",
        ),
        ("run: first", "it needs the option 'replay'"),
    ],
)
def test_a_fence_that_names_nothing(replayed, fence, reason):
    with pytest.raises(Exception, match=re.escape(reason)):
        replayed.page(f"```replay\n{fence}\n```")


def test_a_link_leads_to_the_step_of_which_its_words_are_said(replayed):
    fence = FENCE.replace(ONE, f"{ONE}\nsteps: {{one: maximum is 1}}")
    page = f"{replayed.read(PAGE)}\n{fence}\n\nSee [it](#step-one)."
    replayed.write({PAGE: page})
    assert replayed.found() == []
    replayed.write({PAGE: page.replace("#step-one", "#step-two")})
    (found,) = replayed.found()
    assert "'#step-two', which has no anchor 'step-two'" in found
    anchor = '<i id="step-one" data-hash="#replay-part-one=first:2"></i>'
    assert anchor in replayed.page(fence)


def test_the_check_of_replays(replayed, capsys):
    assert replayed.found() == []
    replayed.edit(RECORD, "Load < x", "In 3 ms, load < x")
    (found,) = replayed.found()
    assert found.startswith(f"{RECORD}:1: typed-in measurement '3 ms'")
    replayed.edit(RECORD, "In 3 ms, load < x", "Load < x")
    another = RECORD.replace("one.json", "two.json")
    replayed.write({another: replayed.read(RECORD)[:-9]})
    replayed.build()
    assert main(["--root", str(replayed.root), "check"]) == 1
    assert f"{another}: not JSON, perhaps cut short" in capsys.readouterr().err
    replayed.write({another: replayed.read(RECORD)})
    (found,) = replayed.found()
    assert found.startswith(f"{another}:1: recorded before these changed: snippets/pa")
    (replayed.root / another).unlink()
    (replayed.root / DESCRIBED).write_text("REPLAY = 1\n")
    said = f"{RECORD}:1: recorded before these changed: {DESCRIBED}; run `pytest"
    (found,) = replayed.found()
    assert found.startswith(said)
    (replayed.root / DESCRIBED).unlink()
    (found,) = replayed.found()
    assert found.startswith(said)
