"""Bugs that the tests of snippets/hopper/gluon_persistent.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.attention import HEADS_OF_KEYS, LAUNCH
from tests.mutants.hopper.late import SLEEP, late

GIVE = "                mbarrier.arrive(q_empty.index(W))\n"
HOLD = (
    "                q = q.load("
    "gl.DotOperandLayout(0, rows_of_warps(BLOCK_N), k_width=2))\n"
    "                fence_async_shared()  # TMA may write when this is read, "
    "and no sooner\n"
)

MUTANTS = [
    *LAUNCH,
    HEADS_OF_KEYS,
    # Whose blocks.
    Mutant(
        "(even, blocks - 1 - at, at)", "(even, at, at)", "half of the blocks, twice"
    ),
    Mutant(
        "2 * at + 1 < blocks", "2 * at + 2 < blocks", "a block of an even number lost"
    ),
    Mutant("there = (head < total) & (", "there = (head >= 0) & (", "heads beyond all"),
    Mutant(
        "(me + turn * programs) // blocks", "me // blocks", "the first head's blocks"
    ),
    Mutant(
        "me + turn // 2 * programs",
        "me + turn * programs",
        "every other pair of blocks left out",
    ),
    Mutant("(even, me, programs - 1 - me)", "(even, me, me + 1)", "a block twice"),
    Mutant("first + r % group", "first", "one head of a group for all"),
    Mutant("(falls, blocks - 1 - at, at)", "(falls, at // 2, at)", "blocks lost"),
    Mutant("r // group, first < total", "r // group, first >= 0", "groups beyond all"),
    Mutant(
        "turns = triton.cdiv(items, programs)",
        "turns = items // programs",
        "the last turn left out",
    ),
    Mutant(
        "(block + 1) * BLOCK_M + seq_k",
        "block * BLOCK_M + seq_k",
        "the diagonal left out",
    ),
    Mutant(
        "start_m = block + 64 * W", "start_m = block", "one consumer's rows for all"
    ),
    # What goes on from block to block.
    Mutant(
        "            blocks += 1\n    k_rows",
        "    k_rows",
        "the first Q's phase for all",
        may_hang=True,
    ),
    Mutant(
        "(blocks & 1) ^ 1)", "blocks & 1)", "Q is waited for before it", may_hang=True
    ),
    Mutant(
        f"{8 * ' '}                mbarrier.wait(q_empty.index(w), (blocks & 1) ^ 1)\n",
        "",
        "Q replaced while it is multiplied",
    ),
    Mutant(
        "            mbarrier.wait(q_full.index(W), blocks & 1)\n",
        "",
        "Q is not waited for",
        may_hang=True,
    ),
    Mutant(
        "            first += tiles\n",
        "",
        "each block walks the first stages",
        may_hang=True,
    ),
    late(
        "gluon_persistent.py",
        "Q's place given away before Q is in registers",
        HOLD,
        GIVE,
        (GIVE, ""),
        (HOLD, f"{GIVE}                {SLEEP}{HOLD}"),
    ),
    Mutant(
        "                fence_async_shared()  # TMA may write when this is read, "
        "and no sooner\n",
        "",
        "Q's place given away without the fence",
    ),
    Mutant(
        "if not HELD and BLOCK_D <= 128:",
        "if not HELD:",
        "Q's place given away with the output in it",
        may_hang=True,
    ),
    Mutant(
        "if not HELD and BLOCK_D > 128:",
        "if False:",
        "Q's place is never given back",
        may_hang=True,
    ),
    # The stages, from block to block.
    Mutant("start_n = (tiles - 1 - i) * BLOCK_N", "start_n = i * BLOCK_N", "forwards"),
    Mutant(
        "v_batch, v_head, v_start = batch, kv_head, start_n",
        "v_batch, v_head, v_start = batch, 0, start_n",
        "V of the first head",
    ),
    Mutant(
        "                n += 1\n",
        "                n += i\n",
        "a stage loaded twice",
        may_hang=True,
    ),
    Mutant(
        "[v_batch, v_head, v_start, 0]\n    load_stage",
        "[v_batch, v_head, v_start + BLOCK_N, 0]\n    load_stage",
        "the last V of a program is another",
    ),
]
