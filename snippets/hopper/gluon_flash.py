"""FlashAttention-2 in Gluon: layouts, shared memory and barriers by hand."""

import math

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

LN_2 = gl.constexpr(math.log(2))


# --8<-- [start:kernel]
# --8<-- [start:layouts]
@gluon.constexpr_function
def rows_of_warps(cols):
    """Which thread holds what of a result of 64 rows: each of 4 warps has 16 rows."""
    return gl.NVMMADistributedLayout([3, 0], [4, 1], [16, cols, 16])


# --8<-- [end:layouts]
# --8<-- [start:softmax]
@gluon.jit
def mask(s, start_n, end):
    """-inf for keys from the end on."""
    offs_n = start_n + gl.arange(0, s.shape[1], gl.SliceLayout(0, s.type.layout))
    return gl.where(offs_n[None, :] < end, s, float("-inf"))


@gluon.jit
def softmax(s, m_i, l_i, scale_log2):
    """The weights of a tile of scores, and by how much earlier sums shrink."""
    m_new = gl.maximum(m_i, gl.max(s, axis=1) * scale_log2)
    # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
    shift = gl.where(m_new == float("-inf"), 0.0, m_new)
    p = gl.exp2(s * scale_log2 - shift[:, None])
    alpha = gl.exp2(m_i - shift)
    # A thread adds the weights that it holds, and the four of a row meet at the end.
    parts = gl.sum(p.reshape([64, s.shape[1] // 8, 8]), axis=1)
    l_i *= gl.convert_layout(alpha, gl.SliceLayout(1, l_i.type.layout))[:, None]
    return p, m_new, l_i + gl.convert_layout(parts, l_i.type.layout), alpha


# --8<-- [end:softmax]
# --8<-- [start:finish]
@gluon.jit
def finish(m_i, l_i, acc, q_tile, o_desc, lse_ptr, batch, head, start_m):
    """Divide and store. Q is no longer needed: its memory takes the output to TMA."""
    l_i = gl.convert_layout(gl.sum(l_i, axis=1), m_i.type.layout)
    inverse = 1.0 / gl.where(l_i == 0.0, 1.0, l_i)  # no key was seen: acc is 0, too
    o = acc * gl.convert_layout(inverse, gl.SliceLayout(1, acc.type.layout))[:, None]
    q_tile.reshape(acc.shape).store(o.to(o_desc.dtype))
    # What threads have written is shown to the TMA unit.
    fence_async_shared()
    tma.async_copy_shared_to_global(o_desc, [batch, head, start_m, 0], q_tile)
    offs_m = start_m + gl.arange(0, acc.shape[0], l_i.type.layout)
    row = (batch * o_desc.shape[1] + head).to(gl.int64) * o_desc.shape[2]
    lse = (m_i + gl.log2(l_i)) * LN_2
    gl.store(lse_ptr + row + offs_m, lse, mask=offs_m < o_desc.shape[2])
    tma.store_wait(0)


# --8<-- [end:finish]
@gluon.jit
def attention_kernel(q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2):
    # --8<-- [start:where]
    BLOCK_N: gl.constexpr = k_desc.block_type.shape[2]
    BLOCK_D: gl.constexpr = k_desc.block_type.shape[3]
    blocks = gl.cdiv(q_desc.shape[2], 64)
    batch = gl.program_id(0) // blocks // q_desc.shape[1]
    head = gl.program_id(0) // blocks % q_desc.shape[1]
    kv_head = head // (q_desc.shape[1] // k_desc.shape[1])
    start_m = gl.program_id(0) % blocks * 64
    # --8<-- [end:where]
    SCORES: gl.constexpr = rows_of_warps(BLOCK_N)
    SUMS: gl.constexpr = rows_of_warps(BLOCK_D)
    m_i = gl.full([64], float("-inf"), gl.float32, gl.SliceLayout(1, SCORES))
    l_i = gl.zeros([64, 8], gl.float32, rows_of_warps(8))
    acc = gl.zeros([64, BLOCK_D], gl.float32, SUMS)
    no_scores = gl.zeros([64, BLOCK_N], gl.float32, SCORES)
    # --8<-- [start:memory]
    q = gl.allocate_shared_memory(q_desc.dtype, q_desc.block_type.shape, q_desc.layout)
    k = gl.allocate_shared_memory(k_desc.dtype, k_desc.block_type.shape, k_desc.layout)
    v = gl.allocate_shared_memory(v_desc.dtype, v_desc.block_type.shape, v_desc.layout)
    q_rows = q.reshape([64, BLOCK_D])
    k_turned = k.reshape([BLOCK_N, BLOCK_D]).permute((1, 0))
    full = gl.allocate_shared_memory(gl.int64, [3, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(3):
        mbarrier.init(full.index(i), count=1)
    q_full, k_full, v_full = full.index(0), full.index(1), full.index(2)
    # --8<-- [end:memory]
    mbarrier.expect(q_full, q_desc.block_type.nbytes)
    tma.async_copy_global_to_shared(q_desc, [batch, head, start_m, 0], q_full, q)
    mbarrier.wait(q_full, 0)
    # --8<-- [start:loop]
    # The last tile comes first: it alone may reach beyond the keys.
    tiles = gl.cdiv(k_desc.shape[2], BLOCK_N)
    for i in range(tiles):
        start_n = (tiles - 1 - i) * BLOCK_N
        # --8<-- [line:load]
        mbarrier.expect(k_full, k_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(k_desc, [batch, kv_head, start_n, 0], k_full, k)
        mbarrier.expect(v_full, v_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(v_desc, [batch, kv_head, start_n, 0], v_full, v)
        # --8<-- [line:wait]
        mbarrier.wait(k_full, i & 1)
        # --8<-- [line:scores]
        s = warpgroup_mma(q_rows, k_turned, no_scores, use_acc=False)
        if i == 0:
            s = mask(s, start_n, k_desc.shape[2])
        p, m_i, l_i, alpha = softmax(s, m_i, l_i, scale_log2)
        acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, SUMS))[:, None]
        p = gl.convert_layout(p.to(q.dtype), gl.DotOperandLayout(0, SUMS, k_width=2))
        mbarrier.wait(v_full, i & 1)
        # --8<-- [line:output]
        acc = warpgroup_mma(p, v.reshape([BLOCK_N, BLOCK_D]), acc)
    # --8<-- [end:loop]
    finish(m_i, l_i, acc, q, o_desc, lse_ptr, batch, head, start_m)


# --8<-- [end:kernel]
# --8<-- [start:checks]
def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if q.dtype not in (torch.float16, torch.bfloat16):
        raise ValueError(f"q is {q.dtype}; it must be float16 or bfloat16")
    right = f"{q.dtype} of 4 dimensions on {q.device}"
    for name, x in (("q", q), ("k", k), ("v", v)):
        got = f"{x.dtype} of {x.ndim} dimensions on {x.device}"
        if got != right:
            raise ValueError(f"{name} is {got}; it must be {right}")
        if not 1 <= x.shape[3] <= 256 or x.shape[3] % 8:
            right = "8, 16, ... or 256"
            raise ValueError(f"{name} has head_dim {x.shape[3]}; it must be {right}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient; detach it or use no_grad")
        if x.stride(3) != 1 or any(n % 8 for n in x.stride()[:3]) or x.data_ptr() % 16:
            right = "1 at the end, the others and the address multiples of 16 bytes"
            raise ValueError(f"{name} has strides {x.stride()}; it must have {right}")
    batch, heads, _, head_dim = q.shape
    uneven = heads % (k.shape[1] or heads + 1)
    if uneven or k.shape[0] != batch or k.shape[3] != head_dim:
        right = f"[{batch}, a divisor of {heads}, any, {head_dim}]"
        raise ValueError(f"k has shape {list(k.shape)}; it must be {right}")
    if v.shape != k.shape:
        raise ValueError(f"v has shape {list(v.shape)}; it must be k's {list(k.shape)}")


# --8<-- [end:checks]
# --8<-- [start:prepare]
def prepare(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None, block_n: int
) -> tuple[torch.Tensor, torch.Tensor, float, list[TensorDescriptor]]:
    """o, lse, the scale in base 2, and descriptors for the TMA unit; or none."""
    check(q, k, v)
    scale = q.shape[3] ** -0.5 if scale is None else scale
    if isinstance(scale, torch.Tensor) or not scale > 0:
        raise ValueError(f"scale is {scale!r}; it must be a positive number")
    o, lse = torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32)
    if o.numel() == 0 or k.numel() == 0:
        return o.zero_(), lse.fill_(-math.inf), scale, []
    descs, block_n = [], min(block_n, 64 if q.shape[3] > 128 else 128)  # what fits
    for x, rows in ((q, 64), (k, block_n), (v, block_n), (o, 64)):
        block = [1, 1, rows, max(16, triton.next_power_of_2(q.shape[3]))]
        layout = gl.NVMMASharedLayout.get_default_for(block, gl.float16)  # 16 bits
        descs.append(TensorDescriptor.from_tensor(x, block, layout))
    return o, lse, scale * math.log2(math.e), descs


# --8<-- [end:prepare]
# --8<-- [start:launch]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False,
    scale: float | None = None, block_n: int = 64,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v and the logsumexp of its scores, for each head.

    Args:
        q: [batch, heads, seq_q, head_dim <= 256], float16 or bfloat16, on a Hopper GPU.
            The last stride is 1; rows, strides, address are multiples of 16 bytes.
        k, v: [batch, kv_heads, seq_k, head_dim], else as q. kv_heads divides heads:
            query head h reads head h // (heads // kv_heads).
        causal: False; gluon_causal.py takes True.
        scale: positive; head_dim ** -0.5 if None. Scores times it stay below 2^23.
        block_n: keys of a tile: 16, 32, 64 or 128; 64 at most if head_dim > 128.

    Returns o, as q and in its layout, and lse: [batch, heads, seq_q], float32, natural
        logarithm. Rows without keys, or with all scores -inf, have o = 0, lse = -inf.
    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Dao, "FlashAttention-2", 2023, algorithm 1.
    """
    if causal:
        raise ValueError("causal is True; it must be False: see gluon_causal.py")
    o, lse, scale_log2, descs = prepare(q, k, v, scale, block_n)
    if descs:
        programs = triton.cdiv(q.shape[2], 64) * q.shape[0] * q.shape[1]
        with torch.cuda.device_of(q):
            attention_kernel[(programs,)](*descs, lse, scale_log2, num_warps=4)
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    if torch.cuda.is_available():
        q, k, v = (torch.randn(2, 4, 200, 80, device="cuda").half() for _ in range(3))
        o, lse = attention(q, k, v)
        sdpa = torch.nn.functional.scaled_dot_product_attention
        error = (o - sdpa(q.double(), k.double(), v.double())).abs().max()
        print(f"cuda: largest error {error:.1e}")
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
