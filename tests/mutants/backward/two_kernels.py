"""Bugs that the tests of snippets/backward/two_kernels.py must catch."""

from tests.mutants import Mutant
from tests.mutants.backward.shared import (
    DELTA_MUTANTS,
    GRADIENT_MUTANTS,
    LAUNCH_MUTANTS,
    REFUSAL_MUTANTS,
    STRIDE_MUTANTS,
    TILE_MUTANTS,
    WEIGHTS_MUTANTS,
)

DQ_LAUNCH = """\
        if dq.numel():
            dq_kernel[(triton.cdiv(seq_q, block_m), batch * heads)](
                q, k, v, o, do, lse, dlse, delta, dq,
                *(x.stride() for x in (q, k, v, o, do, dq)), **options,
            )  # fmt: skip
"""
DKDV_LAUNCH = """\
        if dk.numel():
            dkdv_kernel[(triton.cdiv(seq_k, block_n), batch * heads)](
                q, k, v, do, lse, delta, dk, dv,
                *(x.stride() for x in (q, k, v, do, dk, dv)), **options,
            )  # fmt: skip
"""
TURNED = """\
        rows = tl.program_id(1).to(tl.int64) * seq_q + offs_m[None, :]  # [1, BLOCK_M]
        mask_m = offs_m[None, :] < seq_q
"""
ALL_KEYS, ALL_QUERIES = "range(0, seq_k, BLOCK_N)", "range(0, seq_q, BLOCK_M)"

MUTANTS = [
    *TILE_MUTANTS,
    *STRIDE_MUTANTS,
    *WEIGHTS_MUTANTS,
    *DELTA_MUTANTS,
    *GRADIENT_MUTANTS,
    *LAUNCH_MUTANTS,
    *REFUSAL_MUTANTS,
    Mutant(
        DQ_LAUNCH + DKDV_LAUNCH,
        DKDV_LAUNCH + DQ_LAUNCH,
        "delta read before it is written",
    ),
    Mutant(
        TURNED,
        TURNED.replace("[None, :]", "[:, None]"),
        "dK: lse and delta the wrong way round, which square tiles hide",
        may_not_compile=True,
    ),
    Mutant(
        "rows = tl.program_id(1).to(tl.int64) * seq_q",
        "rows = tl.program_id(1) * seq_q",
        "rows of lse in 32 bits",
        count=2,
    ),
    Mutant("lse, delta, dk, dv,", "lse, delta, dv, dk,", "dK and dV stored exchanged"),
    Mutant(
        "block_m, block_n = block_m or block, block_n or block",
        "runs = attention_backward.__dict__.setdefault('runs', [])\n"
        "    runs.append(0)\n"
        "    block_m = block_n = 16 << len(runs) % 2",
        "other tiles in every other run: not the same bits",
    ),
    Mutant(
        ALL_KEYS,
        "range(0, seq_k // BLOCK_N * BLOCK_N, BLOCK_N)",
        "dQ: the last keys dropped",
    ),
    Mutant(ALL_KEYS, "range(0, BLOCK_N, BLOCK_N)", "dQ: one tile only"),
    Mutant(
        ALL_QUERIES,
        "range(0, seq_q // BLOCK_M * BLOCK_M, BLOCK_M)",
        "dK: the last queries dropped",
    ),
    Mutant(ALL_QUERIES, "range(0, BLOCK_M, BLOCK_M)", "dK: one tile only"),
    Mutant(
        ALL_QUERIES,
        "range(0, seq_k, BLOCK_M)",
        "dK: as many queries as keys",
    ),
    Mutant(
        ALL_QUERIES,
        "range(tl.program_id(0) * BLOCK_N, seq_q, BLOCK_M)",
        "a causal mask that nobody asked for",
    ),
    Mutant(
        "ds = tl.where(offs_n[None, :] < seq_k, ds, 0.0)",
        "ds = ds",
        "keys that do not exist: inf * 0",
    ),
    Mutant(
        "offs_n[None, :] < seq_k, ds, 0.0",
        "offs_n[None, :] <= seq_k, ds, 0.0",
        "one key that does not exist",
    ),
    Mutant(
        "tl.program_id(0) * BLOCK_N + tl.arange",
        "tl.program_id(0) * BLOCK_M + tl.arange",
        "blocks of keys as large as those of queries",
    ),
    Mutant(
        "dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=INPUT_PRECISION)",
        "dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=INPUT_PRECISION)"
        ".to(k.dtype).to(tl.float32)",
        "dQ summed in the dtype of K",
    ),
    Mutant(
        "dv = tl.dot(p_t.to(do.dtype), do, dv, input_precision=INPUT_PRECISION)",
        "dv = tl.dot(p_t.to(do.dtype), do, dv, input_precision=INPUT_PRECISION)"
        ".to(do.dtype).to(tl.float32)",
        "dV summed in the dtype of dO",
    ),
    Mutant(
        "dk = tl.dot(ds_t.to(q.dtype), q, dk, input_precision=INPUT_PRECISION)",
        "dk = tl.dot(ds_t.to(q.dtype), q, dk, input_precision=INPUT_PRECISION)"
        ".to(q.dtype).to(tl.float32)",
        "dK summed in the dtype of q",
    ),
    Mutant("all_of = q, k, v, o, do, dq, dk, dv", "all_of = (q,)", "spans of q alone"),
    Mutant(
        "all_of = q, k, v, o, do, dq, dk, dv",
        "all_of = q, k, v, o, dq, dk, dv",
        "a dO far apart",
    ),
    Mutant(
        "all_of = q, k, v, o, do, dq, dk, dv",
        "all_of = q, k, v, do, dq, dk, dv",
        "an o far apart",
    ),
]
