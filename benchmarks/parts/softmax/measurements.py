"""Softmax: one read and one write of the matrix, whatever a kernel really moves."""

from functools import partial

from benchmarks import peers
from benchmarks.part import published
from benchmarks.parts.softmax import matrices, moved, shapes, softmax

LONGEST = 65536  # columns of the kernels that hold a whole row

PART = softmax(
    # Just past the additional lengths the chunks of `long_rows` outgrow the L1 cache.
    shapes=shapes(float32=(1114112,), bfloat16=(2097152, 2228224)),
    inputs=partial(matrices, "x"),
    own=published(
        "softmax/three_pass.py",
        "softmax/online.py",
        "softmax/tree.py",
        "softmax/tiles.py",
        "softmax/split_row.py",
        "softmax/long_rows.py",
    )
    | published(
        "softmax/one_row.py",
        "softmax/whole_row.py",
        "softmax/persistent.py",
        takes=lambda shape: shape.cols <= LONGEST,
    ),
    peers={
        "torch.softmax": peers.torch_softmax,
        "torch.compile": peers.compiled_softmax,
        "liger": peers.liger_softmax,
        "copy": peers.copy,
    },
    facts=partial(moved, 2),
)
