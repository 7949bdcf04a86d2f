"""The diagrams of the backward part: each is held against the code that it shows."""

import ast
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest
import torch

from snippets.backward import autograd
from tests.diagrams import drawing, numbers, rectangles, texts
from tests.machinery.repository import ROOT


def test_a_row_of_the_gradient_of_softmax():
    name = "backward/by-hand-row.svg"
    columns: dict[float, list[str]] = {}  # from the left, and each from the top
    for x, _, words in sorted(texts(drawing(name)), key=lambda each: each[1]):
        columns.setdefault(x, []).append(words.replace("\N{MINUS SIGN}", "-"))
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
    root = drawing("backward/two-kernels-roles.svg")
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


def test_the_queries_that_see_a_block_through_a_window():
    root = drawing("backward/window-queries.svg")
    axis = {x: int(told) for x, y, told in texts(root) if y == 20 and told.isdigit()}
    boxes = [numbers(r, "x", "y") for r in root.findall("{*}rect[@class='t-s']")]
    drawn = [(axis[x + 14], 8 + (y - 34) // 28) for x, y in boxes]
    # n = 8, n' = 11 and w = 6; a query stands beside the key of its number.
    assert drawn == [
        (i, j) for j in range(8, 12) for i in axis.values() if 0 <= i - j < 6
    ]
    lines = [numbers(r, "x1") for r in root.findall("{*}line[@class='accent']")]
    # i1, i2, i3 and i2 + w, at the beginning of their queries.
    assert [axis[x + 14] for (x,) in lines] == [8, 11, 8 + 6, 11 + 6]


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
    drawn = [told for _, _, told in texts(drawing("backward/autograd-calls.svg"))]
    begin, middle = (drawn.index(x) for x in ("forward", "loss.backward()"))
    assert drawn[begin:middle] == words["forward"] + words["keep"]
    assert drawn[middle + 1 : -1] == words["gradients"] + words["backward"]
