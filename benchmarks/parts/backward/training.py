"""Forward and backward in one call of autograd, as a layer that trains sees them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

from benchmarks import calls, peers, timing
from benchmarks.calls import Call, Inputs
from benchmarks.part import Kernel, Part, Shape
from benchmarks.parts.attention import TOKENS, WIDTH, flops, output, shape
from benchmarks.parts.backward import check


def trained(
    attention: Callable[..., Call],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    do: Tensor,
    causal: bool,
) -> Call:
    """The gradients of q, k and v, of an attention that is made for its inputs."""
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]

    def call() -> tuple[Tensor, ...]:
        with torch.enable_grad():
            o = output(attention(*leaves, causal=causal)())
        return torch.autograd.grad(o, leaves, do)

    return call


@dataclass(frozen=True)
class Trained(Kernel):
    """A function that autograd knows."""

    def call(self, inputs: Inputs) -> Call:
        """Its call, and that of its gradient."""
        function = calls.public(calls.load(self.of, self.changes), inputs)
        return trained(partial(partial, function, **self.options), **inputs)


def normal(shape: Shape) -> list[Inputs]:
    """Fresh q, k, v and do."""
    size = shape.batch, shape.heads, shape.seq, shape.head_dim
    tensors = {
        x: timing.normal(*size, dtype=shape.dtype) for x in ("q", "k", "v", "do")
    }
    return [tensors | {"causal": shape.causal}]


def facts(name: str, shape: Shape) -> dict[str, Any]:
    """Two products forward, and five backward."""
    return {"flops": flops(name, shape)["flops"] * 7 // 2}


PART = Part(
    shapes=[
        shape(head_dim, seq, TOKENS // seq, WIDTH // head_dim, True)
        for head_dim, seq in product((64, 128), (1024, 4096, 16384))
    ],
    inputs=normal,
    own={"backward/autograd.py": Trained("backward/autograd.py")},
    peers={
        "sdpa-flash": partial(trained, peers.sdpa_flash),
        "sdpa-cudnn": partial(trained, peers.sdpa_cudnn),
        "flex_attention": partial(trained, peers.flex),
    },
    check=check,
    facts=facts,
    measure=timing.one_by_one,
    ceiling="matmul",
)
