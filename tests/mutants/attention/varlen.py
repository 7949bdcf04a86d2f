"""Bugs that the tests of snippets/attention/varlen.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import ANOTHER_DEVICE

MUTANTS = [
    Mutant("start // BLOCK_M + offs_b <=", "start // BLOCK_M <=", "shared blocks"),
    Mutant("offs_b <= tl", "offs_b < tl", "the block of the sequence before"),
    Mutant(
        "range(0, batch + 1, 128)", "range(0, 128, 128)", "128 sequences and no more"
    ),
    Mutant("    u = tl.maximum(u, 0)\n", "", "an end before the first"),
    Mutant(
        "tl.maximum(tl.load(cu_seqlens_q_ptr + u), 0)",
        "tl.load(cu_seqlens_q_ptr + u)",
        "queries before the first",
    ),
    Mutant(
        "tl.maximum(tl.load(cu_seqlens_k_ptr + u), 0)",
        "tl.load(cu_seqlens_k_ptr + u)",
        "keys before the first",
    ),
    Mutant(
        "tl.minimum(tl.maximum(tl.load(cu_seqlens_q_ptr + end), 0), total_q)",
        "tl.maximum(tl.load(cu_seqlens_q_ptr + end), 0)",
        "queries beyond the tensors",
    ),
    Mutant(
        "tl.minimum(tl.maximum(tl.load(cu_seqlens_k_ptr + end), 0), total_k)",
        "tl.maximum(tl.load(cu_seqlens_k_ptr + end), 0)",
        "keys beyond the tensors",
    ),
    Mutant("tl.minimum(u + 1, batch)", "u + 1", "an end behind the last"),
    Mutant(
        "tl.where(u < batch, last_q, total_q)",
        "last_q",
        "nothing written behind the last sequence",
    ),
    Mutant(
        "tl.maximum(tl.program_id(0) - first_q // BLOCK_M - u, 0)",
        "(tl.program_id(0) - first_q // BLOCK_M - u)",
        "rows before the first",
    ),
    Mutant("first_q // BLOCK_M - u", "first_q // BLOCK_M", "a block too late"),
    Mutant("kv_head = head // group", "kv_head = head", "no shared heads"),
    Mutant("first_k.to(tl.int64) * stride_kn", "0", "K of the first sequence"),
    Mutant("first_k.to(tl.int64) * stride_vn", "0", "V of the first sequence"),
    Mutant(
        "first_k.to(tl.int64) * stride_kn",
        "first_q.to(tl.int64) * stride_kn",
        "the ends of the queries for those of the keys",
    ),
    Mutant("first_q.to(tl.int64) * stride_qm", "first_q * stride_qm", "q, 32 bits"),
    Mutant("first_k.to(tl.int64) * stride_kn", "first_k * stride_kn", "K, 32 bits"),
    Mutant("first_k.to(tl.int64) * stride_vn", "first_k * stride_vn", "V, 32 bits"),
    Mutant("tl.program_id(1).to(tl.int64)", "tl.program_id(1)", "heads, 32 bits"),
    Mutant("first_q.to(tl.int64) * stride_om", "0", "o of the first sequence"),
    Mutant("head * total_q + first_q", "head * total_q", "lse of the first sequence"),
    Mutant("head * total_q + first_q", "head * seq_q + first_q", "lse of others"),
    Mutant(
        "seen = offs_n[None, :] < seq_k",
        "seen = offs_n[None, :] < seq_k + 1",
        "keys of the next sequence have a weight",
    ),
    Mutant(
        "mask_n = (offs_n[:, None] < seq_k)",
        "mask_n = (offs_n[:, None] < seq_k + BLOCK_N)",
        "a NaN of the next sequence",
    ),
    Mutant(
        "tl.store(o_ptrs, o, mask=mask_m)",
        "tl.store(o_ptrs, o, mask=(offs_m < total_q)[:, None] & (offs_d < HEAD_DIM))",
        "o of the next sequence overwritten",
    ),
    Mutant(
        "scale, offs_m, offs_d, seq_q, seq_k, full, last,",
        "scale, offs_m, offs_d, total_q, total_k, full, last,",
        "masked by the lengths of all",
    ),
    Mutant(
        "total_q // block_m + batch + 1",
        "total_q // block_m + batch",
        "a block too few",
    ),
    Mutant(
        "total_q // block_m + batch + 1",
        "triton.cdiv(total_q, block_m)",
        "blocks of one sequence",
    ),
    ANOTHER_DEVICE,
    Mutant("of {x.ndim} dim", "of 3 dim", "more dimensions"),
    Mutant(
        'got = f"{x.dtype} of',
        'got = f"{q.dtype} of',
        "k or v of another dtype",
        may_not_compile=True,
    ),
    Mutant("dimensions on {x.d", "dimensions on {q.d", "k or v on another device"),
    Mutant("1 <= head_dim <= 256", "1 <= head_dim <= 512", "a large head_dim"),
    Mutant("1 <= head_dim <= 256", "head_dim <= 256", "a head_dim of 0"),
    Mutant("if v.shape != k.shape:", "if False:", "a v of another shape"),
    Mutant("torch.empty_like(q)", "q.new_empty(q.shape)", "o is always contiguous"),
    Mutant("if heads > 65535 or", "if", "a grid too high for the GPU"),
    Mutant("(k.shape[1] == 0 or heads % k.shape[1])", "False", "any heads of k"),
    Mutant(" or k.shape[2] != head_dim:", ":", "another head_dim of k"),
    Mutant("if got != right or not", "if not", "any ends"),
    Mutant(" or not x.is_contiguous()", "", "every other of the ends"),
    Mutant("{max(1, cu_seqlens_q.numel())}", "{x.numel()}", "fewer ends of keys"),
    Mutant("max(1, cu_seqlens_q.numel())", "cu_seqlens_q.numel()", "no ends at all"),
]
