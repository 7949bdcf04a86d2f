"""Diagrams: inlined with ids of their own, and refused where they would not fit."""

import ast
import inspect
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
import torch

from snippets.attention.outliers import rotate
from snippets.backward import autograd
from snippets.hopper import (
    gluon_backward,
    gluon_causal,
    gluon_overlapped,
    gluon_persistent,
)
from snippets.softmax import long_rows, monoid
from tests.harness.waiting import take_turns
from tests.machinery.repository import ROOT
from tests.machinery.small_site import SVG
from tests.snippets.attention import tile_maps as attention
from tests.snippets.backward import tile_maps as backward
from verified_docs.pages.diagrams import render
from verified_docs.pages.errors import PageError

FOREIGN = (
    "<style>text { font-family: monospace }</style>",
    "<script>x()</script>",
    "<foreignObject/>",
    '<image href="x.png"/>',
    '<circle onload="x()"/>',
    '<circle fill="#ff0000"/>',
    '<text style="font-family: monospace">x = 1</text>',
    '<text font-size="12">x</text>',
    '<text class="highlight">x = 1</text>',
)
ASSETS = ROOT / "docs/assets"


def figure(tmp_path: Path, text: str = SVG) -> ET.Element:
    path = tmp_path / "a.svg"
    path.write_text(text, encoding="utf-8")
    return ET.fromstring(render(path, "p-"))


def test_a_diagram_is_named_and_its_ids_move_together(tmp_path):
    svg = figure(tmp_path).find(".//svg")
    assert svg.get("role") == "img"
    assert svg.get("aria-labelledby") == "p-title p-desc"
    assert svg.find("title[@id='p-title']").text == "Ω & π"
    ids = {element.get("id") for element in svg.iter() if element.get("id")}
    assert ids == {"p-a", "p-title", "p-desc"}
    assert svg.find("circle").get("fill") == "url(#p-a)"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("<title>Ω &amp; π</title>", "<title> </title>", "it needs a <title>"),
        ("<desc>A dot in the middle.</desc>", "", "it needs a <title>, a <desc>"),
        ('viewBox="0 0 10 10"', "", "and a viewBox"),
        *(
            ("</svg>", f"{part}</svg>", "nothing that a diagram may hold")
            for part in FOREIGN
        ),
    ],
)
def test_faults(tmp_path, old, new, reason):
    text = SVG.replace(old, new)
    assert text != SVG
    with pytest.raises(PageError) as caught:
        figure(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'a.svg'}: ")
    assert reason in str(caught.value)


def test_every_class_of_a_diagram_is_in_a_stylesheet():
    styles = "".join(p.read_text("utf-8") for p in ASSETS.glob("stylesheets/*.css"))
    known = set(re.findall(r"\.([a-z][\w-]*)", styles))
    for path in ASSETS.glob("diagrams/**/*.svg"):
        for element in ET.parse(path).iter():
            unknown = set(element.get("class", "").split()) - known
            assert not unknown, f"{path.name}: {unknown}"


@pytest.mark.parametrize(
    ("maps", "name"),
    [(maps, name) for maps in (attention, backward) for name in maps.DIAGRAMS],
)
def test_a_tile_map_is_what_the_kernel_does(maps: ModuleType, name: str) -> None:
    drawn = maps.draw(*maps.DIAGRAMS[name])
    assert (maps.FOLDER / name).read_text(encoding="utf-8") == drawn, (
        f"run TRITON_INTERPRET=1 python -m {maps.__name__}"
    )


def rectangles(name: str) -> list[tuple[float, float]]:
    """Width and height of each, without those of patterns."""
    rects = ET.parse(ASSETS / "diagrams" / name).getroot().findall("{*}rect")
    return [(float(r.get("width")), float(r.get("height"))) for r in rects]


