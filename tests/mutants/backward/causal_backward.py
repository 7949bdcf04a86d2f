"""Bugs that the tests of snippets/backward/causal_backward.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import LOST_GRADIENTS
from tests.mutants.backward.shared import OTHER_DTYPES

FIRST = "tl.maximum(start_n - diagonal, 0) // BLOCK_M * BLOCK_M"
WHOLE = "tl.minimum(start_n + BLOCK_N, seq_k) - 1 - diagonal"
FULL = "tl.minimum(start_m + 1 + diagonal, seq_k)"
LAST = "tl.minimum(start_m + BLOCK_M + diagonal, seq_k)"
END = "tl.minimum(offs_m[:, None] + 1 + diagonal, seq_k)"
BAND_OF_KEYS = "offs_n[:, None], offs_m[None, :] + 1 + diagonal, start_m < whole"
BAND_OF_QUERIES = "offs_n[None, :], end, start_n + BLOCK_N > full"
# What stands for the diagonal of a pass with all keys.
DIAGONAL = "seq_k - seq_q if causal else seq_k"

# The mask, and where it begins and ends.
BAND_MUTANTS = [
    Mutant("    if on_band:\n", "    if False:\n", "no mask on the band"),
    Mutant("    if on_band:\n", "    if True:\n", "a mask in every tile"),
    Mutant("tl.where(key < end, s", "tl.where(key <= end, s", "one key too many"),
    Mutant("tl.where(key < end, s", "tl.where(key < end - 1, s", "not its own key"),
    Mutant(
        's = tl.where(key < end, s, float("-inf"))',
        "s = s + tl.where(key < end, 0.0, -1e3)",
        "a mask of -1000: too little for large scores",
    ),
    Mutant(
        's = tl.where(key < end, s, float("-inf"))',
        "s = tl.where(key < end, s, 0.0)",
        "a mask before the exponential that is 0",
    ),
    Mutant(DIAGONAL, "seq_k", "the mask is ignored"),
    Mutant(DIAGONAL, "0 if causal else seq_k", "aligned top left"),
    Mutant(DIAGONAL, "seq_q - seq_k if causal else seq_k", "the diagonal's sign"),
    Mutant(DIAGONAL, "seq_k - seq_q", "a causal mask that nobody asked for"),
    Mutant(DIAGONAL, "seq_k - seq_q if causal else 0", "top left without a mask"),
    Mutant(
        DIAGONAL,
        "max(seq_k - seq_q, 0) if causal else seq_k",
        "more queries than keys: all see something",
    ),
    Mutant(
        DIAGONAL,
        "min(seq_k - seq_q, 0) if causal else seq_k",
        "more keys than queries: the last keys unseen",
    ),
    Mutant(
        's - tl.where(lse == float("-inf"), float("inf"), lse)',
        "s - lse",
        "rows that see nothing: exp(-inf + inf)",
    ),
    Mutant(
        "(q, k, v, o, do, dq)), **options,",
        '(q, k, v, o, do, dq)), **{**options, "diagonal": seq_k},',
        "dQ: the causal flag is ignored",
    ),
    Mutant(
        "(q, k, v, do, dk, dv)), **options,",
        '(q, k, v, do, dk, dv)), **{**options, "diagonal": seq_k},',
        "dK: the causal flag is ignored",
    ),
    # Of the program of a block of queries.
    Mutant(LAST, "seq_k", "dQ: nothing is skipped"),
    Mutant(LAST, "tl.minimum(start_m + 1 + diagonal, seq_k)", "dQ: the band is short"),
    Mutant(LAST, "start_m + BLOCK_M + diagonal", "dQ: tiles beyond the last key"),
    Mutant(
        LAST,
        "tl.minimum(start_m + BLOCK_M - 1 + diagonal, seq_k)",
        "dQ: the loop ends a key early",
    ),
    Mutant(
        LAST,
        "tl.minimum(start_m + BLOCK_M + 1 + diagonal, seq_k)",
        "dQ: the loop ends a key late",
    ),
    Mutant(LAST, "tl.minimum(start_m + BLOCK_M, seq_k)", "dQ: the loop ends top left"),
    Mutant(FULL, "seq_k", "dQ: no mask on the diagonal"),
    Mutant(FULL, "start_m + 1 + diagonal", "dQ: keys beyond the last have weights"),
    Mutant(FULL, "tl.minimum(start_m + diagonal, seq_k)", "dQ: a mask a key early"),
    Mutant(FULL, "tl.minimum(start_m + 2 + diagonal, seq_k)", "dQ: a mask a key late"),
    Mutant(
        FULL,
        "tl.minimum(start_m + BLOCK_M + diagonal, seq_k)",
        "dQ: the last row decides that a tile is whole",
    ),
    Mutant(END, "offs_m[:, None] + 1 + diagonal", "dQ: no end of the keys"),
    Mutant(END, "tl.minimum(offs_m[:, None] + diagonal, seq_k)", "dQ: `<` for `<=`"),
    Mutant(END, "tl.minimum(offs_m[:, None] + 1, seq_k)", "dQ: the mask is top left"),
    Mutant(END, "seq_k", "dQ: the causal flag is ignored by the mask"),
    Mutant(BAND_OF_QUERIES, "offs_n[None, :], end, start_n > full", "dQ: a short band"),
    Mutant(
        BAND_OF_QUERIES,
        "offs_n[None, :], end, start_n + BLOCK_N >= full",
        "dQ: a mask in vain on the last whole tile",
    ),
    # Of the program of a block of keys.
    Mutant(FIRST, "0", "dK: nothing is skipped"),
    Mutant(
        FIRST,
        "(start_n - diagonal) // BLOCK_M * BLOCK_M",
        "dK: queries before the first",
    ),
    Mutant(
        FIRST,
        "tl.cdiv(tl.maximum(start_n - diagonal, 0), BLOCK_M) * BLOCK_M",
        "dK: the first tile of the band is lost",
    ),
    Mutant(
        FIRST,
        "tl.maximum(start_n - diagonal - 1, 0) // BLOCK_M * BLOCK_M",
        "dK: the loop begins a query early",
    ),
    Mutant(
        FIRST,
        "tl.maximum(start_n - diagonal + 1, 0) // BLOCK_M * BLOCK_M",
        "dK: the loop begins a query late",
    ),
    Mutant(
        FIRST,
        "tl.maximum(start_n - diagonal, 0) // BLOCK_N * BLOCK_N",
        "dK: tiles of queries as large as those of keys",
    ),
    Mutant(
        FIRST,
        "tl.maximum(start_n, 0) // BLOCK_M * BLOCK_M",
        "dK: the loop begins top left",
    ),
    Mutant(WHOLE, "0", "dK: the causal flag is ignored by the mask"),
    Mutant(WHOLE, "start_n - diagonal", "dK: the first key decides for the block"),
    Mutant(
        WHOLE,
        "start_n + BLOCK_N - 1 - diagonal",
        "dK: a mask in vain for keys that do not exist",
    ),
    Mutant(
        WHOLE,
        "tl.minimum(start_n + BLOCK_N, seq_k) - diagonal",
        "dK: a mask in vain a query late",
    ),
    Mutant(
        WHOLE,
        "tl.minimum(start_n + BLOCK_N, seq_k) - 2 - diagonal",
        "dK: a tile is whole a query early",
    ),
    Mutant(
        BAND_OF_KEYS,
        "offs_n[:, None], offs_m[None, :] + diagonal, start_m < whole",
        "dK: `<` for `<=`",
    ),
    Mutant(
        BAND_OF_KEYS,
        "offs_n[:, None], offs_m[None, :] + 1, start_m < whole",
        "dK: the mask is top left",
    ),
    Mutant(
        BAND_OF_KEYS,
        "offs_n[:, None], offs_m[None, :] + 1 + diagonal, start_m <= whole",
        "dK: a mask in vain on the first whole tile",
    ),
    Mutant(
        BAND_OF_KEYS,
        "offs_n[:, None], offs_m[None, :] + 1 + diagonal, start_m + BLOCK_M < whole",
        "dK: a short band",
    ),
]

# Which head reads which keys, and what is summed over a group.
GROUP_MUTANTS = [
    Mutant("(at[0], at[1] // group)", "(at[0], at[1])", "dQ: no shared heads"),
    Mutant("(at[0], at[1] // group)", "(at[0], at[1] % group)", "dQ: heads of others"),
    Mutant(
        "(first_head // heads, first_head % heads // group)",
        "(first_head // heads, first_head % heads)",
        "dK: the query-head count in the pointer of K, dK and dV",
    ),
    Mutant(
        "(first_head // heads, first_head % heads // group)",
        "(first_head // heads, first_head // group)",
        "dK: heads of the batch entries before",
    ),
    Mutant("for each in range(group)", "for each in range(1)", "dK: no sum"),
    Mutant(
        "for each in range(group)",
        "for each in range(1, group)",
        "dK: the first head of a group is lost",
    ),
    Mutant(
        "(kv_at[0], (first_head + each) % heads)",
        "(kv_at[0], first_head % heads)",
        "dK: q and dO of one head for all of the group",
    ),
    Mutant(
        "(kv_at[0], (first_head + each) % heads)",
        "(kv_at[0], kv_at[1] + each)",
        "dK: q and dO of other groups",
    ),
    Mutant(
        "(kv_at[0], (first_head + each) % heads)",
        "(kv_at[0], kv_at[1] + each * (heads // group))",
        "dK: a group is every so many heads",
    ),
    Mutant(
        "rows = (first_head + each) * seq_q",
        "rows = first_head * seq_q",
        "dK: lse and delta of one head for all of the group",
    ),
    Mutant(
        "rows = (first_head + each) * seq_q",
        "rows = (first_head + each) * seq_k",
        "dK: as many rows of lse as keys",
    ),
    Mutant(
        "first_head = tl.program_id(1).to(tl.int64) * group",
        "first_head = tl.program_id(1) * group",
        "dK: batch and head offsets in 32 bits",
    ),
    Mutant(
        "first_head = tl.program_id(1).to(tl.int64) * group",
        "first_head = tl.program_id(1).to(tl.int64)",
        "dK: groups that overlap",
    ),
    Mutant("batch * kv_heads)](", "batch * heads)](", "programs beyond the last group"),
    Mutant(
        "heads // max(kv_heads, 1)",
        "1",
        "the launch takes every head for a group",
    ),
    Mutant(
        "tile(dk_ptr, dk_strides, kv_at,",
        "tile(dk_ptr, dk_strides, at,",
        "dK stored where the last query head is",
        may_not_compile=True,
    ),
]

# In the words of window_backward.py as well.
HEAD_REFUSAL_MUTANTS = [
    Mutant("q.ndim == 4 and q.shape[:2]", "q.shape[:2]", "any number of axes"),
    Mutant(" and 1 <= q.shape[3] <= 256", "", "any head_dim"),
    Mutant("q.shape[:2].numel() <= 65535", "True", "a grid too high for the GPU"),
    Mutant(
        "(k.shape[1] == 0 or q.shape[1] % k.shape[1])",
        "k.shape[1] and q.shape[1] % k.shape[1]",
        "no heads of k",
    ),
    Mutant("*k.shape[1:3], q.shape[3])", "*k.shape[1:])", "another head_dim of k"),
    Mutant("lse if dlse is None else dlse)", "lse)", "a dlse that nobody looks at"),
    *LOST_GRADIENTS,
]

REFUSAL_MUTANTS = [
    *HEAD_REFUSAL_MUTANTS,
    Mutant("1 <= q.shape[3] <= 256", "q.shape[3] <= 256", "a head_dim of 0"),
    OTHER_DTYPES,
    Mutant("(k.shape[1] == 0 or q.shape[1] % k.shape[1])", "False", "any heads of k"),
    Mutant("(q.shape[0], *k.shape[1:3]", "(*k.shape[:3]", "another batch of k"),
    Mutant('("v", v, of_k)', '("v", v, v.shape)', "a V of any shape"),
    Mutant('("o", o, q.shape)', '("o", o, o.shape)', "an o of any shape"),
    Mutant('("do", do, q.shape)', '("do", do, do.shape)', "a dO of any shape"),
    Mutant('("lse", lse, q.shape[:3])', '("lse", lse, lse.shape)', "any lse"),
    Mutant('("dlse", dlse, q.shape[:3])', '("dlse", dlse, dlse.shape)', "any dlse"),
    Mutant(
        "q.dtype if len(shape) == 4 else torch.float32, shape, q.device",
        "x.dtype, shape, q.device",
        "another dtype",
        may_not_compile=True,
    ),
    Mutant(
        "q.dtype if len(shape) == 4 else torch.float32, shape, q.device",
        "q.dtype if len(shape) == 4 else torch.float32, shape, x.device",
        "another device",
    ),
]

MUTANTS = [*BAND_MUTANTS, *GROUP_MUTANTS, *REFUSAL_MUTANTS]
