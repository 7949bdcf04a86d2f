"""Bugs that the tests of snippets/start/copy_tile.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "(offs_r[:, None] < rows) & (offs_c[None, :] < cols)",
        "offs_c[None, :] < cols",
        "no mask over the rows",
    ),
    Mutant(
        "(offs_r[:, None] < rows) & (offs_c[None, :] < cols)",
        "offs_r[:, None] < rows",
        "no mask over the columns",
    ),
    Mutant(
        "offs_r[:, None] * stride_xr", "offs_r[:, None] * cols", "x read as contiguous"
    ),
    Mutant("* stride_xc", "", "the column stride of x ignored"),
    Mutant("* stride_yr", "* stride_xr", "y written with x's row stride"),
    Mutant("* stride_yc", "* stride_xc", "y written with x's column stride"),
    Mutant("tl.program_id(1)", "tl.program_id(0)", "tiles on the diagonal only"),
    Mutant(
        "tl.program_id(0).to(tl.int64)", "tl.program_id(0)", "row offsets in 32 bits"
    ),
    Mutant(
        "tl.program_id(1).to(tl.int64)", "tl.program_id(1)", "column offsets in 32 bits"
    ),
    Mutant("triton.cdiv(rows, block_rows)", "rows // block_rows", "last rows dropped"),
    Mutant(
        "triton.cdiv(cols, block_cols)", "cols // block_cols", "last columns dropped"
    ),
    Mutant(
        "torch.empty((rows, cols), dtype=x.dtype, device=x.device)",
        "torch.empty_like(x)",
        "y laid out as x",
    ),
    Mutant("x.shape[1] > 65535 * block_cols", "False", "a grid that is too wide"),
    Mutant("x.dtype not in DTYPES", "False", "any dtype accepted"),
    Mutant("and x.requires_grad", "and False", "a gradient lost without a word"),
    Mutant(
        "with torch.cuda.device_of(x):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
