"""Bugs that the tests of snippets/softmax/persistent.py must catch."""

from tests.mutants import Mutant
from tests.mutants.softmax.shared import LAUNCH_MUTANTS

MUTANTS = [
    *LAUNCH_MUTANTS,
    Mutant('other=float("-inf"),', "", "a tail load without other"),
    Mutant('other=float("-inf"),', "other=0.0,", "a tail load of 0"),
    Mutant('other=float("-inf"),', "other=-1e6,", "a mask that is not -inf"),
    Mutant("offs_r * stride_xr", "offs_r * cols", "x read as if contiguous"),
    Mutant("offs_r * stride_xr", "offs_r * stride_yr", "x read with y's stride"),
    Mutant("offs_c * stride_xc", "offs_c", "the column stride of x ignored"),
    Mutant("offs_r * stride_yr", "offs_r * stride_xr", "y written with x's stride"),
    Mutant("offs_c * stride_yc, y", "offs_c * stride_xc, y", "y with x's columns"),
    Mutant("stride_yc, y, mask)", "stride_yc, y)", "a store without a mask"),
    Mutant(
        "tl.arange(0, BLOCK_ROWS).to(tl.int64)",
        "tl.arange(0, BLOCK_ROWS)",
        "row offsets in 32 bits",
    ),
    Mutant(
        "tl.arange(0, BLOCK_COLS).to(tl.int64)",
        "tl.arange(0, BLOCK_COLS)",
        "column offsets in 32 bits",
    ),
    Mutant("offs_r < rows", "offs_r <= rows", "a row too many"),
    Mutant("offs_c < cols", "offs_c <= cols", "a column too many"),
    Mutant("tl.range(first, rows, step", "tl.range(0, rows, step", "all begin at 0"),
    Mutant("tl.range(first, rows, step", "tl.range(first, first + 1, step", "no walk"),
    Mutant(
        "tl.num_programs(0).to(tl.int64) * BLOCK_ROWS",
        "tl.num_programs(0).to(tl.int64) * 2 * BLOCK_ROWS",
        "every other tile skipped",
    ),
    Mutant("tl.exp(x - m_i)", "tl.exp(x)", "no maximum subtracted"),
    Mutant("numerator / l_i", "numerator", "no division"),
    Mutant("tl.max(x, axis=1, keep_dims=True)", "tl.max(x)", "one maximum for all"),
    Mutant(
        "tl.sum(numerator, axis=1, keep_dims=True)",
        "tl.sum(numerator)",
        "one sum for all rows of the tile",
    ),
    Mutant("kernel.n_regs * gpu.warp_size", "kernel.n_regs", "one thread's registers"),
    Mutant("* gpu.warp_size, 256) * 256", "* gpu.warp_size, 1)", "not in units of 256"),
    Mutant("// registers // warps", "// registers", "the registers of one warp"),
    Mutant(
        "gpu.max_threads_per_multi_processor // (gpu.warp_size * warps),",
        "",
        "threads not counted",
    ),
    Mutant("// (kernel.metadata.shared + 1024)", "// 1", "shared memory not counted"),
    Mutant(
        "metadata.shared + 1024", "metadata.shared + 1", "1 KiB a program forgotten"
    ),
    Mutant("        32,\n", "", "more than 32 programs"),
    Mutant("programs < 1", "programs < 0", "no programs accepted"),
    Mutant("x.shape[1] > 65536", "x.shape[1] > 65535", "the longest row refused"),
    Mutant("x.shape[1] > 65536", "x.shape[1] > 65537", "a row too long accepted"),
]
