"""Bugs that the tests of snippets/hopper/copy_tma.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    # One tile.
    Mutant(
        "gl.program_id(0) % across * block_cols",
        "gl.program_id(0) // across * block_cols",
        "tiles on the diagonal only",
    ),
    Mutant("gl.cdiv(x_desc.shape[1], block_cols)\n    row", "1\n    row", "one column"),
    Mutant("[row, col], full, tile)", "[col, row], full, tile)", "x turned"),
    Mutant("    mbarrier.wait(full, 0)\n", "", "the tile is not waited for"),
    Mutant(
        "mbarrier.wait(full, 0)",
        "mbarrier.wait(full, 1)",
        "the wrong phase",
        may_hang=True,
    ),
    # A strip.
    Mutant(
        "row = gl.program_id(0) * block_rows", "row = gl.program_id(0)", "rows overlap"
    ),
    Mutant("col = i * block_cols", "col = 0", "one tile of y"),
    Mutant("[row, col], tiles.index(i % 2)", "[row, col], tiles.index(0)", "one stage"),
    Mutant("i // 2 & 1", "0", "one phase for all", may_hang=True),
    Mutant("i // 2 & 1", "i & 1", "the phases of a single stage", may_hang=True),
    # The launch.
    Mutant(
        "triton.cdiv(cols * size, 16) * 16 // size", "cols", "rows of y begin anywhere"
    ),
    Mutant("device=x.device)[:, :cols]", "device=x.device)", "y with its padding"),
    Mutant("if y.numel() == 0:", "if False:", "a descriptor of nothing"),
    Mutant("if not strips:", "if False:", "the first tiles only"),
    Mutant("triton.cdiv(rows, block_rows)", "rows // block_rows", "last rows dropped"),
    Mutant(
        "with torch.cuda.device_of(x):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
    # What is refused.
    Mutant("x.ndim != 2", "False", "any number of dimensions"),
    Mutant("x.dtype not in DTYPES", "False", "any dtype accepted"),
    Mutant("x.stride(1) != 1 or ", "", "any last stride"),
    Mutant("x.stride(0) * size % 16 or ", "", "any first stride"),
    Mutant(" or x.data_ptr() % 16", "", "any address"),
    Mutant("if odd and x.numel():", "if odd:", "empty tensors refused"),
    Mutant("and x.requires_grad", "and False", "a gradient lost without a word"),
]
