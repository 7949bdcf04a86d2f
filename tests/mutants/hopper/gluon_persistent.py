"""Bugs that the tests of snippets/hopper/gluon_persistent.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.attention import LAUNCH, PRODUCER

MUTANTS = [
    *LAUNCH,
    *PRODUCER,
    # Whose blocks.
    Mutant("blocks - 1 - at, at)", "at, at)", "the first half of the blocks, twice"),
    Mutant(
        "2 * at + 1 < blocks", "2 * at + 2 < blocks", "a block of an even number lost"
    ),
    Mutant("there = there & (pair < ", "there = there | (pair < ", "heads beyond all"),
    Mutant(
        "gl.program_id(0) + turn * gl.num_programs(0)",
        "gl.program_id(0)",
        "the first block in each turn",
    ),
    Mutant(
        "gl.program_id(0) + turn // 2 * gl.num_programs(0)",
        "gl.program_id(0) + turn * gl.num_programs(0)",
        "every other pair of blocks left out",
    ),
    Mutant(
        "turns = triton.cdiv(items, programs)",
        "turns = items // programs",
        "the last turn left out",
    ),
    Mutant("block + BLOCK_M + seq_k", "block + seq_k", "the diagonal left out"),
    Mutant(
        "start_m = block + 64 * W", "start_m = block", "one consumer's rows for all"
    ),
    # What goes on from block to block.
    Mutant(
        "            first += tiles\n            blocks += 1\n\n",
        "            first += tiles\n\n",
        "the first Q's phase for all",
        may_hang=True,
    ),
    Mutant(
        "(blocks & 1) ^ 1)", "blocks & 1)", "Q is waited for before it", may_hang=True
    ),
    Mutant(
        "                mbarrier.wait(q_empty.index(w), (blocks & 1) ^ 1)\n",
        "",
        "Q replaced while it is multiplied",
    ),
    Mutant(
        "            mbarrier.wait(q_full.index(W), blocks & 1)\n",
        "",
        "Q is not waited for",
    ),
    Mutant(
        "            first += tiles\n            blocks += 1\n            # --8<--",
        "            blocks += 1\n            # --8<--",
        "each block walks the first places",
        may_hang=True,
    ),
    Mutant(
        "q.shape[4] <= 128  # the",
        "True  # the",
        "Q's place given away with the output in it",
    ),
    Mutant(
        "            if not OWN:\n",
        "            if False:\n",
        "Q's place is never given back",
        may_hang=True,
    ),
    Mutant(
        "            if not OWN:\n",
        "            if not OWN and tiles > 0:\n",
        "Q's place is not given back by a block that sees nothing",
        may_hang=True,
    ),
    Mutant(
        "start_n -= BLOCK_N",
        "start_n -= 2 * BLOCK_N",
        "every other tile",
        may_hang=True,
    ),
]
