"""One thing changed at a time, in the text of the published kernel.

The causal kernel gets each of the changes that make the tuned one, and loses some of
its own. The two fastest lose the exponential, or all of softmax: what is left of it is
S = Q K^T and O = S V. Their results are wrong, and nobody looks at them.
"""

from pathlib import Path
from typing import Any

from benchmarks.calls import Inputs, load
from benchmarks.part import Kernel
from benchmarks.parts.attention import TYPICAL, attention, check

CAUSAL, TUNED = "attention/flash2_causal.py", "attention/flash2_tuned.py"
DESCRIPTORS = "attention/flash2_descriptors.py"
TILES = {name: load(name).TILE for name in (TUNED, DESCRIPTORS)}
TILE = TILES[TUNED]

FUSION = {"enable_fp_fusion=False": "enable_fp_fusion=True"}
GAINS = {
    "fusion": FUSION,
    "base 2": FUSION
    | {
        "INPUT_PRECISION) * scale\n": "INPUT_PRECISION)\n",
        "tl.max(s, axis=1))": "tl.max(s, axis=1) * scale)",
        "p = tl.exp(s - shift[:, None])": "p = tl.exp2(s * scale - shift[:, None])",
        "alpha = tl.exp(m_i - shift)": "alpha = tl.exp2(m_i - shift)",
        "lse = m_i + tl.log(l_i)": "lse = (m_i + tl.log2(l_i)) * 0.6931471805599453",
        "if scale is None else scale,": "* 1.4426950408889634,",
    },
    "tile": {
        "block_m: int = 64, block_n: int = 32,": (
            f"block_m: int = {TILE['BLOCK_M']}, block_n: int = {TILE['BLOCK_N']},"
        ),
        "num_warps=4 if block_m * head_dim <= 2**14 else 8, num_stages=2": (
            f"num_warps={TILE['num_warps']}, num_stages={TILE['num_stages']}"
        ),
    },
    "longest first": {
        "start_m = tl.program_id(0)": (
            "start_m = (tl.num_programs(0) - 1 - tl.program_id(0))"
        )
    },
    "one loop": {"full = full // BLOCK_N * BLOCK_N": "full = 0"},
}
EXPONENTIAL = "p = tl.exp2(s * scale_log2 - shift[:, None])"
HIDE = {'s = tl.where(seen, s, float("-inf"))': "s = tl.where(seen, s, 0.0)"}
LOSSES = {
    "exponential": HIDE | {EXPONENTIAL: "p = s * scale_log2 - shift[:, None]"},
    "softmax": HIDE
    | {
        "m_new = tl.maximum(m_i, tl.max(s, axis=1) * scale_log2)": "m_new = m_i",
        EXPONENTIAL: "p = s",
        "l_i = l_i * alpha + tl.sum(p, axis=1)": "l_i = l_i",
        "acc = acc * alpha[:, None]": "acc = acc",
    },
}


OWN = {CAUSAL: Kernel(CAUSAL)}
for gain, changes in GAINS.items():
    OWN[f"flash2_causal + {gain}"] = Kernel(CAUSAL, changes)
for name, tile in TILES.items():
    fixed, stem = {"tile": tile}, Path(name).stem
    OWN[name] = Kernel(name, options=fixed)
    for loss, changes in LOSSES.items():
        OWN[f"{stem} - {loss}"] = Kernel(name, changes, fixed)


def check_attention(name: str, inputs: Inputs, result: Any) -> None:
    """What lost something is not checked."""
    if " - " not in name:
        check(name, inputs, result)


PART = attention(
    shapes=TYPICAL,
    own=OWN,
    check=check_attention,
    ceiling="matmul",
    against={"times_causal": CAUSAL},
)
