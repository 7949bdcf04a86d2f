"""Memory of training: what forward and backward of one head take beside the inputs.

`bytes` is the most that is allocated at a time, the gradients included; `kept_bytes` is
what is there between the passes, the output included.
"""

from typing import Any

import torch

from benchmarks import peers, timing
from benchmarks.part import Part, Shape
from benchmarks.parts.attention import shape
from benchmarks.parts.backward import check
from benchmarks.parts.backward.training import Trained, fresh, peer

# In float16: three operators that round to bfloat16 err by more than is let pass.
SHAPES = [
    Shape(**vars(shape(128, 2**power, 1, 1, causal=False)) | {"dtype": "float16"})
    for power in range(9, 15)
]


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
    shapes=SHAPES,
    inputs=fresh,
    own={
        "naive": Trained("backward/by_hand.py", function="naive"),
        "backward/autograd.py": Trained("backward/autograd.py"),
    },
    peers={"sdpa-flash": peer(peers.sdpa_flash)},
    check=check,
    facts=lambda name, shape: {},
    measure=measure,
)
