"""Bugs that the tests of snippets/attention/wrong_tail_keys.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        'input_precision="ieee") * scale  # [BLOCK_M, BLOCK_N]\n',
        'input_precision="ieee") * scale\n'
        "        s = tl.where(offs_n[None, :] < seq_k, s, float('-inf'))\n",
        "right",
    ),
    Mutant(") * scale  #", ")  #", "wrong in another way: no scale"),
    Mutant("l_i * alpha + tl.sum", "l_i + tl.sum", "wrong in another way: the sum"),
    Mutant("acc * alpha[:, None]", "acc", "wrong in another way: the output"),
]
