"""Bugs that several kernels of the attention part could have."""

from tests.mutants import Mutant

# Bugs that any of these kernels may have, in the words of flash2*.py. One rung tries a
# list; the next ones try what they change.
POINTER_MUTANTS = [
    Mutant(" * stride_kn", " * stride_qm", "K read with the row stride of Q"),
    Mutant(" * stride_vn", " * stride_kn", "V read with the row stride of K"),
    Mutant(" * stride_qd", "", "q read as if its head_dim were contiguous"),
    Mutant(" * stride_kd", " * stride_qd", "K read with the column stride of Q"),
    Mutant(" * stride_vd", " * stride_kd", "V read with the column stride of K"),
    Mutant(" * stride_om", " * stride_qm", "o written with the row stride of q"),
    Mutant(" * stride_od", " * stride_qd", "o written with the column stride of q"),
    Mutant(
        "tl.int32 if max(spans) < 2**31 else tl.int64",
        "tl.int32",
        "offsets inside a head in 32 bits",
    ),
    Mutant(
        "mask_m = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)",
        "mask_m = offs_m[:, None] < seq_q",
        "q and o beyond head_dim",
    ),
    Mutant(
        "mask_m = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)",
        "mask_m = offs_d[None, :] < HEAD_DIM",
        "q and o beyond their rows",
    ),
    Mutant(
        "tl.load(q_ptrs, mask=mask_m, other=0.0)", "tl.load(q_ptrs)", "q without a mask"
    ),
    Mutant("o_ptrs, o, mask=mask_m", "o_ptrs, o", "o without a mask"),
    Mutant(
        "mask_n = (offs_n[:, None] < seq_k) & (offs_d[None, :] < HEAD_DIM)",
        "mask_n = (offs_n[:, None] < seq_k) & (offs_d[None, :] < BLOCK_D)",
        "K and V read beyond head_dim: the mask is always true",
    ),
    Mutant(
        "mask_n = (offs_n[:, None] < seq_k)",
        "mask_n = (offs_n[:, None] <= seq_k)",
        "one row too many of K and V",
    ),
    Mutant(", mask=offs_m < seq_q", "", "lse written beyond its rows"),
]

HEAD_MUTANTS = [
    Mutant("kv_head = head // group", "kv_head = head", "no shared heads"),
    Mutant("kv_head = head // group", "kv_head = head % group", "the heads of others"),
    Mutant("kv_head * stride_kh", "kv_head * stride_qh", "K with Q's head stride"),
    Mutant("kv_head * stride_vh", "kv_head * stride_kh", "V with K's head stride"),
    Mutant("kv_head * stride_vh", "head * stride_vh", "V of another head"),
    Mutant("batch * stride_kb", "batch * stride_qb", "K with Q's batch stride"),
    Mutant("batch * stride_vb", "batch * stride_kb", "V with K's batch stride"),
    Mutant("batch * stride_ob", "batch * stride_qb", "o with q's batch stride"),
    Mutant("head * stride_oh", "head * stride_qh", "o with q's head stride"),
    Mutant(
        "(tl.program_id(1) // heads).to(tl.int64)",
        "tl.program_id(1) // heads",
        "batch offsets in 32 bits",
    ),
    Mutant(
        "(tl.program_id(1) % heads).to(tl.int64)",
        "tl.program_id(1) % heads",
        "head offsets in 32 bits",
    ),
    Mutant("(batch * heads + head) * seq_q", "head * seq_q", "one lse for all"),
]

ONLINE_MUTANTS = [
    Mutant(") * scale\n", ")\n", "no scale"),
    Mutant(") * scale\n", ") / scale\n", "divided by the scale"),
    Mutant(
        "tl.max(s, axis=1)",
        "tl.max(s / scale, axis=1) * scale",
        "a maximum that needs a positive scale",
    ),
    Mutant(
        "m_new = tl.maximum(m_i, tl.max(s, axis=1))",
        "m_new = tl.max(s, axis=1)",
        "the maximum of the last tile only",
    ),
    Mutant(
        'shift = tl.where(m_new == float("-inf"), 0.0, m_new)',
        "shift = m_new",
        "no guard for scores of -inf",
    ),
    Mutant("tl.exp(s - shift[:, None])", "tl.exp(s)", "weights without the maximum"),
    Mutant("alpha = tl.exp(m_i - shift)", "alpha = 1.0", "nothing is rescaled"),
    Mutant(
        "tl.exp(m_i - shift)", "tl.exp(shift - m_i)", "rescaled the wrong way round"
    ),
    Mutant("l_i * alpha + tl.sum", "l_i + tl.sum", "the sum is not rescaled"),
    Mutant("acc = acc * alpha[:, None]", "pass", "the output is not rescaled"),
    Mutant("m_i = m_new\n", "", "the maximum is not kept"),
    Mutant(
        "tl.dot(p.to(v.dtype)",
        "tl.dot(p.to(tl.float16).to(v.dtype)",
        "weights rounded to float16",
    ),
]

FINISH_MUTANTS = [
    Mutant("tl.where(l_i == 0.0, 1.0, l_i)", "l_i", "0 / 0 in a row of -inf"),
    Mutant("acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]", "acc", "no division"),
    Mutant(
        "o = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]",
        "o = tl.where(l_i[:, None] > 0.0, acc / l_i[:, None], 0.0)",
        "NaN becomes 0",
    ),
    Mutant("m_i + tl.log(l_i)", "tl.log(l_i)", "lse without the maximum"),
    Mutant("m_i + tl.log(l_i)", "m_i + tl.log2(l_i)", "lse of another base"),
]

