"""Bugs that several kernels of the softmax part could have."""

from tests.mutants import Mutant


# Bugs that any of these kernels may have. Where several loads or loops are written
# alike, `count` says how many.
def load_mutants(loads: int) -> list[Mutant]:
    """Bugs of the masked loads: `other`, the strides and the offsets of x."""
    row, minus_inf = "row * stride_xr", 'other=float("-inf"),'
    return [
        Mutant(minus_inf, "", "a tail load without other", loads),
        Mutant(minus_inf, "other=0.0,", "a tail load of 0", loads),
        Mutant(minus_inf, "other=-1e6,", "a mask that is not -inf", loads),
        Mutant(row, "row * cols", "x read as if it were contiguous", loads),
        Mutant(" * stride_xc", "", "the column stride of x ignored", loads),
        Mutant(row, "row * stride_yr", "x read with the row stride of y", loads),
        Mutant(
            "row = tl.program_id(0).to(tl.int64)",
            "row = tl.program_id(0)",
            "row offsets in 32 bits",
        ),
    ]


STORE_MUTANTS = [
    Mutant("row * stride_yr", "row * stride_xr", "y written with x's row stride"),
    Mutant(" * stride_yc", " * stride_xc", "y written with x's column stride"),
    Mutant("stride_yc, y, mask)", "stride_yc, y)", "a store without a mask"),
]

LAUNCH_MUTANTS = [
    Mutant(
        "torch.empty((rows, cols), dtype=x.dtype, device=x.device)",
        "torch.empty_like(x)",
        "y laid out as x",
    ),
    Mutant(
        "tl.float64 if x.dtype == torch.float64 else tl.float32",
        "tl.float32",
        "float64 computed in float32",
    ),
    Mutant("x.ndim != 2", "x.ndim < 2", "three dimensions taken for two"),
    Mutant("x.dtype not in DTYPES", "False", "any dtype accepted"),
    Mutant("and x.requires_grad", "and False", "a gradient lost without a word"),
    Mutant(
        "with torch.cuda.device_of(x):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]


def loop_mutants(loops: int) -> list[Mutant]:
    """Bugs of the loops over the tiles of a row."""
    every, mask = "range(0, cols, BLOCK_COLS)", "start + offs < cols"
    return [
        Mutant(
            every,
            "range(0, cols // BLOCK_COLS * BLOCK_COLS, BLOCK_COLS)",
            "the last columns dropped",
            loops,
        ),
        Mutant(every, "range(0, BLOCK_COLS, BLOCK_COLS)", "one tile only", loops),
        Mutant(mask, "start + offs <= cols", "a mask that is one too long", loops),
        Mutant(mask, "offs < cols", "a mask that forgets the tile", loops),
    ]


ONLINE_MUTANTS = [
    Mutant(
        'shift = tl.where(m_new == float("-inf"), 0.0, m_new)',
        "shift = m_new",
        "no guard for a first tile of -inf",
    ),
    Mutant("l_i = l_i * tl.exp(m_i - shift)", "pass", "the sum is not rescaled"),
    Mutant(
        "l_i * tl.exp(m_i - shift)",
        "l_i * tl.exp(shift - m_i)",
        "the sum is rescaled the wrong way",
    ),
    Mutant("tl.exp(x - shift)", "tl.exp(x)", "a sum without the maximum"),
    Mutant("tl.exp(x - shift)", "tl.exp(x - m_i)", "a sum with the old maximum"),
    Mutant("        m_i = m_new\n", "", "the maximum is not kept"),
]
