"""Tests of snippets/attention/flash2_single_head.py."""

from snippets.attention import flash2_single_head
from tests.snippets.attention.cases import (
    FINISH_MUTATIONS,
    LAUNCH_MUTATIONS,
    LOOP_MUTATIONS,
    ONLINE_MUTATIONS,
    POINTER_MUTATIONS,
    SingleHeadTests,
    refusal_mutations,
)


class TestFlash2SingleHead(SingleHeadTests):
    attention = staticmethod(flash2_single_head.attention)
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 64, "block_n": 16},
        {},
    )


MUTATIONS = [
    *POINTER_MUTATIONS,
    *ONLINE_MUTATIONS,
    *FINISH_MUTATIONS,
    *LOOP_MUTATIONS,
    *LAUNCH_MUTATIONS,
    *refusal_mutations(2),
]
