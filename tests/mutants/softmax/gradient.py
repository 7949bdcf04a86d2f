"""Bugs that the tests of snippets/softmax/gradient.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("delta = (y * dy).sum(", "delta = dy.sum(", "the reference forgets y"),
    Mutant("return y * (dy - delta)", "return y * dy", "the reference forgets delta"),
    Mutant(" mask, other=0.0)", " mask, other=1.0)", "tails of ones", 2),
    Mutant(
        "* stride_dyc, mask, other=0.0)", "* stride_dyc, mask, other=1e9)", "dy: a tail"
    ),
    Mutant("offs_r * stride_dyr", "offs_r * cols", "dy taken contiguous"),
    Mutant("offs_c * stride_dyc", "offs_c", "dy's column stride ignored"),
    Mutant(
        "delta = tl.sum(y.to(COMPUTE) * dy.to(COMPUTE), axis=1, keep_dims=True)",
        "delta = tl.zeros((BLOCK_ROWS, 1), COMPUTE)",
        "no tile in delta",
    ),
    Mutant(
        "y.to(COMPUTE) * dy.to(COMPUTE), axis=1, keep_dims=True",
        "y.to(COMPUTE) * dy.to(COMPUTE)",
        "one delta for all rows of the tile",
    ),
    Mutant("(dy.to(COMPUTE) - delta)", "dy.to(COMPUTE)", "no delta in dx"),
    Mutant("offs_c, dx, mask, cache", "offs_c, dx, offs_r < rows, cache", "a tail"),
    Mutant("offs_c, dx, mask, cache", "offs_c, dx, offs_c < cols, cache", "more rows"),
    Mutant(".to(tl.int64) * BLOCK_ROWS", ".to(tl.int64)", "programs that overlap"),
    Mutant("(ticket // chunks).to(tl.int64)", "(ticket // chunks)", "rows in 32 bits"),
    Mutant("(offs_r < rows)", "(offs_r <= rows)", "a row too many"),
    Mutant("(offs_c < cols)", "(offs_c <= cols)", "a column too many"),
    Mutant(
        "triton.cdiv(rows, block_rows)", "rows // block_rows", "rows without a program"
    ),
    Mutant("(ticket % chunks)", "(ticket % 2)", "tiles from the third on left out"),
    Mutant("~tl.sum(delta)", "tl.sum(delta)", "a sum of 0 looks unpublished"),
    Mutant("tl.where(word == 0, 1, word)", "word", "a NaN looks unpublished"),
    Mutant("word_ptr + row * chunks", "word_ptr", "the words of the first row"),
    Mutant("missing = True", "missing = False", "nobody waits for the others"),
    Mutant(
        "(~words).to(tl.float64, bitcast=True)",
        "words.to(tl.float64, bitcast=True)",
        "the bits are not turned back",
    ),
    Mutant("if BLOCK_CHUNKS > 1:", "if BLOCK_CHUNKS > 2:", "two tiles do not meet", 2),
    Mutant("block_cols *= 2", "block_cols //= 2", "tiles halved, not doubled"),
    Mutant("if chunks == 1 else 1", "", "several rows in a tile of a long row"),
    Mutant(
        "tl.float64 if y.dtype == torch.float64 else tl.float32",
        "tl.float32",
        "a float64 gradient in float32",
    ),
    Mutant(
        "    @torch.autograd.function.once_differentiable\n",
        "",
        "a silent wrong second derivative",
    ),
    Mutant("*dy.stride(), rows", "*y.stride(), rows", "dy read with y's strides"),
    Mutant("torch.empty_like(y)", "torch.empty_like(dy)", "dx laid out as dy"),
    Mutant("ctx.save_for_backward(y)", "ctx.save_for_backward(x)", "x saved for y"),
    Mutant("x.ndim != 2", "x.ndim < 2", "three dimensions taken for two"),
    Mutant("x.dtype not in DTYPES", "False", "any dtype accepted"),
    Mutant(
        "with torch.cuda.device_of(x):",
        "with torch.no_grad():",
        "forward launched on whatever device is current",
    ),
    Mutant(
        "with torch.cuda.device_of(y):",
        "with torch.no_grad():",
        "backward launched on whatever device is current",
    ),
    Mutant("tl.exp(x - m_i) / denominator", "tl.exp(x - m_i)", "no division"),
    Mutant("l_i = l_i * tl.exp(m_i - shift)", "pass", "the sum is not rescaled"),
    Mutant('other=float("-inf"),', "other=0.0,", "a tail load of 0", 2),
]
