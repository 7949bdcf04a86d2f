"""How each snippet is called: written here once, for the benchmarks and the compiler.

A file publishes its last function with parameters that CALLS knows, whatever its name.
"""

import ast
import importlib.util
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

ROOT = Path(__file__).resolve().parent.parent
PAGE = 16  # keys


def public(path: Path) -> tuple[str, Callable[..., Call]] | None:
    """The name of what a file publishes, and who calls it. It is read, not run."""
    for node in reversed(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.FunctionDef):
            parameters = tuple(arg.arg for arg in node.args.args)
            if parameters in CALLS:
                return node.name, CALLS[parameters]
    return None


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


def call(module: ModuleType, *inputs: Tensor, **options: Any) -> Call:
    """The call of what a snippet publishes, with all that it needs prepared.

    Args:
        module: the snippet, as `load` imports it.
        inputs: x [rows, cols], and dy for the backward pass alone; or q, k and v
            [batch, heads, seq, head_dim].
        options: those of the snippet's function, such as `causal`.

    Raises:
        LookupError: the file has no function with parameters that are known here.
    """
    found = public(Path(module.__file__))
    if found is None:
        raise LookupError(f"CALLS has no function of {module.__file__}")
    name, caller = found
    return caller(getattr(module, name), *inputs, **options)


def prepare(name: str, *inputs: Tensor, **options: Any) -> Call:
    """The call of a snippet by its name."""
    return call(load(name), *inputs, **options)


def rows(
    function: Callable[..., Any], x: Tensor, dy: Tensor | None = None, **options
) -> Call:
    """softmax(x), or its backward pass alone."""
    if dy is None:
        return partial(function, x, **options)
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        y = function(leaf)
    return lambda: torch.autograd.grad(y, leaf, dy, retain_graph=True)


def heads(function: Callable[..., Any], *qkv: Tensor, **options: Any) -> Call:
    """attention(q, k, v); without a causal mask it takes one head, so each in turn."""
    if "causal" in (function.__kwdefaults__ or ()):
        return partial(function, *qkv, **options)
    each = [*zip(*(x.flatten(0, 1) for x in qkv), strict=True)]
    return lambda: [function(*head, **options) for head in each][-1]


def packed(
    function: Callable[..., Any],
    *qkv: Tensor,
    lengths: Sequence[int] | None = None,
    **options: Any,
) -> Call:
    """Pack the sequences of a padded batch; without lengths, they fill it."""
    starts = (boundaries(x, lengths) for x in qkv[:2])
    return partial(function, *(pack(x, lengths) for x in qkv), *starts, **options)


def pack(x: Tensor, lengths: Sequence[int] | None = None) -> Tensor:
    """[batch, heads, seq, head_dim] -> [tokens, heads, head_dim], without padding."""
    each = zip(x.transpose(1, 2), lengths or [x.shape[2]] * len(x), strict=True)
    return torch.cat([row[:length] for row, length in each])


def boundaries(x: Tensor, lengths: Sequence[int] | None = None) -> Tensor:
    """Where each sequence of a padded batch begins, and where the last one ends."""
    starts = itertools.accumulate(lengths or [x.shape[2]] * len(x), initial=0)
    return torch.tensor([*starts], dtype=torch.int32, device=x.device)


def paged(
    function: Callable[..., Any],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    **options: Any,
) -> Call:
    """Put keys and values into pages, which lie in a random order."""
    batch, heads, seq, head_dim = k.shape
    count = seq // PAGE
    order = torch.randperm(batch * count, device=k.device).view(batch, count)
    pages = []
    for x in (k, v):
        filled = x.new_empty(batch * count, PAGE, heads, head_dim)
        for sequence, where in zip(x, order, strict=True):
            cut = sequence.view(heads, count, PAGE, head_dim)
            filled[where] = cut.permute(1, 2, 0, 3)
        pages.append(filled)
    lengths = torch.full((batch,), seq, dtype=torch.int32, device=k.device)
    return partial(function, q, *pages, order.int(), lengths, **options)


def fp8(
    function: Callable[..., Any],
    *qkv: Tensor,
    transpose: bool = False,
    **options: Any,
) -> Call:
    """Quantise beforehand. Each call transposes v, or it is done beforehand too."""
    quantise = function.__globals__["quantise"]
    (q, k, v), scales = zip(*map(quantise, qkv), strict=True)
    if transpose:
        return lambda: function(q, k, columns(v), *scales, **options)
    return partial(function, q, k, columns(v), *scales, **options)


def columns(v: Tensor) -> Tensor:
    """v [..., seq, head_dim] as [..., head_dim, seq], its rows multiples of 16."""
    *lead, seq, head_dim = v.shape
    room = v.new_empty(*lead, head_dim, -(-seq // 16) * 16)[..., :seq]
    return room.copy_(v.mT)


# Who calls a function, by its parameters.
CALLS: dict[tuple[str, ...], Callable[..., Call]] = {
    ("x",): rows,
    ("x", "y"): lambda add, x: partial(add, x[0], x[0]),
    ("x", "y", "out"): lambda add, x: partial(add, x[0], x[0], x[0]),
    ("rows", "cols", "stride"): lambda addresses, x: partial(
        addresses, *x.shape, x.stride(0)
    ),
    ("s", "m"): lambda weights, q, *_: (
        lambda: [weights(q.flatten().float(), 0.0, scale=1.0, base=b) for b in "e2"]
    ),
    ("q", "k", "v"): heads,
    ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k"): packed,
    ("q", "k", "v", "block_table", "seq_lens"): paged,
    ("q", "k", "v", "q_scale", "k_scale", "v_scale"): fp8,
}
