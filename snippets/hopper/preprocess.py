"""What a backward pass wants of each row of scores: lse in base 2, and delta."""

import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from snippets.backward.one_kernel import aligned

LOG2_E = tl.constexpr(math.log2(math.e))


# --8<-- [start:kernel]
@triton.jit
def preprocess_kernel(
    o_desc, do_desc, lse_ptr, dlse_ptr, rows_ptr, heads, seq_q: tl.int32, line,
    BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(seq_q, BLOCK_M)
    pair = tl.program_id(0) // blocks
    start_m = tl.program_id(0) % blocks * BLOCK_M
    offs_m = start_m + tl.arange(0, BLOCK_M)
    seen = offs_m < seq_q
    # --8<-- [start:delta]
    at = [pair // heads, pair % heads, start_m, 0]
    o = o_desc.load(at).reshape(BLOCK_M, BLOCK_D)
    do = do_desc.load(at).reshape(BLOCK_M, BLOCK_D)
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), axis=1)
    row = pair.to(tl.int64) * seq_q
    if dlse_ptr is not None:
        delta -= tl.load(dlse_ptr + row + offs_m, mask=seen, other=0.0)
    # --8<-- [end:delta]
    # --8<-- [start:lse]
    lse = tl.load(lse_ptr + row + offs_m, mask=seen, other=0.0)
    # A row that saw nothing has lse = -inf. Its weights are 0: exp2(s - inf).
    lse2 = tl.where(lse == float("-inf"), float("inf"), lse * LOG2_E)
    # --8<-- [end:lse]
    # --8<-- [start:store]
    rows_ptr += 2 * pair.to(tl.int64) * line
    tl.store(rows_ptr + offs_m, lse2, mask=seen)
    tl.store(rows_ptr + line + offs_m, delta, mask=seen)
    # --8<-- [end:store]


# --8<-- [end:kernel]
# --8<-- [start:checks]
def check(o, do, lse, dlse) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if o.ndim != 4 or o.dtype not in (torch.float16, torch.bfloat16):
        raise ValueError(f"o is {o.dtype}, {o.ndim}-D; it must be (b)float16, 4-D")
    if o.shape[3] not in range(8, 257, 8):
        raise ValueError(f"o has head_dim {o.shape[3]}; it must be 8, 16, ..., or 256")
    tensors = {"o": o, "do": do, "lse": lse, "dlse": lse if dlse is None else dlse}
    for name, x in tensors.items():
        shape = o.shape[: 3 if "lse" in name else 4]
        dtype = torch.float32 if "lse" in name else o.dtype
        got = f"{x.dtype} on {x.device} of {list(x.shape)}"
        right = f"{dtype} on {o.device} of {list(shape)}"
        if got != right:
            raise ValueError(f"{name} is {got}; it must be {right}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient; detach it or use no_grad")


# --8<-- [end:checks]
# --8<-- [start:launch]
def preprocess(
    o: torch.Tensor, do: torch.Tensor, lse: torch.Tensor, *,
    dlse: torch.Tensor | None = None, block_m: int = 64,
) -> torch.Tensor:  # fmt: skip
    """Of each row of scores lse * log2(e), and rowsum(do * o) - dlse.

    Args:
        o: [batch, heads, seq_q, head_dim], float16 or bfloat16, on a GPU, any strides;
            head_dim a multiple of 8 up to 256. What descriptors cannot take is copied.
        do: the gradient of o, as o.
        lse: [batch, heads, seq_q], float32: the natural logsumexp of the scores.
        dlse: the gradient of lse, as lse; None if it has none.
        block_m: rows of a tile, a power of two.

    Returns rows: [batch, heads, 2, seq_q], float32. rows[:, :, 0] is lse in base 2, or
        +inf where lse is -inf; rows[:, :, 1] is delta. Lines begin at multiples of 16
        bytes, as the TMA unit needs them.
    Raises ValueError: a tensor is not one of the above, or requires a gradient.
    Source: Shah et al., "FlashAttention-3", 2024: its code calls this step so.
    """
    check(o, do, lse, dlse)
    batch, heads, seq_q, head_dim = o.shape
    line = triton.cdiv(seq_q, 4) * 4
    rows = lse.new_empty((batch, heads, 2, line))[..., :seq_q]
    if o.numel() == 0:  # a descriptor cannot be of an empty tensor
        return rows
    lse, dlse = lse.contiguous(), None if dlse is None else dlse.contiguous()
    block_d = max(16, triton.next_power_of_2(head_dim))
    o_desc, do_desc = (
        TensorDescriptor.from_tensor(aligned(x), [1, 1, block_m, block_d])
        for x in (o, do)
    )
    with torch.cuda.device_of(o):
        preprocess_kernel[(triton.cdiv(seq_q, block_m) * batch * heads,)](
            o_desc, do_desc, lse, dlse, rows, heads, seq_q, line, block_m, block_d
        )
    return rows


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    o, do = (torch.randn(2, 4, 150, 80, device=device).half() for _ in range(2))
    lse = torch.randn(2, 4, 150, device=device)
    lse2, delta = preprocess(o, do, lse).unbind(2)
    error = (delta - (o.double() * do).sum(dim=-1)).abs().max()
    print(f"{device}: delta's largest error {error:.1e}")
    print(f"{device}: 2^lse2 is e^lse:", torch.allclose(lse2.exp2(), lse.exp()))
# --8<-- [end:demo]
