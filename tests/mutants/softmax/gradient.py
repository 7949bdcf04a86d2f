"""Bugs that the tests of snippets/softmax/gradient.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("delta = (y * dy).sum(", "delta = dy.sum(", "the reference forgets y"),
    Mutant("return y * (dy - delta)", "return y * dy", "the reference forgets delta"),
    Mutant(" mask, other=0.0)", " mask, other=1.0)", "a tail of ones", 2),
    Mutant(
        "* stride_dyc, mask, other=0.0)", "* stride_dyc, mask, other=1e9)", "dy: a tail"
    ),
    Mutant("dy_ptr += offs_r * stride_dyr", "dy_ptr += offs_r * cols", "dy contiguous"),
    Mutant(
        "dy_ptr += offs_r * stride_dyr", "dy_ptr += offs_r * stride_yr", "y's stride"
    ),
    Mutant("(last + offs_c) * stride_dyc", "(last + offs_c)", "dy's column stride"),
    Mutant("(start + offs_c) * stride_dyc", "(start + offs_c)", "dy's columns", 2),
    Mutant("delta += tl.sum(", "tl.sum(", "the last tile alone in delta"),
    Mutant(
        "delta = tl.sum(y_last * dy_last, axis=1, keep_dims=True)",
        "delta = tl.zeros((BLOCK_ROWS, 1), COMPUTE)",
        "the last tile not in delta",
    ),
    Mutant("y_last * (dy_last - delta)", "y_last * dy_last", "no delta at the end"),
    Mutant("dx = y * (dy - delta)\n", "dx = y * dy\n", "no delta in the tiles before"),
    Mutant(
        "last + offs_c, dx, mask, cache", "last + offs_c, dx, mask_r, cache", "a tail"
    ),
    Mutant(
        "start + offs_c, dx, mask_r, cache",
        "start + offs_c, dx, cache",
        "rows that are not, in the tiles before",
    ),
    Mutant(
        "tl.program_id(0).to(tl.int64) * BLOCK_ROWS",
        "tl.program_id(0).to(tl.int64)",
        "programs that overlap",
    ),
    Mutant("mask_r = offs_r < rows", "mask_r = offs_r <= rows", "a row too many"),
    Mutant("(last + offs_c < cols)", "(last + offs_c <= cols)", "a column too many"),
    Mutant(
        "triton.cdiv(rows, block_rows)", "rows // block_rows", "rows without a program"
    ),
    Mutant(
        "tl.program_id(0).to(tl.int64) * BLOCK_ROWS",
        "tl.program_id(0) * BLOCK_ROWS",
        "rows in 32 bits",
    ),
    Mutant(
        "tl.float64 if y.dtype == torch.float64 else tl.float32",
        "tl.float32",
        "a float64 gradient in float32",
    ),
    Mutant("    @once_differentiable\n", "", "a silent wrong second derivative"),
    Mutant("dx.stride(0),", "dy.stride(0),", "dx written with dy's row stride"),
    Mutant("ctx.save_for_backward(y)", "ctx.save_for_backward(x)", "x saved for y"),
    Mutant("x.ndim != 2", "x.ndim < 2", "three dimensions taken for two"),
    Mutant("tl.exp(x - m_i) / l_i", "tl.exp(x - m_i)", "no division"),
    Mutant("l_i = l_i * tl.exp(m_i - shift)", "pass", "the sum is not rescaled"),
    Mutant('other=float("-inf"),', "other=0.0,", "a tail load of 0", 2),
]
