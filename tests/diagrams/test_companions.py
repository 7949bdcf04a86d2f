"""The diagrams of the companions: each is held against the code that it shows."""

import ast
import re

from tests.diagrams import drawing, numbers, texts
from tests.machinery.repository import ROOT


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

    root = drawing("companions/wide-layer-norm-backward-turns.svg")
    said = {complex(x, y): words for x, y, words in texts(root)}
    lanes = {at.real: int(x[4:]) for at, x in said.items() if re.match(r"row \d", x)}
    turns = {at.imag: int(x[6:]) for at, x in said.items() if x.startswith("row = ")}
    labels = {at.imag: x for at, x in said.items() if x in {"ask", "publish", "finish"}}
    drawn = {}
    for box in root.findall("{*}rect[@class='soft']"):
        x, y, width, height = numbers(box, "x", "y", "width", "height")
        lane = lanes[x + width / 2]
        turn = max(at for at in turns if at < y + height)
        label = min(labels, key=lambda at: abs(at - y - height / 2))
        held = [
            words
            for at, words in said.items()
            if x < at.real < x + width and y < at.imag < y + height
        ]
        drawn[turns[turn], labels[label], lane] = held
    assert {at: ", ".join(words) for at, words in drawn.items()} == {
        at: ", ".join(words) for at, words in expected.items()
    }
