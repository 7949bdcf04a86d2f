"""The backward pass in a sliding window: what a narrower one saves, on one sequence."""

from functools import partial
from typing import Any

import torch

from benchmarks import calls, peers, timing
from benchmarks.calls import Call, Inputs
from benchmarks.part import Part, Shape, near
from benchmarks.parts.attention import shape
from benchmarks.parts.backward import derived, ours

LONG = shape(128, 16384, 1, 16, causal=True)
WINDOWS = (256, 1024, 4096, 16384)  # the widest is the causal mask


def inputs(shape: Shape) -> list[Inputs]:
    """Fresh q, k, v and do, and what our own forward pass makes of them."""
    size = shape.batch, shape.heads, shape.seq, shape.head_dim
    q, k, v, do = (timing.normal(*size, dtype=shape.dtype) for _ in range(4))
    seen = {"causal": True, "window": shape.window}
    o, lse = calls.load("attention/flash2_window.py").attention(q, k, v, **seen)
    return [{"q": q, "k": k, "v": v, "o": o, "lse": lse, "do": do} | seen]


def flex(window: int, **inputs: Any) -> Call:
    """FlexAttention's backward pass alone, with this window."""
    return derived(partial(peers.flex, window=window))(**inputs)


def check(name: str, inputs: Inputs, found: Any) -> None:
    """Compare the last head with float64.

    Raises:
        Wrong: they differ.
    """
    q, k, v, do = (inputs[x][-1, -1].double() for x in ("q", "k", "v", "do"))
    rows = torch.arange(len(q), device=q.device)
    back = rows[:, None] - rows
    seen = (back >= 0) & (back < inputs["window"])
    with torch.enable_grad():
        leaves = [x.requires_grad_() for x in (q, k, v)]
        s = (q @ k.T * q.shape[-1] ** -0.5).masked_fill(~seen, float("-inf"))
        expected = torch.autograd.grad(torch.softmax(s, dim=-1) @ v, leaves, do)
    for got, exact in zip(found, expected, strict=True):
        near(got[-1, -1].double(), exact)


def takes_all(shape: Shape) -> bool:
    """Whether the window is no narrower than the causal mask."""
    return shape.window >= shape.seq


PART = Part(
    shapes=[Shape(**vars(LONG), window=window) for window in WINDOWS],
    inputs=inputs,
    own=ours("backward/window_backward.py")
    | ours("backward/causal_backward.py", takes=takes_all),
    peers={"flex_attention": flex},
    check=check,
    facts=lambda name, shape: {},
    measure=timing.one_by_one,
)
