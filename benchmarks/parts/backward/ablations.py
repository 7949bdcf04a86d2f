"""The tuned backward pass with one thing changed: a tile, a stage, a line."""

from benchmarks import timing
from benchmarks.part import Kernel
from benchmarks.parts.attention import TYPICAL
from benchmarks.parts.backward import Gradients, backward, ours

TUNED = "backward/backward_tuned.py"
CHOSEN = {"dq": (128, 64, 8, 3), "dkdv": (64, 64, 4, 2)}  # of head_dim 128
# Queries, keys, num_warps and num_stages.
TILES = {
    "dq": [(64, 64, 4, 2), (128, 64, 8, 2), (128, 128, 8, 2)],
    "dkdv": [(64, 64, 4, 3), (64, 128, 8, 3), (128, 64, 4, 2), (128, 128, 8, 2)],
}
# Texts of the file.
LINES = {
    "natural exponentials": {
        'tl.where(lse == float("-inf"), float("inf"), lse * LOG2_E)': (
            'tl.where(lse == float("-inf"), float("inf"), lse)'
        ),
        "tl.exp2(s * (scale * LOG2_E) - lse2)": "tl.exp(s * scale - lse2)",
    },
    "every tile masked": {"MASKED=causal or seq_k % n > 0": "MASKED=True"},
    "first block first": {"(blocks - 1 - tl.program": "(tl.program"},
}


def takes(shape: object) -> bool:
    """Half precision only."""
    return shape.dtype != "float32"


def tiled(kernel: str, tile: tuple[int, int, int, int]) -> Kernel:
    """The file with another tile for one of its kernels."""
    options = {"tiles": CHOSEN | {kernel: tile}}
    return Gradients(TUNED, options=options, takes=takes)


PART = backward(
    shapes=TYPICAL,
    own=ours(TUNED, takes=takes)
    | {
        f"{kernel}: {m} x {n}, {warps} warps, {stages} stages": tiled(kernel, tile)
        for kernel, tiles in TILES.items()
        for tile in tiles
        for m, n, warps, stages in [tile]
    }
    | {what: Gradients(TUNED, changes, takes=takes) for what, changes in LINES.items()},
    measure=timing.one_by_one,
    against={"times_tuned": TUNED},
)
