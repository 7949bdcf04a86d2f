"""What the warp groups of a program do and when, by the clock of its multiprocessor.

Each kernel runs as it is published, and with stamps: one thread of a warp group stores
how many cycles the multiprocessor has counted. In the machine code stamps, products and
waits keep their order, and no exponential passes a stamp.
"""

from functools import cache
from types import ModuleType
from typing import Any

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from benchmarks import timing
from benchmarks.calls import load
from benchmarks.part import Kernel, published
from benchmarks.parts.attention import TYPICAL, attention
from benchmarks.timing import Calls

SHOWN = 4  # tiles


@gluon.jit
def stamp(at):
    """Store the cycles that the multiprocessor has counted."""
    clock = gl.inline_asm_elementwise(
        "mov.u64 $0, %clock64;", "=l", [], dtype=gl.int64, is_pure=False, pack=1
    )
    gl.store(at, clock)


@gluon.jit
def room(stamps, tiles, COUNT: gl.constexpr):
    """Where a program has its stamps, 8 for a tile, and first its multiprocessor's."""
    own = stamps + gl.program_id(0).to(gl.int64) * (8 * COUNT * tiles)
    where = gl.inline_asm_elementwise(
        "mov.u32 $0, %smid;", "=r", [], dtype=gl.int32, is_pure=False, pack=1
    )
    gl.store(own + 7, where.to(gl.int64))  # tile 0 has no other stamp there
    return own


def stamped(groups: int) -> dict[str, str]:
    """What changes in each file: where the stamps of that many warp groups go."""
    return {
        "# --8<-- [start:kernel]\n": (
            "from benchmarks.parts.hopper.timeline import room, stamp\n"
        ),
        "v_desc, o_desc, lse_ptr, scale_log2": (
            "v_desc, o_desc, lse_ptr, scale_log2, stamps"
        ),
        "q.shape[0] * q.shape[1]\n": f"""q.shape[0] * q.shape[1]
        tiles = triton.cdiv(k.shape[2], descs[1].block_shape[2])
        stamps = lse.new_empty(programs, {groups}, tiles, 8, dtype=torch.int64)
""",
        "*descs, lse, scale_log2": "*descs, lse, scale_log2, stamps",
        "    return o, lse\n\n\n# --8<-- [end:launch]": "    return o, stamps\n",
    }


FLASH = stamped(groups=1) | {
    "    for i in range(tiles):\n": """
    own = room(stamps, tiles, 1)
    for i in range(tiles):
        here = own + 8 * i
""",
    "        # --8<-- [line:wait]\n": "        stamp(here)\n",
    "        # --8<-- [line:scores]\n": "        stamp(here + 1)\n",
    "        if i == 0:\n": "        stamp(here + 2)\n        if i == 0:\n",
    "        mbarrier.wait(v_full, i & 1)\n": """
        stamp(here + 3)
        mbarrier.wait(v_full, i & 1)
        stamp(here + 4)
""",
    "    # --8<-- [end:loop]\n": "        stamp(here + 5)\n",
}


def given(rings: str) -> dict[str, str]:
    """What kernels with a producer and two consumers share, but for a word."""
    names = f"    o_desc, lse_ptr, {rings}, scale_log2, seq_k = given\n"
    return {
        f"{names}    batch, head, start_m, tiles = at\n": (
            f"{names}    batch, head, start_m, tiles, own = at\n"
        ),
        "    at = (batch, head, start_m, tiles)\n": """
    own = room(stamps, tiles, 3)
    at = (batch, head, start_m, tiles, own)
    loads = (batch, head, start_m, tiles, own + 16 * tiles)
""",
        "(batch, head, start_m + 64, tiles)": (
            "(batch, head, start_m + 64, tiles, own + 8 * tiles)"
        ),
        f"{rings}, bars, at)),\n        ],": f"{rings}, bars, loads)),\n        ],",
    }


