"""Layer norm and RMS norm backward: two reads and one write of the matrix.

All gradients are computed: dx, dw and, of layer norm, db. The vectors are small, and
not counted. Speeds are fractions of that of a copy of a matrix of the same size and
dtype, which takes turns with the kernels.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks import peers, timing
from benchmarks.calls import Call, Inputs, load, public
from benchmarks.part import Kernel, Part, Shape, near
from benchmarks.parts.companions import EPS, normed, norms

LOCKS, ONE, WIDE, RMS = (
    f"companions/{name}.py"
    for name in (
        "layer_norm_locks",
        "layer_norm_backward",
        "layer_norm_backward_wide",
        "rms_norm_backward",
    )
)


class Backward(Kernel):
    """A function that takes the gradient which arrives as its first argument."""

    def call(self, inputs: Inputs) -> Call:
        """Its call: what it has no parameter for, the peers need."""
        function = public(load(self.of, self.changes), {"dy": None})
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        given = {name: inputs.get(name) for name in names}  # RMS norm has no mean
        return self.then(partial(function, **given, **self.options))


def matrices(shape: Shape) -> list[Inputs]:
    """Fresh dy, x, weight and bias, all of one dtype, and what forward keeps."""
    x, dy = (timing.normal(shape.rows, shape.cols, dtype=shape.dtype) for _ in "xy")
    weight = timing.normal(shape.cols, dtype=shape.dtype)
    found = {"dy": dy, "x": x, "weight": weight}
    if shape.norm == "rms":
        squares = torch.linalg.vector_norm(x, dim=1, dtype=torch.float32).square()
        return [found | {"rstd": (squares / shape.cols + EPS).rsqrt()}]
    bias = torch.zeros_like(weight)
    _, mean, rstd = torch.native_layer_norm(x, x.shape[1:], weight, bias, EPS)
    kept = {"mean": mean.flatten().float(), "rstd": rstd.flatten().float()}
    return [found | kept | {"bias": bias}]


def backward(function: Any, dy: Tensor, **inputs: Tensor) -> Call:
    """The backward pass alone of a function of x, weight and, perhaps, bias."""
    names = [name for name in ("x", "weight", "bias") if name in inputs]
    leaves = [inputs[name].detach().requires_grad_() for name in names]
    with torch.enable_grad():
        y = function(*leaves)
    return lambda: torch.autograd.grad(y, leaves, dy, retain_graph=True)


def torch_norm(**inputs: Tensor) -> Call:
    """PyTorch's own."""
    return backward(normed, **inputs)


def compiled_norm(**inputs: Tensor) -> Call:
    """PyTorch's own kernels for this very shape."""
    torch._dynamo.reset()
    return backward(torch.compile(normed, dynamic=False), **inputs)


def liger_norm(**inputs: Tensor) -> Call:
    """That of the package liger-kernel; dy is not written over."""
    if "bias" in inputs:
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction

        return backward(lambda *all: LigerLayerNormFunction.apply(*all, EPS), **inputs)
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    options = EPS, 0.0, "llama", False  # offset, how to round, in place
    return backward(lambda *all: LigerRMSNormFunction.apply(*all, *options), **inputs)


def check(name: str, inputs: Inputs, found: Any) -> None:
    """Compare some rows of dx with float64, and a few columns of the sums."""
    if name == "copy":
        return
    dx = found[0] if isinstance(found, tuple) else found
    some = slice(None, None, max(1, len(dx) // 8))
    doubled = {key: inputs[key].double() for key in ("weight", "bias") if key in inputs}
    near_by = {key: inputs[key][some].double() for key in ("dy", "x")}
    near(dx[some].double(), backward(normed, **near_by, **doubled)()[0])
    if isinstance(found, tuple):
        few = slice(None, 64)
        x = inputs["x"][:, few].double()
        if "mean" in inputs:
            x = x - inputs["mean"][:, None]
        products = inputs["dy"][:, few].double() * x * inputs["rstd"][:, None]
        near(found[1][few].double(), products.sum(dim=0))


def moved(name: str, shape: Shape) -> dict[str, Any]:
    """Bytes of two reads and one write of the matrix; a copy has one of each."""
    matrix = shape.rows * shape.cols * timing.itemsize(shape)
    return {"bytes": (2 if name == "copy" else 3) * matrix}


PART = Part(
    shapes=norms(),
    inputs=matrices,
    own={
        name: Backward(name, takes=lambda shape: shape.norm == "layer")
        for name in (LOCKS, ONE)
    }
    | {RMS: Backward(RMS, takes=lambda shape: shape.norm == "rms")}
    | {WIDE: Backward(WIDE)},
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
