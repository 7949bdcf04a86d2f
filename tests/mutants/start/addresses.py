"""Bugs that the tests of snippets/start/addresses.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("offs_r * stride + offs_c", "offs_r + offs_c * stride", "transposed"),
    Mutant("offs_r * stride + offs_c", "offs_r * cols + offs_c", "the stride ignored"),
    Mutant("offs_r * cols + offs_c, ", "offs_r * stride + offs_c, ", "stored apart"),
    Mutant("(offs_r < rows) & (offs_c < cols)", "offs_c < cols", "rows not masked"),
    Mutant("(offs_r < rows) & (offs_c < cols)", "offs_r < rows", "columns not masked"),
    Mutant(
        "tl.arange(0, BLOCK_ROWS).to(tl.int64)", "tl.arange(0, BLOCK_ROWS)", "32 bits"
    ),
]
