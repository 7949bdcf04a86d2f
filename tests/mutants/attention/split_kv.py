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
    Mutant("CAUSAL else keys\n", "CAUSAL else seq_k\n", "keys behind the last"),
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
    Mutant("offs_n[None, :] < ends[:, None]", "offs_n[None, :] >= 0", "no end"),
    # The rows of a tile.
    Mutant(
        "(rows // GROUP).to(tl.int64), (rows % GROUP).to(tl.int64)",
        "(rows % seq_q).to(tl.int64), (rows // GROUP).to(tl.int64)",
        "rows in another order",
    ),
    Mutant("rows // GROUP).to(tl.int64)", "rows // GROUP)", "queries in 32 bits"),
    Mutant("offs_h[:, None] * stride_qh", "offs_h[:, None]", "q, one head"),
    Mutant("kv_head * GROUP * stride_qh", "kv_head * stride_qh", "q of other heads"),
    Mutant("tl.max(ends)", "tl.min(ends)", "the band ends at its first row"),
    Mutant("tl.max(ends)", "tl.max(rows // GROUP) + 1", "aligned top left"),
    Mutant("ends = keys - (", "ends = seq_k - (", "aligned with the end of the cache"),
    Mutant("seq_q - 1 - rows // GROUP", "seq_q - 2 - rows // GROUP", "a key too many"),
    Mutant("seq_q - 1 - rows // GROUP", "seq_q - rows // GROUP", "not its own key"),
    Mutant("tl.maximum(seq_q - 1 - rows // GROUP, 0) if", "0 * rows if", "no mask"),
    Mutant("(split * batches + batch) *", "batch *", "every part in the same place"),
    Mutant(
        "kv_heads * GROUP + kv_head * GROUP + offs_h",
        "kv_heads * GROUP + kv_head + offs_h",
        "o of other heads",
    ),
    Mutant(
        "(tl.program_id(0) // blocks // kv_heads).to(tl.int64)",
        "tl.program_id(0) // blocks // kv_heads",
        "batch offsets in 32 bits",
    ),
    Mutant(
        "(tl.program_id(0) // blocks % kv_heads).to(tl.int64)",
        "tl.program_id(0) // blocks % kv_heads",
        "head offsets in 32 bits",
    ),
    # The merge.
    Mutant(
        'lse_s - tl.where(m_i == float("-inf"), 0.0, m_i)',
        "lse_s - m_i",
        "no guard for parts that see nothing",
    ),
    Mutant(
        'lse_s - tl.where(m_i == float("-inf"), 0.0, m_i)',
        "lse_s",
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
    Mutant("-(-programs * n // sms) *", "", "no waves"),
    Mutant("range(1, 17)", "range(1, 2)", "one wave only"),
    Mutant("min(tiles, 256, wave", "min(256, wave", "parts without a tile"),
    Mutant("min(tiles, 256, wave", "min(tiles, wave", "more parts than are merged"),
    Mutant("-(-tiles // n) + 1", "-(-tiles // n)", "free"),
    Mutant(
        "tl.int32 if max(spans) < 2**31 else tl.int64",
        "tl.int32",
        "offsets inside a head in 32 bits",
    ),
    Mutant("1 <= splits <= 256", "splits <= 256", "no part at all"),
    Mutant("1 <= splits <= 256", "1 <= splits", "any number of parts"),
    Mutant("// (7 * block_d", "// (3 * block_d", "tiles with no room for stages"),
    # The checks.
    Mutant(
        "if x is not None and (",
        "if x is not None and x is not seq_lens and (",
        "any lengths",
    ),
    Mutant("else seq_lens.contiguous()", "else seq_lens", "every other length"),
    Mutant("x.ndim != 4", "x.ndim < 4", "more dimensions"),
    Mutant("torch.is_grad_enabled() and x.requires_grad", "False", "gradients lost"),
    Mutant("x.dtype not in", "x.device not in", "other dtypes"),
    Mutant("1 <= head_dim <= 256", "1 <= head_dim <= 512", "a large head_dim"),
    Mutant("1 <= head_dim <= 256", "head_dim <= 256", "a head_dim of 0"),
    Mutant("(kv_heads == 0 or heads % kv_heads)", "False", "any heads of k"),
    Mutant(") != right:", ") != got:", "k and v of any kind", may_not_compile=True),
    Mutant("q.dtype, batch, kv_heads,", "q.dtype, k.shape[0], kv_heads,", "any batch"),
    Mutant("kv_heads, seq_k, head_dim\n", "kv_heads, *k.shape[2:]\n", "any head_dim"),
]