SPECIALISED = (
    stamped(groups=3)
    | given("ring")
    | {
        "def load(desc, at, ring, full, empty, n):\n": (
            "def load(desc, at, ring, full, empty, n, here):\n"
        ),
        "    # --8<-- [line:empty]\n": "    stamp(here)\n",
        "    bar = full.index(n % PLACES)\n": """
    stamp(here + 1)
    bar = full.index(n % PLACES)
""",
        "at, bar, ring.index(n % PLACES))\n": (
            "at, bar, ring.index(n % PLACES))\n    stamp(here + 2)\n"
        ),
        """\
    q_desc, k_desc, v_desc = descs
    batch, head, start_m, tiles = at
""": """\
    q_desc, k_desc, v_desc = descs
    batch, head, start_m, tiles, own = at
""",
        "load(k_desc, rows, ring, full, empty, 2 * i)": (
            "load(k_desc, rows, ring, full, empty, 2 * i, own + 8 * i)"
        ),
        "load(v_desc, rows, ring, full, empty, 2 * i + 1)": (
            "load(v_desc, rows, ring, full, empty, 2 * i + 1, own + 8 * i + 3)"
        ),
        "scale_log2, seq_k, first, last,\n": "scale_log2, seq_k, first, last, own,\n",
        "scale_log2, seq_k, 0, 1,\n": "scale_log2, seq_k, 0, 1, own,\n",
        "scale_log2, seq_k, 1, tiles,\n": "scale_log2, seq_k, 1, tiles, own,\n",
        "        k = take(ring, full, 2 * i)\n": """
        here = own + 8 * i
        stamp(here)
        k = take(ring, full, 2 * i)
        stamp(here + 1)
""",
        "        # --8<-- [line:arrive]\n": "        stamp(here + 2)\n",
        "        v = take(ring, full, 2 * i + 1)\n": """
        stamp(here + 3)
        v = take(ring, full, 2 * i + 1)
        stamp(here + 4)
""",
        "        mbarrier.arrive(empty.index((2 * i + 1) % PLACES))\n": """
        stamp(here + 5)
        mbarrier.arrive(empty.index((2 * i + 1) % PLACES))
""",
    }
)
# In the machine code of the published loops the second wait and the two arrivals stand
# before the exponentials, behind most of the maxima. Among stamps the arrivals stay
# where the source has them, so here the source has them there.
FIRST = """\
        stamp(here + 4)
        top = gl.max(s, axis=1)
        stamp(here + 5)
        acc, top = warpgroup_mma_wait(0, deps=[acc, top])
"""
# The file from which the causal kernel imports its producer has the same changes.
STAGES = {
    "    mbarrier.wait(empty.index(n % STAGES), (n // STAGES & 1) ^ 1)\n": """
    stamp(here)
    mbarrier.wait(empty.index(n % STAGES), (n // STAGES & 1) ^ 1)
    stamp(here + 1)
""",
    "rings, full, empty, n):\n": "rings, full, empty, n, here):\n",
    "v_desc, v_rows, bar, v_ring.index(n % STAGES))\n": (
        "v_desc, v_rows, bar, v_ring.index(n % STAGES))\n    stamp(here + 2)\n"
    ),
    """\
    q_desc, k_desc, v_desc = descs
    batch, head, start_m, tiles = at
""": """\
    q_desc, k_desc, v_desc = descs
    batch, head, start_m, tiles, own = at
""",
    # The last stage, whose K is none, has its stamps where the one before has them.
    "rings, full, empty, i)\n": (
        "rings, full, empty, i, own + 8 * gl.minimum(i, tiles - 1))\n"
    ),
}
OVERLAPPED = (
    stamped(groups=3)
    | given("rings")
    | STAGES
    | {
        "        k, v = take_stage(rings, full, i)\n": """
        here = own + 8 * i
        stamp(here)
        k, v = take_stage(rings, full, i)
        stamp(here + 1)
""",
        "        # --8<-- [line:sums]\n": "        stamp(here + 3)\n",
        """\
        p_next, m_i, l_i, alpha = softmax(s, m_i, l_i, scale_log2)
        # --8<-- [line:second_wait]
        acc = warpgroup_mma_wait(0, deps=[acc])
        mbarrier.arrive(empty.index(i % STAGES))
""": f"""
{FIRST}
        mbarrier.arrive(empty.index(i % STAGES))
        stamp(here + 6)
        p_next, m_i, l_i, alpha = softmax(s, m_i, l_i, scale_log2)
""",
        "    # --8<-- [end:loop]\n": "        stamp(here + 7)\n",
    }
)


