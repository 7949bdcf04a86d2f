"""One thing changed at a time, in the text of the published kernel.

The causal kernel gets each of the changes that make the tuned one, and loses some of
its own. The two fastest lose the exponential, or all of softmax: what is left of it is
S = Q K^T and O = S V. Their results are wrong, and nobody looks at them.
"""

from dataclasses import replace

from benchmarks.calls import load
from benchmarks.part import Part, Shape, Trial
from benchmarks.parts.attention import Variant, compare, typical

CAUSAL, TUNED = "attention/flash2_causal.py", "attention/flash2_tuned.py"
DESCRIPTORS = "attention/flash2_descriptors.py"
TILES = {name: load(name).TILE for name in (TUNED, DESCRIPTORS)}

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
            "block_m: int = {BLOCK_M}, block_n: int = {BLOCK_N},"
        ),
        "num_warps=4 if block_m * head_dim <= 2**14 else 8, num_stages=2": (
            "num_warps={num_warps}, num_stages={num_stages}"
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


def variants() -> dict[str, Variant]:
    """The published kernels, with the tiles that they name, and those made of them."""
    found = {CAUSAL: Variant(CAUSAL)}
    for gain, changes in GAINS.items():
        if gain == "tile":
            changes = {k: v.format(**TILES[TUNED]) for k, v in changes.items()}
        found[f"flash2_causal + {gain}"] = Variant(CAUSAL, changes)
    for name, tile in TILES.items():
        found[name] = Variant(name, options={"tile": tile})
        for loss, changes in LOSSES.items():
            stem = name.removeprefix("attention/").removesuffix(".py")
            found[f"{stem} - {loss}"] = Variant(name, changes, {"tile": tile})
    return found


def trial(shape: Shape) -> Trial:
    """All of them; those that lost something are not checked."""
    compared = compare(shape, (), variants=variants())

    def check(name: str, result: object) -> None:
        if " - " not in name:
            compared.check(name, result)

    return replace(compared, check=check)


PART = Part(
    own=tuple(variants()),
    shapes=typical,
    trial=trial,
    ceiling="matmul",
    against={"times_causal": CAUSAL},
)
