"""Layer norm and RMS norm forward: one read and one write of the matrix.

Weight and bias are small, and not counted. Speeds are fractions of that of a copy of a
matrix of the same size and dtype, which takes turns with the kernels.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks import peers, timing
from benchmarks.calls import Call, Inputs
from benchmarks.part import Part, Shape, near, published
from benchmarks.parts.companions import EPS, normed, norms


def matrices(shape: Shape) -> list[Inputs]:
    """Fresh x and weight, and a bias for layer norm, all of one dtype."""
    names = ("weight", "bias") if shape.norm == "layer" else ("weight",)
    vectors = {name: timing.normal(shape.cols, dtype=shape.dtype) for name in names}
    x = timing.normal(shape.rows, shape.cols, dtype=shape.dtype)
    return [{"x": x, "eps": EPS} | vectors]


def torch_norm(**inputs: Any) -> Call:
    """PyTorch's own."""
    return partial(normed, **inputs)


def compiled_norm(**inputs: Any) -> Call:
    """PyTorch's own kernel for this very shape."""
    torch._dynamo.reset()
    return partial(torch.compile(normed, dynamic=False), **inputs)


def liger_norm(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, eps: float
) -> Call:
    """That of the package liger-kernel."""
    if bias is None:
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction

        # In place is a matter of the backward pass alone.
        return partial(LigerRMSNormFunction.apply, x, weight, eps)
    from liger_kernel.ops.layer_norm import LigerLayerNormFunction

    return partial(LigerLayerNormFunction.apply, x, weight, bias, eps)


def check(name: str, inputs: Inputs, found: Any) -> None:
    """Compare some rows with float64."""
    if name == "copy":
        return
    found = found[0] if isinstance(found, tuple) else found
    some = slice(None, None, max(1, len(found) // 8))
    doubled = {key: inputs[key].double() for key in inputs.keys() & {"weight", "bias"}}
    expected = normed(inputs["x"][some].double(), **doubled, eps=inputs["eps"])
    near(found[some].double(), expected)


def moved(name: str, shape: Shape) -> dict[str, Any]:
    """Bytes of one read and one write of the matrix."""
    return {"bytes": 2 * shape.rows * shape.cols * timing.itemsize(shape)}


PART = Part(
    shapes=norms(),
    inputs=matrices,
    own=published(
        "companions/layer_norm.py",
        "companions/layer_norm_loop.py",
        takes=lambda shape: shape.norm == "layer",
    )
    | published(
        "companions/rms_norm.py",
        "companions/rms_norm_loop.py",
        takes=lambda shape: shape.norm == "rms",
    ),
    peers={
        "torch": torch_norm,
        "torch.compile": compiled_norm,
        "liger": liger_norm,
        "copy": peers.copy,
    },
    check=check,
    facts=moved,
    measure=timing.one_by_one,
)
