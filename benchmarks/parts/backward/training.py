"""Forward and backward in one call of autograd, as a layer that trains sees them."""

import inspect
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
from benchmarks.parts import attention
from benchmarks.parts.attention import TOKENS, WIDTH, flops, output, shape
from benchmarks.parts.backward import check


class Passes:
    """Forward, and then backward; or one after the other, to look in between."""

    def __init__(
        self,
        attention: Callable[..., Any],
        q: Tensor,
        k: Tensor,
        v: Tensor,
        do: Tensor,
        **options: Any,
    ) -> None:
        self.leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        self.attention, self.do, self.options = attention, do, options

    def forward(self) -> Tensor:
        """The output, which autograd can go back from."""
        with torch.enable_grad():
            return output(self.attention(*self.leaves, **self.options))

    def backward(self, o: Tensor) -> tuple[Tensor, ...]:
        """The gradients of q, k and v."""
        return torch.autograd.grad(o, self.leaves, self.do)

    def __call__(self) -> tuple[Tensor, ...]:
        """The same, after both passes."""
        return self.backward(self.forward())


@dataclass(frozen=True)
class Trained(Kernel):
    """A function of a file that autograd knows: the named one, or the published."""

    function: str = ""

    def call(self, inputs: Inputs) -> Call:
        """Both passes of it."""
        module = calls.load(self.of, self.changes)
        found = vars(module).get(self.function) or calls.public(module, inputs)
        known = inspect.signature(found).parameters.keys() | {"do"}
        return Passes(found, **{x: inputs[x] for x in inputs.keys() & known})


def peer(make: Callable[..., Call]) -> Callable[..., Call]:
    """Both passes of a peer, which is made for its inputs."""
    return partial(Passes, lambda *leaves, causal: make(*leaves, causal=causal)())


def fresh(shape: Shape) -> list[Inputs]:
    """Fresh q, k, v and do."""
    (found,) = attention.normal(shape)
    return [found | {"do": timing.normal(*found["q"].shape, dtype=shape.dtype)}]


def facts(name: str, shape: Shape) -> dict[str, Any]:
    """Two products forward, and five backward."""
    return {"flops": flops(name, shape)["flops"] * 7 // 2}


PART = Part(
    shapes=[
        shape(head_dim, seq, TOKENS // seq, WIDTH // head_dim, True)
        for head_dim, seq in product((64, 128), (1024, 4096, 16384))
    ],
    inputs=fresh,
    own={
        name: Trained(name)
        for name in ("backward/autograd.py", "backward/autograd_tuned.py")
    },
    peers={
        "sdpa-flash": peer(peers.sdpa_flash),
        "sdpa-cudnn": peer(peers.sdpa_cudnn),
        "flex_attention": peer(peers.flex),
    },
    check=check,
    facts=facts,
    measure=timing.one_by_one,
    ceiling="matmul",
    against={"times_flash": "sdpa-flash", "times_flex": "flex_attention"},
)
