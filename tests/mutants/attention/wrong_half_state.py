"""Bugs that the tests of snippets/attention/wrong_half_state.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "head_dim), dtype=q.dtype, device=q.device)",
        "head_dim), dtype=torch.float32, device=q.device)",
        "right, but for its dtype",
    ),
    Mutant(") * scale\n", ")\n", "wrong in another way: no scale"),
    Mutant("pv * beta[:, None]", "pv", "wrong in another way: the product"),
    Mutant("m_new, mask", "m_i, mask", "wrong in another way: the maximum"),
    Mutant("range(0, seq_k, block_n)", "range(0, block_n, block_n)", "one block"),
]
