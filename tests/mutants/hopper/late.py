"""Bugs of waiting: a wait is missing, and what it waits for is late."""

from pathlib import Path

from tests.mutants import Mutant

SNIPPETS = Path(__file__).parents[3] / "snippets/hopper"
# 20 microseconds, which change nothing of a kernel that waits where it must.
SLEEP = (
    'gl.inline_asm_elementwise("nanosleep.u32 20000; mov.u32 $0, 0;", "=r", [], '
    "dtype=gl.int32, is_pure=False, pack=1)\n"
)


def late(
    name: str,
    why: str,
    first: str,
    last: str,
    *changes: tuple[str, str],
    may_hang: bool = False,
) -> Mutant:
    """Without the delay, what nobody waits for is mostly in time.

    Args:
        name: the snippet's, such as "gluon_backward.py".
        why: the bug in words.
        first, last: the text from the one to the other is replaced.
        changes: what changes in there, each of which it has once.
        may_hang: as of a mutant.
    """
    text = (SNIPPETS / name).read_text("utf-8")
    old = new = text[text.index(first) : text.index(last) + len(last)]
    for before, after in changes:
        assert new.count(before) == 1, before
        new = new.replace(before, after)
    return Mutant(old, new, why, may_hang=may_hang)


def too_early(name: str) -> Mutant:
    """Of a consumer: a stage may be overwritten while it is multiplied."""
    take = "        k, v = take_stage(rings, full, i)\n"
    arrive = "        mbarrier.arrive(empty.index(i % STAGES))\n"
    return late(
        name,
        "a stage is let go before it was multiplied",
        take,
        arrive,
        (arrive, ""),
        (take, f"{take}{arrive}        {SLEEP}"),
    )
