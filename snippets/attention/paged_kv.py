"""Decoding with a paged cache: a table says in which pages a sequence's keys are."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, block_table_ptr, seq_lens_ptr, o_ptr, lse_ptr, scale,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kp, stride_kn,
    stride_kh, stride_kd, stride_vp, stride_vn, stride_vh, stride_vd, blocks, batches,
    kv_heads, seq_q, pages, max_pages, seq_k,
    PAGE_SIZE: tl.constexpr, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    INPUT_PRECISION: tl.constexpr, CAUSAL: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    # Which batch and head of keys: int64, because their offsets may pass 2^31.
    batch = (tl.program_id(0) // blocks // kv_heads).to(tl.int64)
    kv_head = (tl.program_id(0) // blocks % kv_heads).to(tl.int64)
    split, splits = tl.program_id(1), tl.num_programs(1)
    q_ptr += batch * stride_qb + kv_head * GROUP * stride_qh
    k_ptr += kv_head * stride_kh
    v_ptr += kv_head * stride_vh
    block_table_ptr += batch * max_pages
    # The queries of all heads that share these keys are the rows of one tile.
    rows = tl.program_id(0) % blocks * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_m, offs_h = (rows // GROUP).to(tl.int64), (rows % GROUP).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    if OVERLAP:
        # The next launch may take its places now. It waits for all of this one.
        tl.extra.cuda.gdc_launch_dependents()
        # Nothing of the launches before may be read above, and nothing written.
        tl.extra.cuda.gdc_wait()
    mask_m = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)
    q_ptrs = q_ptr + offs_h[:, None] * stride_qh + offs_m[:, None] * stride_qm
    q = tl.load(q_ptrs + offs_d[None, :] * stride_qd, mask=mask_m, other=0.0)
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    FEW: tl.constexpr = BLOCK_M == 16  # registers are free, and waiting costs
    l_i = tl.zeros((BLOCK_M, BLOCK_N if FEW else 1), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    # --8<-- [start:loop]
    keys = tl.minimum(tl.maximum(tl.load(seq_lens_ptr + batch), 0), seq_k)
    ends = keys - (tl.maximum(seq_q - 1 - rows // GROUP, 0) if CAUSAL else 0 * rows)
    last = tl.max(ends) if CAUSAL else keys
    # The tiles are dealt out in turn: the programs of a head read side by side.
    for start_n in range(split * BLOCK_N, last, splits * BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        mask_n = (offs_n[:, None] < last) & (offs_d[None, :] < HEAD_DIM)
        # Unsigned, so that division is a shift, and a page of -1 is one too many.
        # --8<-- [line:page]
        pages_ptr = block_table_ptr + offs_n.to(tl.uint32) // PAGE_SIZE
        page = tl.load(pages_ptr, mask=offs_n < last, other=0).to(tl.uint32)
        page = tl.minimum(page, pages - 1).to(tl.int64)
        slot = (offs_n.to(tl.uint32) % PAGE_SIZE).to(tl.int64)
        k_rows = page * stride_kp + slot * stride_kn
        v_rows = page * stride_vp + slot * stride_vn
        k_ptrs = k_ptr + k_rows[:, None] + offs_d[None, :] * stride_kd
        v_ptrs = v_ptr + v_rows[:, None] + offs_d[None, :] * stride_vd
        k = tl.load(k_ptrs, mask=mask_n, other=0.0)  # [BLOCK_N, BLOCK_D]
        v = tl.load(v_ptrs, mask=mask_n, other=0.0)  # [BLOCK_N, BLOCK_D]
        # Always q. But so written, k and v are asked for before q has arrived.
        q_now = tl.where(start_n < last, q, 0.0) if FEW else q
        s = tl.dot(q_now, k.T, input_precision=INPUT_PRECISION) * scale
        s = tl.where(offs_n[None, :] < ends[:, None], s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp(s - shift[:, None])
        alpha = tl.exp(m_i - shift)
        l_i = l_i * alpha[:, None] + (p if FEW else tl.sum(p, axis=1, keep_dims=True))
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision=INPUT_PRECISION)
        m_i = m_new
    # --8<-- [end:loop]
    l_i = tl.sum(l_i, axis=1)
    # A row that saw nothing has l_i = 0 and acc = 0: its output is 0.
    o = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    head = (split * batches + batch) * kv_heads * GROUP + kv_head * GROUP + offs_h
    row = head * seq_q + offs_m
    tl.store(o_ptr + row[:, None] * HEAD_DIM + offs_d[None, :], o, mask=mask_m)
    tl.store(lse_ptr + row, m_i + tl.log(l_i), mask=offs_m < seq_q)


# --8<-- [end:kernel]
# --8<-- [start:launch]
@triton.jit
def merge_kernel(
    o_parts_ptr, lse_parts_ptr, o_ptr, lse_ptr, rows, splits, HEAD_DIM: tl.constexpr,
    BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    offs_s = tl.arange(0, BLOCK_S).to(tl.int64)
    offs_d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    mask_s, mask_d = offs_s < splits, offs_d < HEAD_DIM
    row_s = offs_s * rows + row
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    lse_s = tl.load(lse_parts_ptr + row_s, mask_s, other=float("-inf"))
    o_ptrs = o_parts_ptr + row_s[:, None] * HEAD_DIM + offs_d[None, :]
    o_s = tl.load(o_ptrs, mask=mask_s[:, None] & mask_d[None, :], other=0.0)
    # A part's output counts as much as the sum of its exponentials.
    m_i = tl.max(lse_s, axis=0)
    w = tl.exp(lse_s - tl.where(m_i == float("-inf"), 0.0, m_i))
    l_i = tl.sum(w, axis=0)
    o = tl.sum(w[:, None] * o_s, axis=0) / tl.where(l_i == 0.0, 1.0, l_i)
    tl.store(o_ptr + row * HEAD_DIM + offs_d, o, mask=mask_d)
    tl.store(lse_ptr + row, m_i + tl.log(l_i), mask=tl.program_id(1) == 0)


# --8<-- [start:signature]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block_table: torch.Tensor,
    seq_lens: torch.Tensor, *, causal: bool = False, input_precision: str = "ieee",
    scale: float | None = None, splits: int | None = None, block_n: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v and the logsumexp of its scores, for each head.

    Args:
        q: [batch, heads, seq_q, head_dim], float16/32 or bfloat16, head_dim up to 256.
        k, v: [pages, page_size, kv_heads, head_dim], of q's dtype, any strides.
            kv_heads divides heads: query head h reads head h // (heads // kv_heads).
        block_table: [batch, max_pages], int32: key j is in slot j % page_size of page
            block_table[batch, j // page_size]. Wrong ones lead to no other memory.
        seq_lens: [batch], int32: how many keys each sequence has.
        causal: query i sees key j only if j <= i + keys - seq_q.
        input_precision: of float32 products: "ieee", or "tf32" (fewer digits, faster).
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.
        splits, block_n: up to 256 parts, of tiles of 16 to 256 keys; None: fit the GPU.

    Returns:
        o: as q, contiguous. lse: [batch, heads, seq_q], float32, natural logarithm.
        A row that sees no key, or only scores of -inf, has o = 0 and lse = -inf.
    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Dao et al., "Flash-Decoding for long-context inference", 2023.
    """
    # --8<-- [end:signature]
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 4 or x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            right = "of 4 dimensions, float16, bfloat16 or float32"
            raise ValueError(f"{name} is {x.dtype} {[*x.shape]}; it must be {right}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient; detach it or use no_grad")
    (batch, heads, seq_q, head_dim), (pages, page_size, kv_heads, _) = q.shape, k.shape
    if not 1 <= head_dim <= 256:
        raise ValueError(f"q has head_dim {head_dim}; it must be from 1 to 256")
    if heads and (kv_heads == 0 or heads % kv_heads):
        raise ValueError(f"k has {kv_heads} heads; it must divide q's {heads}")
    cache = q.dtype, pages, page_size, kv_heads, head_dim
    for name, x, dtype, *shape in (
        ("k", k, *cache), ("v", v, *cache), ("seq_lens", seq_lens, torch.int32, batch),
        ("block_table", block_table, torch.int32, batch, *block_table.shape[-1:]),
    ):  # fmt: skip
        right = f"{dtype} {shape} on {q.device}"
        if (got := f"{x.dtype} {[*x.shape]} on {x.device}") != right:
            raise ValueError(f"{name} is {got}; it must be {right}")
    if splits is not None and not 1 <= splits <= 256:
        raise ValueError(f"splits is {splits}; it must be from 1 to 256")
    o, lse = q.new_empty(q.shape), q.new_empty(q.shape[:3], dtype=torch.float32)
    if o.numel() == 0 or k.numel() == 0:
        return o.zero_(), lse.fill_(float("-inf"))
    max_pages = block_table.shape[1]
    seq_k = min(max_pages * page_size, 2**31 - 2**16)  # of a wide table, what fits
    group, block_d = heads // kv_heads, max(16, triton.next_power_of_2(head_dim))
    most = 16 if q.dtype == torch.float32 else 64  # rows of a tile
    block_m = max(16, min(most, triton.next_power_of_2(group * seq_q)))
    blocks = triton.cdiv(group * seq_q, block_m)
    programs = blocks * batch * kv_heads  # of each part
    if splits is None or block_n is None:
        gpu = torch.cuda.get_device_properties(q.device)
        # Room in shared memory for q and three stages of k and v.
        room = gpu.shared_memory_per_block_optin // (7 * block_d * q.element_size())
        block_n = block_n or min(256, 1 << max(4, room.bit_length() - 1))
        tiles, sms = triton.cdiv(seq_k, block_n), gpu.multi_processor_count
        # What ends first, of one wave to sixteen; a start takes as long as a tile.
        splits = splits or min(
            (max(1, min(tiles, 256, wave * sms // programs)) for wave in range(1, 17)),
            key=lambda n: -(-programs * n // sms) * (-(-tiles // n) + 1),  # rounded up
        )
    parts = [lse.new_empty(splits, *x.shape) if splits > 1 else x for x in (o, lse)]
    overlap = q.is_cuda and torch.cuda.get_device_capability(q.device) >= (9, 0)
    with torch.cuda.device_of(q):
        attention_kernel[(programs, splits)](
            q, k, v, block_table.contiguous(), seq_lens.contiguous(), *parts,
            head_dim**-0.5 if scale is None else scale, *q.stride(), *k.stride(),
            *v.stride(), blocks, batch, kv_heads, seq_q, pages, max_pages, seq_k,
            page_size, group, head_dim, block_m, block_n, block_d, input_precision,
            CAUSAL=causal and seq_q > 1, OVERLAP=overlap, launch_pdl=overlap,
            num_warps=4, num_stages=5,  # half wait for the table, half for the cache
        )  # fmt: skip
        if splits > 1:
            merge_kernel[(lse.numel(), triton.cdiv(head_dim, 32))](
                *parts, o, lse, lse.numel(), splits, HEAD_DIM=head_dim,
                BLOCK_S=triton.next_power_of_2(splits), BLOCK_D=32, OVERLAP=overlap,
                num_warps=1 if splits <= 128 else 2, launch_pdl=overlap,
            )  # fmt: skip
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # --8<-- [start:call]
    q = torch.randn(2, 8, 1, 80, device=device).half()
    # 60 pages of 16 keys, handed out in any order to sequences of 600 and 345 keys.
    k, v = (torch.randn(60, 16, 2, 80, device=device).half() for _ in range(2))
    pages = torch.randperm(60, device=device).split([38, 22])
    block_table = torch.nn.utils.rnn.pad_sequence(pages, True, -1).int()
    seq_lens = torch.tensor([600, 345], dtype=torch.int32, device=device)
    o, lse = attention(q, k, v, block_table, seq_lens, splits=3, block_n=64)
    # --8<-- [end:call]
    seen = torch.arange(608, device=device) < seq_lens[:, None, None, None]
    k, v = (x[block_table].flatten(1, 2).transpose(1, 2).double() for x in (k, v))
    k, v = (x.repeat_interleave(4, dim=1) for x in (k, v))
    expected = torch.nn.functional.scaled_dot_product_attention(q.double(), k, v, seen)
    print(f"{device}: largest error {(o - expected).abs().max():.1e}")
# --8<-- [end:demo]
