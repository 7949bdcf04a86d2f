"""How a published function is called: written here once, for all that call it.

A file publishes its last function whose first parameter is one of the inputs, whatever
its name. It gets the inputs that it has parameters for. What it wants in a layout of
its own, such as packed sequences, is prepared beforehand.
"""

import importlib.util
import inspect
import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

Call = Callable[[], Any]
Inputs = dict[str, Any]  # by the names of parameters

ROOT = Path(__file__).resolve().parent.parent
PAGE = 16  # keys


def load(name: str, changes: Mapping[str, str] | None = None) -> ModuleType:
    """Import a snippet, such as `softmax/online.py`.

    Args:
        name: the snippet.
        changes: texts to replace beforehand, each of which the file has once.

    Raises:
        ValueError: the file has such a text not at all, or several times.
    """
    path = ROOT / "snippets" / name
    if not changes:
        return importlib.import_module(".".join(path.relative_to(ROOT).parts)[:-3])
    text = path.read_text(encoding="utf-8")
    for old, new in changes.items():
        if text.count(old) != 1:
            raise ValueError(f"{name} has {old!r} {text.count(old)} times, not once")
        text = text.replace(old, new)
    # Triton reads a kernel from its file.
    changed = Path(tempfile.mkdtemp(prefix="changed-")) / path.name
    changed.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, changed)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def public(module: ModuleType, inputs: Inputs) -> Callable[..., Any]:
    """What a file publishes for these inputs.

    Raises:
        LookupError: no function of it begins with one of them.
    """
    for function in reversed(vars(module).values()):
        if inspect.isfunction(function) and function.__module__ == module.__name__:
            first = [*inspect.signature(function).parameters][:1]
            if inputs.keys() & first:
                return function
    known = ", ".join(inputs)
    raise LookupError(f"no function of {module.__file__} begins with one of {known}")


def call(module: ModuleType, inputs: Inputs, **options: Any) -> Call:
    """The call of what a snippet publishes, with all that it needs prepared.

    Args:
        module: the snippet, as `load` imports it.
        inputs: x [rows, cols], and dy for the backward pass alone; or q, k and v
            [batch, heads, seq, head_dim] with what else some functions take, such as
            `causal`.
        options: what this function must take.
    """
    function = public(module, inputs)
    wanted = inspect.signature(function).parameters
    for name, prepare in LAYOUTS.items():
        if name in wanted:
            inputs = inputs | prepare(module, inputs)
    given = {key: value for key, value in inputs.items() if key in wanted} | options
    if "dy" in inputs:
        return backward(function, inputs["dy"], **given)
    if "q" in given and "causal" not in wanted:
        return one_head_at_a_time(function, **given)
    return partial(function, **given)


def backward(
    function: Callable[..., Tensor], dy: Tensor, x: Tensor, **options: Any
) -> Call:
    """The backward pass alone."""
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        y = function(leaf, **options)
    return lambda: torch.autograd.grad(y, leaf, dy, retain_graph=True)


def one_head_at_a_time(
    function: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, **options: Any
) -> Call:
    """The calls of a function without a causal mask: it takes no batch of heads."""
    heads = [*zip(*(x.flatten(0, 1) for x in (q, k, v)), strict=True)]
    return lambda: [function(*head, **options) for head in heads][-1]


def packed(module: ModuleType, inputs: Inputs) -> Inputs:
    """The sequences of a padded batch, packed; without lengths, they fill it."""
    lengths = inputs.get("lengths")
    tokens = {name: pack(inputs[name], lengths) for name in "qkv"}
    starts = {f"cu_seqlens_{name}": boundaries(inputs[name], lengths) for name in "qk"}
    return tokens | starts


def pack(x: Tensor, lengths: Sequence[int] | None = None) -> Tensor:
    """[batch, heads, seq, head_dim] -> [tokens, heads, head_dim], without padding."""
    each = zip(x.transpose(1, 2), lengths or [x.shape[2]] * len(x), strict=True)
    return torch.cat([row[:length] for row, length in each])


def boundaries(x: Tensor, lengths: Sequence[int] | None = None) -> Tensor:
    """Where each sequence of a padded batch begins, and where the last one ends."""
    starts = itertools.accumulate(lengths or [x.shape[2]] * len(x), initial=0)
    return torch.tensor([*starts], dtype=torch.int32, device=x.device)


def paged(module: ModuleType, inputs: Inputs) -> Inputs:
    """Keys and values in pages, which lie in a random order."""
    batch, heads, seq, head_dim = inputs["k"].shape
    count, device = seq // PAGE, inputs["k"].device
    order = torch.randperm(batch * count, device=device).view(batch, count)
    pages = {}
    for name in "kv":
        pages[name] = inputs[name].new_empty(batch * count, PAGE, heads, head_dim)
        for sequence, where in zip(inputs[name], order, strict=True):
            cut = sequence.view(heads, count, PAGE, head_dim)
            pages[name][where] = cut.permute(1, 2, 0, 3)
    lengths = torch.full((batch,), seq, dtype=torch.int32, device=device)
    return pages | {"block_table": order.int(), "seq_lens": lengths}


def quantised(module: ModuleType, inputs: Inputs) -> Inputs:
    """Quantised by the file itself, with v transposed."""
    (q, k, v), scales = zip(*(module.quantise(inputs[x]) for x in "qkv"), strict=True)
    names = "q_scale", "k_scale", "v_scale"
    return {"q": q, "k": k, "v": columns(v), **dict(zip(names, scales, strict=True))}


def columns(v: Tensor) -> Tensor:
    """v [..., seq, head_dim] as [..., head_dim, seq], its rows multiples of 16."""
    *lead, seq, head_dim = v.shape
    room = v.new_empty(*lead, head_dim, -(-seq // 16) * 16)[..., :seq]
    return room.copy_(v.mT)


# By a parameter that only functions of such a layout have.
LAYOUTS: dict[str, Callable[[ModuleType, Inputs], Inputs]] = {
    "cu_seqlens_q": packed,
    "block_table": paged,
    "q_scale": quantised,
}
