"""What the lists of the backward pass share.

FLOPs are those of the five matrix products, half of them under a causal mask, whatever
a kernel computes.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch._functorch import config

from benchmarks import calls, timing
from benchmarks.calls import Call, Inputs
from benchmarks.part import Kernel, Part, Shape, near
from benchmarks.parts.attention import HEAD_DIMS, TOKENS, WIDTH, flops, shape

SEQS = (512, 1024, 2048, 4096, 8192, 16384)
# As in the forward pass: each length has the same number of tokens.
PROTOCOL = [
    shape(head_dim, seq, TOKENS // seq, WIDTH // head_dim, causal)
    for head_dim, causal, seq in product(HEAD_DIMS, (False, True), SEQS)
]
NAMES = "dq", "dk", "dv"
# A graph serves many backward passes here, and PyTorch wants to be told: else what a
# list of single passes compiled is found on the disk, and refuses the second.
config.donated_buffer = False


@dataclass(frozen=True)
class Gradients(Kernel):
    """A kernel that takes what the forward pass returned, and returns dq, dk and dv."""

    def call(self, inputs: Inputs) -> Call:
        """Its call, with what it has parameters for."""
        function = calls.public(calls.load(self.of, self.changes), inputs)
        known = inputs.keys() & inspect.signature(function).parameters
        return partial(function, **{x: inputs[x] for x in known}, **self.options)


def ours(*names: str, **facts: Any) -> dict[str, Kernel]:
    """These files as they are."""
    return {name: Gradients(name, **facts) for name in names}


def derived(peer: Callable[..., Call]) -> Callable[..., Call]:
    """The backward pass alone of a peer's forward pass."""

    def make(
        q: Tensor, k: Tensor, v: Tensor, do: Tensor, causal: bool, **_: Any
    ) -> Call:
        with torch.enable_grad():
            leaves = [x.detach().requires_grad_() for x in (q, k, v)]
            o = peer(*leaves, causal=causal)()
        return lambda: torch.autograd.grad(o, leaves, do, retain_graph=True)

    return make


def forward(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """(o, lse) as PyTorch's own FlashAttention-2 returns them."""
    name = "_scaled_dot_product_flash_attention" + ("" if q.is_cuda else "_for_cpu")
    o, lse, *_ = getattr(torch.ops.aten, name)(q, k, v, 0.0, causal)
    return o, lse


def normal(shape: Shape) -> list[Inputs]:
    """Fresh q, k, v and do, and what the forward pass makes of them."""
    size = shape.batch, shape.heads, shape.seq, shape.head_dim
    q, k, v, do = (timing.normal(*size, dtype=shape.dtype) for _ in range(4))
    o, lse = forward(q, k, v, shape.causal)
    tensors = {"q": q, "k": k, "v": v, "o": o, "lse": lse, "do": do}
    return [tensors | {"causal": shape.causal}]


def credited(name: str, shape: Shape) -> dict[str, Any]:
    """Of the five products: two and a half times those of the forward pass."""
    return {"flops": flops(name, shape)["flops"] * 5 // 2}


def check(name: str, inputs: Inputs, found: Any) -> None:
    """Compare the last head with float64.

    Raises:
        Wrong: they differ.
    """
    q, k, v, do = (inputs[x][-1, -1].double() for x in ("q", "k", "v", "do"))
    with torch.enable_grad():
        leaves = [x.requires_grad_() for x in (q, k, v)]
        s = q @ k.T * q.shape[-1] ** -0.5
        if inputs["causal"]:
            hidden = torch.ones_like(s, dtype=torch.bool).triu(1 + len(k) - len(q))
            s = s.masked_fill_(hidden, float("-inf"))
        expected = torch.autograd.grad(torch.softmax(s, dim=-1) @ v, leaves, do)
    for got, exact in zip(found, expected, strict=True):
        near(got[-1, -1].double(), exact)


backward = partial(Part, inputs=normal, check=check, facts=credited)
