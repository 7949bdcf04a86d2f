"""Programs that wait for each other, under tests.harness.waiting."""

import pytest
import torch
import triton
import triton.language as tl

from tests.harness.inputs import INTERPRETED
from tests.harness.waiting import Turns

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="programs run at once")


@triton.jit
def chain_kernel(ticket_ptr, word_ptr, out_ptr, LAST: tl.constexpr):
    """Each program waits for the one after it; the last for none."""
    ticket = tl.atomic_add(ticket_ptr, 1)
    place = tl.program_id(0)
    word = tl.where(place == LAST, 1, 0)
    while word == 0:
        word = tl.load(word_ptr + place + 1, volatile=True)
    tl.store(word_ptr + place, word + 1)
    tl.store(out_ptr + place, ticket)


def chain(turns: Turns, programs: int, last: int) -> torch.Tensor:
    """What `programs` programs write, of which the one at `last` does not wait."""
    words = torch.zeros(programs + 2, dtype=torch.int32)
    out = torch.full((programs,), -1, dtype=torch.int32)
    with pytest.MonkeyPatch.context() as patch:
        turns.install(patch)
        chain_kernel[(programs,)](words[-1:], words, out, LAST=last)
    return out


def test_a_program_runs_again_and_its_atomics_do_not():
    turns = Turns()
    assert chain(turns, 5, last=4).tolist() == [0, 1, 2, 3, 4]
    assert turns.waited == 4 + 3 + 2 + 1


def test_programs_that_wait_for_ever_are_found():
    with pytest.raises(AssertionError, match="wait for ever"):
        chain(Turns(), 3, last=7)
