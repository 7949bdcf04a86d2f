"""Broadcasting two offset vectors to a table of addresses, and looking at it."""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def addresses_kernel(
    table_ptr,
    rows,
    cols,
    stride,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    # --8<-- [line:rows]
    offs_r = tl.arange(0, BLOCK_ROWS).to(tl.int64)[:, None]  # [BLOCK_ROWS, 1]
    # --8<-- [line:cols]
    offs_c = tl.arange(0, BLOCK_COLS)[None, :]  # [1, BLOCK_COLS]
    # --8<-- [line:addresses]
    addresses = offs_r * stride + offs_c  # [BLOCK_ROWS, BLOCK_COLS]
    mask = (offs_r < rows) & (offs_c < cols)
    tl.store(table_ptr + offs_r * cols + offs_c, addresses, mask)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def addresses(rows: int, cols: int, stride: int) -> torch.Tensor:
    """The offset of each element of a tile from its first, as a kernel computes it.

    Args:
        rows: rows of the tile, at least 1.
        cols: columns of the tile, at least 1.
        stride: elements from the start of a row to the start of the next.

    Returns:
        [rows, cols], int64, on the GPU where there is one: row * stride + column.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    table = torch.empty((rows, cols), dtype=torch.int64, device=device)
    addresses_kernel[(1,)](
        table,
        rows,
        cols,
        stride,
        BLOCK_ROWS=triton.next_power_of_2(rows),
        BLOCK_COLS=triton.next_power_of_2(cols),
    )
    return table


# --8<-- [end:launch]


# --8<-- [start:demo]
if __name__ == "__main__":
    table = addresses(rows=3, cols=4, stride=10)
    expected = torch.arange(30, device=table.device).view(3, 10)[:, :4]
    error = (table - expected).abs().max().item()
    print(f"{table.device.type}: largest error {error}")
    for row in table.tolist():
        print(" ".join(f"{address:3d}" for address in row))
# --8<-- [end:demo]