def test_the_memories_of_a_gpu_are_drawn_to_scale():
    drawn = [width * height for width, height in rectangles("start/scale.svg")]
    l2, registers, shared = 60 * 2**20, 132 * 256 * 2**10, 132 * 228 * 2**10
    larger = 15 * 15
    held = [141e9, 141e9, 2**30, l2, registers, shared, l2 * larger, l2 * larger]
    held += [m * larger / n for m in (registers, shared) for n in (1, 132)]
    scale = drawn[0] / held[0]
    assert drawn == pytest.approx([scale * size for size in held], rel=0.01)


def test_scores_are_drawn_to_scale():
    q, k, s, _, tile = rectangles("attention/naive-scale.svg")
    assert s == (448, 448)
    assert (q, k) == ((448 * 128 / 8192, 448), (448, 448 * 128 / 8192))
    assert tile == (448 * 128 / 8192, 448 * 128 / 8192)


def test_a_score_and_its_terms_are_drawn_to_scale():
    q = torch.tensor([[1.0, -1, 0, 8, 1, -2, 1, 0]])
    k = torch.tensor([[0.0, 1, -1, 8, 2, 1, -1, 1]])
    q_turned, k_turned = rotate(q, k)
    pairs = (q, q_turned), (k, k_turned), (q * k, q_turned * k_turned)
    expected = [
        abs(number) * scale
        for both, scale in zip(pairs, (5, 5, 1.25), strict=True)
        for number in torch.cat(both).flatten().tolist()
        if number
    ]
    # Each bar is filled and has an outline.
    drawn = [height for _, height in rectangles("attention/fp8-outliers.svg")]
    assert drawn[::2] == drawn[1::2] == pytest.approx(expected, abs=0.06)


def test_what_is_left_of_a_weight_in_8_bits():
    # Each bar has three boxes: all digits, fewer, none. Two are filled, and outlined.
    drawn = rectangles("attention/fp8-weights.svg")
    for boxes, factor in ((drawn[:5], 1), (drawn[5:], 256)):
        digits, lost = boxes[0][0] / 30, (boxes[0][0] + boxes[2][0]) / 30
        below = torch.tensor([digits - 0.1, digits + 0.1, lost - 0.1, lost + 0.1])
        weights = (factor * torch.exp(-below.double())).to(torch.float8_e4m3fn).float()
        smallest = torch.finfo(torch.float8_e4m3fn).smallest_normal
        assert ((weights >= smallest) == torch.tensor([1, 0, 0, 0])).all()
        assert ((weights > 0) == torch.tensor([1, 1, 1, 0])).all()


