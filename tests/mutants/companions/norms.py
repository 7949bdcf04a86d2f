"""Bugs that the forward pass of several norms could have."""

from tests.mutants import Mutant

# Of the kernels that hold whole rows.
ROW_MUTANTS = [
    Mutant("offs_r * stride_xr + offs_c", "offs_r * cols + offs_c", "x as contiguous"),
    Mutant("offs_c * stride_xc", "offs_c", "the column stride of x ignored"),
    Mutant("offs_c * stride_w", "offs_c", "the stride of weight ignored"),
    Mutant("y_ptr + offs_r * cols", "y_ptr + offs_r * stride_xr", "y as x lies"),
    Mutant("offs_c, y, mask, cache", "offs_c, y, offs_r < rows, cache", "no mask of y"),
    Mutant("offs_c, y, mask, cache", "offs_c, y, mask_c, cache", "rows past the end"),
    Mutant(".to(tl.int64) * BLOCK_ROWS", " * BLOCK_ROWS", "row offsets in 32 bits"),
    Mutant(
        "tl.arange(0, BLOCK_COLS).to(tl.int64)",
        "tl.arange(0, BLOCK_COLS)",
        "column offsets in 32 bits",
    ),
    Mutant("mask = (offs_r < rows)", "mask = (offs_r <= rows)", "a row too many"),
    Mutant("weight.to(COMPUTE)", "1.0", "no weight"),
    Mutant("rstd, offs_r < rows)", "rstd)", "rstd past the last row"),
    Mutant("x.shape[1] > 65536", "x.shape[1] > 65535", "the longest row refused"),
    Mutant("x.shape[1] > 65536", "x.shape[1] > 65537", "a row too long accepted"),
]
LAUNCH_MUTANTS = [
    Mutant("triton.cdiv(rows, block_rows)", "rows // block_rows", "last rows lost"),
    Mutant(
        "torch.empty((rows, cols), dtype=x.dtype, device=x.device)",
        "torch.empty_like(x)",
        "y laid out as x",
    ),
    Mutant(
        "tl.float64 if double else tl.float32",
        "tl.float32",
        "float64 computed in float32",
    ),
    Mutant(
        "torch.float64 if double else torch.float32",
        "x.dtype",
        "what is kept of a row in the dtype of x",
    ),
    Mutant("EPS=eps", "EPS=1e-5 if eps != 1e-5 else 1e-6", "another eps"),
    Mutant("x.ndim != 2", "x.ndim < 2", "three dimensions taken for two"),
    Mutant("x.dtype not in DTYPES", "False", "any dtype accepted"),
    Mutant("w.shape != x.shape[1:]", "w.ndim != 1", "a vector too short accepted"),
    Mutant(
        "w.shape != x.shape[1:]",
        "w.numel() != x.shape[1]",
        "a vector of two dimensions accepted",
    ),
    Mutant("w.dtype not in (x.dtype, torch.float32)", "False", "any dtype of vectors"),
    Mutant("(x.dtype, torch.float32)", "(x.dtype,)", "vectors in float32 refused"),
    Mutant("w.device != x.device", "False", "a vector on another device"),
    Mutant("and tensor.requires_grad", "and False", "a gradient lost without a word"),
    Mutant(
        "with torch.cuda.device_of(x):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
# Of layer norms, whose bias is a vector, too.
BIAS_MUTANTS = [
    Mutant("offs_c * stride_b", "offs_c", "the stride of bias ignored"),
    Mutant("offs_c * stride_b", "offs_c * stride_w", "bias read with weight's stride"),
    Mutant(" + bias.to(COMPUTE)", "", "no bias"),
    Mutant(
        "* weight.to(COMPUTE) + bias.to(COMPUTE)",
        "* bias.to(COMPUTE) + weight.to(COMPUTE)",
        "weight and bias exchanged",
    ),
    Mutant("first + mean", "mean", "the mean that is kept lacks the shift"),
    Mutant("mean, offs_r < rows)", "mean)", "means past the last row"),
    Mutant("x.new_zeros(1)", "x.new_ones(1)", "1 is added without a bias"),
    Mutant("bias=weight if bias is None else bias", "bias=bias", "a bias is a must"),
]
