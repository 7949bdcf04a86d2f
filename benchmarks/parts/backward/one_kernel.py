"""One kernel for all three gradients against two, and what it costs to add up dq.

A kernel that lost its additions stores the tiles of dq in their place, one over the
other. That result is wrong, and nobody looks at it.
"""

from typing import Any

from benchmarks import peers, timing
from benchmarks.calls import Inputs
from benchmarks.part import Part
from benchmarks.parts.backward import (
    PROTOCOL,
    Gradients,
    check,
    credited,
    derived,
    normal,
    ours,
)

ONE, TUNED = "backward/one_kernel.py", "backward/backward_tuned.py"
TMA = {"tma": True}
STORED = {
    'tl.atomic_add(ptrs, dq_t, mask=mask, sem="relaxed")': (
        "tl.store(ptrs, dq_t, mask=mask)"
    )
}
STORED_BY_TMA = {"dq_sum.atomic_add(": "dq_sum.store("}
# By the columns of a head: queries, keys, num_warps and num_stages.
TILES = {
    64: [(64, 64, 4, 2), (32, 128, 8, 3)],
    128: [(64, 64, 8, 2), (64, 128, 8, 2)],
    256: [(32, 64, 8, 2)],
}
NAMES = "BLOCK_M", "BLOCK_N", "num_warps", "num_stages"
RUNS = 4  # that are compared with the first one


def tiled(head_dim: int, tile: tuple[int, int, int, int]) -> Gradients:
    """The file with another tile, for heads of so many columns."""
    options = {"tile": dict(zip(NAMES, tile, strict=True))}
    return Gradients(ONE, options=options, takes=lambda s: s.head_dim == head_dim)


def lost(name: str) -> bool:
    """Whether a kernel stores in place of adding."""
    return " - " in name


def check_gradients(name: str, inputs: Inputs, found: Any) -> None:
    """What lost its additions is not checked."""
    if not lost(name):
        check(name, inputs, found)


def measure(calls: timing.Calls) -> dict[str, dict[str, float]]:
    """Times; and how far dq of a run is from that of the first, as a part of it."""
    found = timing.one_by_one(calls)
    for name, (call,) in calls.items():
        if not lost(name):
            first = call()[0]
            apart = max((call()[0] - first).abs().max().item() for _ in range(RUNS))
            found[name]["difference"] = apart / first.abs().max().item()
    return found


# The package's `backward` is hidden as soon as the list of that name is loaded.
PART = Part(
    shapes=[each for each in PROTOCOL if each.seq == 4096],
    own=ours(ONE, TUNED, "backward/causal_backward.py")
    | {
        "one_kernel by TMA": Gradients(ONE, options=TMA),
        "one_kernel - atomics": Gradients(ONE, STORED),
        "one_kernel by TMA - additions": Gradients(ONE, STORED_BY_TMA, TMA),
    }
    | {
        f"one_kernel, {m} x {n}, {warps} warps, {stages} stages": tiled(head_dim, tile)
        for head_dim, tiles in TILES.items()
        for tile in tiles
        for m, n, warps, stages in [tile]
    },
    peers={
        "sdpa-flash": derived(peers.sdpa_flash),
        "flex_attention": derived(peers.flex),
    },
    inputs=normal,
    check=check_gradients,
    facts=credited,
    measure=measure,
    ceiling="matmul",
    against={"times_tuned": TUNED, "times_flash": "sdpa-flash"},
)
