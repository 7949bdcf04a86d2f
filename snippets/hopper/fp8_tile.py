"""A tile of attention on float8 for Hopper, in Gluon: keys in the registers' order."""

import math

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from snippets.attention.flash2_fp8 import check, quantise
from snippets.hopper.gluon_flash import finish as store
from snippets.hopper.gluon_specialised import barriers

P_BITS = gl.constexpr(8)  # weights times 2^8: the largest, 256, is below 448


# --8<-- [start:kernel]
# --8<-- [start:factor]
@gluon.constexpr_function
def rows_of_warps(cols):
    """Which thread holds what of a result of 64 rows, if its factors have 8 bits."""
    return gl.NVMMADistributedLayout([3, 0], [4, 1], [16, cols, 32])


@gluon.jit
def factor(p, SUMS: gl.constexpr):
    """Weights as the left factor of a product: each stays with its thread."""
    p = p.to(gl.float8e4nv).reshape([64, 2, 32, 2]).permute((0, 2, 1, 3))
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, k_width=4)
    return gl.convert_layout(p.reshape([64, 128]), WEIGHTS, assert_trivial=True)


# --8<-- [end:factor]
# --8<-- [start:softmax]
@gluon.jit
def mask(s, start_n, ends):
    """-inf for keys from `ends` on; columns have the order of K's rows."""
    col = gl.arange(0, 128, gl.SliceLayout(0, s.type.layout))
    offs_n = start_n + col % 64 // 2 * 4 + col // 64 * 2 + col % 2
    return gl.where(offs_n[None, :] < ends, s, float("-inf"))


@gluon.jit
def softmax(s, m_i, l_i, scale_log2):
    """The weights of a tile of scores, and by how much earlier sums shrink."""
    m_new = gl.maximum(m_i, gl.max(s, axis=1) * scale_log2)
    # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
    shift = gl.where(m_new == float("-inf"), 0.0, m_new)
    p = gl.exp2(s * scale_log2 - (shift[:, None] - P_BITS))
    alpha = gl.exp2(m_i - shift)
    return p, m_new, l_i * alpha + gl.sum(p, axis=1), alpha


