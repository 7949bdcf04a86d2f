"""Bugs that the tests of snippets/companions/layer_norm_backward_wide.py must catch."""

from tests.mutants import Mutant
from tests.mutants.companions.gradients import CHECKS, EMPTY, MEAN, PROGRAMS

MUTANTS = [
    Mutant(
        "~((a.to(tl.int64) << 32)",
        "((a.to(tl.int64) << 32)",
        "sums of 0 look unpublished",
        may_not_compile=True,
    ),
    Mutant(
        "return tl.where(word == 0, 1, word)", "return word", "a NaN looks unpublished"
    ),
    Mutant(
        "(b.to(tl.int64) & 0xFFFFFFFF)",
        "b.to(tl.int64)",
        "the sign of one sum in the other",
    ),
    Mutant(
        "while tl.max((words == 0).to(tl.int32), axis=0) > 0:",
        "if False:",
        "nobody waits for the others",
    ),
    Mutant(
        "words_ptrs = word_ptr + prev * chunks + offs_k",
        "words_ptrs = word_ptr + offs_k",
        "the words of the first row",
    ),
    Mutant(
        "word_ptr + row * chunks + chunk,",
        "word_ptr + row * chunks,",
        "all chunks publish in one place",
    ),
    Mutant("(offs_k < chunks) &", "(offs_k < 1) &", "only the first chunk"),
    Mutant("mask_k, other=-1,", "mask_k, other=1,", "lanes of no chunk"),
    Mutant(
        "axis=0) / cols)", "axis=0) / BLOCK_COLS)", "a mean over the chunk's columns"
    ),
    Mutant(
        "tl.join(*from_word(words))",
        "tl.join(*from_word(words)[::-1])",
        "the two means swapped",
        may_not_compile=True,
    ),
    Mutant(" - x_hat * mean_gx)", ")", "the second mean is forgotten"),
    Mutant("(mean_g if", "(2 * mean_g if", "mean(g) subtracted twice"),
    Mutant("mean_g if CENTRED else 0.0", "mean_g", "mean(g) subtracted in RMS norm"),
    Mutant("mean_g if CENTRED else 0.0", "0.0", "no mean(g) in layer norm"),
    Mutant("there & CENTRED", "there", "rstd subtracted as a mean in RMS norm"),
    Mutant("dx = rstd_prev * (", "dx = (", "dx without rstd"),
    Mutant("dx = rstd_prev * (", "dx = rstd * (", "dx with the next row's rstd"),
    Mutant("dw += dy.to", "dw = dy.to", "only the last row in dw"),
    Mutant(
        "dw += dy.to(tl.float32) * x_hat",
        "dw = (dw + dy.to(tl.float32) * x_hat).to(tl.float16).to(tl.float32)",
        "dw summed in float16",
    ),
    Mutant("db += dy.to", "db = dy.to", "only the last row in db"),
    Mutant("db += dy.to(tl.float32)", "db += g", "db with the weight in it"),
    Mutant(
        "partial_ptr + team * cols", "partial_ptr + 0 * team", "one row for all teams"
    ),
    Mutant("(teams + team) * cols", "(1 + team) * cols", "db over the dw of a team"),
    Mutant("offs, dw, mask)", "offs, dw)", "dw: a tail"),
    Mutant("mask_dx = mask & (prev >= 0)", "mask_dx = prev >= 0", "dx: a tail"),
    Mutant("mask_dx = mask & (prev >= 0)", "mask_dx = mask", "dx of row -1"),
    Mutant("chunk * BLOCK_COLS + tl", "0 * chunk + tl", "every chunk is the first"),
    Mutant("range(team, rows + teams,", "range(0, rows + teams,", "all teams do all"),
    Mutant("range(team, rows + teams,", "range(team, rows,", "no dx of the last rows"),
    Mutant("row = tl.cast(each, tl.int64)", "row = each", "rows in 32 bits"),
    Mutant("row + teams, C", "row + 1, C", "rows of other teams"),
    Mutant("prev = row - teams", "prev = row - 1", "dx of other teams"),
    Mutant(
        "there = (row >= 0) & (row < rows)", "there = row >= 0", "rows past the last"
    ),
    Mutant(
        "there = (row >= 0) & (row < rows)",
        "there = row < rows",
        "rows before the first are read",
    ),
    Mutant(
        "g, x_hat = dy.to(tl.float32) * w,",
        "g, x_hat = dy.to(tl.float32),",
        "the means without the weight",
    ),
    Mutant(
        "g = dy_prev.to(tl.float32) * w",
        "g = dy_prev.to(tl.float32)",
        "the weight is forgotten in dx",
    ),
    Mutant("(x.to(tl.float32) - mean) * rstd", "x.to(tl.float32) - mean", "no rstd"),
    Mutant("row < rows, sem", "row < rows - 1, sem", "the last row is not published"),
    Mutant("row < rows, sem", "row >= 0, sem", "rows past the last are published"),
    Mutant(
        "dy, x, mean, rstd = next_row",
        "dy, x, _, rstd = next_row",
        "the mean of the team's first row",
    ),
    Mutant(
        "FULL=cols % chunk_cols == 0", "FULL=cols % 2 == 0", "a tail taken for columns"
    ),
    Mutant("(offs < cols) | FULL", "offs < cols - FULL", "the last column is lost"),
    Mutant("dy_ptr + offs * stride_dyc", "dy_ptr + offs", "dy's column stride ignored"),
    Mutant("x_ptr + offs * stride_xc", "x_ptr + offs", "x's column stride ignored"),
    Mutant("*dy.stride(), *x.stride()", "*x.stride(), *dy.stride()", "strides swapped"),
    Mutant(
        "x_ptrs + row * stride_xr",
        "x_ptrs + row * stride_dyr",
        "x read with dy's strides",
    ),
    Mutant(
        "(x.to(tl.float32) - mean)",
        "x.to(tl.float32)",
        "the mean is forgotten in the means",
    ),
    Mutant(
        "(x_prev.to(tl.float32) - mean_prev)",
        "x_prev.to(tl.float32)",
        "the mean is forgotten in dx",
    ),
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
