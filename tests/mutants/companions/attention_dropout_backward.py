"""Bugs that the tests of snippets/companions/attention_dropout_backward.py catch."""

from tests.mutants import Mutant
from tests.mutants.companions.shared import (
    COUNTER_MUTANTS,
    DRAW_MUTANTS,
    REFUSAL_MUTANTS,
)

SEED = "at, seed = (head // heads, head % heads), tl.load(seed_ptr)"
IN_DQ = "tl.program_id(0) * BLOCK_M\n    " + SEED
IN_DKDV = "tl.program_id(0) * BLOCK_N\n    " + SEED
DRAWN_DQ = "keep = draw_keep(seed, threshold, head, offs_m, start_n, BLOCK_N)\n"
DRAWN_DKDV = "keep = draw_keep(seed, threshold, head, offs_m, start_n, BLOCK_N).T"

MUTANTS = [
    *DRAW_MUTANTS,
    *COUNTER_MUTANTS,
    *REFUSAL_MUTANTS,
    Mutant("INPUT_PRECISION) * z\n", "INPUT_PRECISION)\n", "dp is not masked"),
    Mutant(
        "INPUT_PRECISION) * z\n",
        "INPUT_PRECISION) * (z != 0).to(tl.float32)\n",
        "dp is not scaled",
    ),
    Mutant("return p * z, p *", "return p, p *", "dv of all weights"),
    Mutant("p * (dp - delta)", "p * z * (dp - delta)", "ds from the dropped weights"),
    Mutant("p * (dp - delta)", "p * (dp - delta * z)", "delta is dropped, too"),
    Mutant("p * (dp - delta)", "p * dp", "no delta"),
    Mutant(
        "* do.to(tl.float32), axis=1, keep_dims=True)",
        "* do.to(tl.float32), axis=1, keep_dims=True) / keep_scale",
        "the delta of an o without 1 / (1 - p)",
    ),
    Mutant(", keep_scale, 0.0)", ", 1.0, 0.0)", "no 1 / (1 - p)", 2),
    Mutant(
        "tl.where(keep, keep_scale, 0.0)\n        _, ds",
        "keep_scale\n        _, ds",
        "nothing is dropped in dq",
    ),
    Mutant(
        "tl.where(keep, keep_scale, 0.0)\n        p_t",
        "keep_scale\n        p_t",
        "nothing is dropped in dk and dv",
    ),
    Mutant(IN_DQ, IN_DQ + " + 1", "seed + 1 in dq"),
    Mutant(IN_DKDV, IN_DKDV + " + 1", "seed + 1 in dk and dv"),
    Mutant(SEED, SEED + ".to(tl.int32)", "half a seed", 2),
    Mutant(SEED, SEED + " | 1", "two seeds, one mask", 2),
    Mutant(DRAWN_DQ, DRAWN_DQ.replace("head,", "at[1],"), "a mask for all batches: dq"),
    Mutant(
        DRAWN_DKDV, DRAWN_DKDV.replace("head,", "at[1],"), "one mask for all: dk, dv"
    ),
    Mutant(DRAWN_DQ, DRAWN_DQ.replace("start_n", "0"), "the first keys again: dq"),
    Mutant(
        DRAWN_DKDV,
        DRAWN_DKDV.replace("offs_m", "offs_m - start_m"),
        "the mask of the first rows: dk, dv",
    ),
    Mutant(
        DRAWN_DKDV,
        "keep = draw_keep(seed, threshold, head, offs_n, start_m, BLOCK_M)",
        "the mask of dk and dv with rows and keys exchanged",
    ),
    Mutant(
        "65536 / (65536 - threshold) if threshold < 65536 else 0.0",
        "1 / (1 - p) if p < 1 else 0.0",
        "the scale of another p than the mask's",
    ),
    Mutant(
        "65536 / (65536 - threshold) if threshold < 65536 else 0.0",
        "65536 / (65536 - threshold)",
        "1 / 0 for p = 1",
    ),
    # What comes with the two kernels.
    Mutant(
        "at[0] * strides[0]", "at[0] * strides[1]", "batches with the heads' stride"
    ),
    Mutant(" + at[1] * strides[1]", "", "one head for all"),
    Mutant("offs[:, None] * strides[2]", "offs[:, None] * strides[3]", "rows"),
    Mutant(" * strides[3]", "", "contiguous columns"),
    Mutant("(offs[:, None] < size)", "(offs[:, None] <= size)", "one row too many"),
    Mutant(" & (offs_d[None, :] < HEAD_DIM)", "", "columns beyond the last"),
    Mutant(
        "(do_ptr, do_strides, at", "(do_ptr, q_strides, at", "do with q's strides", 2
    ),
    Mutant("(o_ptr, o_strides, at", "(o_ptr, q_strides, at", "o with q's strides"),
    Mutant("(dq_ptr, dq_strides", "(dq_ptr, o_strides", "dq with o's strides"),
    Mutant("(dk_ptr, dk_strides", "(dk_ptr, dv_strides", "dk with dv's strides"),
    Mutant("(dv_ptr, dv_strides", "(dv_ptr, dk_strides", "dv with dk's strides"),
    Mutant("lse.contiguous()", "lse", "lse as if it were contiguous"),
    Mutant(
        'tl.where(lse == float("-inf"), float("inf"), lse)', "lse", "exp(-inf + inf)"
    ),
    Mutant("p = tl.where(seen, p, 0.0)", "pass", "every weight counts"),
    Mutant("mask_m & (offs_n", "(offs_n", "weights of rows that do not exist"),
    Mutant(
        "offs_m * 0 + seq_k - 1)[:, None]", "offs_m * 0 + seq_k)[:, None]", "a key more"
    ),
    Mutant("(offs_m + seq_k - seq_q if CAUSAL", "(offs_m if CAUSAL", "top left", 2),
    Mutant(
        "(offs_m + seq_k - seq_q if CAUSAL else offs_m * 0 + seq_k - 1)[None",
        "(offs_m * 0 + seq_k - 1)[None",
        "dk and dv are not causal",
    ),
    Mutant(
        "(offs_m + seq_k - seq_q if CAUSAL else offs_m * 0 + seq_k - 1)[:, None",
        "(offs_m * 0 + seq_k - 1)[:, None",
        "dq is not causal",
    ),
    Mutant("start_m + BLOCK_M + seq_k", "start_m + 1 + seq_k", "dq's band cut short"),
    Mutant(
        "tl.maximum(start_n + seq_q - seq_k, 0)",
        "tl.maximum(start_n + seq_q - seq_k + BLOCK_N, 0)",
        "dk's band cut short",
    ),
    Mutant(
        "tl.maximum(start_n + seq_q - seq_k, 0)",
        "(start_n + seq_q - seq_k)",
        "rows before the first",
    ),
    Mutant("dq * scale", "dq", "dq without the scale"),
    Mutant("dk * scale", "dk", "dk without the scale"),
    Mutant("dv, mask=mask", "dv * scale, mask=mask", "dv with the scale"),
    Mutant(
        "delta_ptr + rows, delta, mask=mask_m",
        "delta_ptr + rows, delta",
        "delta beyond its rows",
    ),
    Mutant(
        "rows, mask_m = head * seq_q", "rows, mask_m = head * 0", "one lse for all", 2
    ),
    Mutant(
        "# Which batch and head: int64, because their offsets may pass 2^31.\n"
        "    head, start_m = tl.program_id(1).to(tl.int64)",
        "head, start_m = tl.program_id(1)",
        "heads in 32 bits",
    ),
    Mutant(
        "tl.int32 if max(spans) < 2**31 else tl.int64", "tl.int32", "32 bits in a head"
    ),
    Mutant("triton.cdiv(seq_q, block_m)", "seq_q // block_m", "the last rows"),
    Mutant("triton.cdiv(seq_k, block_n)", "seq_k // block_n", "the last keys"),
    Mutant("return dq, dk, dv\n", "return dq, dv, dk\n", "another order"),
]
