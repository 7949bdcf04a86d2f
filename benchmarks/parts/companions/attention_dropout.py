"""Attention with dropout: what drawing the mask costs.

FLOPs are those of the products, two forward and five backward, half of them under a
causal mask. Nobody is credited with the drawing.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend

from benchmarks import calls, peers, timing
from benchmarks.calls import Call, Inputs
from benchmarks.part import Part, Shape, Wrong, near, published
from benchmarks.parts import attention

P = 0.1
FORWARD = "companions/attention_dropout.py"
BACKWARD = "companions/attention_dropout_backward.py"
WITHOUT = "attention/flash2_causal.py"
SHAPES = [
    attention.shape(head_dim, 4096, 4, 2048 // head_dim, causal)
    for head_dim in (64, 128)
    for causal in (False, True)
]


def inputs(shape: Shape) -> list[Inputs]:
    """q, k, v, and what the backward pass needs of the forward pass."""
    (found,) = attention.normal(shape)
    found |= {"p": P, "seed": torch.tensor(2026, device=timing.DEVICE)}
    o, lse = calls.call(calls.load(FORWARD), found)()
    return [found | {"o": o, "lse": lse, "do": torch.randn_like(o)}]


def drawn(q: Tensor, k: Tensor, v: Tensor, causal: bool, **others: Any) -> Call:
    """PyTorch's FlashAttention, which draws a mask of its own."""

    def call() -> Tensor:
        with peers.sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return F.scaled_dot_product_attention(
                q, k, v, is_causal=causal, dropout_p=P
            )

    return call


def plain(q: Tensor, k: Tensor, v: Tensor, causal: bool, **others: Any) -> Call:
    """The same without dropout."""
    return peers.sdpa_flash(q, k, v, causal)


def check(name: str, given: Inputs, result: Any) -> None:
    """Compare the first rows of the first head with float64; of a mask of its own, all.

    Raises:
        Wrong: they differ.
    """
    found = attention.output(result)[0, 0].double()
    q, k, v, do = (given[x][0, 0].double() for x in ("q", "k", "v", "do"))
    rows = len(q) if name == "sdpa-flash, dropout" else min(64, len(q))
    s = q[:rows] @ k.T * q.shape[1] ** -0.5
    if given["causal"]:
        s = s.where(torch.ones_like(s, dtype=torch.bool).tril(), float("-inf"))
    p, z = torch.softmax(s, dim=-1), torch.ones((), dtype=torch.float64)
    if name in (FORWARD, BACKWARD):
        module, shape = calls.load(FORWARD), (1, 1, rows, len(k))
        keep = module.keep_mask(shape, p=P, seed=given["seed"])[0, 0]
        z = keep.double() / (1 - round(P * 65536) / 65536)
    o = p * z @ v
    if name == "sdpa-flash, dropout":
        slope = ((found * o).sum() / (o * o).sum()).item()
        if abs(slope - 1) > 0.1:
            raise Wrong(f"its mean is {slope:.2f} of what it should be")
    elif name == BACKWARD:
        dp = do[:rows] @ v.T * z
        ds = p * (dp - (dp * p).sum(dim=-1, keepdim=True))
        near(found[:rows], ds @ k * q.shape[1] ** -0.5)
    else:
        near(found[:rows], o)


def flops(name: str, shape: Shape) -> dict[str, Any]:
    """Of two products, or of five."""
    facts = attention.flops(name, shape)
    return {"flops": facts["flops"] * 5 // 2} if name == BACKWARD else facts


PART = Part(
    shapes=SHAPES,
    inputs=inputs,
    own=published(FORWARD, BACKWARD, WITHOUT),
    peers={"sdpa-flash": plain, "sdpa-flash, dropout": drawn},
    check=check,
    facts=flops,
    ceiling="matmul",
)
