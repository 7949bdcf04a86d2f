"""Bugs that the tests of snippets/backward/one_kernel.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import ANOTHER_DEVICE
from tests.mutants.backward.backward_tuned import SHARED_MUTANTS

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
    Mutant("o.to(tl.float32) * do.to(tl.float32)", "o * do", "products of 16 bits"),
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

LAUNCH_MUTANTS = [
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
    Mutant("triton.cdiv(seq_k, block_n)", "seq_k // block_n", "the last keys lost"),
    Mutant("CAUSAL=causal", "CAUSAL=False", "the causal flag lost at the launch"),
    ANOTHER_DEVICE,
]

MUTANTS = [*SUM_MUTANTS, *DELTA_MUTANTS, *SHARED_MUTANTS, *LAUNCH_MUTANTS]
