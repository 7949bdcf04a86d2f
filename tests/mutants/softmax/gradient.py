"""Bugs that the tests of snippets/softmax/gradient.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("delta = (y * dy).sum(", "delta = dy.sum(", "the reference forgets y"),
    Mutant("return y * (dy - delta)", "return y * dy", "the reference forgets delta"),
    Mutant("mask, other=0.0,\n", "mask, other=1.0,\n", "tails of ones", 2),
    Mutant("dyc, mask, other=0.0,", "dyc, mask, other=1e9,", "dy: a tail"),
    Mutant("offs_r * stride_dyr", "offs_r * cols", "dy taken contiguous"),
    Mutant("offs * stride_dyc", "offs", "dy's column stride ignored", 2),
    Mutant(
        "load(dy_ptr + offs * stride_dyc",
        "load(dy_ptr + offs",
        "only the second time",
    ),
    Mutant("products += y", "products = y", "only the last tile in delta"),
    Mutant(
        "(products, axis=1, keep_dims=True)", "(products)", "one delta for all rows"
    ),
    Mutant("kept[2 * tile]", "kept[0]", "the first tile's y in all that are kept"),
    Mutant("kept[2 * tile + 1]", "kept[1]", "the first tile's dy in all"),
    Mutant("offs_c + tile * BLOCK_COLS", "offs_c", "the first tile again and again", 2),
    Mutant("* TILES * BLOCK_COLS", "* BLOCK_COLS", "chunks that overlap"),
    Mutant("(dy.to(COMPUTE) - delta)", "dy.to(COMPUTE)", "no delta in dx"),
    Mutant("offs, dx, mask, cache", "offs, dx, offs_r < rows, cache", "a tail"),
    Mutant("offs, dx, mask, cache", "offs, dx, offs < cols, cache", "more rows"),
    Mutant(".to(tl.int64) * BLOCK_ROWS", ".to(tl.int64)", "programs that overlap"),
    Mutant("(ticket // chunks).to(tl.int64)", "(ticket // chunks)", "rows in 32 bits"),
    Mutant("(offs_r < rows)", "(offs_r <= rows)", "a row too many", 2),
    Mutant("(offs < cols)", "(offs <= cols)", "a column too many", 2),
    Mutant(
        "triton.cdiv(rows, block_rows)", "rows // block_rows", "rows without a program"
    ),
    Mutant("(ticket % chunks)", "(ticket % 2)", "chunks from the third on left out"),
    Mutant("~tl.sum(delta)", "tl.sum(delta)", "a sum of 0 looks unpublished"),
    Mutant("tl.where(word == 0, 1, word)", "word", "a NaN looks unpublished"),
    Mutant("= word_ptr + row * chunks", "= word_ptr", "the words of the first row"),
    Mutant("missing = True", "missing = False", "nobody waits for the others"),
    Mutant(
        "(~words).to(tl.float64, bitcast=True)",
        "words.to(tl.float64, bitcast=True)",
        "the bits are not turned back",
    ),
    Mutant("if BLOCK_CHUNKS > 1:", "if BLOCK_CHUNKS > 2:", "two chunks do not meet", 2),
    Mutant(
        "chunk_cols * 2, tiles", "chunk_cols // 2, tiles", "chunks halved, not doubled"
    ),
    Mutant(
        "block_rows, tiles, num_warps = 1,",
        "block_rows, tiles, num_warps = 2,",
        "2 rows",
    ),
    Mutant("min(tiles, chunk_cols)", "tiles", "no column", may_not_compile=True),
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
    Mutant("(COMPUTE) - m_i) / denominator", "(COMPUTE) - m_i)", "no division"),
    Mutant("l_i = l_i * tl.exp(m_i - shift)", "pass", "the sum is not rescaled"),
    Mutant('other=float("-inf"))', "other=0.0)", "a tail load of 0", 2),
]
