"""The forward pass in fp8. Quantising is done beforehand.

FlashAttention-3 takes v by rows and transposes it in its kernel. Ours wants it
transposed: that is done beforehand, and in a second measurement by each call.
"""

from functools import partial

from benchmarks import peers
from benchmarks.calls import load, prepare
from benchmarks.part import Part, Shape, Trial, published
from benchmarks.parts.attention import check, flops, normal, protocol

FA3 = "fa3-fwd"
OWN = "attention/flash2_fp8.py"
TRANSPOSING = "flash2_fp8 + transpose"
BF16 = "attention/flash2_descriptors.py"  # the same kernel before fp8


def trial(shape: Shape) -> Trial:
    """Our kernel in fp8 and in bf16, and FlashAttention-3, the peer that has fp8."""
    qkv, causal = normal(shape), {"causal": shape.causal}
    quantised, scales = zip(*map(load(OWN).quantise, qkv), strict=True)
    descale = dict(zip(("q_descale", "k_descale", "v_descale"), scales, strict=True))
    return Trial(
        own=published([OWN, BF16], *qkv, **causal)
        | {TRANSPOSING: partial(prepare, OWN, *qkv, transpose=True, **causal)},
        peers={FA3: partial(peers.fa3, *quantised, **causal, **descale)},
        check=lambda name, result: check(
            *qkv, result, "" if name == BF16 else "fp8", **causal
        ),
        work=flops(shape),
        facts={name: {"dtype": "float8_e4m3fn"} for name in (OWN, TRANSPOSING, FA3)},
    )


PART = Part(
    own=(OWN, BF16, TRANSPOSING),
    shapes=protocol,
    trial=trial,
    ceiling="matmul",
    against={"times_bf16": BF16},
)
