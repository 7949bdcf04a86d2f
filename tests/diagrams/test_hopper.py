"""The diagrams of the Hopper part: each is held against the code that it shows."""

import inspect
import re
from collections import Counter
from functools import partial
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch

from snippets.hopper import (
    gluon_backward,
    gluon_causal,
    gluon_overlapped,
    gluon_persistent,
)
from tests.diagrams import drawing, numbers, texts


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

    root = drawing("hopper/overlapped-go.svg")
    said = texts(root)
    boxes = [
        numbers(x, "x", "y", "width", "height")
        for x in root.findall("{*}rect[@class='line']")
    ]
    arrows = dict(numbers(x, "x1", "y2") for x in root.findall("{*}line"))
    rows = 60, 154  # of go 0 and go 1
    ends = [sorted(x + width for x, y, width, _ in boxes if y == row) for row in rows]
    for row, phases in zip(rows, ends, strict=True):
        told = [words.split()[-1] for x, y, words in said if y == row + 15]
        assert told[1:] == [str(n) for n in range(len(phases))]
    drawn = []
    for x, y, width, height in sorted(boxes):
        if height == 40 and width < 100:
            (w,) = (n for n, row in enumerate(rows) if y == row + 32)
            words = [
                each for u, v, each in said if 0 < u - x < width and 0 < v - y < 40
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

    root = drawing("hopper/backward-order.svg")
    told: dict[float, list[tuple[float, str]]] = {}  # of each line, from the left
    for x, y, words in texts(root):
        told.setdefault(y, []).append((x, words))
    lines = [sorted(line) for _, line in sorted(told.items()) if len(line) > 1]
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

    root = drawing("hopper/persistent-stages.svg")
    said = texts(root)
    rows = {words: y for _, y, words in said}
    columns = sorted(x for x, y, _ in said if y == rows["stage"])[1:]

    def words(x: float, row: str) -> list[str]:
        return [
            told for u, v, told in sorted(said) if v == rows[row] and abs(u - x) < 25
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
