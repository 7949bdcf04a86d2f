"""When the programs of one multiprocessor begin and end, by the clock of the GPU.

The tuned kernel with 128 rows in 8 warps, one program of which a multiprocessor holds,
and with 64 rows in 4 warps, two of which it holds. In place of the logsumexp a program
stores both times and the number of its multiprocessor.
"""

from typing import Any

import torch

from benchmarks.part import Kernel
from benchmarks.parts.attention import TYPICAL, attention
from benchmarks.timing import Calls

IMPORT = "import triton.language as tl\n"
BEGIN = "    blocks = tl.cdiv(seq_q, BLOCK_M)\n"
END = "    tl.store(lse_ptr + offs_m, lse, mask=offs_m < seq_q)\n"
STAMPS = {
    IMPORT: f"{IMPORT}from triton.language.extra.cuda import globaltimer, smid\n",
    BEGIN: f"    began = globaltimer()\n{BEGIN}",
    END: """
    tl.debug_barrier()
    stamps = (lse_ptr + start_m).to(tl.pointer_type(tl.int64))
    tl.store(stamps, began)
    tl.store(stamps + 1, globaltimer())
    tl.store(stamps + 2, smid().to(tl.int64))
""",
}
TILES = {
    f"flash2_tuned + clock, {m} rows": {
        "BLOCK_M": m, "BLOCK_N": 64, "num_warps": warps, "num_stages": stages
    }
    for m, warps, stages in ((128, 8, 2), (64, 4, 3))
}  # fmt: skip


def spans(lse: torch.Tensor, rows: int) -> dict[str, Any]:
    """What is told of a launch, in seconds: who ran where the first program did."""
    stamps = lse.view(-1, rows).view(torch.int64)[:, :3].tolist()
    start, _, multiprocessor = min(stamps)
    programs = []
    for number, (begin, end, where) in enumerate(stamps):
        if where == multiprocessor:
            head, block = divmod(number, lse.shape[-1] // rows)
            times = {
                "begin_seconds": (begin - start) / 1e9,
                "end_seconds": (end - start) / 1e9,
            }
            programs.append({"head": head, "block": block, **times})
    return {
        "span_seconds": (max(end for _, end, _ in stamps) - start) / 1e9,
        "multiprocessor": multiprocessor,
        "programs": sorted(programs, key=lambda program: program["begin_seconds"]),
    }


def measure(calls: Calls) -> dict[str, dict[str, Any]]:
    """One launch of each, after one that warms up."""
    found = {}
    for name, (call,) in calls.items():
        _, (_, lse) = call(), call()
        found[name] = spans(lse, TILES[name]["BLOCK_M"])
    return found


PART = attention(
    shapes=TYPICAL,
    own={
        name: Kernel("attention/flash2_tuned.py", STAMPS, {"tile": tile})
        for name, tile in TILES.items()
    },
    measure=measure,
)