CAUSAL = stamped(groups=3) | {
    "import produce, take_stage\n": """import take_stage
from benchmarks.parts.hopper import timeline
produce = timeline.overlapped().produce
""",
    "    bars, rings, descs =": """
    own = room(stamps, tiles, 3)
    batch, head, start_m, tiles = at
    loads = (batch, head, start_m, tiles, own + 16 * tiles)
    bars, rings, descs =""",
    "rings, bars, w, CAUSAL)) for w in which]": (
        "rings, (full, empty, go, own + 8 * w * tiles), w, CAUSAL)) for w in which]"
    ),
    "rings, (full, empty), at))],": "rings, (full, empty), loads))],",
    """\
    full, empty, go = bars
    STAGES: gl.constexpr""": """\
    full, empty, go, own = bars
    STAGES: gl.constexpr""",
    """\
    full, empty, go = bars
    BLOCK_N: gl.constexpr""": """\
    full, empty, go, _own = bars
    BLOCK_N: gl.constexpr""",
    "        k, v = take_stage(rings, full, i)\n": """
        here = own + 8 * i
        stamp(here)
        k, v = take_stage(rings, full, i)
        stamp(here + 1)
""",
    "        mbarrier.wait(go.index(W), i & 1)\n": """
        mbarrier.wait(go.index(W), i & 1)
        stamp(here + 2)
""",
    "        acc = warpgroup_mma(p, v, acc, is_async=True)\n": """
        stamp(here + 3)
        acc = warpgroup_mma(p, v, acc, is_async=True)
""",
    """\
        p, m_i, l_i, alpha = softmax(s, m_i, l_i, scale_log2)
        p = gl.convert_layout(p.to(v.dtype), gl.DotOperandLayout(0, SUMS, k_width=2))
        # p is handed through the wait: so its numbers stay packed between the loops.
        acc, p = warpgroup_mma_wait(0, deps=[acc, p])
        mbarrier.arrive(empty.index(i % STAGES))
""": f"""
{FIRST}
        mbarrier.arrive(empty.index(i % STAGES))
        stamp(here + 6)
        p, m_i, l_i, alpha = softmax(s, m_i, l_i, scale_log2)
        p = gl.convert_layout(p.to(v.dtype), gl.DotOperandLayout(0, SUMS, k_width=2))
""",
    "    return m_i, l_i, acc, p\n": """
        stamp(here + 7)
    return m_i, l_i, acc, p
""",
}


@cache
def overlapped() -> ModuleType:
    """The file from which the causal kernel imports its producer, with stamps."""
    return load("hopper/gluon_overlapped.py", OVERLAPPED)


# What a warp group does, from which stamp of a turn to which; and of what tile, counted
# from that of the turn. A product lasts from its issue to the end of the wait for it.
IN_TURN = (
    ("wait", 0, 1, 0), ("scores", 1, 2, 0), ("softmax", 2, 3, 0), ("wait", 3, 4, 0),
    ("sums", 4, 5, 0),
)  # fmt: skip
SOFTMAX = ("softmax", 4, 5, 0), ("softmax", 6, 7, 0)
AHEAD = ("wait", 0, 1, 0), ("scores", 1, 4, 0), ("sums", 3, 6, -1), *SOFTMAX
BY_TURNS = (
    ("wait", 0, 1, 0), ("turn", 1, 2, 0), ("scores", 2, 4, 0), ("sums", 3, 6, -1),
    *SOFTMAX,
)  # fmt: skip
STAGE = ("wait", 0, 1, 0), ("load", 1, 2, 0)  # in one stage K and V
LOADS = *STAGE, ("wait", 3, 4, 0), ("load", 4, 5, 0)
GROUPS = {
    "gluon_flash + clock": {"program": IN_TURN},
    **{
        f"gluon_{rung} + clock": {"consumer 0": w, "consumer 1": w, "producer": loads}
        for rung, w, loads in (
            ("specialised", IN_TURN, LOADS),
            ("overlapped", AHEAD, STAGE),
            ("causal", BY_TURNS, STAGE),
        )
    },
}
KERNELS = {
    "gluon_flash + clock": Kernel("hopper/gluon_flash.py", FLASH),
    "gluon_specialised + clock": Kernel("hopper/gluon_specialised.py", SPECIALISED),
    "gluon_overlapped + clock": Kernel("hopper/gluon_overlapped.py", OVERLAPPED),
    "gluon_causal + clock": Kernel("hopper/gluon_causal.py", CAUSAL),
}


