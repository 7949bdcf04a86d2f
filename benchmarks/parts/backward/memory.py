"""Memory of training: what forward and backward of one head take beside the inputs.

`bytes` is the most that is allocated at a time, the gradients included; `kept_bytes` is
what is there between the passes, the output included.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks import calls, peers, timing
from benchmarks.calls import Call, Inputs
from benchmarks.part import Kernel, Part, Shape
from benchmarks.parts.attention import output, shape
from benchmarks.parts.backward import check


@dataclass(frozen=True)
class Passes:
    """Forward, and then backward; or one after the other, to look in between."""

    attention: Callable[..., Any]
    leaves: tuple[Tensor, ...]
    do: Tensor

    def forward(self) -> Tensor:
        """The output, which autograd can go back from."""
        with torch.enable_grad():
            return output(self.attention(*self.leaves))

    def backward(self, o: Tensor) -> tuple[Tensor, ...]:
        """The gradients of q, k and v."""
        return torch.autograd.grad(o, self.leaves, self.do)

    def __call__(self) -> tuple[Tensor, ...]:
        """The same, after both passes."""
        return self.backward(self.forward())


def leaves(q: Tensor, k: Tensor, v: Tensor, **_: Any) -> tuple[Tensor, ...]:
    """Those that get a gradient."""
    return tuple(x.detach().requires_grad_() for x in (q, k, v))


@dataclass(frozen=True)
class Trained(Kernel):
    """A function of a file that autograd knows: the named one, or the published."""

    function: str = ""

    def call(self, inputs: Inputs) -> Call:
        """Both passes of it."""
        module = calls.load(self.of, self.changes)
        found = vars(module).get(self.function) or calls.public(module, inputs)
        return Passes(found, leaves(**inputs), inputs["do"])


def flash(do: Tensor, **inputs: Any) -> Call:
    """PyTorch's FlashAttention-2."""
    return Passes(lambda *qkv: peers.sdpa_flash(*qkv)(), leaves(**inputs), do)


def normal(shape: Shape) -> list[Inputs]:
    """Fresh q, k, v and do."""
    size = shape.batch, shape.heads, shape.seq, shape.head_dim
    names = "q", "k", "v", "do"
    found = {name: timing.normal(*size, dtype=shape.dtype) for name in names}
    return [found | {"causal": shape.causal}]


def taken(passes: Any) -> dict[str, float]:
    """By both passes, and between them. Both have run before."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    o = passes.forward()
    kept = torch.cuda.memory_allocated() - before
    passes.backward(o)
    torch.cuda.synchronize()
    return {"bytes": torch.cuda.max_memory_allocated() - before, "kept_bytes": kept}


def measure(kernels: timing.Calls) -> dict[str, dict[str, float]]:
    """Each in its turn, whose tensors are gone before the next one."""
    return {name: taken(passes) for name, (passes,) in kernels.items()}


PART = Part(
    shapes=[shape(128, 2**power, 1, 1, causal=False) for power in range(9, 15)],
    inputs=normal,
    own={
        "naive": Trained("backward/by_hand.py", function="naive"),
        "backward/autograd.py": Trained("backward/autograd.py"),
    },
    peers={"sdpa-flash": flash},
    check=check,
    facts=lambda name, shape: {},
    measure=measure,
)
