"""Wrong on purpose: the output is written with the strides of the input."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def softmax_kernel(
    x_ptr,
    y_ptr,
    stride_xr,
    stride_xc,
    cols,
    COMPUTE: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_COLS).to(tl.int64)
    mask = offs < cols
    x = tl.load(
        x_ptr + row * stride_xr + offs * stride_xc,
        mask,
        other=float("-inf"),
    ).to(COMPUTE)

    # --8<-- [line:max]
    m_i = tl.max(x, axis=0)
    # --8<-- [line:numerator]
    numerator = tl.exp(x - m_i)
    # --8<-- [line:sum]
    l_i = tl.sum(numerator, axis=0)
    # --8<-- [line:output]
    y = numerator / l_i
    # Wrong: y has strides of its own.
    tl.store(y_ptr + row * stride_xr + offs * stride_xc, y, mask)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def softmax(x: torch.Tensor) -> torch.Tensor:
    """A wrong softmax: leaves y where y is not laid out as x is.

    Args:
        x: [rows, cols], float16, bfloat16, float32 or float64, any strides, on a GPU
            (or on the CPU under TRITON_INTERPRET=1); at most 65536 columns, so
            that a row fits in one block.

    Returns:
        [rows, cols], dtype of x. Of a sliced x, torch.empty_like makes a tensor without
        the gaps: rows land in the wrong place, the last ones outside y.

    Raises:
        ValueError: x is not one of the above.

    Source: a common mistake; one_row.py passes the strides of both.
    """
    if x.ndim != 2:
        raise ValueError(f"x has {x.ndim} dimensions; it must have 2: [rows, cols]")
    if x.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise ValueError(
            f"x is {x.dtype}; it must be float16, bfloat16, float32 or float64"
        )
    if not x.is_cuda and not triton.knobs.runtime.interpret:
        raise ValueError(
            f"x is on {x.device}; it must be on a GPU, or set TRITON_INTERPRET=1"
        )
    if x.shape[1] > 65536:
        raise ValueError(f"x has {x.shape[1]} columns; it must have at most 65536")

    rows, cols = x.shape
    y = torch.empty_like(x)
    if y.numel() == 0:
        return y
    softmax_kernel[(rows,)](
        x,
        y,
        *x.stride(),
        cols,
        COMPUTE=tl.float64 if x.dtype == torch.float64 else tl.float32,
        BLOCK_COLS=triton.next_power_of_2(cols),
    )
    return y


# --8<-- [end:launch]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # The row stride of an expanded x is 0: every row is written to row 0 of y.
    x = torch.randn(1, 1000, device=device).expand(64, 1000)
    y = softmax(x)
    error = (y - torch.softmax(x.double(), dim=-1))[0].abs().max().item()
    print(f"{device}: largest error {error:.1e} in row 0")
    right = ((y.sum(dim=-1) - 1).abs() < 1e-3).sum().item()
    print(f"rows that sum to 1: {right} of 64")
    # A sliced x would send rows past the end of y, so it is only counted here.
    x = torch.randn(64, 150, device=device)[:, :100]
    last = 63 * x.stride(0)
    print(f"sliced x: row 63 would start at element {last} of {x.numel()}")
# --8<-- [end:demo]