def spans(stamps: torch.Tensor, groups: dict[str, Any]) -> dict[str, Any]:
    """Some turns of a program in a launch, and what its multiprocessor did meanwhile.

    Of the programs from the middle one on it is the first one during whose turns no
    other one of its multiprocessor begins or ends.
    """
    where = stamps[:, 0, 0, 7]
    count, _, tiles, _ = stamps.shape
    first = (tiles - SHOWN) // 2
    for program in range(count // 2, count):
        begin, end = (int(stamps[program, 0, n, 0]) for n in (first, first + SHOWN))
        beside = (where == where[program]).nonzero().flatten().tolist()
        # Turn 0 of some kernels has no stamps.
        turns = {n: (stamps[n, 0, 1, 0], stamps[n, 0, -1, 0]) for n in beside}
        there = {n for n, (a, b) in turns.items() if a < end and b > begin}
        if all(turns[n][0] <= begin and turns[n][1] >= end for n in there):
            break
    else:
        raise LookupError("on each multiprocessor a program began or ended meanwhile")
    found: list[dict[str, Any]] = []
    for n in sorted(there, key=lambda n: n != program):
        for group, (name, does) in enumerate(groups.items()):
            rows = stamps[n, group].tolist()
            told = [
                {
                    "what": what,
                    "tile": tile + of,
                    "begin_cycles": max(row[a], begin) - begin,
                    "end_cycles": min(row[b], end) - begin,
                }
                for tile, row in enumerate(rows[1:], start=1)
                for what, a, b, of in does
                if row[a] < end and row[b] > begin
            ]
            found.append({"name": name, "program": n, "spans": told})
    multiplying = cycles_of(found, end - begin, "scores", "sums")
    exponentials = cycles_of(found, end - begin, "softmax")
    return {
        "cycles": end - begin,
        "cycles_per_tile": (end - begin) / SHOWN,
        "fraction_of_cycles_with_product": share(multiplying),
        "fraction_of_cycles_with_softmax": share(exponentials),
        "fraction_of_cycles_with_both": share(multiplying & exponentials),
        "groups": found,
    }


def cycles_of(groups: list[dict[str, Any]], count: int, *what: str) -> torch.Tensor:
    """In which of that many cycles some warp group is at one of these."""
    found = torch.zeros(count, dtype=torch.bool)
    for group in groups:
        for span in group["spans"]:
            if span["what"] in what:
                found[span["begin_cycles"] : span["end_cycles"]] = True
    return found


def share(found: torch.Tensor) -> float:
    """How many of them are true, as a part of all."""
    return found.double().mean().item()


def measure(calls: Calls) -> dict[str, dict[str, Any]]:
    """The times, and what the clock told of one launch of each after those."""
    found: dict[str, dict[str, Any]] = dict(timing.in_graphs(calls))
    for name in GROUPS.keys() & found.keys():
        (call,) = calls[name]
        _, stamps = call()
        found[name] |= spans(stamps.cpu(), GROUPS[name])
    return found


PART = attention(
    shapes=TYPICAL[:1],
    own=published(*(kernel.of for kernel in KERNELS.values())) | KERNELS,
    measure=measure,
)
