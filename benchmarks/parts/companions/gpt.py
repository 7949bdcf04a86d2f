"""A small GPT trained with our kernels and with PyTorch's: losses, speed and memory.

Weights, text and dropout are the same, so the losses differ by rounding alone. How far
rounding drives them apart, two backends of PyTorch's own attention say; how far chance
does, another draw of the masks. A step's time is that of many without the first ones,
in which kernels are compiled and memory is allocated.
"""

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch.nn.attention import SDPBackend

from benchmarks import calls, peers, timing
from benchmarks.calls import Inputs
from benchmarks.part import Kernel, Part, Shape, near
from benchmarks.timing import Calls

FILE = "companions/gpt.py"
REFERENCE = "sdpa-flash"
FEW = 20  # steps: so many warm up, and a point of the curve is the mean of so many
LAST = 100  # steps: the loss in the end is the mean of them


@dataclass(frozen=True)
class Training:
    """A training. Called, it is its first few steps.

    Attributes:
        kernels: "OURS" or "PYTORCH" of the file.
        shape: of the model and of its text.
        backend: of PyTorch's attention.
        options: of the file's function.
    """

    kernels: str
    shape: Shape
    backend: SDPBackend | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self) -> torch.Tensor:
        """The losses of the first few steps."""
        return torch.tensor(self.losses(min(FEW, self.shape.steps)))

    def losses(self, steps: int) -> list[float]:
        """The losses of so many steps."""
        file, asked = calls.load(FILE), vars(self.shape).copy()
        asked |= {"steps": steps, "dtype": getattr(torch, self.shape.dtype)}
        asked |= {"device": timing.DEVICE, **self.options}
        chosen = peers.sdpa_kernel(self.backend) if self.backend else None
        with torch.enable_grad(), chosen or contextlib.nullcontext():
            return file.train(**getattr(file, self.kernels), **asked)


@dataclass(frozen=True)
class Own(Kernel):
    """Our kernels, in the model."""

    def call(self, inputs: Inputs) -> Training:
        """Its training."""
        return Training("OURS", inputs["shape"], options=self.options)


def peer(backend: SDPBackend, shape: Shape, **options: Any) -> Training:
    """PyTorch's own kernels in the same model."""
    return Training("PYTORCH", shape, backend, options)


def compiled(model: torch.nn.Module) -> Callable[..., torch.Tensor]:
    """What the file calls in place of the model."""
    return torch.compile(model)


def seconds(training: Training, steps: int) -> tuple[float, list[float]]:
    """What so many steps take, all told, and their losses."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    losses = training.losses(steps)
    return time.perf_counter() - began, losses


def measure(trainings: Calls) -> dict[str, dict[str, Any]]:
    """The curve of each, the time of a step, the most memory, and how they differ."""
    found: dict[str, dict[str, Any]] = {}
    losses: dict[str, list[float]] = {}
    for name, (training,) in trainings.items():
        steps, few = training.shape.steps, min(FEW, training.shape.steps - 1)
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        start, _ = seconds(training, few)
        whole, losses[name] = seconds(training, steps)
        step = (whole - start) / (steps - few)
        found[name] = {
            "seconds": step,
            "steps_per_second": 1 / step,
            "peak_bytes": torch.cuda.max_memory_allocated() - before,
        }
    for name, own in losses.items():
        apart = None
        if name != REFERENCE and REFERENCE in losses:
            other = losses[REFERENCE]
            apart = [abs(a - b) for a, b in zip(own, other, strict=True)]
            ends = (fmean(each[-LAST:]) for each in (own, other))
            found[name] |= {
                "difference": fmean(apart),
                "end_difference": abs(next(ends) - next(ends)),
            }
        found[name] |= {"loss": fmean(own[-LAST:]), "curve": [*points(own, apart)]}
    return found


def points(losses: list[float], apart: list[float] | None) -> Any:
    """Means of a few steps each, at the last of them."""
    for start in range(0, len(losses), FEW):
        some = slice(start, start + FEW)
        point = {"step": min(start + FEW, len(losses)), "loss": fmean(losses[some])}
        yield point | ({"difference": fmean(apart[some])} if apart else {})


def check(name: str, inputs: Inputs, result: torch.Tensor) -> None:
    """Raises Wrong where the first loss is not that of a guess, or the loss grows."""
    guess = torch.full((1,), math.log(12))
    near(result[:1], guess, 0.1)
    near(result[-1:], guess, 0.4)


PART = Part(
    shapes=[
        Shape(
            dtype="bfloat16",
            layers=4,
            heads=4,
            head_dim=64,
            seq=256,
            batch=32,
            steps=500,
        )
    ],
    own={FILE: Own(FILE), "gpt compiled": Own(FILE, options={"wrap": compiled})},
    inputs=lambda shape: [{"shape": shape}],
    peers={
        REFERENCE: partial(peer, SDPBackend.FLASH_ATTENTION),
        "sdpa-efficient": partial(peer, SDPBackend.EFFICIENT_ATTENTION),
        "sdpa-flash other masks": partial(peer, SDPBackend.FLASH_ATTENTION, masks=1),
        "sdpa-flash compiled": partial(peer, SDPBackend.FLASH_ATTENTION, wrap=compiled),
    },
    check=check,
    facts=lambda name, shape: {"tokens": shape.batch * shape.seq},
    measure=measure,
)
