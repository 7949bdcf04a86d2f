"""The diagrams of the softmax part: each is held against the code that it shows."""

import re
from typing import Any

import pytest
import torch

from snippets.softmax import long_rows, monoid
from tests.diagrams import drawing, numbers, texts
from tests.harness.waiting import take_turns


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

    root = drawing("softmax/monoid-tree.svg")
    parts: dict[complex, int] = {}  # where a part is drawn: its columns
    for x, y, words in texts(root):
        if re.fullmatch("x[₀-₇]", words):
            parts[complex(x, y - 5)] = 1 << "₀₁₂₃₄₅₆₇".index(words[1])
        elif words == "id":
            parts[complex(x, y - 5)] = 0
    circles = [
        complex(*numbers(circle, "cx", "cy"))
        for circle in root.findall("{*}circle[@class='line']")
    ]
    assert len(circles) == len(merges)
    arrows: dict[complex, list[complex]] = {at: [] for at in circles}
    for line in root.findall("{*}line"):
        x1, y1, x2, y2 = numbers(line, "x1", "y1", "x2", "y2")
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
    told: dict[float, list[tuple[float, str]]] = {}  # of each line, from the left
    for at, y, text in texts(drawing("softmax/long-rows-words.svg")):
        told.setdefault(y, []).append((at, text))
    lines = {line[0][1]: line for line in map(sorted, told.values())}
    digits = {
        name: [(at, int(text)) for at, text in line if text.isdigit()]
        for name, line in lines.items()
    }
    # The counter lies behind the last word.
    assert [number for _, number in digits["word"]] == list(range(counted + 1))
    drawn = [
        (min(digits["row"], key=lambda row: abs(row[0] - at))[1], chunk)
        for at, chunk in digits["chunk"]
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
