"""Bugs that the tests of snippets/attention/split_kv.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import ANOTHER_DEVICE

MUTANTS = [
    ANOTHER_DEVICE,
    # The part of a program.
    Mutant("range(split * BLOCK_N,", "range(0,", "every part begins at the first key"),
    Mutant("last, splits * BLOCK_N):", "last, BLOCK_N):", "parts that overlap"),
    Mutant(
        "last, splits * BLOCK_N):",
        "last - BLOCK_N + 1, splits * BLOCK_N):",
        "the last keys belong to nobody",
    ),
    Mutant("last = keys\n", "last = seq_k\n", "keys behind the last"),
    Mutant("l_i * alpha + tl.sum", "l_i + tl.sum", "the sum is not rescaled"),
    Mutant("causal and seq_q > 1", "causal and seq_q > 2", "two queries see all"),
    Mutant(
        "tl.minimum(tl.maximum(tl.load(seq_lens_ptr + batch), 0), seq_k)",
        "tl.maximum(tl.load(seq_lens_ptr + batch), 0)",
        "a length beyond the cache",
    ),
    Mutant("tl.load(seq_lens_ptr + batch)", "tl.load(seq_lens_ptr)", "one length"),
    Mutant(
        "mask_n = (offs_n[:, None] < last)",
        "mask_n = (offs_n[:, None] < seq_k)",
        "keys that were never written",
    ),
    Mutant("seen = offs_n[None, :] < last", "seen = offs_n[None, :] >= 0", "no end"),
    # The rows of a tile.
    Mutant(
        "(rows // GROUP).to(tl.int64), (rows % GROUP).to(tl.int64)",
        "(rows % seq_q).to(tl.int64), (rows // GROUP).to(tl.int64)",
        "rows in another order",
    ),
    Mutant("rows // GROUP).to(tl.int64)", "rows // GROUP)", "queries in 32 bits"),
    Mutant("offs_h[:, None] * stride_qh", "offs_h[:, None]", "q, one head"),
    Mutant("kv_head * GROUP * stride_qh", "kv_head * stride_qh", "q of other heads"),
    Mutant(
        "(start_m + BLOCK_M - 1) // GROUP + 1",
        "start_m // GROUP + 1",
        "the band ends at its first row",
    ),
    Mutant(
        "<= offs_m[:, None] + keys - seq_q",
        "<= offs_m[:, None] + seq_k - seq_q",
        "aligned with the end of the cache, not of the sequence",
    ),
    Mutant("if CAUSAL:\n            seen", "if False:\n            seen", "no mask"),
    Mutant("(split * batches + batch) *", "batch *", "every part in the same place"),
    Mutant(
        "kv_heads * GROUP + kv_head * GROUP + offs_h",
        "kv_heads * GROUP + kv_head + offs_h",
        "o of other heads",
    ),
    Mutant(
        "(tl.program_id(1) // kv_heads).to(tl.int64)",
        "tl.program_id(1) // kv_heads",
        "batch offsets in 32 bits",
    ),
    Mutant(
        "(tl.program_id(1) % kv_heads).to(tl.int64)",
        "tl.program_id(1) % kv_heads",
        "head offsets in 32 bits",
    ),
    # The merge.
    Mutant(
        'shift = tl.where(m_i == float("-inf"), 0.0, m_i)',
        "shift = m_i",
        "no guard for parts that see nothing",
    ),
    Mutant(
        'shift = tl.where(m_i == float("-inf"), 0.0, m_i)',
        "shift = 0.0",
        "weights without the maximum",
    ),
    Mutant("w[:, None] * o_s", "o_s", "parts that all count the same"),
    Mutant('mask_s, other=float("-inf")', "mask_s, other=0.0", "parts that are not"),
    Mutant("axis=0) / tl.where(l_i == 0.0, 1.0, l_i)", "axis=0)", "a sum, not a mean"),
    Mutant(
        "axis=0) / tl.where(l_i == 0.0, 1.0, l_i)",
        "axis=0) / l_i",
        "0 / 0 where no part sees a key",
    ),
    Mutant("m_i + tl.log(l_i), mask=tl", "m_i, mask=tl", "the largest lse"),
    Mutant("triton.cdiv(head_dim, 32))]", "1)]", "the first 32 columns merged", 1),
    # The launch.
    Mutant(
        "blocks = triton.cdiv(group * seq_q, block_m)",
        "blocks = max(1, group * seq_q // block_m)",
        "the last rows lost",
    ),
    Mutant("triton.cdiv(programs * n, slots) *", "", "no waves"),
    Mutant("triton.cdiv(tiles, n) + 1", "triton.cdiv(tiles, n)", "free"),
    Mutant(
        "tl.int32 if max(spans) < 2**31 else tl.int64",
        "tl.int32",
        "offsets inside a head in 32 bits",
    ),
    Mutant("1 <= splits <= 256", "splits <= 256", "no part at all"),
    Mutant("1 <= splits <= 256", "1 <= splits", "any number of parts"),
    Mutant("// (7 * block_d", "// (3 * block_d", "tiles with no room for stages"),
    # The checks.
    Mutant("if got != right or", "if", "any lengths"),
    Mutant(" or not seq_lens.is_contiguous()", "", "every other length"),
    Mutant("x.ndim != 4", "x.ndim < 4", "more dimensions"),
    Mutant("torch.is_grad_enabled() and x.requires_grad", "False", "gradients lost"),
    Mutant("if q.dtype not in", "if q.device not in", "other dtypes"),
    Mutant("1 <= head_dim <= 256", "1 <= head_dim <= 512", "a large head_dim"),
    Mutant("1 <= head_dim <= 256", "head_dim <= 256", "a head_dim of 0"),
    Mutant("(kv_heads == 0 or heads % kv_heads)", "False", "any heads of k"),
    Mutant(") != right:", ") != got:", "k and v of any kind", may_not_compile=True),
    Mutant(
        "{[batch, kv_heads, seq_k, head_dim]}", "{[*k.shape]}", "k of another shape"
    ),
]
