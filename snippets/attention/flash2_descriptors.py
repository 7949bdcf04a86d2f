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
    triton.Config(
        {"BLOCK_M": block_m, "BLOCK_N": block_n},
        num_warps=warps,
        num_stages=stages,
        pre_hook=set_blocks,
    )
    for block_m, block_n, warps, stages in [
        (32, 32, 4, 1),
        (64, 32, 4, 2),
        (64, 64, 4, 2),
        (64, 64, 4, 3),
        (64, 128, 4, 2),
        (128, 32, 8, 3),
        (128, 64, 4, 2),
        (128, 64, 8, 2),
        (128, 64, 8, 3),
        (128, 128, 8, 2),
    ]
]


def fitting(configs, named_args, **kwargs):
    """The configurations whose tiles of q, k and v fit into shared memory."""
    device = torch.cuda.current_device()
    gpu = triton.runtime.driver.active.utils.get_device_properties(device)
    itemsize = kwargs["ITEMSIZE"]
    if itemsize == 4:  # exact products of large float32 tiles compile for minutes
        return configs[:1]
    row = kwargs["BLOCK_D"] * itemsize
    return [
        config
        for config in configs
        if row
        * (config.kwargs["BLOCK_M"] + 2 * config.kwargs["BLOCK_N"] * config.num_stages)
        <= gpu["max_shared_mem"]
    ]


# --8<-- [end:configs]


