"""The forward pass in fp8. Quantising is done beforehand.

FlashAttention-3 takes v by rows and transposes it in its kernel. Ours wants it
transposed: that is done beforehand, and in a second measurement by each call.
"""

from functools import partial
from typing import Any

from torch import Tensor

from benchmarks import peers
from benchmarks.calls import Call, columns, load
from benchmarks.part import Kernel, Shape, published
from benchmarks.parts.attention import PROTOCOL, attention, check, flops

OWN = "attention/flash2_fp8.py"
BF16 = "attention/flash2_descriptors.py"  # the same kernel before fp8


def transposing(call: partial) -> Call:
    """Each call transposes v."""
    v = call.keywords["v"].mT.contiguous()
    return lambda: call(v=columns(v))


def fa3(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Call:
    """FlashAttention-3, the peer that has fp8."""
    qkv, scales = zip(*map(load(OWN).quantise, (q, k, v)), strict=True)
    descale = dict(zip(("q_descale", "k_descale", "v_descale"), scales, strict=True))
    return peers.fa3(*qkv, causal=causal, **descale)


def facts(name: str, shape: Shape) -> dict[str, Any]:
    """The FLOPs, and in which dtype."""
    return flops(name, shape) | ({} if name == BF16 else {"dtype": "float8_e4m3fn"})


PART = attention(
    shapes=PROTOCOL,
    own=published(OWN, BF16)
    | {"flash2_fp8 + transpose": Kernel(OWN, then=transposing)},
    peers={"fa3-fwd": fa3},
    check=partial(check, tolerance=0.2),
    facts=facts,
    ceiling="matmul",
    against={"times_bf16": BF16},
)
