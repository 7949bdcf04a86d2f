"""Bugs that the tests of snippets/companions/prefix_mask.py must catch.

Those of the lines that differ from backward/autograd.py: it has the others.
"""

from tests.mutants import Mutant

MUTANTS = [
    # The mask.
    Mutant(" | (offs_n < prefix)", "", "no prefix"),
    Mutant("(offs_n < prefix)", "(offs_n <= prefix)", "a prefix longer by one"),
    Mutant("(offs_n < prefix)", "(offs_n < prefix - 1)", "a prefix shorter by one"),
    Mutant("(offs_n < prefix)", "(offs_m < prefix)", "the queries of the prefix"),
    Mutant("(offs_n < prefix)", "(met[None, :] < prefix)", "what is met, not the keys"),
    Mutant(
        "seen &= (offs_n <= offs_m + seq_k - seq_q) | (offs_n < prefix)",
        "seen = seen & (offs_n <= offs_m + seq_k - seq_q) | (offs_n < prefix)",
        "rows that do not exist see the prefix",
    ),
    # The bounds of the loops.
    Mutant(
        "tl.maximum((tl.program_id(0) + 1) * BLOCK + seq_k - seq_q, prefix)",
        "(tl.program_id(0) + 1) * BLOCK + seq_k - seq_q",
        "the forward pass ends before the prefix does",
    ),
    Mutant(
        "tl.minimum(tl.maximum(start + BLOCK + shift, prefix), size)",
        "tl.minimum(start + BLOCK + shift, size)",
        "dq ends before the prefix does",
    ),
    Mutant(
        "tl.where(start < prefix, 0, tl.maximum(start - shift, 0))",
        "tl.maximum(start - shift, 0)",
        "the first queries do not meet the prefix",
    ),
    Mutant(
        "tl.where(start < prefix, 0,",
        "tl.where(start + BLOCK <= prefix, 0,",
        "they do not meet its last tile",
    ),
    # Whose prefix.
    Mutant(
        "prefix = tl.load(prefixes[0] + at[0] * prefixes[1])\n    last",
        "prefix = tl.load(prefixes[0])\n    last",
        "the prefix of the first sequence, forward",
    ),
    Mutant(
        "prefix = tl.load(prefixes[0] + at[0] * prefixes[1])\n    first",
        "prefix = tl.load(prefixes[0])\n    first",
        "the prefix of the first sequence, backward",
    ),
    Mutant("at[0] * prefixes[1]", "at[0]", "the stride of the prefixes", count=2),
    Mutant(
        "at[0] * prefixes[1]",
        "at[0].to(tl.int32) * prefixes[1]",
        "its offset in 32 bits",
        count=2,
    ),
    # What autograd is told.
    Mutant("*4 * (None,)", "*3 * (None,)", "a gradient too few"),
    Mutant(
        "ctx.save_for_backward(*inputs[:4], *output)",
        "ctx.save_for_backward(*inputs[:3], inputs[3] * 0, *output)",
        "the prefix is lost in backward",
    ),
    # Checks and defaults.
    Mutant("causal: bool = True", "causal: bool = False", "not causal by itself"),
    Mutant("((batch,), torch.int32)", "((heads,), torch.int32)", "one for each head"),
    Mutant(
        '("v", v, kv), ("prefix", prefix, own):',
        '("v", v, kv), ("v", v, kv):',
        "any prefix accepted",
        may_not_compile=True,
    ),
    Mutant("known = isinstance(x, Tensor)", "known = True", "a list is no tensor"),
]
