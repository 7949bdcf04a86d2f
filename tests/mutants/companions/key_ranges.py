"""Bugs that the tests of snippets/companions/key_ranges.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    # Which keys a query sees.
    Mutant("(keys >= first)", "(keys > first)", "the first key is left out"),
    Mutant("(keys < end)", "(keys <= end)", "a key behind the last one is seen"),
    Mutant("(keys >= first) & (keys < end)", "(keys < end)", "first is ignored"),
    Mutant("(keys >= first) & (keys < end)", "(keys >= first)", "end is ignored"),
    Mutant("tl.maximum(first, 0)", "first", "a range begins before the first key"),
    Mutant("tl.minimum(end, seq_k)", "end", "a range ends behind the last key"),
    Mutant(
        "tl.where(first < end, first, seq_k), tl.where(first < end, end, 0)",
        "first, end",
        "a row that sees nothing widens the loop, or reverses it",
        may_not_compile=True,
    ),
    Mutant(
        "range(tl.min(first), tl.max(end), BLOCK)",
        "range(tl.max(first), tl.max(end), BLOCK)",
        "the loop begins with the last row's first key",
    ),
    Mutant(
        "range(tl.min(first), tl.max(end), BLOCK)",
        "range(tl.min(first), tl.min(end), BLOCK)",
        "the loop ends with the first row's last key",
    ),
    Mutant(
        "range(tl.min(first), tl.max(end), BLOCK)",
        "range(0, seq_k, BLOCK)",
        "all keys are read",
    ),
    Mutant(
        "ranges[:, None].expand(-1, heads, -1, -1)",
        "ranges[:1, None].expand(batch, heads, -1, -1)",
        "all batches have the ranges of the first",
    ),
    # Which queries a block of keys meets.
    Mutant(
        "(first < start + BLOCK) & (end > start)",
        "(first <= start) & (end > start)",
        "queries that begin inside the block are left out",
    ),
    Mutant(
        "(first < start + BLOCK) & (end > start)",
        "(first < start + BLOCK) & (end > start + 1)",
        "a query that sees the first key of the block alone is left out",
    ),
    Mutant("met[:, None] + 1, 0)", "met[:, None], 0)", "the last query is left out"),
    Mutant(
        "low = tl.minimum(low, tl.min(tl.where(sees, met[:, None], size)))",
        "low = tl.min(tl.where(sees, met[:, None], size))",
        "the first query is that of the last 1024",
    ),
    Mutant(
        "low, high = tl.min(first), tl.max(end)",
        "low, high = 0, size",
        "all keys are read, backward",
    ),
    Mutant(
        "low = tl.minimum(low, tl.min(tl.where(sees, met[:, None], size)))",
        "low = 0",
        "all queries are read",
    ),
    # Softcap.
    Mutant("    if SOFTCAP != 0:", "    if False:", "no softcap"),
    Mutant("* slope\n", "\n", "the softcap has no slope"),
    Mutant("1 - t * t", "1 - t", "the slope of another function"),
    Mutant("        t = tl.where(", "        t = x  # ", "a cap that caps nothing"),
    Mutant("tl.abs(x) < 0.75", "tl.abs(x) < 0", "tanh cancels near 0"),
    Mutant("tl.abs(x) < 0.75", "x < 0.75", "far below 0, the form for what is near"),
    Mutant("(420 + 15 * x * x)", "420", "a short fraction"),
    Mutant("tl.exp(2 * x)", "tl.exp(x)", "the exponential of x, not of 2 x"),
    Mutant(
        "scale, SOFTCAP)\n        m_new", "1.0, SOFTCAP)\n        m_new", "no scale"
    ),
    # The rest of both passes, as in autograd.py.
    Mutant(
        'p = tl.where(s == float("-inf"), 0.0, tl.exp(s - lse))',
        "p = tl.exp(s - lse)",
        "exp(-inf + inf)",
    ),
    Mutant("da * scale, mask", "da, mask", "dq and dk without the scale"),
    Mutant("(dp - delta)", "dp", "no delta"),
    Mutant("at[1] * group + i", "at[1] * group", "one head of the group alone"),
    Mutant(
        "    return dq, dk, dv\n", "    return dq, dv, dk\n", "the order of gradients"
    ),
    Mutant("(heads % kv == 0 if kv else heads == 0)", "kv", "heads that do not divide"),
]
