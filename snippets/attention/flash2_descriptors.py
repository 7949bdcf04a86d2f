"""FlashAttention-2 with tensor descriptors: the TMA unit fetches whole tiles."""

import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LN_2 = tl.constexpr(math.log(2))


# --8<-- [start:configs]
def set_blocks(named_args):
    """Before each launch: the shape of the tiles that the descriptors fetch."""
    for name, rows in (("q", "M"), ("k", "N"), ("v", "N"), ("o", "M")):
        block = [1, 1, named_args[f"BLOCK_{rows}"], named_args["BLOCK_D"]]
        named_args[f"{name}_desc"].block_shape = block


CONFIGS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n}, warps, stages, pre_hook=set_blocks)
    for m, n, warps, stages in [
        (32, 32, 4, 1), (64, 64, 4, 2), (64, 64, 4, 3), (64, 128, 4, 2),
        (128, 32, 8, 3), (128, 64, 4, 2), (128, 64, 8, 2), (128, 64, 8, 3),
    ]
]  # fmt: skip
TILE = {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3}  # untuned


# --8<-- [end:configs]
# --8<-- [start:kernel]
# --8<-- [start:loop]
@triton.jit
def attend(
    m_i, l_i, acc, q, k_desc, v_desc, batch, kv_head, scale_log2, offs_m,
    seq_q, seq_k, first, last, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    INPUT_PRECISION: tl.constexpr, CAUSAL: tl.constexpr, ON_BAND: tl.constexpr,
):  # fmt: skip
    for start_n in range(first, last, BLOCK_N):
        # --8<-- [line:load_kv]
        k = k_desc.load([batch, kv_head, start_n, 0]).reshape(BLOCK_N, BLOCK_D)
        v = v_desc.load([batch, kv_head, start_n, 0]).reshape(BLOCK_N, BLOCK_D)

        s = tl.dot(q, k.T, input_precision=INPUT_PRECISION)
        # --8<-- [line:mask]
        if ON_BAND:
            offs_n = start_n + tl.arange(0, BLOCK_N)
            seen = offs_n[None, :] < seq_k
            if CAUSAL:
                seen &= offs_n[None, :] <= offs_m[:, None] + seq_k - seq_q
            s = tl.where(seen, s, float("-inf"))  # [BLOCK_M, BLOCK_N]

        m_new = tl.maximum(m_i, tl.max(s, axis=1) * scale_log2)
        # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp2(s * scale_log2 - shift[:, None])
        alpha = tl.exp2(m_i - shift)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision=INPUT_PRECISION)
        m_i = m_new
    return m_i, l_i, acc


# --8<-- [end:loop]
@triton.autotune(CONFIGS, key=["BLOCK_D", "CAUSAL", "length"])
@triton.jit
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, scale_log2,
    heads, group, seq_q: tl.int32, seq_k: tl.int32, length,
    BLOCK_D: tl.constexpr, INPUT_PRECISION: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # --8<-- [start:offsets]
    # Which batch and head. Descriptors compute addresses in 64 bits by themselves.
    blocks = tl.cdiv(seq_q, BLOCK_M)
    # --8<-- [line:batch]
    batch = tl.program_id(0) // blocks // heads
    head = tl.program_id(0) // blocks % heads
    kv_head = head // group

    block = tl.program_id(0) % blocks
    # The last block of a causal head works longest: it goes first.
    start_m = (blocks - 1 - block if CAUSAL else block) * BLOCK_M
    offs_m = start_m + tl.arange(0, BLOCK_M)
    # --8<-- [line:load_q]
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
    # Off the band: tiles that every row of the block sees whole, no mask.
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, k_desc, v_desc, batch, kv_head, scale_log2, offs_m, seq_q,
        seq_k, 0, full, BLOCK_N, BLOCK_D, INPUT_PRECISION, CAUSAL, ON_BAND=False,
    )  # fmt: skip
    # On the band: tiles that the diagonal or the end of the keys cuts.
    m_i, l_i, acc = attend(
        m_i, l_i, acc, q, k_desc, v_desc, batch, kv_head, scale_log2, offs_m, seq_q,
        seq_k, full, last, BLOCK_N, BLOCK_D, INPUT_PRECISION, CAUSAL, ON_BAND=True,
    )  # fmt: skip

    # --8<-- [start:finish]
    # A row that saw nothing has l_i = 0 and acc = 0: its output is 0.
    o = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    lse = (m_i + tl.log2(l_i)) * LN_2
    o = o.to(o_desc.dtype).reshape(1, 1, BLOCK_M, BLOCK_D)
    o_desc.store([batch, head, start_m, 0], o)
    row = (batch * heads + head).to(tl.int64) * seq_q
    tl.store(lse_ptr + row + offs_m, lse, mask=offs_m < seq_q)
    # --8<-- [end:finish]


