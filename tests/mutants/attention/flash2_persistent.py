"""Bugs that the tests of snippets/attention/flash2_persistent.py must catch."""

from tests.mutants import Mutant

STATE = """\
        m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
        l_i = tl.zeros((BLOCK_M,), tl.float32)
        acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
"""

# What the rung changes; the rest is that of the rungs before, and so are its mutants.
MUTANTS = [
    Mutant(
        "blocks * batch_heads, tl.num_programs(0)",
        "blocks * batch_heads, 10**9",
        "one tile for each program",
    ),
    Mutant(
        "blocks * batch_heads, tl.num_programs(0)",
        "blocks * heads, tl.num_programs(0)",
        "the first batch only",
    ),
    Mutant(
        "tl.program_id(0), blocks",
        "tl.program_id(0) + 1, blocks",
        "the first tile is lost",
    ),
    Mutant(
        "block = tile // blocks, tile % blocks",
        "block = tile // blocks, tl.program_id(0) % blocks",
        "one block for each program",
    ),
    Mutant(
        "batch_head, block = tile // blocks,",
        "batch_head, block = tl.program_id(0) // blocks,",
        "one head for each program",
    ),
    Mutant(
        "batch_head, block = tile % batch_heads,",
        "batch_head, block = tile % heads,",
        "causal: the first batch only",
    ),
    Mutant(
        "blocks - 1 - tile // batch_heads",
        "blocks - 1 - tile // heads",
        "causal: blocks before the first",
    ),
    Mutant(
        "blocks - 1 - tile // batch_heads",
        "blocks - 1 - tile % blocks",
        "causal: two orders at once",
    ),
    Mutant(
        "batch_head, block = tile % batch_heads, blocks - 1 - tile // batch_heads",
        "block = blocks - 1 - block",
        "causal: one head after the other",
    ),
    Mutant("if programs < 1:", "if programs < 0:", "no programs"),
    # One of them alone is harmless: the first rescale factor of a tile is 2^-inf = 0.
    Mutant(
        STATE,
        "        if tile == tl.program_id(0):\n" + STATE.replace("        ", " " * 12),
        "the state of the last tile stays",
    ),
]
