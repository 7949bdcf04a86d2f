"""Bugs that the tests of snippets/backward/backward_tuned.py must catch."""

from tests.mutants import Mutant

# Of the lines that one_kernel.py has as well.
SHARED_MUTANTS = [
    Mutant(
        'tl.where(lse == float("-inf"), float("inf"), lse * LOG2_E)',
        "lse * LOG2_E",
        "rows that saw nothing have weights",
    ),
    Mutant("lse * LOG2_E)", "lse)", "a natural lse taken for one in base 2"),
    Mutant("s * (scale * LOG2_E)", "s * LOG2_E", "scores without the scale"),
    Mutant("seen = offs_n < seq_k", "seen = offs_n <= seq_k", "a key too many"),
    Mutant(
        "seen &= offs_n <= offs_m + seq_k - seq_q",
        "seen &= offs_n < offs_m + seq_k - seq_q",
        "no query sees its own key",
    ),
    Mutant(
        "seen &= offs_n <= offs_m + seq_k - seq_q",
        "seen &= offs_n <= offs_m",
        "the mask aligned top left",
    ),
    Mutant(
        "        if CAUSAL:\n            seen",
        "        if False:\n            seen",
        "the causal flag ignored in the mask",
    ),
    Mutant("p = tl.where(seen, p, 0.0)", "pass", "no mask at all"),
    Mutant("p * (dp - delta)", "p * dp", "no row-dot"),
    Mutant("p * (dp - delta)", "p * (dp + delta)", "the row-dot added"),
    Mutant("p * (dp - delta)", "dp - delta", "ds without the weights"),
    Mutant(
        "o.to(tl.float32) * do.to(tl.float32)",
        "o.to(tl.float32) * o.to(tl.float32)",
        "delta of o and itself",
    ),
    Mutant("delta -= tl.load(dlse_ptr", "delta += tl.load(dlse_ptr", "dlse added"),
    Mutant("if dlse_ptr is not None:", "if False:", "the gradient of lse lost"),
    Mutant(
        "tl.store(delta_ptr + rows, delta, mask=offs_m < seq_q)",
        "tl.store(delta_ptr + rows, delta, mask=offs_m < seq_q - 1)",
        "the last row-dot never written",
    ),
    Mutant(
        "(heads // GROUP)\n    kv_head",
        "heads\n    kv_head",
        "batches counted in heads of queries",
    ),
    Mutant(
        "tl.maximum(start_n + seq_q - seq_k, 0)",
        "tl.maximum(start_n + BLOCK_N + seq_q - seq_k, 0)",
        "queries of the band left out",
    ),
    Mutant(
        "tl.maximum(start_n + seq_q - seq_k, 0)",
        "start_n + seq_q - seq_k",
        "queries before the first",
    ),
    Mutant(
        "tl.maximum(start_n + seq_q - seq_k, 0)", "start_n", "queries bounded top left"
    ),
    Mutant(
        "range(kv_head * GROUP, kv_head * GROUP + GROUP)",
        "range(kv_head * GROUP, kv_head * GROUP + 1)",
        "the other heads of the group forgotten",
    ),
    Mutant(
        "range(kv_head * GROUP, kv_head * GROUP + GROUP)",
        "range(kv_head, kv_head + 1)",
        "heads of keys taken for heads of queries",
    ),
    Mutant(
        "range(first, seq_q, BLOCK_M)",
        "range(first, seq_q // BLOCK_M * BLOCK_M, BLOCK_M)",
        "the last queries dropped",
    ),
    Mutant("dk = (dk * scale)", "dk = dk", "dk without the scale"),
    Mutant(
        "dv = tl.dot(p_t.to(do.dtype), do, dv)",
        "dv = tl.dot(ds_t.to(do.dtype), do, dv)",
        "dv of ds",
    ),
    Mutant(
        "dk = tl.dot(ds_t.to(q.dtype), q, dk)",
        "dk = tl.dot(p_t.to(q.dtype), q, dk)",
        "dk of the weights",
    ),
    Mutant(
        "k, q, v, do, lse, delta",
        "k, q, do, v, lse, delta",
        "dp the wrong way round",
        may_not_compile=True,
    ),
    Mutant(
        "return dq, dk, dv\n\n\n# --8<-- [end:launch]",
        "return dq, dv, dk\n\n\n# --8<-- [end:launch]",
        "gradients in the wrong order",
    ),
    Mutant(
        "lse, dlse = lse.contiguous(),", "lse, dlse = lse,", "lse read as if contiguous"
    ),
    Mutant(
        "None if dlse is None else dlse.contiguous()",
        "dlse",
        "dlse read as if contiguous",
    ),
    Mutant(
        "head_dim**-0.5 if scale is None else scale",
        "head_dim**-0.5",
        "the caller's scale ignored",
    ),
    Mutant(
        "dq.zero_(), dk.zero_(), dv.zero_()",
        "dq, dk, dv",
        "empty keys leave dq unwritten",
    ),
    Mutant("heads % max(1, k.shape[1]) == 0", "True", "any number of heads of keys"),
    Mutant(
        "head_dim not in range(8, 257, 8)",
        "head_dim not in range(8, 513, 8)",
        "heads of more than 256 columns",
    ),
]

MUTANTS = [
    *SHARED_MUTANTS,
    Mutant("s * (scale * LOG2_E)", "s * scale", "natural scores in a power of 2"),
    Mutant(
        "(blocks - 1 - tl.program_id(0) % blocks)",
        "(blocks - 1 - tl.program_id(0) // blocks)",
        "the block of another head",
    ),
    Mutant(
        "rows = (batch * heads + head).to(tl.int64) * seq_q + offs_m",
        "rows = head * seq_q + offs_m",
        "the lse of the first batch for all",
        count=2,
    ),
    Mutant(
        "tl.minimum(start_m + BLOCK_M + seq_k - seq_q, seq_k)",
        "tl.minimum(start_m + seq_k - seq_q, seq_k)",
        "keys of the band left out",
    ),
    Mutant(
        "tl.minimum(start_m + BLOCK_M + seq_k - seq_q, seq_k)",
        "tl.minimum(start_m + BLOCK_M, seq_k)",
        "keys bounded top left",
    ),
    Mutant(
        "head // GROUP, start_n",
        "head % (heads // GROUP), start_n",
        "keys of another head",
        count=2,
    ),
    Mutant("dq = (dq * scale)", "dq = dq", "dq without the scale"),
    Mutant(
        "dq = tl.dot(ds.to(k.dtype), k, dq)",
        "dq = tl.dot(ds.to(k.dtype), v, dq)",
        "dq of the values",
    ),
    Mutant(
        "dq = tl.dot(ds.to(k.dtype), k, dq)",
        "dq = tl.dot(ds.to(k.dtype), k, dq).to(tl.float16).to(tl.float32)",
        "dq added up in half precision",
    ),
    Mutant(
        "MASKED=causal or seq_k % n > 0",
        "MASKED=causal",
        "keys that do not exist have weights",
    ),
    Mutant(
        "MASKED=causal or seq_k % n > 0",
        'MASKED=causal or seq_k % tiles["dkdv"][1] > 0',
        "keys that do not exist, by the tiles of the other kernel",
    ),
]