# --8<-- [end:kernel]
# --8<-- [start:checks]
def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if q.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise ValueError(f"q is {q.dtype}; it must be float16, bfloat16 or float32")
    right = f"{q.dtype} of 4 dimensions on {q.device}"
    for name, x in (("q", q), ("k", k), ("v", v)):
        got = f"{x.dtype} of {x.ndim} dimensions on {x.device}"
        if got != right:
            raise ValueError(f"{name} is {got}; it must be {right}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient; detach it or use no_grad")
    batch, heads, _, head_dim = q.shape
    if not 1 <= head_dim <= 256 or head_dim * q.element_size() % 16:
        right = "up to 256, in rows of a multiple of 16 bytes"
        raise ValueError(f"q has head_dim {head_dim}; it must be {right}")
    uneven = heads and (k.shape[1] == 0 or heads % k.shape[1])
    if k.shape[0] != batch or uneven or k.shape[3] != head_dim:
        right = f"[{batch}, a divisor of {heads}, any, {head_dim}]"
        raise ValueError(f"k has shape {list(k.shape)}; it must be {right}")
    if v.shape != k.shape:
        raise ValueError(f"v has shape {list(v.shape)}; it must be k's {list(k.shape)}")
    for name, x in (("q", q), ("k", k), ("v", v)):
        outer = (stride * x.element_size() for stride in x.stride()[:3])
        if x.stride(3) != 1 or any(n % 16 for n in (x.data_ptr(), *outer)):
            right = "1 at the end, the others and the address multiples of 16 bytes"
            raise ValueError(f"{name} has strides {x.stride()}; it must have {right}")


# --8<-- [end:checks]
# --8<-- [start:launch]
# --8<-- [start:signature]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False,
    scale: float | None = None, input_precision: str = "ieee",
    tile: dict[str, int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v and the logsumexp of its scores, for each head.

    Args:
        q: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, head_dim up to
            256. The last stride is 1; rows, strides, address are multiples of 16 bytes.
        k, v: [batch, kv_heads, seq_k, head_dim], dtype, device and strides as q.
            kv_heads divides heads: query head h reads head h // (heads // kv_heads).
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        scale: positive; head_dim ** -0.5 if None. Scores times it stay below 2^23.
        input_precision: of float32 products: "ieee", or "tf32" (fewer digits, faster).
        tile: such as TILE; if None, all CONFIGS are timed.

    Returns:
        o: as q, in its layout. lse: [batch, heads, seq_q], float32, natural logarithm.
        A row that sees no key, or only scores of -inf, has o = 0 and lse = -inf.

    Raises ValueError: an argument is none of the above, or requires a gradient.
    Source: Dao, "FlashAttention-2", 2023, algorithm 1.
    """
    # --8<-- [end:signature]
    check(q, k, v)
    (batch, heads, seq_q, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
    scale = head_dim**-0.5 if scale is None else scale
    if isinstance(scale, torch.Tensor) or not scale > 0:
        raise ValueError(f"scale is {scale!r}; it must be a positive number")
    o = torch.empty_like(q)
    lse = torch.empty((batch, heads, seq_q), dtype=torch.float32, device=q.device)
    if o.numel() == 0 or seq_k == 0:  # a descriptor cannot be of an empty tensor
        return o.zero_(), lse.fill_(-math.inf)
    tensors = zip("qkvo", (q, k, v, o), strict=True)
    desc = {f"{n}_desc": TensorDescriptor.from_tensor(x, [1] * 4) for n, x in tensors}
    block_d = max(16, triton.next_power_of_2(head_dim))
    if q.dtype == torch.float32:  # exact products of large tiles compile for minutes
        tile = tile or CONFIGS[0].all_kwargs()
    if tile:  # else the autotuner does so for each configuration
        set_blocks({**desc, **tile, "BLOCK_D": block_d})
    kernel = attention_kernel.fn if tile else attention_kernel
    with torch.cuda.device_of(q):
        kernel[lambda named: (triton.cdiv(seq_q, named["BLOCK_M"]) * batch * heads,)](
            *desc.values(), lse, scale * math.log2(math.e),
            heads, heads // kv_heads, seq_q, seq_k,
            length=min(8192, max(512, triton.next_power_of_2(max(seq_q, seq_k)))),
            BLOCK_D=block_d, INPUT_PRECISION=input_precision, CAUSAL=causal,
            **(tile or {}),
        )  # fmt: skip
    return o, lse


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # --8<-- [start:call]
    q, k, v = (torch.randn(2, 4, 200, 80, device=device).half() for _ in range(3))
    o, lse = attention(q, k, v, causal=True, tile=TILE)
    # --8<-- [end:call]
    sdpa = torch.nn.functional.scaled_dot_product_attention
    error = (o - sdpa(q.double(), k.double(), v.double(), is_causal=True)).abs().max()
    print(f"{device}: largest error {error:.1e}")
# --8<-- [end:demo]