# --8<-- [end:softmax]
# --8<-- [start:add]
@gluon.jit
def add(acc, alpha, p, v):
    """acc * alpha + p v, a part of acc after the other."""
    COLS: gl.constexpr = acc[0].shape[1]
    SUMS: gl.constexpr = acc[0].type.layout
    p = factor(p, SUMS)
    alpha = gl.convert_layout(alpha, gl.SliceLayout(1, SUMS))[:, None]
    no_sums = gl.zeros([64, COLS], gl.float32, SUMS)
    done = ()
    for c in gl.static_range(v.shape[0] // COLS):
        part = v.slice(c * COLS, COLS, dim=0).permute((1, 0))
        pv = hopper.warpgroup_mma(p, part, no_sums, use_acc=False, is_async=True)
        waited = (pv, alpha)
        waited += done  # what is handed through the wait is computed before it
        waited = hopper.warpgroup_mma_wait(0, deps=waited)
        done = waited[2:]
        done += (acc[c] * alpha + waited[0],)
    return done


# --8<-- [end:add]
# --8<-- [start:ends]
@gluon.jit
def begin(BLOCK_D: gl.constexpr):
    """m_i, l_i and acc before any tile; parts of acc have at most 128 columns."""
    COLS: gl.constexpr = 128 if BLOCK_D > 128 else BLOCK_D
    ROWS: gl.constexpr = gl.SliceLayout(1, rows_of_warps(128))
    m_i = gl.full([64], float("-inf"), gl.float32, ROWS)
    acc = ()
    for _ in gl.static_range(BLOCK_D // COLS):
        acc += (gl.zeros([64, COLS], gl.float32, rows_of_warps(COLS)),)
    return m_i, gl.zeros_like(m_i), acc


@gluon.jit
def scales_of(scales, scale_log2, pair, kv_pair):
    """What to multiply a head's scores by, and its output."""
    q_scale, k_scale, v_scale = scales
    scale = gl.load(q_scale + pair) * scale_log2 * gl.load(k_scale + kv_pair)
    # Not 0, because 0 * -inf is NaN.
    return gl.where(scale < 1.2e-38, 1.2e-38, scale), gl.load(v_scale + kv_pair)


@gluon.jit
def finish(sums, v_scale, o_tile, o_desc, lse_ptr, batch, head, start_m):
    """Divide and store, by gluon_flash.py, where it is left to divide by 1."""
    m_i, l_i, acc = sums
    o = acc[0]
    if o_tile.shape[3] > 128:
        o = gl.join(o, acc[1]).permute((0, 2, 1)).reshape([64, 256])
    # A row that saw nothing has l_i = 0 and acc = 0: its output is 0.
    l_safe = gl.where(l_i == 0.0, 1.0, l_i)
    o = o / gl.convert_layout(l_safe, gl.SliceLayout(1, o.type.layout))[:, None]
    m_i += gl.log2(l_i) - P_BITS
    one, o = gl.full_like(l_i, 1.0)[:, None], o * v_scale
    store(m_i, one, o, o_tile, o_desc, lse_ptr, batch, head, start_m)


# --8<-- [end:ends]
# --8<-- [start:tile]
@gluon.jit
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, q_scale, k_scale, v_scale, scale_log2
):
    BLOCK_D: gl.constexpr = q_desc.block_type.shape[3]
    heads, kv_heads, seq_k = q_desc.shape[1], v_desc.shape[1], v_desc.shape[3]
    pair, start_m = gl.program_id(0), gl.program_id(1) * 64
    batch, head, kv_pair = pair // heads, pair % heads, pair // (heads // kv_heads)
    q = gl.allocate_shared_memory(q_desc.dtype, q_desc.block_type.shape, q_desc.layout)
    k = gl.allocate_shared_memory(k_desc.dtype, k_desc.block_type.shape, k_desc.layout)
    v = gl.allocate_shared_memory(v_desc.dtype, v_desc.block_type.shape, v_desc.layout)
    o = gl.allocate_shared_memory(o_desc.dtype, o_desc.block_type.shape, o_desc.layout)
    bar = barriers(1, 1).index(0)
    hopper.mbarrier.expect(bar, (64 + 2 * 128) * BLOCK_D)  # bytes of Q, K and V
    hopper.tma.async_copy_global_to_shared(q_desc, [batch, head, start_m, 0], bar, q)
    hopper.tma.async_copy_global_to_shared(k_desc, [kv_pair, 0, 0, 0, 0], bar, k)
    columns = [batch, kv_pair % kv_heads, 0, 0]
    hopper.tma.async_copy_global_to_shared(v_desc, columns, bar, v)
    scale, o_scale = scales_of((q_scale, k_scale, v_scale), scale_log2, pair, kv_pair)
    m_i, l_i, acc = begin(BLOCK_D)
    no_scores = gl.zeros([64, 128], gl.float32, rows_of_warps(128))
    hopper.mbarrier.wait(bar, 0)
    # --8<-- [line:flatten]
    q, k = q.reshape([64, BLOCK_D]), k.reshape([128, BLOCK_D])
    s = hopper.warpgroup_mma(q, k.permute((1, 0)), no_scores, use_acc=False)
    p, m_i, l_i, alpha = softmax(mask(s, 0, seq_k), m_i, l_i, scale)
    acc = add(acc, alpha, p, v.reshape([BLOCK_D, 128]))
    finish((m_i, l_i, acc), o_scale, o, o_desc, lse_ptr, batch, head, start_m)


# --8<-- [end:tile]
# --8<-- [end:kernel]
# --8<-- [start:prepare]
def prepare(q, k, v, scales, scale):
    """o, lse and, unless they are empty, what a kernel takes beside its options."""
    check(q, k, v, *scales)
    head_dim, seq_k = q.shape[3], k.shape[2]
    scale = head_dim**-0.5 if scale is None else scale
    if isinstance(scale, torch.Tensor) or not scale > 0:
        raise ValueError(f"scale is {scale!r}; it must be a positive number")
    o = torch.empty_like(q, dtype=torch.bfloat16)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    if o.numel() == 0 or seq_k == 0:  # a descriptor cannot be of an empty tensor
        return o.zero_(), lse.fill_(-math.inf), ()
    # --8<-- [start:fours]
    if seq_k % 4:
        more = (0, 0, 0, -seq_k % 4)
        k = torch.nn.functional.pad(k.view(torch.uint8), more).view(k.dtype)
    k = k.flatten(0, 1).unflatten(1, (-1, 2, 2)).transpose(1, 2)  # by halves of fours
    d = max(32, triton.next_power_of_2(head_dim))
    blocks = (1, 1, 64, d), (1, 2, 32, 2, d), (1, 1, d, 128), (1, 1, 64, d)
    # --8<-- [end:fours]
    descs = []
    for x, block in zip((q, k, v, o), blocks, strict=True):
        dtype = gl.bfloat16 if x is o else gl.float8e4nv
        layout = gl.NVMMASharedLayout.get_default_for(block, dtype)
        descs.append(TensorDescriptor.from_tensor(x, list(block), layout))
    scales = [x.contiguous() for x in scales]
    return o, lse, (*descs, lse, *scales, scale * math.log2(math.e))


# --8<-- [end:prepare]
# --8<-- [start:launch]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_scale: torch.Tensor,
    k_scale: torch.Tensor, v_scale: torch.Tensor, *, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Attention of q * q_scale, k * k_scale and v * v_scale, for each head: one tile.

    Args:
        q: [batch, heads, seq_q, head_dim], float8_e4m3fn, on a Hopper GPU.
        k: [batch, kv_heads, seq_k, head_dim], float8_e4m3fn; seq_k is at most 128.
        v: [batch, kv_heads, head_dim, seq_k]: transposed, float8_e4m3fn.
        q_scale, k_scale, v_scale: [batch, heads] of each, float32, positive.
        scale: positive; head_dim ** -0.5 if None. Scores times it stay below 2^23.

    Returns o: bfloat16, as q, in its layout; lse: [batch, heads, seq_q], float32.
    Raises ValueError: an argument is none of the above or not as gluon_fp8.py wants it.
    Source: Shah et al., "FlashAttention-3", 2024, section 3.3.
    """
    o, lse, arguments = prepare(q, k, v, (q_scale, k_scale, v_scale), scale)
    if k.shape[2] > 128:
        raise ValueError(f"k has {k.shape[2]} keys; it must have 128 at most")
    if arguments:
        programs = q.shape[0] * q.shape[1], triton.cdiv(q.shape[2], 64)
        with torch.cuda.device_of(q):
            attention_kernel[programs](*arguments, num_warps=4)
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    if torch.cuda.is_available():
        q, k, v = (torch.randn(2, 4, 112, 80, device="cuda") for _ in range(3))
        (q8, q_scale), (k8, k_scale), (v8, v_scale) = map(quantise, (q, k, v))
        o, lse = attention(q8, k8, v8.mT.contiguous(), q_scale, k_scale, v_scale)
        sdpa = torch.nn.functional.scaled_dot_product_attention
        error = (o - sdpa(q.double(), k.double(), v.double())).abs().max()
        print(f"cuda: largest error {error:.1e}, that of rounded inputs included")
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
