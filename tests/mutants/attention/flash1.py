"""Bugs that the tests of snippets/attention/flash1.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import (
    ANOTHER_DEVICE,
    LAUNCH_MUTANTS,
    POINTER_MUTANTS,
    refusal_mutants,
)


def shared(mutants: list[Mutant]) -> list[Mutant]:
    """Those bugs of the attention kernels whose lines are in this one too."""
    other_lines = (", mask=offs_m < seq_q", "o = torch.empty_like")
    return [bug for bug in mutants if not bug.old.startswith(other_lines)]


MUTANTS = [
    *shared(POINTER_MUTANTS),
    *shared(LAUNCH_MUTANTS),
    ANOTHER_DEVICE,
    *refusal_mutants(2),
    # Where it reads and writes.
    Mutant("m_new, mask=offs_m < seq_q", "m_new", "m written beyond its rows"),
    Mutant("l_new, mask=offs_m < seq_q", "l_new", "l written beyond its rows"),
    Mutant(
        'm_ptr + offs_m, mask=offs_m < seq_q, other=float("-inf")',
        "m_ptr + offs_m",
        "m read beyond its rows",
    ),
    Mutant(
        "offs_n = (start_n + tl.arange",
        "offs_n = (start_m + tl.arange",
        "the keys of the query block",
    ),
    Mutant(
        "start_m = tl.program_id(0) * BLOCK_M",
        "start_m = tl.program_id(0) * BLOCK_N",
        "query blocks as long as key blocks",
    ),
    # The tile.
    Mutant(") * scale\n", ")\n", "no scale"),
    Mutant(") * scale\n", ") / scale\n", "divided by the scale"),
    Mutant(
        's = tl.where(offs_n[None, :] < seq_k, s, float("-inf"))',
        "s = s",
        "keys beyond the last have a weight",
    ),
    Mutant(
        's = tl.where(offs_n[None, :] < seq_k, s, float("-inf"))',
        "s = s + tl.where(offs_n[None, :] < seq_k, 0.0, -1e6)",
        "a mask that is not -inf",
    ),
    Mutant(
        "tl.max(s, axis=1)",
        "tl.max(s / scale, axis=1) * scale",
        "a maximum that needs a positive scale",
    ),
    Mutant(
        'tl.where(m_ij == float("-inf"), 0.0, m_ij)[:, None]',
        "m_ij[:, None]",
        "no guard for a tile of -inf",
    ),
    Mutant(
        'shift = tl.where(m_new == float("-inf"), 0.0, m_new)',
        "shift = m_new",
        "no guard for a row of -inf",
    ),
    Mutant("m_new = tl.maximum(m_i, m_ij)", "m_new = m_ij", "the maximum of one tile"),
    Mutant(
        "tl.dot(p.to(v.dtype)",
        "tl.dot(p.to(tl.float16)",
        "weights in float16",
        may_not_compile=True,
    ),
    # The merge of the tile with the state.
    Mutant("alpha = tl.exp(m_i - shift)", "alpha = 1.0", "the state is not rescaled"),
    Mutant(
        "tl.exp(m_i - shift)", "tl.exp(shift - m_i)", "rescaled the wrong way round"
    ),
    Mutant("beta = tl.exp(m_ij - shift)", "beta = 1.0", "the tile is not rescaled"),
    Mutant("l_i = l_i * alpha", "pass", "the old sum is not rescaled"),
    Mutant("l_ij * beta", "l_ij", "the sum of the tile is not rescaled"),
    Mutant("o * l_i[:, None]", "o * alpha[:, None]", "o is not multiplied by l"),
    Mutant("o * l_i[:, None]", "o * (l_i / alpha)[:, None]", "o is not rescaled"),
    Mutant("pv * beta[:, None]", "pv", "the product of the tile is not rescaled"),
    Mutant("tl.where(l_new == 0.0, 1.0, l_new)", "l_new", "0 / 0 in a row of -inf"),
    Mutant(
        "o / tl.where(l_new == 0.0, 1.0, l_new)[:, None]", "o", "o is not normalised"
    ),
    # The state between launches.
    Mutant("l_new, mask", "l_ij, mask", "the sum of one tile is kept"),
    Mutant("m_new, mask", "m_ij, mask", "the maximum of one tile is kept"),
    Mutant("m_new, mask", "m_i, mask", "the maximum is not kept"),
    Mutant("tl.store(o_ptrs, o, mask=mask_m)", "pass", "o is not kept"),
    Mutant(
        "torch.zeros_like(q, dtype=torch.float32)",
        "torch.zeros_like(q)",
        "o rounded by each launch",
    ),
    Mutant(
        "torch.zeros_like(q, dtype=torch.float32)",
        "torch.zeros(q.shape, dtype=torch.float32, device=q.device)",
        "o not laid out as q",
    ),
    Mutant("x.shape[0] * x.stride(0) + ", "", "rows far apart"),
    Mutant(" + head_dim * x.stride(1)", "", "columns far apart"),
    Mutant('float("-inf"), dtype', "0.0, dtype", "a maximum that starts at 0"),
    Mutant("return o.to(q.dtype)\n    # --8<-- [end:host]", "return o\n", "float32"),
    # The loop over the keys.
    Mutant(
        "range(0, seq_k, block_n)",
        "range(0, seq_k // block_n * block_n, block_n)",
        "the last keys dropped",
    ),
    Mutant("range(0, seq_k, block_n)", "range(0, block_n, block_n)", "one block"),
    Mutant("range(0, seq_k, block_n)", "range(0, seq_q, block_n)", "keys up to seq_q"),
]
