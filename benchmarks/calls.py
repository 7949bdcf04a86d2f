"""How each snippet is called: written here once, for the benchmarks and the compiler.

A file whose function is `softmax(x)` or `attention(q, k, v, *, causal)`, of tensors
[batch, heads, seq, head_dim], needs no entry.
"""

import ast
import importlib
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # whoever only asks what is known here need not have it
    from torch import Tensor

Call = Callable[[], Any]

STANDARD = {"softmax": ["x"], "attention": ["q", "k", "v"]}
PAGE = 16  # keys
NOT_CAUSAL = ("attention/flash2.py",)  # it has the option, only to refuse it


def load(name: str) -> ModuleType:
    """Import a snippet, such as `softmax/online.py`."""
    path = f"snippets/{name}".removesuffix(".py")
    return importlib.import_module(path.replace("/", "."))


def name_of(module: ModuleType) -> str:
    """`snippets.softmax.online` -> `softmax/online.py`."""
    return module.__name__.partition(".")[2].replace(".", "/") + ".py"


def call(module: ModuleType, *inputs: "Tensor", **options: Any) -> Call:
    """The call of what a snippet publishes, with all that it needs prepared.

    Args:
        module: the snippet, as `load` imports it.
        inputs: x [rows, cols]; or q, k and v [batch, heads, seq, head_dim].
        options: those of the snippet's function, such as `causal`.
    """
    entry = CALLS.get(name_of(module))
    if entry:
        return entry(module, *inputs, **options)
    function = next(vars(module)[name] for name in STANDARD if name in vars(module))
    return partial(function, *inputs, **options)


def prepare(name: str, *inputs: "Tensor", **options: Any) -> Call:
    """The call of a snippet by its name."""
    return call(load(name), *inputs, **options)


def known(snippets: Path, name: str) -> bool:
    """Does anybody know how to call this snippet? It is read, not run."""
    tree = ast.parse((snippets / name).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return name in CALLS or any(
        STANDARD.get(function.name) == [arg.arg for arg in function.args.args]
        for function in functions
    )


def one_head(module: ModuleType, *qkv: "Tensor", **options: Any) -> Call:
    """Give the first head to a function that takes [seq, head_dim]."""
    return partial(module.attention, *(x[0, 0] for x in qkv), **options)


def gradient(module: ModuleType, x: "Tensor", dy: "Tensor | None" = None) -> Call:
    """The backward pass alone."""
    import torch

    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        y = module.softmax(leaf)
    dy = torch.ones_like(y) if dy is None else dy
    return lambda: torch.autograd.grad(y, leaf, dy, retain_graph=True)


def varlen(
    module: ModuleType,
    *qkv: "Tensor",
    lengths: Sequence[int] | None = None,
    **options: Any,
) -> Call:
    """Pack the sequences of a padded batch; without lengths, they fill it."""
    packed = [pack(x, lengths) for x in qkv]
    starts = [boundaries(x, lengths) for x in qkv[:2]]
    return partial(module.attention, *packed, *starts, **options)


def pack(x: "Tensor", lengths: Sequence[int] | None = None) -> "Tensor":
    """[batch, heads, seq, head_dim] -> [tokens, heads, head_dim], without padding."""
    import torch

    rows = x.transpose(1, 2)
    lengths = lengths or [x.shape[2]] * len(x)
    return torch.cat([row[:length] for row, length in zip(rows, lengths, strict=True)])


def boundaries(x: "Tensor", lengths: Sequence[int] | None = None) -> "Tensor":
    """Where each sequence of a padded batch begins, and where the last one ends."""
    import torch

    lengths = lengths or [x.shape[2]] * len(x)
    starts = [*itertools.accumulate(lengths, initial=0)]
    return torch.tensor(starts, dtype=torch.int32, device=x.device)


def paged_kv(
    module: ModuleType, q: "Tensor", k: "Tensor", v: "Tensor", **options: Any
) -> Call:
    """Put keys and values into pages, which lie in a random order."""
    import torch

    batch, heads, seq, head_dim = k.shape
    count = seq // PAGE
    order = torch.randperm(batch * count, device=k.device).view(batch, count)
    pages = []
    for x in (k, v):
        filled = x.new_empty(batch * count, PAGE, heads, head_dim)
        for rows, where in zip(x, order, strict=True):
            filled[where] = rows.view(heads, count, PAGE, head_dim).permute(1, 2, 0, 3)
        pages.append(filled)
    lengths = torch.full((batch,), seq, dtype=torch.int32, device=k.device)
    return partial(module.attention, q, *pages, order.int(), lengths, **options)


def fp8(
    module: ModuleType, *qkv: "Tensor", transpose: bool = False, **options: Any
) -> Call:
    """Quantise beforehand. Each call transposes v, or it is done beforehand too."""
    (q, k, v), scales = zip(*(module.quantise(x) for x in qkv), strict=True)
    if transpose:
        return lambda: module.attention(q, k, columns(v), *scales, **options)
    return partial(module.attention, q, k, columns(v), *scales, **options)


def columns(v: "Tensor") -> "Tensor":
    """v [..., seq, head_dim] as [..., head_dim, seq], its rows multiples of 16."""
    *lead, seq, head_dim = v.shape
    room = v.new_empty(*lead, head_dim, -(-seq // 16) * 16)[..., :seq]
    return room.copy_(v.mT)


# The files whose function is not `softmax(x)` or `attention(q, k, v)` of whole batches.
CALLS: dict[str, Callable[..., Call]] = {
    "start/vector_add.py": lambda module, x: partial(module.add, x[0], x[0]),
    "start/wrong_no_mask.py": lambda module, x: partial(module.add, x[0], x[0], x[0]),
    "start/copy_tile.py": lambda module, x: partial(module.copy, x),
    "start/addresses.py": lambda module, x: partial(
        module.addresses, *x.shape, x.stride(0)
    ),
    "softmax/gradient.py": gradient,
    "attention/exp2.py": lambda module, q, *_: (
        lambda: [
            module.weights(q.flatten().float(), 0.0, scale=1.0, base=base)
            for base in "e2"
        ]
    ),
    "attention/flash1.py": one_head,
    "attention/flash2_single_head.py": one_head,
    "attention/wrong_half_state.py": one_head,
    "attention/wrong_tail_keys.py": one_head,
    "attention/wrong_small_block.py": one_head,
    "attention/wrong_large_negative.py": one_head,
    "attention/varlen.py": varlen,
    "attention/paged_kv.py": paged_kv,
    "attention/flash2_fp8.py": fp8,
}