# --8<-- [start:kernel]
@triton.autotune(
    configs=CONFIGS[:1] if triton.knobs.runtime.interpret else CONFIGS,
    key=["BLOCK_D", "CAUSAL", "ITEMSIZE"],
    prune_configs_by={"early_config_prune": fitting},
)
@triton.jit
def attention_kernel(
    q_desc,
    k_desc,
    v_desc,
    o_desc,
    lse_ptr,
    scale_log2,
    heads,
    group,
    seq_q: tl.int32,
    seq_k: tl.int32,
    BLOCK_D: tl.constexpr,
    INPUT_PRECISION: tl.constexpr,
    CAUSAL: tl.constexpr,
    ITEMSIZE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    # --8<-- [start:offsets]
    # Which batch and head. Descriptors compute addresses in 64 bits by themselves.
    blocks = tl.cdiv(seq_q, BLOCK_M)
    # --8<-- [line:batch]
    batch = tl.program_id(0) // blocks // heads
    head = tl.program_id(0) // blocks % heads
    # --8<-- [line:group]
    kv_head = head // group
    # --8<-- [end:offsets]

    # --8<-- [start:setup]
    # --8<-- [line:outer]
    block = tl.program_id(0) % blocks
    # The last block of a causal head works longest: it goes first.
    start_m = (blocks - 1 - block if CAUSAL else block) * BLOCK_M
    offs_m = start_m + tl.arange(0, BLOCK_M)
    # --8<-- [line:load_q]
    q = q_desc.load([batch, head, start_m, 0]).reshape(BLOCK_M, BLOCK_D)
    # --8<-- [line:initialise]
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    # --8<-- [end:setup]

    # --8<-- [start:loop]
    # Stage 0, off the band: tiles that every row of the block sees whole, no mask.
    # Stage 1, on the band: tiles that the diagonal or the end of the keys cuts.
    full, last = seq_k, seq_k
    if CAUSAL:
        # --8<-- [line:full]
        full = tl.minimum(tl.maximum(start_m + 1 + seq_k - seq_q, 0), seq_k)
        # --8<-- [line:last]
        last = tl.minimum(tl.maximum(start_m + BLOCK_M + seq_k - seq_q, 0), seq_k)
    full = full // BLOCK_N * BLOCK_N
    for ON_BAND in tl.static_range(2):
        first, end = (full, last) if ON_BAND else (0, full)
        # --8<-- [line:inner]
        for start_n in range(first, end, BLOCK_N):
            # --8<-- [line:load_kv]
            k = k_desc.load([batch, kv_head, start_n, 0]).reshape(BLOCK_N, BLOCK_D)
            v = v_desc.load([batch, kv_head, start_n, 0]).reshape(BLOCK_N, BLOCK_D)

            # --8<-- [line:scores]
            s = tl.dot(q, k.T, input_precision=INPUT_PRECISION)
            # --8<-- [line:mask]
            if ON_BAND:
                offs_n = start_n + tl.arange(0, BLOCK_N)
                seen = offs_n[None, :] < seq_k
                if CAUSAL:
                    seen &= offs_n[None, :] <= offs_m[:, None] + seq_k - seq_q
                s = tl.where(seen, s, float("-inf"))  # [BLOCK_M, BLOCK_N]

            # --8<-- [line:max]
            m_new = tl.maximum(m_i, tl.max(s, axis=1) * scale_log2)
            # All -inf so far: subtract 0, because (-inf) - (-inf) is NaN.
            shift = tl.where(m_new == float("-inf"), 0.0, m_new)
            # --8<-- [line:weights]
            p = tl.exp2(s * scale_log2 - shift[:, None])
            # --8<-- [line:sum]
            alpha = tl.exp2(m_i - shift)
            l_i = l_i * alpha + tl.sum(p, axis=1)
            # --8<-- [line:output]
            acc = acc * alpha[:, None]
            acc = tl.dot(p.to(v.dtype), v, acc, input_precision=INPUT_PRECISION)
            m_i = m_new
    # --8<-- [end:loop]

    # --8<-- [start:finish]
    # A row that saw nothing has l_i = 0 and acc = 0: its output is 0.
    # --8<-- [line:divide]
    o = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    # --8<-- [line:lse]
    lse = (m_i + tl.log2(l_i)) * LN_2
    # --8<-- [line:store]
    o = o.to(o_desc.dtype).reshape(1, 1, BLOCK_M, BLOCK_D)
    o_desc.store([batch, head, start_m, 0], o)
    row = (batch * heads + head).to(tl.int64) * seq_q
    tl.store(lse_ptr + row + offs_m, lse, mask=offs_m < seq_q)
    # --8<-- [end:finish]


# --8<-- [end:kernel]


# --8<-- [start:checks]
MAX_SEQ = 2**31 - 256  # so that a block beyond the end is counted in 32 bits


def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 4:
            raise ValueError(
                f"{name} has {x.ndim} dimensions; it must have 4: "
                "[batch, heads, seq, head_dim]"
            )
        if x.shape[2] > MAX_SEQ:
            raise ValueError(f"{name} has seq {x.shape[2]}; it must be up to {MAX_SEQ}")
        if x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            raise ValueError(
                f"{name} is {x.dtype}; it must be float16, bfloat16 or float32"
            )
        if x.dtype == torch.bfloat16 and triton.knobs.runtime.interpret:
            raise ValueError(
                f"{name} is bfloat16, whose bit patterns the interpreter multiplies; "
                "it must be float16 or float32, or TRITON_INTERPRET unset"
            )
        if not x.is_cuda and not triton.knobs.runtime.interpret:
            raise ValueError(
                f"{name} is on {x.device}; it must be on a GPU, or set "
                "TRITON_INTERPRET=1"
            )
        if (x.dtype, x.device) != (q.dtype, q.device):
            raise ValueError(
                f"{name} is {x.dtype} on {x.device}; it must be as q: "
                f"{q.dtype} on {q.device}"
            )
    batch, heads, _, head_dim = q.shape
    if not 1 <= head_dim <= 256:
        raise ValueError(f"q has head_dim {head_dim}; it must be from 1 to 256")
    if k.shape[0] != batch:
        raise ValueError(f"k has batch {k.shape[0]}; it must be q's {batch}")
    if heads and (k.shape[1] == 0 or heads % k.shape[1]):
        raise ValueError(f"k has {k.shape[1]} heads; it must divide q's {heads}")
    if k.shape[3] != head_dim:
        raise ValueError(f"k has head_dim {k.shape[3]}; it must be q's {head_dim}")
    if head_dim * q.element_size() % 16:
        raise ValueError(
            f"q has head_dim {head_dim}; a row must be a multiple of 16 bytes"
        )
    for name, x in (("q", q), ("k", k), ("v", v)):
        outer = [stride * x.element_size() for stride in x.stride()[:3]]
        if x.stride(3) != 1 or any(n % 16 for n in (x.data_ptr(), *outer)):
            raise ValueError(
                f"{name} has strides {x.stride()}; the last must be 1, the others and "
                "the address multiples of 16 bytes"
            )
    if v.shape != k.shape:
        raise ValueError(f"v has shape {list(v.shape)}; it must be k's {list(k.shape)}")


# --8<-- [end:checks]


# --8<-- [start:launch]
def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    input_precision: str = "ieee",
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(q k^T * scale) v and the logsumexp of its scores, for each head.

    Args:
        q: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, on a GPU (or
            on the CPU under TRITON_INTERPRET=1, without bfloat16). head_dim: up to 256.
            Last stride 1; the address, the other strides and the row are multiples of
            16 bytes. seq_q, and seq_k below: at most 2^31 - 256.
        k: [batch, kv_heads, seq_k, head_dim], dtype, device and strides as q.
            kv_heads divides heads: query head h reads head h // (heads // kv_heads).
        v: shape of k, dtype, device and strides as q.
        causal: query i sees key j only if j <= i + seq_k - seq_q: the last query sees
            every key, whatever the lengths.
        scale: what the scores are multiplied by, positive; head_dim ** -0.5 if None.
            The scores, so multiplied, must stay below 2^23 in size.
        input_precision: of float32 products: "ieee", or "tf32" (faster, 10 bits of
            fraction). Without effect on the other dtypes.

    Returns:
        o: [batch, heads, seq_q, head_dim], dtype of q, contiguous, without a gradient.
        lse: [batch, heads, seq_q], float32, natural logarithm.
        A row that sees no key, or only scores of -inf, has o = 0 and lse = -inf.

    Raises:
        ValueError: an argument is not one of the above.

    Source: Dao, "FlashAttention-2", 2023, algorithm 1.
    """
    check(q, k, v)
    (batch, heads, seq_q, head_dim), (_, kv_heads, seq_k, _) = q.shape, k.shape
    scale = head_dim**-0.5 if scale is None else scale
    if not 2.0**-126 <= scale < 2.0**127:
        raise ValueError(f"scale is {scale}; it must be positive and finite in float32")
    if input_precision not in ("ieee", "tf32"):
        raise ValueError(
            f"input_precision is {input_precision!r}; it must be 'ieee' or 'tf32'"
        )

    o = torch.empty((batch, heads, seq_q, head_dim), dtype=q.dtype, device=q.device)
    lse = torch.empty((batch, heads, seq_q), dtype=torch.float32, device=q.device)
    if o.numel() == 0 or seq_k == 0:  # a descriptor cannot be of an empty tensor
        return o.zero_(), lse.fill_(-math.inf)
    descriptors = [
        TensorDescriptor(x, list(x.shape), list(x.stride()), [1, 1, 1, 1])
        for x in (q, k, v, o)
    ]
    with torch.cuda.device_of(q):
        attention_kernel[
            lambda config: (triton.cdiv(seq_q, config["BLOCK_M"]) * batch * heads,)
        ](
            *descriptors,
            lse,
            scale * math.log2(math.e),
            heads,
            heads // kv_heads,
            seq_q,
            seq_k,
            BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
            INPUT_PRECISION=input_precision,
            CAUSAL=causal,
            ITEMSIZE=q.element_size(),  # the autotuner sees no dtype in a descriptor
        )
    return o, lse


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q = torch.randn(2, 4, 150, 80, device=device).half()
    k, v = (torch.randn(2, 2, 200, 80, device=device).half() for _ in range(2))
    o, lse = attention(q, k, v, causal=True)
    k, v = (x.double().repeat_interleave(2, dim=1) for x in (k, v))
    seen = torch.ones(150, 200, dtype=torch.bool, device=device).tril(200 - 150)
    scores = (q.double() @ k.mT * 80**-0.5).where(seen, float("-inf"))
    error = (o - torch.softmax(scores, dim=-1) @ v).abs().max().item()
    lse_error = (lse - torch.logsumexp(scores, dim=-1)).abs().max().item()
    print(f"{device}: largest error {error:.1e}, of the logsumexp {lse_error:.1e}")
# --8<-- [end:demo]