def test_the_queries_that_see_a_block_through_a_window():
    root = ET.parse(ASSETS / "diagrams/backward/window-queries.svg").getroot()
    axis = {
        text.get("x"): int(text.text)
        for text in root.findall("{*}text")
        if text.get("y") == "20" and text.text.isdigit()
    }
    drawn = [
        (axis[f"{float(r.get('x')) + 14:g}"], 8 + (int(r.get("y")) - 34) // 28)
        for r in root.findall("{*}rect[@class='t-s']")
    ]
    # n = 8, n' = 11 and w = 6; a query stands beside the key of its number.
    assert drawn == [
        (i, j) for j in range(8, 12) for i in axis.values() if 0 <= i - j < 6
    ]
    lines = [float(line.get("x1")) for line in root.findall("{*}line[@class='accent']")]
    # i1, i2, i3 and i2 + w, at the beginning of their queries.
    assert [axis[f"{x + 14:g}"] for x in lines] == [8, 11, 8 + 6, 11 + 6]


def test_a_row_of_the_gradient_of_softmax():
    name = "backward/by-hand-row.svg"
    columns: dict[float, list[str]] = {}  # from the left, and each from the top
    texts = ET.parse(ASSETS / "diagrams" / name).getroot().findall("{*}text")
    for text in sorted(texts, key=lambda each: float(each.get("y"))):
        words = "".join(text.itertext()).replace("\N{MINUS SIGN}", "-")
        columns.setdefault(float(text.get("x")), []).append(words)
    names, *keys = (each for _, each in sorted(columns.items()) if len(each) == 6)
    assert names == ["key", "P", "dP", "P ⊙ dP", "dP - Δ", "dS"]
    told = torch.tensor([[float(words) for words in key] for key in keys]).double()
    p, dp = told.T[1:3]
    s = p.log().requires_grad_()
    torch.softmax(s, dim=0).backward(dp)
    delta = (p * dp).sum()
    expected = torch.stack([torch.arange(4), p, dp, p * dp, dp - delta, s.grad])
    torch.testing.assert_close(told.T, expected, atol=1e-6, rtol=0)
    sums = [words.split(" = ") for words in columns[422]]
    assert sums == [["sum"], [f"{p.sum():g}"], [f"{delta:g}", "Δ"], ["0"]]
    # A box is as wide as the weight, and as high as dP is above or below delta.
    boxes = torch.tensor(rectangles(name)[24:32:2]).double()
    boxes /= torch.tensor([336, 20])
    torch.testing.assert_close(boxes, told[:, [1, 4]].abs(), atol=1e-6, rtol=0)


def test_the_roles_of_a_tile_in_two_kernels():
    root = ET.parse(ASSETS / "diagrams/backward/two-kernels-roles.svg").getroot()
    panels: list[set[tuple[str, str | None]]] = []
    for text in root.findall("{*}text"):
        words = "".join(text.itertext())
        if words.startswith("weights("):
            panels.append(set())
        if panels:
            words = words.lower().replace("ᵀ", "_t").replace("δ", "delta")
            panels[-1].add((words, text.get("text-anchor")))
    tree = ast.parse((ROOT / "snippets/backward/two_kernels.py").read_text("utf-8"))
    code = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    roles = [each.arg for each in code["weights"].args.args[:6]]
    assert roles == ["a", "b", "c", "d", "lse", "delta"]
    for kernel, panel in zip(("dq_kernel", "dkdv_kernel"), panels, strict=True):
        (loop,) = (each for each in ast.walk(code[kernel]) if isinstance(each, ast.For))
        calls: dict[str, list[list[str]]] = {}  # of each function: result, arguments
        for line in loop.body:
            if isinstance(line, ast.Assign) and isinstance(line.value, ast.Call):
                called, *parts = map(
                    ast.unparse, (line.value.func, *line.targets, *line.value.args)
                )
                calls.setdefault(called, []).append(parts)
        ((_, *given),) = calls["weights"]
        expected = {(f"weights({', '.join(given[:4])}, …)", "end")}
        # What the loop loads passes by, and its name ends in front of it.
        passing = {name for name, *_ in calls["tl.load"]}
        for role, name in zip(roles, given, strict=False):
            label = name if role == name else f"{role} = {name}"
            expected.add((label, "end" if name in passing else "middle"))
        for total, tile, other, _ in calls["tl.dot"]:
            expected.add((f"{total} += {tile.partition('.')[0]} {other}", "start"))
        assert expected <= panel


def test_the_merges_of_a_chain_and_a_tree(monkeypatch: pytest.MonkeyPatch):
    merges: list[tuple[int, int]] = []  # of two sets of columns, one bit for each

    def merge(a: monoid.Pair, b: monoid.Pair) -> monoid.Pair:
        both = a[0].flatten().tolist(), b[0].flatten().tolist()
        merges.extend(
            (int(left), int(right)) for left, right in zip(*both, strict=True)
        )
        return a[0] + b[0], a[1] + b[1]

    monkeypatch.setattr(monoid, "merge", merge)
    monkeypatch.setattr(monoid, "IDENTITY", (torch.zeros(()), torch.zeros(())))
    for order in (monoid.left_to_right, monoid.tree):
        order(2.0 ** torch.arange(8))

    root = ET.parse(ASSETS / "diagrams/softmax/monoid-tree.svg").getroot()
    parts: dict[complex, int] = {}  # where a part is drawn: its columns
    for text in root.findall("{*}text"):
        at = complex(float(text.get("x")), float(text.get("y")) - 5)
        if re.fullmatch("x[₀-₇]", text.text or ""):
            parts[at] = 1 << "₀₁₂₃₄₅₆₇".index(text.text[1])
        elif text.text == "id":
            parts[at] = 0
    circles = [
        complex(float(circle.get("cx")), float(circle.get("cy")))
        for circle in root.findall("{*}circle[@class='line']")
    ]
    assert len(circles) == len(merges)
    arrows: dict[complex, list[complex]] = {at: [] for at in circles}
    for line in root.findall("{*}line"):
        x1, y1, x2, y2 = (float(line.get(name)) for name in ("x1", "y1", "x2", "y2"))
        begin = min([*parts, *circles], key=lambda at: abs(at - complex(x1, y1)))
        end = min(circles, key=lambda at: abs(at - complex(x2, y2)))
        if line.get("stroke-dasharray") is None and begin != end:
            arrows[end].append(begin)
    for at, (left, right) in zip(circles, merges, strict=True):
        # A chain's pair comes from the left, and the next value from above.
        begins = sorted(arrows[at], key=lambda begin: begin.real)
        assert [parts[begin] for begin in begins] == [left, right]
        parts[at] = left | right


def test_the_words_of_long_rows(monkeypatch: pytest.MonkeyPatch):
    made: list[torch.Tensor] = []

    def zeros(length: int, **options: Any) -> torch.Tensor:
        made.append(torch.full((length,), 0, **options))
        return made[-1]

    take_turns(monkeypatch)
    monkeypatch.setattr(torch, "zeros", zeros)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn((3, 8), device=device)
    long_rows.softmax(x, chunk_cols=2, block_cols=2)
    *words, counted = made[0].tolist()
    root = ET.parse(ASSETS / "diagrams/softmax/long-rows-words.svg").getroot()
    told: dict[str, list[tuple[float, str]]] = {}  # of each line, from the left
    for text in root.findall("{*}text"):
        at = float(text.get("x")), "".join(text.itertext())
        told.setdefault(text.get("y"), []).append(at)
    lines = {line[0][1]: line for line in map(sorted, told.values())}
    numbers = {
        name: [(at, int(text)) for at, text in line if text.isdigit()]
        for name, line in lines.items()
    }
    # The counter lies behind the last word.
    assert [number for _, number in numbers["word"]] == list(range(counted + 1))
    drawn = [
        (min(numbers["row"], key=lambda row: abs(row[0] - at))[1], chunk)
        for at, chunk in numbers["chunk"]
    ]
    halves = [text for _, text in lines["bits 63 to 32"]]
    assert [text for _, text in lines["word 6"]] == [
        "word 6",
        "m",
        "\N{SCRIPT SMALL L}",
    ]
    assert halves == ["bits 63 to 32", "bits 31 to 0"]
    for word, (row, chunk) in zip(words, drawn, strict=True):
        part = x[row, 2 * chunk : 2 * chunk + 2].cpu()
        m = part.max()
        pair = [m, (part - m).exp().sum()]
        bits = [word >> int(half.split()[-1]) & 0xFFFFFFFF for half in halves]
        found = torch.tensor(bits).to(torch.int32).view(torch.float32)
        torch.testing.assert_close(found, torch.stack(pair))
    (ticket,) = (text for line in told.values() for _, text in line if "//" in text)
    row, chunk = drawn[6]
    assert (
        ticket == f"ticket 6: row = ticket // 4 = {row}, chunk = ticket % 4 = {chunk}"
    )
    assert (row, chunk) == (6 // 4, 6 % 4)


def test_three_turns_of_a_team():
    code = (ROOT / "snippets/companions/layer_norm_backward_wide.py").read_text("utf-8")
    (loop,) = (
        each
        for each in ast.walk(ast.parse(code))
        if isinstance(each, ast.For) and ast.unparse(each.target) == "each"
    )
    assert ast.unparse(loop.iter) == "range(team, rows + teams, teams)"
    lines = [ast.unparse(line).partition("\n")[0] for line in loop.body]
    steps = (  # which line, what it does, for which row, and how it is drawn
        ("words = tl.load(words_ptrs, mask_k, ", "ask", "prev", "words"),
        ("next_row = ask(given, row + teams, ", "ask", "next", "x, dy"),
        (
            "dy_prev, x_prev, mean_prev, rstd_prev = ask(given, prev, ",
            "ask",
            "prev",
            "x, dy again",
        ),
        ("tl.atomic_or(word_ptr + row * chunks + ", "publish", "this", "word"),
        ("dw += dy.", "publish", "this", "dw"),
        ("db += dy.", "publish", "this", "dβ"),
        ("while tl.max((words == 0)", "finish", "prev", "wait"),
        ("tl.store(dx_ptr + prev * cols + ", "finish", "prev", "dx"),
    )
    found = [[n for n, x in enumerate(lines) if x.startswith(y)] for y, *_ in steps]
    assert found == sorted([n] for (n,) in found)
    assert lines[1:3] == [
        "prev = row - teams",
        "words_ptrs = word_ptr + prev * chunks + offs_k",
    ]
    teams, rows = 2, (2, 4, 6)  # three turns of team 0
    expected: dict[tuple[int, str, int], list[str]] = {}
    for row in rows:
        of = {"prev": row - teams, "this": row, "next": row + teams}
        for _, step, which, words in steps:
            expected.setdefault((row, step, of[which]), []).append(words)

    root = ET.parse(
        ASSETS / "diagrams/companions/wide-layer-norm-backward-turns.svg"
    ).getroot()
    texts = {
        complex(float(text.get("x")), float(text.get("y"))): "".join(text.itertext())
        for text in root.findall("{*}text")
    }
    lanes = {at.real: int(x[4:]) for at, x in texts.items() if re.match(r"row \d", x)}
    turns = {at.imag: int(x[6:]) for at, x in texts.items() if x.startswith("row = ")}
    labels = {
        at.imag: x for at, x in texts.items() if x in {"ask", "publish", "finish"}
    }
    drawn = {}
    for box in root.findall("{*}rect[@class='soft']"):
        x, y, width, height = (float(box.get(n)) for n in ("x", "y", "width", "height"))
        lane = lanes[x + width / 2]
        turn = max(at for at in turns if at < y + height)
        label = min(labels, key=lambda at: abs(at - y - height / 2))
        held = [
            words
            for at, words in texts.items()
            if x < at.real < x + width and y < at.imag < y + height
        ]
        drawn[turns[turn], labels[label], lane] = held
    assert {at: ", ".join(words) for at, words in drawn.items()} == {
        at: ", ".join(words) for at, words in expected.items()
    }


def calls_of(step: Callable[[], None]) -> list[str]:
    """The functions of the operator that run, in their order."""
    calls: list[str] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename == autograd.__file__:
            fake = {"q": "fake of forward", "x": "fake of backward"}
            is_fake = code.co_name == "<lambda>"
            calls.append(fake[code.co_varnames[0]] if is_fake else code.co_name)

    sys.setprofile(profile)
    try:
        step()
    finally:
        sys.setprofile(None)
    return calls


def test_which_functions_of_an_operator_run_when(monkeypatch: pytest.MonkeyPatch):
    launched: list[str] = []
    written: dict[str, torch.Tensor] = {}
    saved: list[str] = []
    names = "Q", "K", "V"
    inputs = [torch.randn(1, 1, 16, 16, requires_grad=True) for _ in names]

    def launch(kernel, views, *_: object, **options: bool) -> None:
        modes = [name for name, chosen in options.items() if chosen]
        launched.append(", ".join([kernel.fn.__name__, *modes]))
        if kernel is autograd.backward_kernel:  # delta is there: all of O is 1
            assert (views[5] == 16 - 1).all()
        for view in views[-2:]:
            view.fill_(len(launched))

    def step(attend: Callable) -> None:
        launched.clear()
        o, lse = attend(*inputs)
        gradients = torch.autograd.grad(o.sum() + lse.sum(), inputs, retain_graph=True)
        written.update({"O": o, "lse": lse})
        written.update({f"d{x}": dx for x, dx in zip(names, gradients, strict=True)})
        if attend is autograd.attention:
            known = dict(zip(names, inputs, strict=True)) | {"O": o, "lse": lse}
            for kept in o.grad_fn.saved_tensors:
                (name,) = (n for n, x in known.items() if torch.equal(x, kept))
                saved.append(name)

    monkeypatch.setattr(autograd, "launch", launch)
    eager = calls_of(partial(step, autograd.attention))
    lines = [
        f"{kernel}: {', '.join(x for x in written if (written[x] == n).all())}"
        for n, kernel in enumerate(launched, 1)
    ]
    compiled = torch.compile(autograd.attention, backend="aot_eager", fullgraph=True)
    first, later = (calls_of(partial(step, compiled)) for _ in range(2))
    traced = first[: first.index("forward")]
    words = {
        "forward": ["forward", lines[0]],
        "keep": [f"keep saves {', '.join(saved)}"],
        "gradients": ["gradients gets dO, dlse"],
        "backward": ["backward", "PyTorch's row-dot: Δ", *lines[1:]],
    }
    for name, told in words.items():
        for calls in (eager, traced, later):
            fake = "its fake" if f"fake of {name}" in calls else "not called"
            told.append("runs" if name in calls else fake)
    assert [each for each in eager if each in words] == list(words)
    root = ET.parse(ASSETS / "diagrams/backward/autograd-calls.svg").getroot()
    drawn = ["".join(text.itertext()) for text in root.findall("{*}text")]
    begin, middle = (drawn.index(x) for x in ("forward", "loss.backward()"))
    assert drawn[begin:middle] == words["forward"] + words["keep"]
    assert drawn[middle + 1 : -1] == words["gradients"] + words["backward"]


def numbers(element: ET.Element, *names: str) -> list[float]:
    return [float(element.get(name)) for name in names]


def calls_of_walks(
    patch: pytest.MonkeyPatch, tiles: list[int], w: int = 0
) -> list[tuple]:
    """What consumer w of two does at its barriers, and its products, in their order."""
    calls: list[tuple] = []
    mbarrier = SimpleNamespace(
        wait=lambda bar, bit: calls.append(("wait", *bar, bit)),
        arrive=lambda bar: calls.append(("arrive", *bar)),
    )

    def multiply(*_: object, use_acc: bool = True, **options: bool) -> MagicMock:
        calls.append(("issue", "O" if use_acc else "S"))
        return MagicMock()

    for name in ("gl", "mask", "rows_of_warps"):
        patch.setattr(gluon_causal, name, MagicMock())
    for module in (gluon_causal, gluon_overlapped):
        patch.setattr(module, "mbarrier", mbarrier)
    patch.setattr(gluon_causal, "warpgroup_mma", multiply)
    patch.setattr(
        gluon_causal,
        "warpgroup_mma_wait",
        lambda _, deps: deps if len(deps) > 1 else deps[0],
    )
    patch.setattr(gluon_causal, "softmax", lambda *_: [MagicMock()] * 4)
    patch.setattr(gluon_causal, "attend", gluon_causal.attend.fn)
    patch.setattr(gluon_causal, "take_stage", gluon_overlapped.take_stage.fn)
    rings = [MagicMock(shape=[2, 1, 1, 128, 128])] * 2  # two stages
    bars = [
        SimpleNamespace(index=partial(lambda *at: at, name), shape=[2])
        for name in ("full", "empty", "go")
    ]
    for block, length in enumerate(tiles):
        calls.append(("block", block))
        at = block, sum(tiles[:block]), length
        gluon_causal.walk.fn(None, rings, bars, 1, *at, 128, 128, w, False)
    return calls


def test_the_barriers_go_of_two_consumers(monkeypatch: pytest.MonkeyPatch):
    turns: list[list[list]] = []  # of each consumer: a bit, products, whom it calls
    for w in range(2):
        turns.append([])
        with monkeypatch.context() as patch:
            for call in calls_of_walks(patch, [3], w):
                if call[:3] == ("wait", "go", w):
                    turns[w].append([call[3], [], None])
                elif call[0] == "issue":
                    turns[w][-1][1].append(call[1])
                elif call[:2] == ("arrive", "go"):
                    turns[w][-1][2] = call[2]
        turns[w][-1][1].pop()  # the last sum, with which it calls nobody
    kernel = inspect.getsource(gluon_causal.attention_kernel.fn)
    assert "q_full, go = barriers(CONSUMERS, 1), barriers(CONSUMERS, 1)" in kernel
    (first,) = re.findall(r"mbarrier\.arrive\(go\.index\((\d)\)\)", kernel)
    over = Counter([int(first)])  # phases of each go
    expected = []
    while any(turns):
        (w,) = (x for x in range(2) if turns[x] and over[x] & 1 != turns[x][0][0])
        turn = len(expected) // 2
        bit, products, called = turns[w].pop(0)
        words = " ".join(f"{x}{turn - (x == 'O')}" for x in products)
        expected.append((w, words, f"bit {bit}", over[w] - 1, called, over[called]))
        over[called] += 1

    root = ET.parse(ASSETS / "diagrams/hopper/overlapped-go.svg").getroot()
    texts = [
        (*numbers(x, "x", "y"), "".join(x.itertext())) for x in root.findall("{*}text")
    ]
    boxes = [
        numbers(x, "x", "y", "width", "height")
        for x in root.findall("{*}rect[@class='line']")
    ]
    arrows = dict(numbers(x, "x1", "y2") for x in root.findall("{*}line"))
    rows = 60, 154  # of go 0 and go 1
    ends = [sorted(x + width for x, y, width, _ in boxes if y == row) for row in rows]
    for row, phases in zip(rows, ends, strict=True):
        told = [words.split()[-1] for x, y, words in texts if y == row + 15]
        assert told[1:] == [str(n) for n in range(len(phases))]
    drawn = []
    for x, y, width, height in sorted(boxes):
        if height == 40 and width < 100:
            (w,) = (n for n, row in enumerate(rows) if y == row + 32)
            words = [
                each for u, v, each in texts if 0 < u - x < width and 0 < v - y < 40
            ]
            called = min((0, 1), key=lambda n: abs(rows[n] - arrows[x + width]))
            own = sum(end <= x for end in ends[w]) - 1
            drawn.append((w, *words, own, called, ends[called].index(x + width)))
    assert drawn == expected


def test_the_order_of_the_sum_of_dq():
    code = inspect.getsource(gluon_backward.consume.fn)
    steps = r" dq = dq\.reshape\(\[(.*)\]\)\.permute\(\((.*)\)\)\n"
    ((shape, order),) = re.findall(steps, code)
    assert "FOURS: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])" in code
    half = 64
    sizes = [half // 16 if "HALF" in x else int(x) for x in shape.split(", ")]
    tile = torch.arange(64 * half).reshape(sizes)
    memory = tile.permute([int(x) for x in order.split(", ")]).flatten()
    rows, cols = memory // half, memory % half
    # wgmma: of each 8 columns a thread has two, and 8 rows below it the same.
    threads = rows // 16 * 32 + rows % 8 * 4 + cols % 8 // 2
    assert torch.equal(threads, torch.arange(64 * half) // 4 % 128)  # nothing moves
    assert (rows[:16] == 0).all()
    assert (rows[16], cols[16], threads[16]) == (1, 0, 4)

    root = ET.parse(ASSETS / "diagrams/hopper/backward-order.svg").getroot()
    texts: dict[float, list[tuple[float, str]]] = {}  # of each line, from the left
    for text in root.findall("{*}text"):
        x, y = numbers(text, "x", "y")
        texts.setdefault(y, []).append((x, "".join(text.itertext())))
    lines = [sorted(line) for _, line in sorted(texts.items()) if len(line) > 1]
    names = [name for (_, name), *_ in lines]
    assert names == ["thread", "column", "column", "place", "thread"]
    above, columns, held, places, below = ([int(x) for _, x in y[1:]] for y in lines)
    assert columns == places == list(range(16))
    assert held == cols[:16].tolist()
    by_column = dict(zip(held, threads.tolist(), strict=False))
    assert above == [by_column[column] for column in columns[::2]]
    assert below == threads[:16:4].tolist()
    at, to = ([x for x, _ in line[1:]] for line in lines[1:3])
    ends = {
        x1: x2
        for x1, x2 in (numbers(x, "x1", "x2") for x in root.iter() if x.get("x1"))
    }
    for column in columns[::2]:
        place = held.index(column)
        middle = (at[column] + at[column + 1]) / 2
        assert ends[middle] == (to[place] + to[place + 1]) / 2


def test_the_stages_at_the_boundary_of_two_blocks(monkeypatch: pytest.MonkeyPatch):
    tiles = [3, 2]
    keys = SimpleNamespace(shape=[2, 1, 3 * 128, 128], block_type=MagicMock())
    keys.block_type.shape = [1, 1, 128, 128]
    stages: list[list[str]] = []  # K and V of each

    def load(k_desc, k_rows, v_desc, v_rows, rings, full, empty, n):
        assert n == len(stages)
        stages.append([])
        for name, (block, _, start, _) in (("K", k_rows), ("V", v_rows)):
            beyond = start >= keys.shape[2]
            tile = tiles[block] - 1 - start // 128
            stages[-1].append("zeros" if beyond else f"{name}{tile}")

    monkeypatch.setattr(gluon_persistent, "load_stage", load)
    for name in ("gl", "mbarrier", "tma"):
        monkeypatch.setattr(gluon_persistent, name, MagicMock())
    monkeypatch.setattr(
        gluon_persistent, "place", lambda turn, *_: (True, (turn, 0, 0, tiles[turn]))
    )
    memory = MagicMock(shape=[2]), None, None
    gluon_persistent.produce.fn([keys] * 4, memory, [MagicMock()] * 5, 2, 0)
    used: dict[tuple[int, int], list[str]] = {}  # by a block, of a stage
    given: list[tuple[int, int]] = []
    n, block = -1, -1
    for what, *which in calls_of_walks(monkeypatch, tiles):
        if what == "block":
            (block,) = which
        elif what == "issue":
            used[block, n].append(stages[n]["SO".index(*which)])
        elif what == "wait" and which[0] == "full":
            _, at, bit = which
            n += (at, bit) != (n % 2, n // 2 & 1)  # else the same stage once more
            assert (at, bit) == (n % 2, n // 2 & 1)
            used[block, n] = []
        elif which[0] == "empty":
            assert which[1] == len(given) % 2
            given.append((block, len(given)))

    root = ET.parse(ASSETS / "diagrams/hopper/persistent-stages.svg").getroot()
    texts = [
        (*numbers(x, "x", "y"), "".join(x.itertext())) for x in root.findall("{*}text")
    ]
    rows = {words: y for _, y, words in texts}
    columns = sorted(x for x, y, _ in texts if y == rows["stage"])[1:]

    def words(x: float, row: str) -> list[str]:
        return [
            told for u, v, told in sorted(texts) if v == rows[row] and abs(u - x) < 25
        ]

    held = [[*words(x, "its K"), *words(x, "its V")] for x in columns]
    assert held == stages
    numbered = [[*words(x, "stage"), *words(x, "place")] for x in columns]
    assert numbered == [[str(n), str(n % 2)] for n in range(len(stages))]
    labels = [rows["first block"], rows["second block"]]
    drawn = {
        (block, n): told
        for block, row in enumerate(("first block", "second block"))
        for n, x in enumerate(columns)
        if (told := words(x, row))
    }
    assert drawn == used
    dots = [numbers(x, "cy", "cx") for x in root.findall("{*}circle")]
    assert dots
    assert [(labels.index(y - 14), columns.index(x)) for y, x in sorted(dots)] == given
    (twice,) = (n for n in range(len(stages)) if {(0, n), (1, n)} <= used.keys())
    x, width = numbers(root.find("{*}rect[@class='accent']"), "x", "width")
    assert x + width / 2 == columns[twice]
