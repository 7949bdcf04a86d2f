"""Bugs that the tests of snippets/companions/layer_norm_backward_wide.py must catch."""

from tests.mutants import Mutant
from tests.mutants.companions.gradients import CHECKS, EMPTY, MEAN, PROGRAMS

MUTANTS = [
    Mutant(
        "~((a_bits << 32)",
        "((a_bits << 32)",
        "sums of 0 look unpublished",
        may_not_compile=True,
    ),
    Mutant(
        "return tl.where(word == 0, 1, word)", "return word", "a NaN looks unpublished"
    ),
    Mutant("(b_bits & 0xFFFFFFFF)", "b_bits", "the sign of one sum in the other"),
    Mutant("missing = True", "missing = False", "nobody waits for the others"),
    Mutant(
        "words_ptr = word_ptr + row * chunks + offs_k",
        "words_ptr = word_ptr + offs_k",
        "the words of the first row",
    ),
    Mutant(
        "word_ptr + row * chunks + chunk, word",
        "word_ptr + row * chunks, word",
        "all chunks publish in one place",
    ),
    Mutant(
        "offs_k < chunks, other=-1", "offs_k < 1, other=-1", "only the first chunk", 2
    ),
    Mutant(
        "offs_k < chunks, other=-1", "offs_k < chunks, other=1", "lanes of no chunk", 2
    ),
    Mutant(
        "tl.sum(sum_g, axis=0) / cols",
        "tl.sum(sum_g, axis=0) / BLOCK_COLS",
        "a mean over the chunk's columns",
    ),
    Mutant("mean_g - x_hat * mean_gx)", "mean_g)", "the second mean is forgotten"),
    Mutant("dy * w - mean_g -", "dy * w - 2 * mean_g -", "mean(g) subtracted twice"),
    Mutant("dx = rstd * (", "dx = (", "dx without rstd"),
    Mutant("dw += dy * x_hat", "dw = dy * x_hat", "only the last row in dw"),
    Mutant(
        "dw += dy * x_hat",
        "dw = (dw + dy * x_hat).to(tl.float16).to(tl.float32)",
        "dw summed in float16",
    ),
    Mutant("db += dy", "db = dy", "only the last row in db"),
    Mutant("db += dy", "db += dy * w", "db with the weight in it"),
    Mutant(
        "partial_ptr + team * cols", "partial_ptr + 0 * team", "one row for all teams"
    ),
    Mutant("(teams + team) * cols", "(1 + team) * cols", "db over the dw of a team"),
    Mutant("offs, dw, mask)", "offs, dw)", "dw: a tail"),
    Mutant(
        "offs, dx, mask, cache", "offs, dx, cache", "dx: a tail", may_not_compile=True
    ),
    Mutant("chunk * BLOCK_COLS + tl", "0 * chunk + tl", "every chunk is the first"),
    Mutant(
        "range(team * BLOCK_ROWS, rows,", "range(0 * team, rows,", "all teams do all"
    ),
    Mutant(
        "last = tl.minimum(first + BLOCK_ROWS, rows)",
        "last = first + BLOCK_ROWS",
        "rows past the last",
    ),
    Mutant("rows, teams * BLOCK_ROWS)", "rows, teams)", "rows done more than once"),
    Mutant("row = tl.cast(each, tl.int64)", "row = each", "rows in 32 bits", 2),
    Mutant(
        'stride_dyr, stride_xr, row, mask,\n                KEEP="evict_first"',
        'stride_dyr, stride_xr, first, mask,\n                KEEP="evict_first"',
        "the first row again and again",
    ),
    Mutant("dy_ptr + offs * stride_dyc", "dy_ptr + offs", "dy's column stride ignored"),
    Mutant("x_ptr + offs * stride_xc", "x_ptr + offs", "x's column stride ignored"),
    Mutant("*dy.stride(), *x.stride()", "*x.stride(), *dy.stride()", "strides swapped"),
    Mutant(
        "x_ptrs + row * stride_xr",
        "x_ptrs + row * stride_dyr",
        "x read with dy's strides",
    ),
    Mutant("(x - tl.load(mean_ptr + row)) * rstd", "x * rstd", "the mean is forgotten"),
    Mutant(
        "chunk_cols *= 2",
        "chunk_cols //= 2",
        "chunks halved, not doubled",
        may_not_compile=True,
    ),
    Mutant(
        "rows * chunks + 1, dtype", "rows * chunks, dtype", "no word for the tickets"
    ),
    Mutant(
        "words = torch.zeros(", "words = torch.empty(", "words that are there already"
    ),
    Mutant(
        "partial.sum(dim=1).to(weight.dtype)",
        "partial.sum(dim=1).to(x.dtype)",
        "dw and db in the dtype of x",
    ),
    Mutant(
        "partial.sum(dim=1).to(weight.dtype)",
        "partial[:, 0].to(weight.dtype)",
        "the first team alone",
    ),
    Mutant("*partial.sum(dim=1)", "*partial.sum(dim=1).flip(0)", "dw and db swapped"),
    *CHECKS,
    *MEAN,
    *PROGRAMS,
    *EMPTY,
]
