"""Bugs that the tests of snippets/attention/flash2_tuned.py must catch."""

from tests.mutants import Mutant

# What the rung changes; the rest is flash2_causal.py's, and so are its mutants.
MUTANTS = [
    Mutant("scale * math.log2(math.e)", "scale", "e instead of 2"),
    Mutant("scale * math.log2(math.e)", "scale * math.log(2)", "the inverse factor"),
    Mutant("* LN_2", "", "lse of base 2"),
    Mutant("* LN_2", "/ LN_2", "lse of base 2, twice"),
    Mutant("m_i + tl.log2(l_i)", "m_i + tl.log(l_i)", "two bases in one sum"),
    Mutant("tl.exp2(m_i - shift)", "tl.exp(m_i - shift)", "rescaled to base e"),
    Mutant(
        "tl.max(s, axis=1) * scale_log2",
        "tl.max(s, axis=1)",
        "a maximum without the scale",
    ),
    Mutant("tl.exp2(s * scale_log2", "tl.exp2(s", "weights without the scale"),
    Mutant("not scale > 0:", "scale < 0:", "a scale of 0"),
    Mutant(
        "isinstance(scale, torch.Tensor) or ",
        "",
        "a tensor as scale",
        may_not_compile=True,
    ),
    Mutant("not scale > 0:", "not scale >= 0:", "only negative scales refused"),
    Mutant(
        "(tl.program_id(0) // blocks // heads).to(tl.int64)",
        "tl.program_id(0) // blocks // heads",
        "batch offsets in 32 bits",
    ),
    Mutant(
        "(tl.program_id(0) // blocks % heads).to(tl.int64)",
        "tl.program_id(0) // blocks % heads",
        "head offsets in 32 bits",
    ),
    Mutant(
        "tl.int32 if max(spans) < 2**31 else tl.int64",
        "tl.int32",
        "offsets inside a head in 32 bits",
    ),
    Mutant(
        "tl.program_id(0) // blocks % heads",
        "tl.program_id(0) % heads",
        "blocks taken for heads",
    ),
    Mutant(
        "blocks - 1 - block if CAUSAL",
        "blocks - block if CAUSAL",
        "the first block is lost",
    ),
    Mutant(
        'triton.cdiv(seq_q, named["BLOCK_M"])',
        'seq_q // named["BLOCK_M"]',
        "the last rows lost",
    ),
    Mutant(
        'shift = tl.where(m_new == float("-inf"), 0.0, m_new)',
        "shift = m_new",
        "no guard for scores of -inf",
    ),
    Mutant("torch.empty_like(q)", "q.new_empty(q.shape)", "o is always contiguous"),
    Mutant('"CAUSAL", "length"]', '"CAUSAL"]', "one choice for every length"),
    Mutant(
        "min(8192, max(512, triton.next_power_of_2(max(seq_q, seq_k))))",
        "max(seq_q, seq_k)",
        "each length is tuned",
    ),
    Mutant("if q.dtype == torch.float32:", "if False:", "float32 is tuned"),
    Mutant(
        "mask_n &= offs_n[:, None] < seq_k",
        "mask_n &= offs_n[:, None] < seq_k + 1",
        "a key behind the last is loaded",
    ),
]
