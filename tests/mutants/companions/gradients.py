"""Bugs that several of the backward passes could have."""

from tests.mutants import Mutant

CHECKS = [
    Mutant("if x.ndim != 2:", "if x.ndim < 2:", "three dimensions taken for two"),
    Mutant("if given.shape != shape:", "if False:", "any shape of the others"),
    Mutant("if given.dtype not in dtypes:", "if False:", "any dtype"),
    Mutant("if given.device != x.device:", "if False:", "tensors of another device"),
    Mutant(
        "if torch.is_grad_enabled() and given.requires_grad:",
        "if False:",
        "a gradient is lost",
    ),
    Mutant("if torch.is_grad_enabled() and ", "if ", "refused under no_grad, too"),
    Mutant('("dy", dy, x.shape, (x.dtype,)),', "", "dy is not checked"),
    Mutant('("weight", weight, x.shape[1:], DTYPES),', "", "weight is not checked"),
    Mutant('("rstd", rstd, x.shape[:1], (torch.float32,)),', "", "rstd is not checked"),
    Mutant(
        "with torch.cuda.device_of(dy):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
    Mutant("weight.contiguous()", "weight", "weight taken contiguous"),
    Mutant("rstd.contiguous()", "rstd", "rstd taken contiguous"),
]
MEAN = [
    Mutant('("mean", mean, x.shape[:1], (torch.float32,)),', "", "mean is not checked"),
    Mutant("mean.contiguous()", "mean", "mean taken contiguous"),
]
LIMIT = [Mutant("if x.shape[1] > 65536:", "if False:", "any number of columns")]
PROGRAMS = [
    Mutant(
        "if programs is not None and programs < 1:", "if False:", "no program at all"
    ),
    Mutant(
        "if programs is None and not x.is_cuda:", "if False:", "a CPU asked like a GPU"
    ),
]
EMPTY = [
    Mutant("if dx.numel() == 0:", "if rows == 0:", "nothing special of no columns"),
]
# Of the kernels that take whole rows, one or several at a time.
TILES = [
    Mutant(
        "offs_r * stride_dyr + offs_c * stride_dyc",
        "offs_r * cols + offs_c",
        "dy taken contiguous",
    ),
    Mutant(
        "offs_r * stride_dyr + offs_c * stride_dyc",
        "offs_r * stride_xr + offs_c * stride_xc",
        "dy read with x's strides",
    ),
    Mutant(
        "offs_r * stride_xr + offs_c * stride_xc",
        "offs_r * cols + offs_c",
        "x taken contiguous",
    ),
    Mutant("*dy.stride(), *x.stride()", "*x.stride(), *dy.stride()", "strides swapped"),
    Mutant(
        "mean_gx = tl.sum(g * x_hat, axis=1, keep_dims=True) / cols",
        "mean_gx = tl.sum(g * x_hat) / cols",
        "reduces over all rows of a block",
    ),
    Mutant(
        "tl.sum(g * x_hat, axis=1, keep_dims=True) / cols",
        "tl.sum(g * x_hat, axis=1, keep_dims=True) / BLOCK_COLS",
        "a mean over the tile's columns",
    ),
    Mutant("g * x_hat, axis", "dy * x_hat, axis", "the second mean without the weight"),
    Mutant("g = dy * w", "g = dy", "the weight is forgotten in dx"),
    Mutant("dx = rstd * (", "dx = (", "dx without rstd"),
    Mutant("x_hat * mean_gx)", "mean_gx)", "the second mean without x_hat"),
    Mutant("- x_hat * mean_gx)", "+ x_hat * mean_gx)", "a wrong sign"),
    Mutant("dw += dy * x_hat", "dw += g * x_hat", "dw with the weight in it"),
    Mutant("dw += dy * x_hat", "dw = dy * x_hat", "only the last tile in dw"),
    Mutant("dw += dy * x_hat", "dw += dy * x", "dw of x, not of x_hat"),
    Mutant(
        "dw += dy * x_hat",
        "dw += (dy * x_hat).to(tl.bfloat16).to(tl.float32)",
        "dw rounded in bfloat16 while it is summed",
    ),
    Mutant(
        "dw += dy * x_hat",
        "dw = (dw + dy * x_hat).to(tl.float16).to(tl.float32)",
        "dw summed in float16",
    ),
    Mutant("cols + offs_c, dx, mask)", "cols + offs_c, dx, mask_r)", "dx: a tail"),
    Mutant("offs_r * cols + offs_c, dx", "offs_r + offs_c, dx", "rows that overlap"),
    Mutant("mask_r = offs_r < rows", "mask_r = offs_r <= rows", "a row too many"),
    Mutant("& (offs_c < cols)", "& (offs_c <= cols)", "a column too many"),
    Mutant(
        "offs_r = (row + tl.arange(0, BLOCK_ROWS).to(tl.int64))[:, None]",
        "offs_r = (row + tl.arange(0, BLOCK_ROWS)).to(tl.int32)[:, None]",
        "rows in 32 bits",
    ),
    Mutant(
        "offs_c = tl.arange(0, BLOCK_COLS).to(tl.int64)[None, :]",
        "offs_c = tl.arange(0, BLOCK_COLS)[None, :]",
        "columns in 32 bits",
    ),
    Mutant("programs * BLOCK_ROWS", "BLOCK_ROWS", "each program does all that follows"),
    Mutant("first, step = program *", "first, step = 0 *", "all begin at row 0"),
    Mutant(
        "tl.sum(dw, axis=0), mask)", "tl.sum(dw, axis=0))", "dw: a tail in the partials"
    ),
    Mutant(
        "partial_ptr += program * cols", "partial_ptr += 0 * cols", "one row for all"
    ),
    Mutant("total += tl.load(", "total = tl.load(", "only the last partial rows"),
    Mutant("range(0, programs, BLOCK", "range(0, 64, BLOCK", "64 programs' rows only"),
    Mutant("(offs_p < programs)", "(offs_p <= programs)", "a partial row too many"),
    Mutant("triton.cdiv(cols, 32)", "cols // 32", "columns without a sum"),
    Mutant(
        "min(programs, triton.cdiv(rows, block_rows))",
        "min(programs, rows // block_rows)",
        "as many programs as whole tiles",
    ),
    Mutant("max(1, 2048 // block_cols)", "2048 // block_cols", "no row of a wide tile"),
    Mutant("dtype=weight.dtype", "dtype=x.dtype", "dw in the dtype of x"),
    Mutant(
        "torch.empty((rows, cols), dtype=x",
        "torch.empty_like(x, dtype=x",
        "dx laid out as x",
    ),
]
