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
    Mutant("not 2.0**-126 <= scale", "not scale", "a negative scale"),
    Mutant("not 2.0**-126 <= scale", "not 0 < scale", "a scale that vanishes"),
    Mutant("<= scale < 2.0**127", "<= scale", "an infinite scale"),
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
        'triton.cdiv(seq_q, config["BLOCK_M"])',
        'seq_q // config["BLOCK_M"]',
        "the last rows lost",
    ),
    Mutant(
        'shift = tl.where(m_new == float("-inf"), 0.0, m_new)',
        "shift = m_new",
        "no guard for scores of -inf",
    ),
]
