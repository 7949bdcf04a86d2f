"""Bugs that the tests of snippets/backward/one_kernel.py must catch."""

from tests.mutants import Mutant

ROWS = "rows = (batch * heads + head).to(tl.int64) * seq_q + offs_m"
MASK = "mask = (offs_m < seq_q) & (offs_d < HEAD_DIM)"
ADD = 'tl.atomic_add(ptrs, dq_t, mask=mask, sem="relaxed")'
ZEROS = "torch.zeros(q.shape, dtype=torch.float32, device=q.device)"

# The sum of dq in global memory.
SUM_MUTANTS = [
    Mutant(
        ZEROS, "torch.empty_like(q, dtype=torch.float32)", "sums begin as they were"
    ),
    Mutant(ZEROS, "torch.zeros_like(q)", "dq added up in half precision"),
    Mutant(
        ZEROS,
        "torch.zeros_like(q, dtype=torch.float32)",
        "sums laid out as q, and not as the kernel takes them to be",
    ),
    Mutant(ADD, "tl.store(ptrs, dq_t, mask=mask)", "stored: the last program wins"),
    Mutant(MASK, "mask = offs_d < HEAD_DIM", "added to rows that do not exist"),
    Mutant(MASK, "mask = offs_m < seq_q", "columns added to the next row"),
    Mutant(MASK, "mask = (offs_m < seq_q - 1) & (offs_d < HEAD_DIM)", "no last row"),
    Mutant("dq_sum + rows * HEAD_DIM", "dq_sum + rows * BLOCK_D", "rows of a tile"),
    Mutant(
        "dq_sum + rows * HEAD_DIM", "dq_sum + offs_m * HEAD_DIM", "one head for all"
    ),
    Mutant(
        "ptrs = dq_sum + rows",
        "ptrs = dq_sum + ((batch * heads + kv_head) * seq_q + offs_m)",
        "dq of the heads of keys",
    ),
    Mutant(ROWS, "rows = (batch * heads + head) * seq_q + offs_m", "32 bits", count=2),
    Mutant(
        "[batch, head, start_m, 0], dq)",
        "[batch, kv_head, start_m, 0], dq)",
        "the TMA unit adds to the heads of keys",
    ),
    Mutant(
        "[batch, head, start_m, 0], dq)",
        "[batch, head, start_n, 0], dq)",
        "the TMA unit adds to the rows of the keys",
    ),
    Mutant(
        "dq_t.T.reshape(1, 1, BLOCK_M, BLOCK_D)",
        "dq_t.reshape(1, 1, BLOCK_M, BLOCK_D)",
        "the TMA unit adds the transpose",
    ),
    Mutant("dq_sum.atomic_add(", "dq_sum.store(", "the TMA unit stores"),
    Mutant(
        "tiles_of(block_m, dq_sum)",
        "tiles_of(block_n, dq_sum)",
        "the TMA unit adds tiles of keys",
        may_not_compile=True,
    ),
    Mutant("torch.mul(dq_sum, scale, out=dq)", "dq.copy_(dq_sum)", "no scale"),
    Mutant(
        "torch.mul(dq_sum, scale, out=dq)",
        "torch.mul(dq_sum, scale * scale, out=dq)",
        "the scale of dq twice",
    ),
    Mutant(
        "torch.mul(dq_sum, scale, out=dq)",
        "torch.mul(dq.copy_(dq_sum), scale, out=dq)",
        "dq rounded before it is scaled",
    ),
    Mutant("        torch.mul(dq_sum, scale, out=dq)\n", "", "dq never converted"),
    Mutant("tl.dot(k.T, ds_t", "tl.dot(v.T, ds_t", "dq of the values"),
    Mutant("tl.dot(k.T, ds_t", "tl.dot(k.T, p_t", "dq of the weights"),
    Mutant(
        "tl.dot(k.T, ds_t.to(k.dtype))",
        "tl.dot(k.T, ds_t.to(k.dtype)).to(tl.float16).to(tl.float32)",
        "each term of dq in half precision",
    ),
]

# The preparing kernel.
DELTA_MUTANTS = [
    Mutant(
        "o.to(tl.float32) * do.to(tl.float32)",
        "o.to(tl.float32) * o.to(tl.float32)",
        "delta of o and itself",
    ),
    Mutant("o.to(tl.float32) * do.to(tl.float32)", "o * do", "products of 16 bits"),
    Mutant("delta -= tl.load(dlse_ptr", "delta += tl.load(dlse_ptr", "dlse added"),
    Mutant("if dlse_ptr is not None:", "if False:", "the gradient of lse lost"),
    Mutant(
        "tl.store(delta_ptr + rows, delta, mask=offs_m < seq_q)",
        "tl.store(delta_ptr + rows, delta, mask=offs_m < seq_q - 1)",
        "the last row-dot never written",
    ),
    Mutant(
        "tl.store(delta_ptr + rows, delta, mask=offs_m < seq_q)",
        "tl.store(delta_ptr + rows, delta)",
        "delta written into the next head",
    ),
    Mutant(ROWS, "rows = head * seq_q + offs_m", "the first batch for all", count=2),
    Mutant(
        "batch = tl.program_id(0) // blocks // heads\n",
        "batch = tl.program_id(0) // blocks % heads\n",
        "delta: the batch entry is the head",
    ),
    Mutant(
        "(triton.cdiv(seq_q, block_m) * batch * heads,)",
        "(triton.cdiv(seq_q, block_m) * batch * kv_heads,)",
        "delta of as many heads as the keys have",
    ),
    Mutant(
        "(triton.cdiv(seq_q, block_m) * batch * heads,)",
        "(triton.cdiv(seq_q, block_n) * batch * heads,)",
        "delta in blocks of keys",
    ),
]

# As in backward_tuned.py.
TILE_MUTANTS = [
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
        "MASKED=causal or seq_k % block_n > 0",
        "MASKED=causal",
        "keys that do not exist have weights: infinity * 0 in dq",
    ),
    Mutant(
        "MASKED=causal or seq_k % block_n > 0",
        "MASKED=causal or seq_k % block_m > 0",
        "the mask goes by the tile of queries",
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
    Mutant("triton.cdiv(seq_k, block_n)", "seq_k // block_n", "the last keys lost"),
]

LAUNCH_MUTANTS = [
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
    Mutant("CAUSAL=causal", "CAUSAL=False", "the causal flag lost at the launch"),
    Mutant(
        "dq.zero_(), dk.zero_(), dv.zero_()",
        "dq, dk, dv",
        "empty keys leave dq unwritten",
    ),
    Mutant("with torch.cuda.device_of(q):", "if True:", "launched on another device"),
    Mutant("heads % max(1, k.shape[1]) == 0", "True", "any number of heads of keys"),
    Mutant(
        "head_dim not in range(8, 257, 8)",
        "head_dim not in range(8, 513, 8)",
        "heads of more than 256 columns",
    ),
]

MUTANTS = [*SUM_MUTANTS, *DELTA_MUTANTS, *TILE_MUTANTS, *LAUNCH_MUTANTS]
