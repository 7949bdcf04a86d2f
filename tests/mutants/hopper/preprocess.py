"""Bugs that the tests of snippets/hopper/preprocess.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    # Where things are.
    Mutant(
        "[pair // heads, pair % heads, start_m, 0]",
        "[0, pair % heads, start_m, 0]",
        "the first batch",
    ),
    Mutant(
        "[pair // heads, pair % heads, start_m, 0]",
        "[pair // heads, 0, start_m, 0]",
        "the first head",
    ),
    Mutant("heads, start_m, 0]", "heads, 0, 0]", "the first tile"),
    Mutant("do = do_desc.load", "do = o_desc.load", "o for do"),
    Mutant("pair.to(tl.int64) * seq_q", "pair.to(tl.int64) * line", "lines of lse"),
    Mutant("2 * pair.to(tl.int64) * line", "2 * pair * line", "lines in 32 bits"),
    Mutant("2 * pair.to(tl.int64) * line", "pair.to(tl.int64) * line", "half of it"),
    Mutant("rows_ptr + line + offs_m, delta", "rows_ptr + offs_m, delta", "one line"),
    Mutant("rows_ptr + line + offs_m", "rows_ptr + seq_q + offs_m", "no gap in it"),
    Mutant("triton.cdiv(seq_q, 4) * 4", "seq_q", "lines of any length"),
    Mutant("triton.cdiv(seq_q, block_m)", "max(1, seq_q // block_m)", "no last tile"),
    Mutant("lse.contiguous(), None", "lse, None", "lse read as if contiguous"),
    Mutant("else dlse.contiguous()", "else dlse", "dlse read as if contiguous"),
    Mutant("from_tensor(aligned(x),", "from_tensor(x,", "what TMA cannot take"),
    Mutant("if o.numel() == 0:", "if False:", "descriptors of nothing"),
    # Masks.
    Mutant(
        "tl.store(rows_ptr + offs_m, lse2, mask=seen)",
        "tl.store(rows_ptr + offs_m, lse2)",
        "lse2 behind its line",
    ),
    Mutant("delta, mask=seen", "delta", "delta behind its line"),
    Mutant(
        "tl.load(lse_ptr + row + offs_m, mask=seen, other=0.0)",
        "tl.load(lse_ptr + row + offs_m)",
        "lse read behind its end",
    ),
    Mutant(
        "dlse_ptr + row + offs_m, mask=seen, other=0.0",
        "dlse_ptr + row + offs_m",
        "dlse read behind its end",
    ),
    # Numbers.
    Mutant("lse * LOG2_E)", "lse)", "a natural lse"),
    Mutant('float("inf"), lse *', 'float("-inf"), lse *', "-inf stays"),
    Mutant("delta -= tl", "delta += tl", "dlse is added"),
    Mutant("lse, dlse, rows, heads", "lse, None, rows, heads", "dlse is ignored"),
    Mutant(
        "o.to(tl.float32) * do.to(tl.float32)",
        "(o * do).to(tl.float32)",
        "products rounded",
    ),
    Mutant(
        "tl.sum(o.to(tl.float32) * do.to(tl.float32), axis=1)",
        "tl.sum((o.to(tl.float32) * do.to(tl.float32)).to(o.dtype), axis=1)",
        "sums of rounded products",
    ),
    # What is refused.
    Mutant("o.ndim != 4 or", "", "any rank"),
    Mutant(
        "o.ndim != 4 or o.dtype not in (torch.float16, torch.bfloat16)",
        "o.ndim != 4",
        "any dtype",
    ),
    Mutant("range(8, 257, 8)", "range(8, 257)", "columns that TMA cannot take"),
    Mutant("range(8, 257, 8)", "range(0, 257, 8)", "no columns"),
    Mutant("range(8, 257, 8)", "range(8, 265, 8)", "too many columns"),
    Mutant("        if got != right:\n", "        if False:\n", "anything"),
    Mutant(
        '"dlse": lse if dlse is None else dlse',
        '"dlse": lse',
        "dlse is not looked at",
    ),
    Mutant("x.requires_grad:", "False:", "a gradient is lost"),
    Mutant("torch.is_grad_enabled() and", "", "no_grad does not help"),
    Mutant(
        "with torch.cuda.device_of(o):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
