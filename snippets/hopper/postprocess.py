"""dq of its sum, which lies in memory in the order in which threads added to it."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from snippets.backward.one_kernel import aligned


# --8<-- [start:kernel]
@triton.jit
def postprocess_kernel(
    dq_sum, dq_desc, scale, heads, seq_q: tl.int32, BLOCK_D: tl.constexpr
):  # fmt: skip
    # --8<-- [start:load]
    dq_sum += tl.program_id(0).to(tl.int64) * 64 * BLOCK_D
    dq = tl.load(dq_sum + tl.arange(0, 64 * BLOCK_D)) * scale
    # --8<-- [end:load]
    # --8<-- [start:order]
    # A tile has 64 rows. Two groups of four warps add to it: the first to the left half
    # of its columns, the second to the right. Warp w of a group has rows 16 w to
    # 16 w + 15. Of each 8 rows by 8 columns, lane l has row l // 4 and the columns
    # 2 (l % 4) and 2 (l % 4) + 1: so wgmma leaves its results. A thread adds four
    # numbers at once, from two neighbouring squares, and 32 lanes add 512 bytes:
    #
    #   lane      columns of a row, in groups of 16        memory
    #   0         0  1  8  9      of row 16 w              0   1   2   3
    #   1         2  3 10 11      of row 16 w              4   5   6   7
    #   2         4  5 12 13      of row 16 w              8   9  10  11
    #   3         6  7 14 15      of row 16 w             12  13  14  15
    #   4         0  1  8  9      of row 16 w + 1         16  17  18  19
    #   ...
    #   31        6  7 14 15      of row 16 w + 7        124 125 126 127
    #
    # Behind it the other three warps, then rows 16 w + 8 to 16 w + 15 of all four, then
    # the next 16 columns, and at last the other half.
    # In memory: half, 16 columns, 8 rows, warp, lane // 4, lane % 4, square, number.
    dq = dq.reshape(2, BLOCK_D // 32, 2, 4, 8, 4, 2, 2)
    dq = dq.permute(3, 2, 4, 0, 1, 6, 5, 7)  # rows, then columns
    # --8<-- [end:order]
    # --8<-- [start:store]
    blocks = tl.cdiv(seq_q, 64)
    pair, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    dq = dq.reshape(1, 1, 64, BLOCK_D).to(dq_desc.dtype)
    dq_desc.store([pair // heads, pair % heads, block * 64, 0], dq)
    # --8<-- [end:store]


# --8<-- [end:kernel]
# --8<-- [start:launch]
def postprocess(
    dq_sum: torch.Tensor, q: torch.Tensor, *, scale: float | None = None
) -> torch.Tensor:
    """dq: its sum times scale, in rows and columns.

    Args:
        dq_sum: [batch, heads, ceil(seq_q / 64), 64 * columns], float32, contiguous, on
            a GPU: tiles in the order of the threads. Columns are 64, or 128 if head_dim
            is more.
        q: [batch, heads, seq_q, head_dim], float16 or bfloat16; head_dim a multiple of
            8 up to 128. Only its shape and layout are looked at.
        scale: of the scores; head_dim ** -0.5 if None.

    Returns dq: as q, in its layout unless descriptors cannot take that.
    Raises ValueError: a tensor is not one of the above, or requires a gradient.
    Source: Shah et al., "FlashAttention-3", 2024: its code calls this step so.
    """
    # --8<-- [start:checks]
    if q.ndim != 4 or q.dtype not in (torch.float16, torch.bfloat16):
        raise ValueError(f"q is {q.dtype}, {q.ndim}-D; it must be (b)float16, 4-D")
    batch, heads, seq_q, head_dim = q.shape
    if head_dim not in range(8, 129, 8):
        raise ValueError(f"q has head_dim {head_dim}; it must be 8, 16, ..., or 128")
    blocks, block_d = triton.cdiv(seq_q, 64), 64 if head_dim <= 64 else 128
    got = f"{dq_sum.dtype} on {dq_sum.device} of {list(dq_sum.shape)}"
    right = f"{torch.float32} on {q.device} of {[batch, heads, blocks, 64 * block_d]}"
    if got != right or not dq_sum.is_contiguous():
        raise ValueError(f"dq_sum is {got}; it must be {right}, contiguous")
    for name, x in (("dq_sum", dq_sum), ("q", q)):
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient; detach it or use no_grad")
    # --8<-- [end:checks]
    dq = aligned(torch.empty_like(q))
    if dq.numel() == 0:  # a descriptor cannot be of an empty tensor
        return dq
    scale = head_dim**-0.5 if scale is None else scale
    desc = TensorDescriptor.from_tensor(dq, [1, 1, 64, block_d])
    with torch.cuda.device_of(q):
        postprocess_kernel[(batch * heads * blocks,)](
            dq_sum, desc, scale, heads, seq_q, block_d
        )
    return dq


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # A tile that says where its numbers lie. 0 to 2047 are exact in float16.
    dq_sum = torch.arange(64 * 64, device=device).float().reshape(1, 1, 1, -1)
    q = torch.empty(1, 1, 64, 64, device=device).half()
    dq = postprocess(dq_sum, q, scale=1.0)[0, 0].int()
    print(f"{device}: where the first two rows lie in memory")
    print(*(f"{number:4}" for number in dq[0, :16].tolist()))
    print(*(f"{number:4}" for number in dq[1, :16].tolist()))
# --8<-- [end:demo]
