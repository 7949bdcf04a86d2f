"""Each replay is a run of its kernel as it is now, and its record says what it showed.

A record that is missing, or whose files have changed, is written anew: commit it.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton

from snippets.softmax.tree import softmax
from tests.harness.accuracy import compare_all
from tests.replays import Replay, Run, Tensors, record
from tests.replays.softmax import monoid
from tests.replays.story import flat
from verified_docs import layout

if not triton.knobs.runtime.interpret:
    pytest.skip("needs TRITON_INTERPRET=1", allow_module_level=True)

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("snippet", layout.replayed(ROOT))
def test_is_a_run_of_its_kernel(snippet: str) -> None:
    replay = record.described(snippet)
    made, outputs = record.record(ROOT, snippet)
    for told, (name, run) in zip(made["runs"], replay.runs.items(), strict=True):
        check_outputs(replay, run, outputs[name])
        check_story(told, outputs[name])
    assert record.compressed(made) <= record.LARGEST
    known = record.read(ROOT, snippet)
    if known.get("manifest") != made["manifest"]:
        record.write(ROOT, made)
    else:
        assert known["runs"] == made["runs"], "the same files tell another story"


def test_all_orders_of_merging_end_in_the_output_of_the_kernel() -> None:
    made, outputs = record.record(ROOT, "softmax/monoid.py")
    assert len(outputs) == 6 * 3  # pairs of four parts, then of three
    x = monoid.ROW
    y = softmax(x[None])[0]
    for pair in outputs.values():
        assert pair["m_i"] == x.max()
        again = (x - pair["m_i"]).exp() / pair["l_i"]
        torch.testing.assert_close(again, y, rtol=3 * torch.finfo(x.dtype).eps, atol=0)
    # What a reader sees of the parts is what the steps say of them.
    for run in made["runs"]:
        merges = zip(run["name"].split("."), run["frames"], strict=True)
        for (both, end), parts in zip(merges, run["parts"][1:], strict=True):
            (m_i,) = run["steps"][end - 1]["state"]["m_i"]
            (l_i,) = run["steps"][end]["state"]["l_i"]
            assert dict(parts)[both].endswith(f": ({m_i}, {l_i})")


# Where a page lies, and how many programs share the blocks, changes no bit.
@pytest.mark.parametrize("name", ["paged_kv", "flash2_persistent"])
def test_both_runs_have_the_same_output(name: str) -> None:
    _, outputs = record.record(ROOT, f"attention/{name}.py")
    first, other = outputs.values()
    assert all(torch.equal(first[name], other[name]) for name in ("o", "lse"))


@pytest.mark.parametrize("snippet", layout.replayed(ROOT))
def test_its_formulas_are_those_of_its_page(snippet: str) -> None:
    known = layout.replayed(ROOT)
    pages = (path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    replay = record.described(snippet)
    names = {
        snippet,
        *(each for each in known if record.described(each).beside == snippet),
    }
    shown = [page for page in pages if any(f"replay: {n}\n" in page for n in names)]
    assert shown, "no page shows it"
    formulas = [replay.formulas, *(run.formulas for run in replay.runs.values())]
    for formula in (text for each in formulas for text in each.values()):
        assert any(plain(formula) in plain(page) for page in shown), formula


def plain(formula: str) -> str:
    """A formula without what sets it: spaces, signs of products, marks of TeX."""
    return re.sub(r"\\(?:,|cdot)|[\s·{}\\&]", "", formula)


def check_outputs(replay: Replay, run: Run, outputs: Tensors) -> None:
    """Watching changed nothing, and the result is right, or wrong where it is to be."""
    for name, value in (run.call or replay.call)(**run.inputs).items():
        assert torch.equal(value.nan_to_num(7), outputs[name].nan_to_num(7)), name
    exact = replay.expected(**{name: x.double() for name, x in run.inputs.items()})
    own = replay.expected(**run.inputs)
    if replay.wrong:
        with pytest.raises(AssertionError):
            compare_all(outputs, exact, own)
    else:
        compare_all(outputs, exact, own)


def check_story(told: dict[str, Any], outputs: Tensors) -> None:
    """The steps write the kernel's output, and move the bytes of the page's formula."""
    written: dict[str, dict[int, Any]] = {}
    for step in told["steps"]:
        assert step["say"].strip()
        for name, ranges, values in step.get("writes", ()):
            pairs = zip(ranges[::2], ranges[1::2], strict=True)
            places = [i for start, count in pairs for i in range(start, start + count)]
            assert len(places) == len(values)
            written.setdefault(name, {}).update(zip(places, values, strict=True))
    last: dict[str, Any] = {}
    for step in told["steps"]:
        last |= step.get("state", {})
    for name, value in outputs.items():
        expected = flat(value.numpy())
        if name in written:
            assert written[name] == dict(enumerate(expected)), name
        else:
            assert last[name] == expected, name
    for name, formula in told["formula"].items():
        assert told["totals"][name] == formula["value"], name
    shapes = {each["name"]: each["shape"] for each in told["state"]}
    for step in told["steps"]:
        for name, values in step.get("state", {}).items():
            assert len(values) == np.prod(shapes[name], dtype=int), name
