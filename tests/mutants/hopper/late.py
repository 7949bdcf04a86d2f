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


def too_early(name: str, n: str) -> Mutant:
    """Of a consumer: V of place n may be overwritten while it is multiplied."""
    arrive = f"        mbarrier.arrive(empty.index(({n}) % PLACES))\n"
    product = f"        acc = warpgroup_mma(p, take(ring, full, {n}), acc"
    return late(
        name,
        "V is let go before it was multiplied",
        product,
        arrive,
        (arrive, ""),
        (
            product,
            f"        v = take(ring, full, {n})\n{arrive}        {SLEEP}"
            "        acc = warpgroup_mma(p, v, acc",
        ),
    )
