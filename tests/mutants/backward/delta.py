"""Bugs that the tests of snippets/backward/delta.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    # Strides of a gradient that comes from outside.
    Mutant(
        "batch * stride_dob + head * stride_doh",
        "batch * stride_ob + head * stride_oh",
        "do: bases of o",
    ),
    Mutant("offs_m[:, None] * stride_dom", "offs_m[:, None] * stride_om", "rows of o"),
    Mutant("offs_d[None, :] * stride_dod", "offs_d[None, :] * stride_od", "columns"),
    Mutant("offs_d[None, :] * stride_dod", "offs_d[None, :]", "do's columns adjacent"),
    Mutant("offs_d[None, :] * stride_od", "offs_d[None, :]", "o's columns adjacent"),
    Mutant("*o.stride(), *do.stride()", "*o.stride(), *o.stride()", "o's strides"),
    Mutant(
        "*do.stride(), *of_dlse",
        "*do.stride(), *delta.stride()",
        "dlse taken contiguous",
    ),
    Mutant("o_ptr += batch * stride_ob +", "o_ptr +=", "the first batch of o"),
    Mutant("batch * stride_dob +", "", "the first batch of do"),
    Mutant("+ head * stride_doh", "", "the first head of do"),
    Mutant(
        "batch * stride_dlb + head * stride_dlh",
        "head * stride_dlh",
        "the first batch of dlse",
    ),
    Mutant(
        "batch * stride_dlb + head * stride_dlh",
        "batch * stride_dlb",
        "the first head of dlse",
    ),
    # Offsets of 32 bits.
    Mutant(
        "(tl.program_id(1) // heads).to(tl.int64)",
        "tl.program_id(1) // heads",
        "batches in 32 bits",
    ),
    Mutant(
        "(tl.program_id(1) % heads).to(tl.int64)",
        "tl.program_id(1) % heads",
        "heads in 32 bits",
    ),
    Mutant(
        "(batch * heads + head) * seq_q",
        "((batch * heads + head).to(tl.int32) * seq_q)",
        "delta in 32 bits",
    ),
    Mutant(
        "tl.int32 if max(spans) < 2**31 else tl.int64",
        "tl.int32",
        "offsets inside a head in 32 bits",
    ),
    Mutant("for x in (o, do)]", "for x in (o,)]", "do's span is not looked at"),
    Mutant("for x in (o, do)]", "for x in (do,)]", "o's span is not looked at"),
    Mutant("    spans.append(seq_q * of_dlse[2])\n", "", "nor is dlse's"),
    # Masks.
    Mutant(
        "& (offs_d[None, :] < HEAD_DIM)",
        "& (offs_d[None, :] < BLOCK_D)",
        "what lies beside a row is read",
    ),
    Mutant(
        "& (offs_d[None, :] < HEAD_DIM)",
        "& (offs_d[None, :] <= HEAD_DIM)",
        "a column too many",
    ),
    Mutant(
        "(offs_m[:, None] < seq_q) &",
        "(offs_m[:, None] <= seq_q) &",
        "a row too many is read",
    ),
    Mutant("delta, mask=offs_m < seq_q)", "delta)", "the next head's delta is written"),
    Mutant(
        "tl.load(dlse_ptrs, mask=offs_m < seq_q, other=0.0)",
        "tl.load(dlse_ptrs)",
        "dlse read beyond its end",
    ),
    Mutant("mask=mask, other=0.0", "mask=mask, other=1.0", "tails of ones", count=2),
    Mutant("tl.program_id(0) * BLOCK_M +", "", "the first rows again and again"),
    Mutant("triton.cdiv(seq_q, block_m)", "max(1, seq_q // block_m)", "no last rows"),
    Mutant(
        "max(16, triton.next_power_of_2(head_dim))",
        "max(16, triton.next_power_of_2(head_dim) // 2)",
        "half of a row",
    ),
    # The sum.
    Mutant("tl.sum(o * do, axis=1)", "tl.sum(do, axis=1)", "no o"),
    Mutant("tl.sum(o * do, axis=1)", "tl.sum(o * o, axis=1)", "o twice"),
    Mutant("tl.sum(o * do, axis=1)", "tl.max(o * do, axis=1)", "the maximum"),
    Mutant("tl.sum(o * do, axis=1)", "tl.sum(o * do, axis=1) / HEAD_DIM", "the mean"),
    Mutant("other=0.0).to(tl.float32)", "other=0.0)", "sums in float16", count=2),
    Mutant(
        "tl.sum(o * do, axis=1)",
        "tl.sum((o * do).to(tl.float16).to(tl.float32), axis=1)",
        "products rounded to float16",
    ),
    Mutant("delta -= tl.load(dlse", "delta += tl.load(dlse", "dlse added"),
    Mutant("o, do, dlse, delta, *o", "o, do, None, delta, *o", "dlse forgotten"),
    Mutant(
        "dtype=torch.float32, device=o.device",
        "dtype=o.dtype, device=o.device",
        "delta in the dtype of o",
    ),
    # The launch, and what it refuses.
    Mutant(
        "with torch.cuda.device_of(o):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
    Mutant("if o.ndim != 4:", "if o.ndim < 4:", "five dimensions taken for four"),
    Mutant(
        "if o.dtype not in",
        "if o.dtype in (torch.int32,) and o.dtype not in",
        "float64 accepted",
    ),
    Mutant("1 <= head_dim <= 256", "1 <= head_dim", "any head_dim accepted"),
    Mutant("if x.shape != shape:", "if x.shape[2:] != shape[2:]:", "other heads of do"),
    Mutant(
        "if (x.dtype, x.device) != (dtype, o.device):",
        "if x.device != o.device:",
        "any dtype of do",
    ),
    Mutant(
        "if (x.dtype, x.device) != (dtype, o.device):",
        "if x.dtype != dtype:",
        "any device",
    ),
    Mutant('("do", do), ("dlse", dlse)):', '("do", do)):', "dlse's gradient is lost"),
    Mutant(
        "torch.is_grad_enabled() and x.requires_grad",
        "x.requires_grad",
        "refused without grad mode",
    ),
]
