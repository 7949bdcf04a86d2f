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
    pairs = [load(OWN).quantise(x) for x in qkv]
    exact = [x.float() * scale[..., None, None] for x, scale in pairs]
    names = "q_descale", "k_descale", "v_descale"
    scales = dict(zip(names, (scale for _, scale in pairs), strict=True))

    def right(name: str, result: object) -> None:
        if name == BF16:
            check(*qkv, result, **causal)
        else:
            check(*exact, result, tolerance=0.2, **causal)

    return Trial(
        own=published([OWN, BF16], *qkv, **causal)
        | {TRANSPOSING: partial(prepare, OWN, *qkv, transpose=True, **causal)},
        peers={FA3: lambda: peers.fa3(*(x for x, _ in pairs), **causal, **scales)},
        check=right,
        work=flops(shape),
        facts={name: {"dtype": "float8_e4m3fn"} for name in (OWN, TRANSPOSING, FA3)},
    )


PART = Part(
    snippets=(OWN, BF16),
    shapes=protocol,
    trial=trial,
    ceiling="matmul",
    against={"times_bf16": BF16},
)
