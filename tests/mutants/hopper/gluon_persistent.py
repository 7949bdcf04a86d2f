"""Bugs that the tests of snippets/hopper/gluon_persistent.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.attention import LAUNCH

MUTANTS = [
    *LAUNCH,
    # Which blocks there are.
    Mutant("blocks - 1 - n // some", "n // some", "the short blocks twice"),
    Mutant("blocks - long - 1 -", "blocks - long -", "the first block of a head lost"),
    Mutant("if n < pairs * long:", "if True:", "only blocks of long halves"),
    Mutant(
        "gl.minimum(group, pairs - done)", "group", "a last group as large as others"
    ),
    Mutant("done + n % some", "n % some", "the first group of heads for all"),
    Mutant(
        "triton.cdiv(q.shape[2], 64 * consumers)",
        "(q.shape[2] // (64 * consumers))",
        "the last rows left out",
    ),
    Mutant("(block + 1) * BLOCK_M", "block * BLOCK_M", "the diagonal left out"),
    Mutant("batch, head, block + 64 * W)", "batch, head, block)", "rows of the first"),
    # Which block is next.
    Mutant("gl.atomic_add(counter, 1)", "gl.atomic_add(counter, 2)", "every other"),
    Mutant(
        "            n += gl.num_programs(0)\n",
        "            n += 2 * gl.num_programs(0)\n",
        "the producer leaves out every other block",
        may_hang=True,
    ),
    Mutant(
        "    mbarrier.wait(told.index(0), blocks & 1)\n",
        "",
        "the box is read before a number is in it",
        may_hang=True,
    ),
    Mutant(
        "heard.index(0), (blocks & 1) ^ 1)",
        "heard.index(0), blocks & 1)",
        "the first number waits for a reader",
        may_hang=True,
    ),
    Mutant(
        "    mbarrier.arrive(heard.index(0))\n",
        "",
        "nobody says that the number is read",
        may_hang=True,
    ),
    # Which tiles are loaded.
    Mutant(
        "head // (q_desc.shape[1] // k_desc.shape[1])", "0", "one head of keys for all"
    ),
    Mutant("load(v_desc, [", "load(k_desc, [", "K in the place of V"),
    Mutant(
        "full, empty, 2 * i + 1)", "full, empty, 2 * i)", "V where K is", may_hang=True
    ),
    Mutant(
        "start_n -= BLOCK_N",
        "start_n -= 2 * BLOCK_N",
        "every other tile",
        may_hang=True,
    ),
    # What goes on from block to block.
    Mutant(
        "        first += tiles\n        blocks += 1\n        if OWN",
        "        first += tiles\n        if OWN",
        "the first Q's phase for all",
        may_hang=True,
    ),
    Mutant(
        "        first += tiles\n        blocks += 1\n        if OWN",
        "        blocks += 1\n        if OWN",
        "each block walks the first places",
        may_hang=True,
    ),
    Mutant(
        "q_empty.index(w), (blocks & 1) ^ 1)",
        "q_empty.index(w), blocks & 1)",
        "Q is waited for before it",
        may_hang=True,
    ),
    Mutant(
        "            mbarrier.wait(q_empty.index(w), (blocks & 1) ^ 1)\n",
        "",
        "Q replaced while it is multiplied",
    ),
    Mutant(
        "        mbarrier.wait(q_full.index(W), blocks & 1)\n",
        "",
        "Q is not waited for",
    ),
    Mutant(
        "q.shape[4] <= 128  # the",
        "True  # the",
        "Q's place given away with the output in it",
    ),
    Mutant(
        "        if not OWN:\n",
        "        if False:\n",
        "Q's place is never given back",
        may_hang=True,
    ),
    Mutant(
        "        if not OWN:\n",
        "        if not OWN and tiles > 0:\n",
        "Q's place is not given back by a block that sees nothing",
        may_hang=True,
    ),
]
