"""Bugs that the tests of snippets/attention/wrong_half_state.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "o = torch.zeros_like(q)",
        "o = torch.zeros_like(q, dtype=torch.float32)",
        "right, but for its dtype",
    ),
    Mutant(") * scale\n", ")\n", "wrong in another way: no scale"),
    Mutant("o * l_i[:, None]", "o", "wrong in another way: the old output"),
    Mutant("m_ptr + offs_m, m_new", "m_ptr + offs_m, m_i", "a maximum that stays"),
    Mutant("range(0, len(k), block_n)", "range(0, block_n, block_n)", "one block"),
]
