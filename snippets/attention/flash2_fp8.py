"""FlashAttention-2 on float8: scaled inputs of 8 bits, V transposed, p in 8 bits."""

import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LN_2 = tl.constexpr(math.log(2))
P_BITS = tl.constexpr(8)  # weights times 2^8: the largest, 256, is below 448


# --8<-- [start:quantise]
def quantise(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x [batch, heads, rows, cols] as float8_e4m3fn, and a float32 factor per head."""
    # Not 0, and not so small that it has lost digits.
    scale = (x.float().abs().amax(dim=(2, 3)) / 448).clamp(min=2**-126)
    return (x.float() / scale[:, :, None, None]).to(torch.float8_e4m3fn), scale


# --8<-- [end:quantise]
# --8<-- [start:configs]
def set_blocks(named_args):
    """Before each launch: the shape of the tiles that the descriptors fetch."""
    for name, sides in (("q", "MD"), ("k", "ND"), ("v", "DN"), ("o", "MD")):
        block = [1, 1, *(named_args[f"BLOCK_{side}"] for side in sides)]
        named_args[f"{name}_desc"].block_shape = block


CONFIGS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n}, warps, 3, pre_hook=set_blocks)
    for m, n, warps in [(32, 32, 4), (64, 64, 4), (64, 128, 4), (128, 128, 8)]
]
TILE = {"BLOCK_M": 64, "BLOCK_N": 128, "num_warps": 4, "num_stages": 3}  # untuned


# --8<-- [end:configs]
# --8<-- [start:kernel]
# --8<-- [start:loop]
@triton.jit
def attend(
    m_i, l_i, acc, q, k_desc, v_desc, batch, kv_head, scale_log2, offs_m,
    seq_q, seq_k, first, last, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    CAUSAL: tl.constexpr, ON_BAND: tl.constexpr,
):  # fmt: skip
    for start_n in range(first, last, BLOCK_N):
        k = k_desc.load([batch, kv_head, start_n, 0]).reshape(BLOCK_N, BLOCK_D)
        # --8<-- [line:load_v]
        v = v_desc.load([batch, kv_head, 0, start_n]).reshape(BLOCK_D, BLOCK_N)
        s = tl.dot(q, k.T)
        if ON_BAND:
            offs_n = start_n + tl.arange(0, BLOCK_N)
            seen = offs_n[None, :] < seq_k
            if CAUSAL:
                seen &= offs_n[None, :] <= offs_m[:, None] + seq_k - seq_q
            s = tl.where(seen, s, float("-inf"))  # [BLOCK_M, BLOCK_N]
        m_new = tl.maximum(m_i, tl.max(s, axis=1) * scale_log2)
        # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        # --8<-- [line:weights]
        p = tl.exp2(s * scale_log2 - (shift[:, None] - P_BITS))
        alpha = tl.exp2(m_i - shift)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        # --8<-- [line:output]
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v.T)  # a sum of its own
        m_i = m_new
    return m_i, l_i, acc


# --8<-- [end:loop]
@triton.autotune(CONFIGS, key=["BLOCK_D", "CAUSAL", "length"])
@triton.jit
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, q_scale_ptr, k_scale_ptr, v_scale_ptr,
    scale_log2, heads, group, seq_q: tl.int32, seq_k: tl.int32, length,
    BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    # --8<-- [start:offsets]
    blocks = tl.cdiv(seq_q, BLOCK_M)
    batch = tl.program_id(0) // blocks // heads
    head = tl.program_id(0) // blocks % heads
    kv_head = head // group
    # --8<-- [line:scales]
    scale_log2 *= tl.load(q_scale_ptr + batch * heads + head)
    scale_log2 *= tl.load(k_scale_ptr + batch * (heads // group) + kv_head)
    # --8<-- [line:not_zero]
    scale_log2 = tl.where(scale_log2 < 1.2e-38, 1.2e-38, scale_log2)  # 0 * -inf is NaN
    v_scale = tl.load(v_scale_ptr + batch * (heads // group) + kv_head)
    block = tl.program_id(0) % blocks
    start_m = (blocks - 1 - block if CAUSAL else block) * BLOCK_M
    offs_m = start_m + tl.arange(0, BLOCK_M)
    q = q_desc.load([batch, head, start_m, 0]).reshape(BLOCK_M, BLOCK_D)
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    # --8<-- [end:offsets]
    full, last = seq_k, seq_k
    if CAUSAL:
        full = tl.minimum(tl.maximum(start_m + 1 + seq_k - seq_q, 0), seq_k)
        last = tl.minimum(tl.maximum(start_m + BLOCK_M + seq_k - seq_q, 0), seq_k)
    full = full // BLOCK_N * BLOCK_N
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, k_desc, v_desc, batch, kv_head, scale_log2, offs_m, seq_q,
        seq_k, 0, full, BLOCK_N, BLOCK_D, CAUSAL, ON_BAND=False,
    )  # fmt: skip
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, k_desc, v_desc, batch, kv_head, scale_log2, offs_m, seq_q,
        seq_k, full, last, BLOCK_N, BLOCK_D, CAUSAL, ON_BAND=True,
    )  # fmt: skip
    # --8<-- [start:finish]
    # A row that saw nothing has l_i = 0 and acc = 0: its output is 0.
    # --8<-- [line:divide]
    o = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None] * v_scale
    # --8<-- [line:lse]
    lse = (m_i + tl.log2(l_i) - P_BITS) * LN_2
    o = o.to(o_desc.dtype).reshape(1, 1, BLOCK_M, BLOCK_D)
    o_desc.store([batch, head, start_m, 0], o)
    row = (batch * heads + head).to(tl.int64) * seq_q
    tl.store(lse_ptr + row + offs_m, lse, mask=offs_m < seq_q)
    # --8<-- [end:finish]


# --8<-- [end:kernel]
# --8<-- [start:checks]
def check(q, k, v, q_scale, k_scale, v_scale) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if (q.ndim, k.ndim) != (4, 4):
        raise ValueError(f"q and k have {q.ndim} and {k.ndim} dimensions; it must be 4")
    (batch, heads, _, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
    if not 16 <= head_dim <= 256 or head_dim % 16:
        raise ValueError(f"q has head_dim {head_dim}; it must be 16, 32, 48 ... or 256")
    if heads and (kv_heads == 0 or heads % kv_heads):
        raise ValueError(f"k has {kv_heads} heads; it must divide q's {heads}")
    for name, x, *shape in (
        ("q", q, *q.shape), ("k", k, batch, kv_heads, seq_k, head_dim),
        ("v", v, batch, kv_heads, head_dim, seq_k), ("q_scale", q_scale, batch, heads),
        ("k_scale", k_scale, batch, kv_heads), ("v_scale", v_scale, batch, kv_heads),
    ):  # fmt: skip
        dtype = torch.float8_e4m3fn if len(shape) == 4 else torch.float32
        got = f"{x.dtype} {list(x.shape)} on {x.device}"
        if got != (right := f"{dtype} {shape} on {q.device}"):
            raise ValueError(f"{name} is {got}; it must be {right}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient; detach it or use no_grad")
        outer = x.data_ptr(), *x.stride()[:3]
        if len(shape) == 4 and (x.stride(3) != 1 or any(n % 16 for n in outer)):
            right = "1 at the end, the others and the address multiples of 16 bytes"
            raise ValueError(f"{name} has strides {x.stride()}; it must have {right}")


# --8<-- [end:checks]
# --8<-- [start:launch]
# --8<-- [start:signature]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_scale: torch.Tensor,
    k_scale: torch.Tensor, v_scale: torch.Tensor, *, causal: bool = False,
    scale: float | None = None, tile: dict[str, int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Attention of q * q_scale, k * k_scale and v * v_scale, for each head.

    Args:
        q: [batch, heads, seq_q, head_dim], float8_e4m3fn, head_dim a multiple of 16 up
            to 256. The last stride is 1; strides and address are multiples of 16 bytes.
        k: [batch, kv_heads, seq_k, head_dim], dtype, device and strides as q.
            kv_heads divides heads: query head h reads head h // (heads // kv_heads).
        v: [batch, kv_heads, head_dim, seq_k]: transposed, and the rest as k.
        q_scale, k_scale, v_scale: [batch, heads] of each, float32, positive.
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        scale: positive; head_dim ** -0.5 if None. Scores times it stay below 2^23.
        tile: such as TILE; if None, all CONFIGS are timed.

    Returns:
        o: bfloat16, as q, in its layout. lse: [batch, heads, seq_q], float32, natural
        logarithm. A row without keys has o = 0 and lse = -inf.

    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Dao, "FlashAttention-2", 2023, algorithm 1; Shah et al., 2024, section 3.3.
    """
    # --8<-- [end:signature]
    check(q, k, v, q_scale, k_scale, v_scale)
    (batch, heads, seq_q, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
    scale = head_dim**-0.5 if scale is None else scale
    if isinstance(scale, torch.Tensor) or not scale > 0:
        raise ValueError(f"scale is {scale!r}; it must be a positive number")
    o = torch.empty_like(q, dtype=torch.bfloat16)
    lse = torch.empty((batch, heads, seq_q), dtype=torch.float32, device=q.device)
    if o.numel() == 0 or seq_k == 0:  # a descriptor cannot be of an empty tensor
        return o.zero_(), lse.fill_(-math.inf)
    tensors = zip("qkvo", (q, k, v, o), strict=True)
    desc = {f"{n}_desc": TensorDescriptor.from_tensor(x, [1] * 4) for n, x in tensors}
    scales = [x.contiguous() for x in (q_scale, k_scale, v_scale)]
    block_d = max(32, triton.next_power_of_2(head_dim))
    if tile:  # else the autotuner does so for each configuration
        set_blocks({**desc, **tile, "BLOCK_D": block_d})
    kernel = attention_kernel.fn if tile else attention_kernel
    with torch.cuda.device_of(q):
        kernel[lambda named: (triton.cdiv(seq_q, named["BLOCK_M"]) * batch * heads,)](
            *desc.values(), lse, *scales, scale * math.log2(math.e),
            heads, heads // kv_heads, seq_q, seq_k,
            length=min(8192, max(512, triton.next_power_of_2(max(seq_q, seq_k)))),
            BLOCK_D=block_d, CAUSAL=causal, **(tile or {}),
        )  # fmt: skip
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # --8<-- [start:call]
    q, k, v = (torch.randn(2, 4, 160, 80, device=device) for _ in range(3))
    (q8, q_scale), (k8, k_scale), (v8, v_scale) = map(quantise, (q, k, v))
    o, lse = attention(q8, k8, v8.mT.contiguous(), q_scale, k_scale, v_scale, tile=TILE)
    # --8<-- [end:call]
    sdpa = torch.nn.functional.scaled_dot_product_attention
    error = (o - sdpa(q.double(), k.double(), v.double())).abs().max()
    print(f"{device}: largest error {error:.1e}, that of rounded inputs included")
# --8<-- [end:demo]
