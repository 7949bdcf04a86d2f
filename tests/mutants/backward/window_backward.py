"""Bugs that the tests of snippets/backward/window_backward.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import ANOTHER_DEVICE
from tests.mutants.backward.causal_backward import (
    BAND_MUTANTS,
    FIRST,
    GROUP_MUTANTS,
    HEAD_REFUSAL_MUTANTS,
    LAST,
    WHOLE,
)
from tests.mutants.backward.shared import named

BEGIN = "tl.maximum(full - window, 0) // BLOCK_N * BLOCK_N"
CUT_OF_QUERIES = "(start_n + BLOCK_N > full) | (start_n < last - window)"
UNTIL = "until = start_n - diagonal + window"
RANGE = "range(first, tl.minimum(whole + window, seq_q), BLOCK_M)"
CUT_OF_KEYS = "(start_m < whole) | (tl.minimum(start_m + BLOCK_M, seq_q) > until)"
SEEN = "(key < end) & (key >= end - window)"
# What stands for the window of a pass without one.
WINDOW = "seq_q + seq_k if window is None else min(window, seq_k)"

# The second edge of the band.
WINDOW_MUTANTS = [
    Mutant(SEEN, "key < end", "no mask at the far edge"),
    Mutant(SEEN, SEEN.replace(">=", ">"), "a window that is one too short"),
    Mutant(
        SEEN, SEEN.replace("end - window", "end - window - 1"), "a window one too long"
    ),
    Mutant(SEEN, SEEN.replace("&", "|"), "an edge or the other"),
    Mutant(SEEN, "key >= end - window", "no mask on the diagonal"),
    Mutant(
        's = tl.where(seen, s, float("-inf"))',
        "s = s + tl.where(seen, 0.0, -1e3)",
        "a mask of -1000: too little for large scores",
    ),
    Mutant(
        's = tl.where(seen, s, float("-inf"))',
        "s = tl.where(seen, s, 0.0)",
        "a mask before the exponential that is 0",
    ),
    Mutant("    if on_band:\n", "    if False:\n", "no mask at all"),
    # Of the program of a block of queries.
    Mutant(BEGIN, "0", "dQ: tiles before the window are visited"),
    Mutant(BEGIN, BEGIN.replace(", 0)", ", -128)"), "dQ: keys before the first"),
    Mutant(BEGIN, BEGIN.replace("- window", "- window - 1"), "dQ: begins a key early"),
    Mutant(BEGIN, BEGIN.replace("- window", "- window + 1"), "dQ: begins a key late"),
    Mutant(
        BEGIN,
        BEGIN.replace("full", "last"),
        "dQ: begins where the last row's window does",
    ),
    Mutant(BEGIN, BEGIN.removesuffix(" // BLOCK_N * BLOCK_N"), "dQ: tiles not aligned"),
    Mutant(
        BEGIN,
        "tl.cdiv(tl.maximum(full - window, 0), BLOCK_N) * BLOCK_N",
        "dQ: the first tile of a window lost",
    ),
    Mutant(
        BEGIN,
        "tl.maximum(start_m + 1 - window, 0) // BLOCK_N * BLOCK_N",
        "dQ: the window begins top left",
    ),
    Mutant(CUT_OF_QUERIES, "start_n + BLOCK_N > full", "dQ: no mask at the far edge"),
    Mutant(CUT_OF_QUERIES, "start_n < last - window", "dQ: no mask on the diagonal"),
    Mutant(
        CUT_OF_QUERIES,
        CUT_OF_QUERIES.replace("last", "full"),
        "dQ: the first row decides where the window begins",
    ),
    Mutant(
        CUT_OF_QUERIES,
        CUT_OF_QUERIES.replace("- window", "- window - 1"),
        "dQ: a tile is whole a key early",
    ),
    Mutant(
        CUT_OF_QUERIES,
        CUT_OF_QUERIES.replace("start_n <", "start_n <="),
        "dQ: a mask in vain on the first whole tile of the window",
    ),
    Mutant(
        CUT_OF_QUERIES,
        CUT_OF_QUERIES.replace(
            "last - window", "start_m + BLOCK_M + diagonal - window"
        ),
        "dQ: a mask in vain for queries that do not exist",
    ),
    Mutant(
        CUT_OF_QUERIES,
        "start_n + BLOCK_N > last - window",
        "dQ: only what the diagonal cuts is masked, and then some",
    ),
    # Of the program of a block of keys.
    Mutant(RANGE, "range(first, seq_q, BLOCK_M)", "dK: queries after the window"),
    Mutant(RANGE, RANGE.replace("window", "window - 1"), "dK: ends a query early"),
    Mutant(RANGE, RANGE.replace("window", "window + 1"), "dK: ends a query late"),
    Mutant(RANGE, "range(first, whole + window, BLOCK_M)", "dK: rows beyond the last"),
    Mutant(
        RANGE,
        "range(first, tl.minimum(until, seq_q), BLOCK_M)",
        "dK: ends where the window of the first key does",
    ),
    Mutant(CUT_OF_KEYS, "start_m < whole", "dK: no mask at the far edge"),
    Mutant(
        CUT_OF_KEYS,
        "tl.minimum(start_m + BLOCK_M, seq_q) > until",
        "dK: no mask on the diagonal",
    ),
    Mutant(
        CUT_OF_KEYS,
        CUT_OF_KEYS.replace("> until", ">= until"),
        "dK: a mask in vain on the last whole tile",
    ),
    Mutant(
        CUT_OF_KEYS,
        "(start_m < whole) | (start_m + BLOCK_M > until)",
        "dK: a mask in vain for queries that do not exist",
    ),
    Mutant(
        CUT_OF_KEYS,
        "(start_m < whole) | (start_m > until)",
        "dK: a short band at the far edge",
    ),
    Mutant(UNTIL, "until = whole + window", "dK: the last key decides for the block"),
    Mutant(UNTIL, "until = start_n + window", "dK: the window ends top left"),
    Mutant(UNTIL, UNTIL + " + 1", "dK: a tile is whole a query too long"),
    # The launch.
    Mutant(WINDOW, "seq_q + seq_k if window is None else window", "beyond 32 bits"),
    Mutant(
        WINDOW,
        "seq_k if window is None else min(window, seq_k)",
        "a window that nobody asked for",
    ),
    Mutant(
        WINDOW,
        "seq_q + seq_k if window is None else min(window, seq_q)",
        "a window of no more keys than there are queries",
    ),
    Mutant(WINDOW, "seq_q + seq_k", "the window is ignored"),
    Mutant(
        "(q, k, v, o, do, dq)), **options,",
        '(q, k, v, o, do, dq)), **{**options, "window": seq_q + seq_k},',
        "dQ: the window is ignored",
    ),
    Mutant(
        "(q, k, v, do, dk, dv)), **options,",
        '(q, k, v, do, dk, dv)), **{**options, "window": seq_q + seq_k},',
        "dK: the window is ignored",
    ),
    Mutant("(window < 1 or not causal)", "not causal", "a window of nothing"),
    Mutant("(window < 1 or not causal)", "window < 1", "a window without causal"),
]

# What is as in causal attention, and meets the new lines.
CAUSAL_MUTANTS = [
    *named(
        BAND_MUTANTS,
        "a mask in every tile",
        "the mask is ignored",
        "aligned top left",
        "rows that see nothing: exp(-inf + inf)",
        "dQ: tiles beyond the last key",
        "dQ: keys beyond the last have weights",
        "dQ: a mask a key late",
        "dQ: no end of the keys",
        "dQ: `<` for `<=`",
        "dK: queries before the first",
    ),
    Mutant(LAST, "seq_k", "dQ: nothing is skipped after the diagonal"),
    Mutant(FIRST, "0", "dK: nothing is skipped before the diagonal"),
    Mutant(
        WHOLE,
        "start_n + BLOCK_N - 1 - diagonal",
        "dK: a key that does not exist decides",
    ),
    Mutant(
        "offs_m[None, :] + 1 + diagonal, window",
        "offs_m[None, :] + diagonal, window",
        "dK: a band that is a query late",
    ),
]

LAUNCH_MUTANTS = [
    Mutant(
        'cdiv(seq_q, options["BLOCK_M"])',
        'cdiv(seq_q, options["BLOCK_N"])',
        "dQ: blocks of queries as large as those of keys",
    ),
    Mutant(
        'cdiv(seq_k, options["BLOCK_N"])',
        'cdiv(seq_k, options["BLOCK_M"])',
        "dK: blocks of keys as large as those of queries",
    ),
    ANOTHER_DEVICE,
]

REFUSAL_MUTANTS = [
    *HEAD_REFUSAL_MUTANTS,
    Mutant("((q.shape[0], *k.shape[1:3]", "((*k.shape[:3]", "another batch of k"),
    Mutant('dict.fromkeys("kv",', 'dict.fromkeys("k",', "as many keys as queries"),
    Mutant('in ("lse", "dlse")', 'in ("lse",)', "a dlse like q"),
    Mutant('in ("lse", "dlse")', 'in ("dlse",)', "an lse like q"),
    Mutant("o=o, ", "", "an o that nobody looks at"),
    Mutant("do=do, ", "", "a dO that nobody looks at"),
    Mutant("v=v, ", "", "a V that nobody looks at"),
    Mutant("lse=lse, do", "do", "an lse that nobody looks at"),
    Mutant(
        "(q.dtype, shapes.get(name, q.shape), q.device)",
        "(x.dtype, shapes.get(name, q.shape), q.device)",
        "another dtype",
        may_not_compile=True,
    ),
    Mutant(
        "(q.dtype, shapes.get(name, q.shape), q.device)",
        "(q.dtype, shapes.get(name, q.shape), x.device)",
        "another device",
    ),
    Mutant(
        "(torch.float32, q.shape[:3], q.device)",
        "(x.dtype, q.shape[:3], x.device)",
        "an lse of any kind",
    ),
]

MUTANTS = [
    *WINDOW_MUTANTS,
    *CAUSAL_MUTANTS,
    *GROUP_MUTANTS,
    *LAUNCH_MUTANTS,
    *REFUSAL_MUTANTS,
]
