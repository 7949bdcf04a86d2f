"""Bugs that the tests of snippets/hopper/postprocess.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    # The order.
    Mutant(
        "permute(3, 2, 4, 0, 1, 6, 5, 7)",
        "permute(3, 2, 4, 0, 1, 5, 6, 7)",
        "squares between lanes",
    ),
    Mutant(
        "permute(3, 2, 4, 0, 1, 6, 5, 7)",
        "permute(3, 2, 4, 1, 0, 6, 5, 7)",
        "halves inside 16 columns",
    ),
    Mutant(
        "permute(3, 2, 4, 0, 1, 6, 5, 7)",
        "permute(2, 3, 4, 0, 1, 6, 5, 7)",
        "8 rows of each warp",
    ),
    Mutant(
        "reshape(2, BLOCK_D // 32, 2, 4, 8, 4, 2, 2)",
        "reshape(2, BLOCK_D // 32, 4, 2, 8, 4, 2, 2)",
        "each warp's rows together",
    ),
    Mutant(
        "    dq = dq.permute(3, 2, 4, 0, 1, 6, 5, 7)  # rows, then columns\n",
        "",
        "the order of the threads",
    ),
    # Where things are.
    Mutant("tl.program_id(0).to(tl.int64) * 64 *", "0 *", "the first tile's sums"),
    Mutant("[pair // heads, pair % heads,", "[0, pair % heads,", "the first batch"),
    Mutant("[pair // heads, pair % heads,", "[pair // heads, 0,", "the first head"),
    Mutant("block * 64, 0]", "0, 0]", "the first rows"),
    Mutant("tl.cdiv(seq_q, 64)", "seq_q // 64 + 1", "one tile more"),
    Mutant("64 if head_dim <= 64 else 128", "64 if head_dim < 64 else 128", "64 alone"),
    Mutant("aligned(torch.empty_like(q))", "torch.empty_like(q)", "what TMA cannot"),
    Mutant("torch.empty_like(q)", "q", "q written over"),
    Mutant("torch.empty_like(q)", "q.new_empty(q.shape)", "another layout"),
    Mutant("if dq.numel() == 0:", "if False:", "a descriptor of nothing"),
    # Numbers.
    Mutant("BLOCK_D)) * scale", "BLOCK_D))", "no scale"),
    Mutant("BLOCK_D)) * scale", "BLOCK_D)).to(dq_desc.dtype) * scale", "rounded first"),
    Mutant(
        "head_dim**-0.5 if scale is None else scale",
        "head_dim**-0.5",
        "the caller's scale ignored",
    ),
    Mutant(
        "head_dim**-0.5 if scale is None else scale",
        "scale or head_dim**-0.5",
        "a scale of 0 ignored",
    ),
    Mutant("head_dim**-0.5", "block_d**-0.5", "the scale of the tile"),
    # What is refused.
    Mutant("q.ndim != 4 or", "", "any rank"),
    Mutant(
        "q.ndim != 4 or q.dtype not in (torch.float16, torch.bfloat16)",
        "q.ndim != 4",
        "any dtype",
    ),
    Mutant("range(8, 129, 8)", "range(8, 129)", "columns that TMA cannot take"),
    Mutant("range(8, 129, 8)", "range(0, 129, 8)", "no columns"),
    Mutant("range(8, 129, 8)", "range(8, 137, 8)", "too many columns"),
    Mutant("got != right or not", "not", "sums of anything"),
    Mutant(" or not dq_sum.is_contiguous()", "", "sums with gaps"),
    Mutant("x.requires_grad:", "False:", "a gradient is lost"),
    Mutant("torch.is_grad_enabled() and", "", "no_grad does not help"),
    Mutant(
        "with torch.cuda.device_of(q):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
