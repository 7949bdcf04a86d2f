"""Bugs that the tests of snippets/backward/varlen_backward.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import ANOTHER_DEVICE, LOST_GRADIENTS
from tests.mutants.backward import shared

LAST = "tl.minimum(tl.maximum(tl.load(own_ptr + u + 1, u < batch, own), 0), own)"
END_MET = "tl.minimum(tl.maximum(tl.load(other_ptr + u + 1, u < batch, 0), 0), other)"
FIRST = "tl.maximum(start_n - diagonal, 0) // BLOCK_M * BLOCK_M"
TO_KEY = "tl.minimum(start_m + BLOCK_M + diagonal, seq_k)"
END = "tl.minimum(offs_m[:, None] + 1 + diagonal, seq_k)"
SEEN = "seen = offs_n[:, None] <= offs_m[None, :] + diagonal"
DIAGONAL = "diagonal = seq_k - seq_q if CAUSAL else seq_k"
IN_DQ = DIAGONAL + "\n    last"
IN_DKDV = DIAGONAL + "\n    first"
NO_WEIGHTS = 'lse = tl.where(lse == float("-inf"), float("inf"), lse)\n'
OF_DQ = "rows = at[1] * total_q + first_q + offs_m[:, None]"
OF_DKDV = "rows = at[1] * total_q + first_q + offs_m[None, :]"

# Which rows a program has, and which it meets.
LOCATE_MUTANTS = [
    Mutant("start // BLOCK + offs_b <=", "start // BLOCK <=", "shared blocks"),
    Mutant("offs_b <= tl", "offs_b < tl", "the block of the sequence before"),
    Mutant("range(0, batch + 1, 128)", "range(0, 128, 128)", "128 sequences, no more"),
    Mutant("    u = tl.maximum(u, 0)\n", "", "an end before the first"),
    Mutant(
        "tl.maximum(tl.load(own_ptr + u), 0)",
        "tl.load(own_ptr + u)",
        "rows before the first",
    ),
    Mutant(
        "tl.maximum(tl.load(other_ptr + u), 0)",
        "tl.load(other_ptr + u)",
        "met rows before the first",
    ),
    Mutant(
        LAST,
        "tl.maximum(tl.load(own_ptr + u + 1, u < batch, own), 0)",
        "rows beyond the tensors",
    ),
    Mutant(
        END_MET,
        "tl.maximum(tl.load(other_ptr + u + 1, u < batch, 0), 0)",
        "met rows beyond the tensors",
    ),
    Mutant(LAST, LAST.replace(", u < batch, own", ""), "an end behind the last"),
    Mutant(END_MET, END_MET.replace(", u < batch, 0", ""), "a met end behind the last"),
    Mutant(
        LAST,
        LAST.replace("u < batch, own", "u < batch, 0"),
        "nothing written behind the last sequence",
    ),
    Mutant(
        END_MET,
        END_MET.replace("u < batch, 0", "u < batch, other"),
        "what is behind the last sequence meets itself",
    ),
    Mutant(
        "tl.maximum(tl.program_id(0) - first // BLOCK - u, 0)",
        "(tl.program_id(0) - first // BLOCK - u)",
        "a block before the first",
    ),
    Mutant("first // BLOCK - u", "first // BLOCK", "a block too late"),
    Mutant(
        "return first.to(tl.int64), last - first",
        "return first.to(tl.int64), own",
        "rows up to the end of the tensors",
    ),
    Mutant(
        "first_met.to(tl.int64), met",
        "first_met.to(tl.int64), other",
        "met rows up to the end of the tensors",
    ),
    Mutant("first_met.to(tl.int64)", "first.to(tl.int64)", "own rows are met"),
    Mutant("return first.to(tl.int64)", "return first", "own rows of 32 bits"),
    Mutant("first_met.to(tl.int64)", "first_met", "met rows of 32 bits"),
    Mutant(
        "locate(cu_seqlens_k_ptr, cu_seqlens_q_ptr, total_k, total_q, batch, BLOCK_N)",
        "locate(cu_seqlens_q_ptr, cu_seqlens_q_ptr, total_k, total_q, batch, BLOCK_N)",
        "dK: the ends of the queries for those of the keys",
    ),
    Mutant(
        "locate(cu_seqlens_k_ptr, cu_seqlens_q_ptr, total_k, total_q, batch, BLOCK_N)",
        "locate(cu_seqlens_k_ptr, cu_seqlens_k_ptr, total_k, total_q, batch, BLOCK_N)",
        "dK: the ends of the keys for those of the queries",
    ),
    Mutant(
        "locate(cu_seqlens_k_ptr, cu_seqlens_q_ptr, total_k, total_q, batch, BLOCK_N)",
        "locate(cu_seqlens_k_ptr, cu_seqlens_q_ptr, total_k, total_q, batch, BLOCK_M)",
        "dK: blocks as large as those of queries",
    ),
    Mutant(
        "locate(cu_seqlens_q_ptr, cu_seqlens_k_ptr, total_q, total_k, batch, BLOCK_M)",
        "locate(cu_seqlens_q_ptr, cu_seqlens_k_ptr, total_q, total_k, batch, BLOCK_N)",
        "dQ: blocks as large as those of keys",
    ),
    Mutant(
        "locate(cu_seqlens_q_ptr, cu_seqlens_k_ptr, total_q, total_k, batch, BLOCK_M)",
        "locate(cu_seqlens_q_ptr, cu_seqlens_q_ptr, total_q, total_k, batch, BLOCK_M)",
        "dQ: the ends of the queries for those of the keys",
    ),
]

# Inside a sequence.
SEQUENCE_MUTANTS = [
    *shared.named(
        shared.TILE_MUTANTS,
        "one row too many",
        "columns beyond head_dim",
        "rows beyond the last",
    ),
    *shared.named(shared.DELTA_MUTANTS, "delta of rows that do not exist: 0 * NaN"),
    Mutant(
        "tile(dk_ptr, dk_strides, kv_at, offs_n, seq_k,",
        "tile(dk_ptr, dk_strides, kv_at, offs_n, tl.where(seq_q > 0, seq_k, 0),",
        "a sequence without queries: dK as it was",
    ),
    Mutant(
        "tile(dv_ptr, dv_strides, kv_at, offs_n, seq_k,",
        "tile(dv_ptr, dv_strides, kv_at, offs_n, tl.where(seq_q > 0, seq_k, 0),",
        "a sequence without queries: dV as it was",
    ),
    Mutant(
        "at[0] * strides[0] + at[1] * strides[1]",
        "at[1] * strides[1]",
        "every sequence begins at the first row",
    ),
    Mutant("offs[:, None] * strides[0]", "offs[:, None] * HEAD_DIM", "rows packed"),
    Mutant(" * strides[2]", "", "head_dim taken to be contiguous"),
    Mutant(
        "(offs[:, None] < size) & (offs_d",
        "(offs[:, None] < size + 16) & (offs_d",
        "a tile that reaches into the next sequence",
    ),
    Mutant(
        "    tl.store(ptrs, dk * scale, mask=mask)\n",
        "    tl.store(ptrs, dk * scale, mask=(offs_n < total_k - first_k)[:, None] "
        "& (offs_d < HEAD_DIM))\n",
        "dK of the next sequence overwritten",
    ),
    Mutant(
        "    tl.store(ptrs, dv, mask=mask)\n",
        "    tl.store(ptrs, dv, mask=(offs_n < total_k - first_k)[:, None] & (offs_d < "
        "HEAD_DIM))\n",
        "dV of the next sequence overwritten",
    ),
    Mutant(
        "    tl.store(ptrs, dq * scale, mask=mask)\n",
        "    tl.store(ptrs, dq * scale, mask=(offs_m < total_q - first_q)[:, None] & "
        "(offs_d < HEAD_DIM))\n",
        "dQ of the next sequence overwritten",
    ),
    Mutant(
        "tl.store(delta_ptr + rows, delta, mask=offs_m[:, None] < seq_q)",
        "tl.store(delta_ptr + rows, delta, mask=offs_m[:, None] < total_q - first_q)",
        "delta of the next sequence overwritten",
    ),
    Mutant(
        "    tl.store(delta_ptr + rows, delta, mask=offs_m[:, None] < seq_q)\n",
        "",
        "delta never written: the workspace as it was",
    ),
    Mutant(OF_DQ, OF_DQ.replace(" + first_q", ""), "dQ: lse of the first sequence"),
    Mutant(OF_DQ, OF_DQ.replace("total_q", "seq_q"), "dQ: lse of others"),
    Mutant(OF_DKDV, OF_DKDV.replace(" + first_q", ""), "dK: lse of the first sequence"),
    Mutant(OF_DKDV, OF_DKDV.replace("total_q", "total_k"), "dK: rows as many as keys"),
    Mutant(
        "            " + NO_WEIGHTS, "", "dK: rows that saw nothing: exp(-inf + inf)"
    ),
    Mutant(
        "exp(s - inf).\n    " + NO_WEIGHTS,
        "exp(s - inf).\n",
        "dQ: rows that saw nothing: exp(-inf + inf)",
    ),
    # The mask, which is each sequence's own.
    Mutant(
        IN_DQ,
        IN_DQ.replace("seq_k - seq_q", "total_k - total_q"),
        "dQ: the diagonal of all sequences",
    ),
    Mutant(
        IN_DKDV,
        IN_DKDV.replace("seq_k - seq_q", "total_k - total_q"),
        "dK: the diagonal of all sequences",
    ),
    Mutant(IN_DQ, IN_DQ.replace("seq_k - seq_q", "0"), "dQ: aligned top left"),
    Mutant(IN_DKDV, IN_DKDV.replace("seq_k - seq_q", "0"), "dK: aligned top left"),
    Mutant(
        IN_DQ,
        IN_DQ.replace("seq_k - seq_q if CAUSAL else seq_k", "seq_k"),
        "dQ: the causal flag is ignored",
    ),
    Mutant(
        IN_DKDV,
        IN_DKDV.replace("seq_k - seq_q if CAUSAL else seq_k", "seq_k"),
        "dK: the causal flag is ignored",
    ),
    Mutant(TO_KEY, "tl.minimum(start_m + 1 + diagonal, seq_k)", "dQ: a short band"),
    Mutant(
        TO_KEY,
        "tl.minimum(start_m + BLOCK_M - 1 + diagonal, seq_k)",
        "dQ: the loop ends a key early",
    ),
    Mutant(END, "offs_m[:, None] + 1 + diagonal", "dQ: keys of the next sequence"),
    Mutant(END, "tl.minimum(offs_m[:, None] + diagonal, seq_k)", "dQ: `<` for `<=`"),
    Mutant(
        FIRST, "(start_n - diagonal) // BLOCK_M * BLOCK_M", "dK: rows before the first"
    ),
    Mutant(
        FIRST,
        "tl.cdiv(tl.maximum(start_n - diagonal, 0), BLOCK_M) * BLOCK_M",
        "dK: the first tile of the band is lost",
    ),
    Mutant(SEEN, SEEN.replace("<=", "<"), "dK: `<` for `<=`"),
    Mutant(SEEN, SEEN + " + 1", "dK: one key too many"),
    # Heads.
    Mutant("(first_k, at[1] // group)", "(first_k, at[1])", "dQ: no shared heads"),
    Mutant("for each in range(group)", "for each in range(1)", "dK: no sum"),
    Mutant("kv_at[1] * group + each", "kv_at[1] * group", "dK: one head of a group"),
    Mutant("kv_at[1] * group + each", "kv_at[1] + each", "dK: heads of other groups"),
    Mutant(
        "at = (first_q, tl.program_id(1).to(tl.int64))",
        "at = (first_q, tl.program_id(1))",
        "dQ: heads of 32 bits",
    ),
    Mutant(
        "kv_at = (first_k, tl.program_id(1).to(tl.int64))",
        "kv_at = (first_k, tl.program_id(1))",
        "dK: heads of 32 bits",
    ),
    # Products and sums.
    Mutant("- delta)\n        dq", ")\n        dq", "dQ: delta forgotten"),
    Mutant("- delta)\n            dv", ")\n            dv", "dK: delta forgotten"),
    *shared.GRADIENT_MUTANTS,
]

LAUNCH_MUTANTS = [
    Mutant(
        '(total_q // options["BLOCK_M"] + batch + 1, heads)',
        '(total_q // options["BLOCK_M"] + batch, heads)',
        "dQ: a block too few",
    ),
    Mutant(
        '(total_k // options["BLOCK_N"] + batch + 1, kv_heads)',
        '(total_k // options["BLOCK_N"] + batch, kv_heads)',
        "dK: a block too few",
    ),
    Mutant(
        '(total_k // options["BLOCK_N"] + batch + 1, kv_heads)',
        '(total_q // options["BLOCK_N"] + batch + 1, kv_heads)',
        "dK: as many blocks of keys as of queries",
    ),
    Mutant(
        '(total_k // options["BLOCK_N"] + batch + 1, kv_heads)',
        '(total_k // options["BLOCK_N"] + batch + 1, heads)',
        "dK: programs beyond the last head of keys",
    ),
    Mutant("cu_seqlens_q.contiguous()", "cu_seqlens_q", "ends with gaps between them"),
    Mutant("lse.contiguous()", "lse", "lse of any layout read as one"),
    *shared.named(
        shared.LAUNCH_MUTANTS,
        "dK and dV exchanged",
        "gradients not laid out as their tensors",
    ),
    ANOTHER_DEVICE,
]

REFUSAL_MUTANTS = [
    Mutant("q.ndim == 3 and ", "", "any number of axes"),
    Mutant(
        "1 <= q.shape[1] <= 65535", "1 <= q.shape[1]", "a grid too high for the GPU"
    ),
    Mutant("1 <= q.shape[1] <= 65535", "q.shape[1] <= 65535", "no heads"),
    Mutant(" and 1 <= q.shape[2] <= 256", "", "any head_dim"),
    shared.OTHER_DTYPES,
    Mutant("(k.shape[1] == 0 or q.shape[1] % k.shape[1])", "False", "any heads of k"),
    Mutant("[*k.shape[:2], q.shape[2]]", "[*k.shape]", "another head_dim of k"),
    Mutant('"v": of_k, ', '"v": [*tensors["v"].shape], ', "a V of any shape"),
    Mutant('"lse": rows, ', '"lse": [*tensors["lse"].shape], ', "any lse"),
    Mutant("[*q.shape[1::-1]]", "[*q.shape[:2]]", "lse the wrong way round"),
    Mutant(
        "shapes.get(name, [*q.shape])", "shapes.get(name, [*x.shape])", "any o and dO"
    ),
    Mutant('if hasattr(x, "dtype") else x', "", "a list of ends is no tensor"),
    Mutant(
        'torch.as_tensor(tensors["cu_seqlens_q"])', 'tensors["cu_seqlens_q"]', "a list"
    ),
    Mutant("[ends.numel() or 1]", "[ends.numel()]", "no ends at all"),
    Mutant(
        '"cu_seqlens_k": n}',
        '"cu_seqlens_k": [tensors["cu_seqlens_k"].numel()]}',
        "fewer ends of keys",
    ),
    Mutant(
        'f"{dtype} {shape} on {q.device}"',
        'f"{dtype} {shape} on {x.device}"',
        "another device",
    ),
    Mutant(
        'f"{dtype} {shape} on {q.device}"',
        'f"{x.dtype} {shape} on {q.device}"',
        "another dtype",
        may_not_compile=True,
    ),
    *LOST_GRADIENTS,
]

MUTANTS = [
    *LOCATE_MUTANTS,
    *SEQUENCE_MUTANTS,
    *shared.STRIDE_MUTANTS,
    *LAUNCH_MUTANTS,
    *REFUSAL_MUTANTS,
]