# Of the loop over all keys, without a causal mask.
LOOP_MUTANTS = [
    Mutant(
        "range(0, seq_k, BLOCK_N)",
        "range(0, seq_k // BLOCK_N * BLOCK_N, BLOCK_N)",
        "the last keys dropped",
    ),
    Mutant("range(0, seq_k, BLOCK_N)", "range(0, BLOCK_N, BLOCK_N)", "one tile only"),
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
]

CAUSAL_MUTANTS = [
    Mutant(
        "tl.maximum(start_m + 1 + seq_k - seq_q, 0)",
        "tl.maximum(start_m + BLOCK_M + seq_k - seq_q, 0)",
        "no mask on the diagonal",
    ),
    Mutant(
        "tl.maximum(start_m + 1 + seq_k - seq_q, 0)",
        "(start_m + 1 + seq_k - seq_q)",
        "keys before the first",
    ),
    Mutant("full = full // BLOCK_N * BLOCK_N", "pass", "stages that overlap"),
    Mutant(
        "full = full // BLOCK_N * BLOCK_N",
        "full = full // BLOCK_M * BLOCK_M",
        "a diagonal that needs block_m >= block_n",
    ),
    Mutant(
        "tl.maximum(start_m + BLOCK_M + seq_k - seq_q, 0)",
        "tl.maximum(start_m + 1 + seq_k - seq_q, 0)",
        "the band ends at its first row",
    ),
    Mutant("seq_k, full, last,\n", "seq_k, last, last,\n", "no band"),
    Mutant("seq_k, 0, full,\n", "seq_k, full, full,\n", "the band only"),
    Mutant("ON_BAND=True", "ON_BAND=False", "no mask on the band"),
    Mutant("ON_BAND=False", "ON_BAND=True", "a mask off the band"),
    Mutant(
        "<= offs_m[:, None] + seq_k - seq_q",
        "<= offs_m[:, None]",
        "aligned top left",
    ),
    Mutant(
        "<= offs_m[:, None] + seq_k - seq_q",
        "< offs_m[:, None] + seq_k - seq_q",
        "a query does not see its own key",
    ),
    Mutant("seen = offs_n[None, :] < seq_k", "seen = offs_n[None, :] >= 0", "no end"),
    Mutant(
        's = tl.where(seen, s, float("-inf"))',
        "s = s + tl.where(seen, 0.0, -1e6)",
        "a mask of -1e6: rows that see nothing leak a mean of V",
    ),
]

LAUNCH_MUTANTS = [
    Mutant("triton.cdiv(seq_q, block_m)", "seq_q // block_m", "the last rows lost"),
    Mutant(
        "o = torch.empty_like(q)",
        "o = torch.empty(q.shape, dtype=q.dtype, device=q.device)",
        "o not laid out as q",
    ),
    Mutant("*v.stride(), *o.stride()", "*v.stride(), *q.stride()", "o as q's strides"),
    Mutant("head_dim**-0.5 if", "head_dim**-1.0 if", "another default scale"),
]


LOST_GRADIENTS = [
    Mutant(
        "torch.is_grad_enabled() and x.requires_grad",
        "False",
        "gradients lost in silence",
    ),
    Mutant(
        "torch.is_grad_enabled() and x.requires_grad",
        "x.requires_grad",
        "a gradient that nobody wants",
    ),
]


def refusal_mutants(dimensions: int) -> list[Mutant]:
    """Arguments that are not refused, for tensors of 2 or 4 dimensions."""
    return [
        Mutant(f"x.ndim != {dimensions}", f"x.ndim < {dimensions}", "more dimensions"),
        Mutant(
            "if x.dtype not in (torch.float16, torch.bfloat16, torch.float32):",
            "if not x.is_floating_point():",
            "other dtypes",
            may_not_compile=True,
        ),
        Mutant(
            "(x.dtype, x.device) != (q.dtype, q.device)",
            "x.device != q.device",
            "k or v of another dtype",
            may_not_compile=True,
        ),
        Mutant(
            "(x.dtype, x.device) != (q.dtype, q.device)",
            "x.dtype != q.dtype",
            "k or v on another device",
        ),
        *LOST_GRADIENTS,
        Mutant("1 <= head_dim <= 256", "1 <= head_dim <= 512", "a large head_dim"),
        Mutant("1 <= head_dim <= 256", "head_dim <= 256", "a head_dim of 0"),
        Mutant("if v.shape != k.shape:", "if False:", "a v of another shape"),
    ]


ANOTHER_DEVICE = Mutant(
    "with torch.cuda.device_of(q):", "if True:", "launched on another device than q's"
)

HEAD_REFUSAL_MUTANTS = [
    ANOTHER_DEVICE,
    Mutant("if k.shape[0] != batch:", "if False:", "another batch"),
    Mutant("(k.shape[1] == 0 or heads % k.shape[1])", "False", "any heads of k"),
    Mutant(
        "(k.shape[1] == 0 or heads % k.shape[1])",
        "k.shape[1] and heads % k.shape[1]",
        "no heads of k",
    ),
    Mutant("if k.shape[3] != head_dim:", "if False:", "another head_dim of k"),
]
