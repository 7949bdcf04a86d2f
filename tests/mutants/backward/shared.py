"""Bugs that several backward kernels of attention could have."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import ANOTHER_DEVICE, LOST_GRADIENTS


def named(mutants: list[Mutant], *words: str) -> list[Mutant]:
    """Those of a list that another kernel could have as well."""
    known = {mutant.why: mutant for mutant in mutants}
    return [known[each] for each in words]


# In the words of two_kernels.py. One rung tries a list; the next ones try what they
# change, or the list without what they replace.
TILE_MUTANTS = [
    Mutant(
        "at[0] * strides[0] + at[1] * strides[1]",
        "at[1] * strides[0] + at[0] * strides[1]",
        "batch and head exchanged",
    ),
    Mutant("at[0] * strides[0] + ", "", "every batch entry reads the first"),
    Mutant("offs[:, None] * strides[2]", "offs[:, None] * HEAD_DIM", "rows packed"),
    Mutant(" * strides[3]", "", "head_dim taken to be contiguous"),
    Mutant("offs[:, None] < size", "offs[:, None] <= size", "one row too many"),
    Mutant(
        "(offs[:, None] < size) & (offs_d[None, :] < HEAD_DIM)",
        "(offs[:, None] < size)",
        "columns beyond head_dim",
    ),
    Mutant(
        "(offs[:, None] < size) & (offs_d[None, :] < HEAD_DIM)",
        "(offs_d[None, :] < HEAD_DIM)",
        "rows beyond the last",
    ),
    Mutant("tl.load(ptrs, mask=mask, other=0.0)", "tl.load(ptrs)", "loads", count=5),
    Mutant(
        "tl.load(ptrs_n, mask=here, other=0.0)",
        "tl.load(ptrs_n)",
        "loads of keys in the loop",
        count=2,
    ),
    Mutant(
        "tl.load(ptrs_m, mask=here, other=0.0)",
        "tl.load(ptrs_m)",
        "loads of queries in the loop",
        count=2,
    ),
    Mutant(
        "(tl.program_id(1).to(tl.int64) // heads,",
        "(tl.program_id(1) // heads,",
        "batch offsets in 32 bits",
        count=2,
    ),
    Mutant(
        "tl.program_id(1).to(tl.int64) % heads)",
        "tl.program_id(1) % heads)",
        "head offsets in 32 bits",
        count=2,
    ),
    Mutant(
        "tl.int32 if max(spans) < 2**31 else tl.int64",
        "tl.int32",
        "offsets inside a head in 32 bits",
    ),
    Mutant("x.shape[2] * x.stride(2) + ", "", "rows far apart"),
    Mutant(" + head_dim * x.stride(3)", "", "columns far apart"),
]

# Whose strides, in the launch of dq_kernel and of dkdv_kernel.
STRIDE_MUTANTS = [
    Mutant("(q, k, v, o, do, dq))", "(q, q, v, o, do, dq))", "dQ: K with q's strides"),
    Mutant("(q, k, v, o, do, dq))", "(q, k, k, o, do, dq))", "dQ: V with K's strides"),
    Mutant("(q, k, v, o, do, dq))", "(q, k, v, q, do, dq))", "dQ: o with q's strides"),
    Mutant("(q, k, v, o, do, dq))", "(q, k, v, o, o, dq))", "dQ: dO with o's strides"),
    Mutant("(q, k, v, o, do, dq))", "(q, k, v, o, q, dq))", "dQ: dO with q's strides"),
    Mutant("(q, k, v, o, do, dq))", "(q, k, v, o, do, q))", "dQ with q's strides"),
    Mutant("(q, k, v, do, dk, dv))", "(k, k, v, do, dk, dv))", "dK: q with K's"),
    Mutant("(q, k, v, do, dk, dv))", "(q, k, k, do, dk, dv))", "dK: V with K's"),
    Mutant("(q, k, v, do, dk, dv))", "(q, k, v, q, dk, dv))", "dK: dO with q's"),
    Mutant("(q, k, v, do, dk, dv))", "(q, k, v, o, dk, dv))", "dK: dO with o's"),
    Mutant("(q, k, v, do, dk, dv))", "(q, k, v, do, k, dv))", "dK with K's strides"),
    Mutant("(q, k, v, do, dk, dv))", "(q, k, v, do, dk, v))", "dV with V's strides"),
    Mutant("(q, k, v, do, dk, dv))", "(q, k, v, do, dk, dk))", "dV with dK's strides"),
]

# p, dp and ds of a tile.
WEIGHTS_MUTANTS = [
    Mutant(
        "s = tl.dot(a, b.T, input_precision=INPUT_PRECISION) * scale",
        "s = tl.dot(a, b.T, input_precision=INPUT_PRECISION)",
        "scores without the scale",
    ),
    Mutant("p = tl.exp(s", "p = tl.exp2(s", "lse taken as one of base 2"),
    Mutant(
        'tl.where(lse == float("-inf"), float("inf"), lse)',
        "lse",
        "rows that saw nothing: exp(-inf + inf)",
    ),
    Mutant(
        'tl.where(lse == float("-inf"), float("inf"), lse)',
        'tl.where(lse == float("-inf"), 0.0, lse)',
        "rows that saw nothing have the weights exp(s)",
    ),
    Mutant(
        's - tl.where(lse == float("-inf"), float("inf"), lse)',
        "s",
        "weights that nobody normalised",
    ),
    Mutant("tl.dot(c, d.T", "tl.dot(d, c.T", "dp turned", may_not_compile=True),
    Mutant("tl.dot(c, d.T", "tl.dot(a, d.T", "dp from q, not dO"),
    Mutant("p * (dp - delta)", "p * dp", "delta forgotten"),
    Mutant("p * (dp - delta)", "p * (dp + delta)", "delta added"),
    Mutant("p * (dp - delta)", "p * dp - delta", "delta without its weight"),
    Mutant("p * (dp - delta)", "(dp - delta)", "ds without the weights"),
    Mutant(
        "p * (dp - delta)",
        "p.to(tl.float16) * (dp - delta)",
        "weights rounded to half precision before ds",
    ),
    Mutant("return p, ds", "return ds, p", "p and ds exchanged"),
]

# delta and lse: one number a row.
DELTA_MUTANTS = [
    Mutant(
        "o.to(tl.float32) * do.to(tl.float32)",
        "q.to(tl.float32) * do.to(tl.float32)",
        "delta from q",
    ),
    Mutant(
        "o.to(tl.float32) * do.to(tl.float32)",
        "do.to(tl.float32) * do.to(tl.float32)",
        "delta from dO alone",
    ),
    Mutant(
        "o.to(tl.float32) * do.to(tl.float32)",
        "o.to(tl.float16).to(tl.float32) * do.to(tl.float32)",
        "delta from an output in half precision",
    ),
    Mutant("if dlse_ptr is not None:", "if False:", "the gradient of lse is lost"),
    Mutant("delta -= tl.load(dlse_ptr", "delta += tl.load(dlse_ptr", "dlse's sign"),
    Mutant(
        "    if dlse_ptr is not None:\n"
        "        delta -= tl.load(dlse_ptr + rows, mask=mask_m, other=0.0)\n"
        "    # --8<-- [line:keep]\n"
        "    tl.store(delta_ptr + rows, delta, mask=mask_m)\n",
        "    tl.store(delta_ptr + rows, delta, mask=mask_m)\n"
        "    if dlse_ptr is not None:\n"
        "        delta -= tl.load(dlse_ptr + rows, mask=mask_m, other=0.0)\n",
        "delta kept before dlse is subtracted",
    ),
    Mutant(
        "    tl.store(delta_ptr + rows, delta, mask=mask_m)\n",
        "",
        "delta never written: the workspace as it was",
    ),
    Mutant(
        "tl.store(delta_ptr + rows, delta, mask=mask_m)",
        "tl.store(delta_ptr + rows, delta)",
        "delta written beyond its rows",
    ),
    Mutant(
        "tl.load(delta_ptr + rows, mask=mask_m, other=0.0)",
        'tl.load(delta_ptr + rows, mask=mask_m, other=float("nan"))',
        "delta of rows that do not exist: 0 * NaN",
    ),
    Mutant(
        "tl.load(delta_ptr + rows, mask=mask_m, other=0.0)",
        "tl.load(delta_ptr + rows)",
        "delta read beyond its rows",
    ),
    Mutant(
        'tl.load(lse_ptr + rows, mask=mask_m, other=float("inf"))',
        'tl.load(lse_ptr + rows, mask=mask_m, other=float("nan"))',
        "lse of rows that do not exist is left to chance",
        count=2,
    ),
    Mutant(
        'tl.load(lse_ptr + rows, mask=mask_m, other=float("inf"))',
        "tl.load(lse_ptr + rows)",
        "lse read beyond its rows",
        count=2,
    ),
    Mutant(
        "rows = tl.program_id(1).to(tl.int64) * seq_q + offs_m[:, None]",
        "rows = offs_m[:, None]",
        "dQ: the lse of the first head",
    ),
    Mutant(
        "rows = tl.program_id(1).to(tl.int64) * seq_q + offs_m[None, :]",
        "rows = offs_m[None, :]",
        "dK: the lse of the first head",
    ),
    Mutant(
        "rows = tl.program_id(1).to(tl.int64) * seq_q + offs_m[None, :]",
        "rows = tl.program_id(1).to(tl.int64) * seq_k + offs_m[None, :]",
        "dK: as many rows of lse as keys",
    ),
    Mutant(
        "lse, dlse = lse.contiguous()",
        "lse, dlse = lse",
        "lse of any layout read as one",
    ),
]

# Products, sums, scale and stores of the three gradients.
GRADIENT_MUTANTS = [
    Mutant("tl.dot(ds.to(k.dtype), k, dq", "tl.dot(ds.to(k.dtype), v, dq", "dQ from V"),
    Mutant(
        "tl.dot(ds.to(k.dtype), k, dq,",
        "tl.dot(ds.to(k.dtype), k,",
        "dQ of the last tile only",
    ),
    Mutant(
        "tl.dot(ds.to(k.dtype), k, dq,",
        "tl.dot(ds.to(tl.float16).to(k.dtype), k, dq,",
        "ds rounded to half precision",
    ),
    Mutant("dq * scale", "dq", "dQ without the scale"),
    Mutant("dq * scale", "dq * scale * scale", "dQ with the scale twice"),
    Mutant(
        "tl.store(ptrs, dq * scale, mask=mask)",
        "tl.store(ptrs, dq * scale)",
        "dQ written beyond its rows",
    ),
    Mutant("tl.dot(p_t.to(do.dtype), do,", "tl.dot(p_t.to(do.dtype), q,", "dV from q"),
    Mutant("p_t.to(do.dtype), do", "ds_t.to(do.dtype), do", "dV from ds"),
    Mutant(
        "p_t.to(do.dtype)",
        "p_t.to(tl.float16).to(do.dtype)",
        "dV: weights rounded to half precision",
    ),
    Mutant(", do, dv, input", ", do, input", "dV of the last tile only"),
    Mutant("ds_t.to(q.dtype), q, dk", "p_t.to(q.dtype), q, dk", "dK from the weights"),
    Mutant("ds_t.to(q.dtype), q, dk", "ds_t.to(q.dtype), do, dk", "dK from dO"),
    Mutant(", q, dk, input", ", q, input", "dK of the last tile only"),
    Mutant("dk * scale", "dk", "dK without the scale"),
    Mutant("dk * scale", "dk * scale * scale", "dK with the scale twice"),
    Mutant("tl.store(ptrs, dv, mask", "tl.store(ptrs, dv * scale, mask", "dV scaled"),
    Mutant(
        "tl.store(ptrs, dk * scale, mask=mask)",
        "tl.store(ptrs, dk * scale)",
        "dK written into the next head",
    ),
    Mutant(
        "tl.store(ptrs, dv, mask=mask)",
        "tl.store(ptrs, dv)",
        "dV written into the next head",
    ),
]

# Which programs there are, and what they are given.
LAUNCH_MUTANTS = [
    Mutant("return dq, dk, dv", "return dq, dv, dk", "dK and dV exchanged"),
    Mutant("return dq, dk, dv", "return dk, dq, dv", "dQ and dK exchanged"),
    Mutant("return dq, dk, dv", "return dq, dk", "a gradient too few"),
    Mutant("triton.cdiv(seq_q, block_m)", "seq_q // block_m", "the last queries lost"),
    Mutant("triton.cdiv(seq_k, block_n)", "seq_k // block_n", "the last keys lost"),
    Mutant(
        "triton.cdiv(seq_k, block_n)",
        "triton.cdiv(seq_q, block_n)",
        "as many blocks of keys as of queries",
    ),
    Mutant("if dk.numel():", "if dq.numel():", "no queries: dK and dV as they were"),
    Mutant("if dq.numel():", "if dk.numel():", "no keys: dQ as it was"),
    Mutant(
        "(torch.empty_like(x) for x in",
        "(torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in",
        "gradients not laid out as their tensors",
    ),
    Mutant("head_dim**-0.5 if", "head_dim**-1.0 if", "another default scale"),
    Mutant(
        "if dlse is None else dlse.contiguous()",
        "if dlse is None else dlse",
        "dlse of any layout",
    ),
    ANOTHER_DEVICE,
]

OTHER_DTYPES = Mutant(
    "q.dtype not in (torch.float16, torch.bfloat16, torch.float32)",
    "not q.is_floating_point()",
    "other dtypes",
    may_not_compile=True,
)

REFUSAL_MUTANTS = [
    Mutant("q.ndim != 4", "q.ndim < 4", "more dimensions"),
    OTHER_DTYPES,
    Mutant("1 <= head_dim <= 256", "1 <= head_dim <= 512", "a large head_dim"),
    Mutant("1 <= head_dim <= 256", "head_dim <= 256", "a head_dim of 0"),
    Mutant("batch * heads > 65535", "False", "a grid too high for the GPU"),
    Mutant("if x.shape != shape:", "if False:", "shapes that do not fit"),
    Mutant(
        "(x.dtype, x.device) != (dtype, q.device)",
        "x.device != q.device",
        "another dtype",
        may_not_compile=True,
    ),
    Mutant(
        "(x.dtype, x.device) != (dtype, q.device)",
        "x.dtype != dtype",
        "another device",
    ),
    *LOST_GRADIENTS,
    Mutant('("dlse", lse if dlse is None else dlse,', '("dlse", lse,', "any dlse"),
    Mutant(
        '("o", o, q.shape, q.dtype)', '("o", o, o.shape, q.dtype)', "an o of any shape"
    ),
    Mutant(
        '("do", do, q.shape, q.dtype)',
        '("do", do, do.shape, q.dtype)',
        "a dO of any shape",
    ),
    Mutant(
        '("v", v, of_keys, q.dtype)', '("v", v, v.shape, q.dtype)', "a V of any shape"
    ),
    Mutant('("lse", lse, of_rows,', '("lse", lse, lse.shape,', "an lse of any shape"),
]
