"""The preparing kernel of the backward pass: one number for each row of o and do."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def row_dot_kernel(
    o_ptr, do_ptr, dlse_ptr, delta_ptr,
    stride_ob, stride_oh, stride_om, stride_od,
    stride_dob, stride_doh, stride_dom, stride_dod,
    stride_dlb, stride_dlh, stride_dlm,
    heads, seq_q: tl.int32, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    # --8<-- [start:bases]
    # Which batch and head: int64, because their offsets may pass 2^31.
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    # --8<-- [line:o_base]
    o_ptr += batch * stride_ob + head * stride_oh
    # --8<-- [line:do]
    do_ptr += batch * stride_dob + head * stride_doh
    # --8<-- [line:delta_ptr]
    delta_ptr += (batch * heads + head) * seq_q
    # --8<-- [end:bases]

    # --8<-- [start:rows]
    offs_m = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(INDEX)
    offs_d = tl.arange(0, BLOCK_D).to(INDEX)
    mask = (offs_m[:, None] < seq_q) & (offs_d[None, :] < HEAD_DIM)
    o_ptrs = o_ptr + offs_m[:, None] * stride_om + offs_d[None, :] * stride_od
    do_ptrs = do_ptr + offs_m[:, None] * stride_dom + offs_d[None, :] * stride_dod
    # --8<-- [line:load_o]
    o = tl.load(o_ptrs, mask=mask, other=0.0).to(tl.float32)  # [BLOCK_M, BLOCK_D]
    do = tl.load(do_ptrs, mask=mask, other=0.0).to(tl.float32)  # [BLOCK_M, BLOCK_D]
    # --8<-- [line:sum]
    delta = tl.sum(o * do, axis=1)  # [BLOCK_M]
    if dlse_ptr is not None:
        dlse_ptr += batch * stride_dlb + head * stride_dlh
        dlse_ptrs = dlse_ptr + offs_m * stride_dlm
        # --8<-- [line:dlse]
        delta -= tl.load(dlse_ptrs, mask=offs_m < seq_q, other=0.0)
    # --8<-- [line:store]
    tl.store(delta_ptr + offs_m, delta, mask=offs_m < seq_q)
    # --8<-- [end:rows]


# --8<-- [end:kernel]


# --8<-- [start:checks]
def check(o: torch.Tensor, do: torch.Tensor, dlse: torch.Tensor | None) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if o.ndim != 4:
        raise ValueError(f"o has {o.ndim} dimensions; it must have 4")
    if o.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise ValueError(f"o is {o.dtype}; it must be float16/32 or bfloat16")
    batch, heads, _, head_dim = o.shape
    if not 1 <= head_dim <= 256:
        raise ValueError(f"o has head_dim {head_dim}; it must be from 1 to 256")
    if batch * heads > 65535:
        raise ValueError(f"o has {batch} * {heads} heads; it must have at most 65535")
    wanted = {"do": (do, o.shape, o.dtype)}
    if dlse is not None:
        wanted["dlse"] = (dlse, o.shape[:3], torch.float32)
    for name, (x, shape, dtype) in wanted.items():
        if x.shape != shape:
            raise ValueError(f"{name} is {list(x.shape)}; it must be {list(shape)}")
        if (x.dtype, x.device) != (dtype, o.device):
            must = f"{dtype} on {o.device}"
            raise ValueError(f"{name} is {x.dtype} on {x.device}; it must be {must}")
    for name, x in (("o", o), ("do", do), ("dlse", dlse)):
        if x is not None and torch.is_grad_enabled() and x.requires_grad:
            lost = "requires a gradient, which this kernel would lose"
            raise ValueError(f"{name} {lost}; use torch.no_grad() or detach it")


# --8<-- [end:checks]


# --8<-- [start:launch]
# --8<-- [start:signature]
def row_dot(
    o: torch.Tensor, do: torch.Tensor, *, dlse: torch.Tensor | None = None,
    block_m: int | None = None,
) -> torch.Tensor:  # fmt: skip
    """delta: the scalar product of each row of o with that of do, less dlse.

    Args:
        o: [batch, heads, seq_q, head_dim], float16, bfloat16 or float32, on a GPU, any
            strides; head_dim from 1 to 256, batch * heads up to 65535.
        do: as o, the gradient of o, any strides of its own, 0 included.
        dlse: [batch, heads, seq_q], float32, any strides: the gradient of the
            logsumexp; None if it has none.
        block_m: rows of a tile, a power of two; if None, 8 KiB of o.

    Returns:
        delta: [batch, heads, seq_q], float32, contiguous.

    Raises:
        ValueError: a tensor is not one of the above, or requires a gradient.

    Source: Dao, "FlashAttention-2", 2023, algorithm 2, line 4.
    """
    # --8<-- [end:signature]
    check(o, do, dlse)
    batch, heads, seq_q, head_dim = o.shape
    delta = torch.empty((batch, heads, seq_q), dtype=torch.float32, device=o.device)
    if delta.numel() == 0:
        return delta
    # --8<-- [start:tile]
    block_d = max(16, triton.next_power_of_2(head_dim))
    block_m = block_m or 8192 // (block_d * o.element_size())
    # --8<-- [end:tile]
    # Offsets inside a head: 32 bits are faster, and enough unless it is very large.
    of_dlse = delta.stride() if dlse is None else dlse.stride()
    spans = [seq_q * x.stride(2) + head_dim * x.stride(3) for x in (o, do)]
    spans.append(seq_q * of_dlse[2])
    with torch.cuda.device_of(o):
        row_dot_kernel[(triton.cdiv(seq_q, block_m), batch * heads)](
            o, do, dlse, delta, *o.stride(), *do.stride(), *of_dlse,
            heads, seq_q, HEAD_DIM=head_dim, BLOCK_M=block_m, BLOCK_D=block_d,
            INDEX=tl.int32 if max(spans) < 2**31 else tl.int64, num_warps=4,
        )  # fmt: skip
    return delta


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    o = torch.randn(2, 4, 150, 80, device=device).half()
    # --8<-- [start:call]
    do = torch.ones((), device=device).half().expand(o.shape)  # of o.sum()
    delta = row_dot(o, do)
    # --8<-- [end:call]
    error = (delta - (o.double() * do).sum(dim=-1)).abs().max().item()
    print(f"{device}: strides of do {do.stride()}, largest error {error:.1e}")
# --8<-- [end:demo]
