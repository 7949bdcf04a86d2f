"""Tests of snippets/attention/flash2_tuned.py."""

from typing import ClassVar

from snippets.attention import flash2_tuned
from tests.mutations import Mutation
from tests.snippets.attention.cases import (
    AttentionTests,
)
from tests.snippets.attention.tuning import TuningTests, with_blocks


class TestFlash2Tuned(AttentionTests):
    attention = staticmethod(with_blocks(flash2_tuned))
    positive_scale = True
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 32, "block_n": 16},
        {},
    )
    refused: ClassVar = {"input_precision": ("bf16x3", "TF32", None)}


class TestTuning(TuningTests):
    module = flash2_tuned


# What the rung changes; the rest is flash2_causal.py's, and so are its mutations.
MUTATIONS = [
    Mutation("scale * math.log2(math.e)", "scale", "e instead of 2"),
    Mutation("scale * math.log2(math.e)", "scale * math.log(2)", "the inverse factor"),
    Mutation("* LN_2", "", "lse of base 2"),
    Mutation("* LN_2", "/ LN_2", "lse of base 2, twice"),
    Mutation("m_i + tl.log2(l_i)", "m_i + tl.log(l_i)", "two bases in one sum"),
    Mutation("tl.exp2(m_i - shift)", "tl.exp(m_i - shift)", "rescaled to base e"),
    Mutation(
        "tl.max(s, axis=1) * scale_log2",
        "tl.max(s, axis=1)",
        "a maximum without the scale",
    ),
    Mutation("tl.exp2(s * scale_log2", "tl.exp2(s", "weights without the scale"),
    Mutation("not 2.0**-126 <= scale", "not scale", "a negative scale"),
    Mutation("not 2.0**-126 <= scale", "not 0 < scale", "a scale that vanishes"),
    Mutation("<= scale < 2.0**127", "<= scale", "an infinite scale"),
    Mutation(
        "(tl.program_id(0) // blocks // heads).to(tl.int64)",
        "tl.program_id(0) // blocks // heads",
        "batch offsets in 32 bits",
    ),
    Mutation(
        "(tl.program_id(0) // blocks % heads).to(tl.int64)",
        "tl.program_id(0) // blocks % heads",
        "head offsets in 32 bits",
    ),
    Mutation(
        "tl.program_id(0) // blocks % heads",
        "tl.program_id(0) % heads",
        "blocks taken for heads",
    ),
    Mutation(
        "blocks - 1 - block if CAUSAL",
        "blocks - block if CAUSAL",
        "the first block is lost",
    ),
    Mutation(
        'triton.cdiv(seq_q, config["BLOCK_M"])',
        'seq_q // config["BLOCK_M"]',
        "the last rows lost",
    ),
    Mutation(
        'shift = tl.where(m_new == float("-inf"), 0.0, m_new)',
        "shift = m_new",
        "no guard for scores of -inf",
    ),
]
