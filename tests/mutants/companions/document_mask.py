"""Bugs that the tests of snippets/companions/document_mask.py must catch.

Those of the lines that differ from backward/autograd.py: it has the others.
"""

from tests.mutants import Mutant

MUTANTS = [
    # The mask.
    Mutant(" & (a_id == b_id.T)", "", "no documents"),
    Mutant("(a_id == b_id.T)", "(a_id <= b_id.T)", "documents that follow are seen"),
    Mutant("(a_id == b_id.T)", "(a_id != b_id.T)", "all documents but its own"),
    # Whose ids.
    Mutant(
        "tile(q_docs, (at[0], 0), offs_m, seq_q, 1, 1)",
        "tile(k_docs, (at[0], 0), offs_m, seq_k, 1, 1)",
        "the queries have the ids of keys",
    ),
    Mutant(
        "tile(k_docs, (at[0], 0), offs_n, seq_k, 1, 1)",
        "tile(q_docs, (at[0], 0), offs_n, seq_q, 1, 1)",
        "the keys have the ids of queries",
    ),
    Mutant("tile(q_docs, (at[0], 0)", "tile(q_docs, (0, 0)", "of the first sequence"),
    Mutant(
        "tile(k_docs, (at[0], 0), offs_n", "tile(k_docs, (0, 0), offs_n", "its keys"
    ),
    Mutant(
        "tile(a_docs, (at[0], 0)", "tile(a_docs, (0, 0)", "in backward, what is owned"
    ),
    Mutant(
        "tile(b_docs, (at[0], 0)", "tile(b_docs, (0, 0)", "in backward, what is met"
    ),
    Mutant(
        "tile(b_docs, (at[0], 0), met, size, 1, 1)",
        "tile(a_docs, (at[0], 0), met, own_size, 1, 1)",
        "what is met has the ids of what is owned",
    ),
    Mutant("(at[0], 0)", "(at[0].to(tl.int32), 0)", "their offset in 32 bits", count=4),
    Mutant(
        "(q, do, q_docs), (k, v, k_docs)",
        "(q, do, k_docs), (k, v, q_docs)",
        "the ids exchanged in backward",
    ),
    Mutant(
        "docs[:, None, docs.shape[1] - x.shape[2] :, None]",
        "docs[:, None, : x.shape[2], None]",
        "the first ids in place of the last",
    ),
    # What autograd is told.
    Mutant("*5 * (None,)", "*4 * (None,)", "a gradient too few"),
    Mutant(
        "*ctx.options), *5",
        "False, *ctx.options[1:]), *5",
        "causal is lost in backward",
    ),
    # Checks.
    Mutant("max(q.shape[2], *k.shape[2:3])", "q.shape[2]", "the ids of queries alone"),
    Mutant(
        '("v", v, kv), ("docs", docs, ids):',
        '("v", v, kv), ("v", v, kv):',
        "any documents accepted",
        may_not_compile=True,
    ),
    Mutant("known = isinstance(x, Tensor)", "known = True", "a list is no tensor"),
]
