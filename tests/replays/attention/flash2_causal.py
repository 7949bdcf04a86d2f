"""Causal attention: of four tiles one is whole, two are masked and one is skipped."""

import torch
import triton
import triton.language as tl

from snippets.attention.flash2_causal import attention_kernel
from tests.replays import Replay, Run, Tensors
from tests.replays.attention import tiles
from tests.replays.story import Moment

BLOCK = 4


def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
    """The kernel with tiles of 4 x 4, for a batch of one and one head."""
    (seq_q, head_dim), seq_k = q.shape, k.shape[0]
    o, lse = torch.empty_like(q), torch.empty(seq_q)
    strides = [each for x in (q, k, v, o) for each in (0, 0, *x.stride())]
    attention_kernel[(triton.cdiv(seq_q, BLOCK), 1)](
        q, k, v, o, lse, head_dim**-0.5, *strides, 1, 1, seq_q, seq_k,
        CAUSAL=True, HEAD_DIM=head_dim, BLOCK_M=BLOCK, BLOCK_N=BLOCK, BLOCK_D=head_dim,
        INPUT_PRECISION="ieee", INDEX=tl.int32,
    )  # fmt: skip
    return {"o": o, "lse": lse}


def whole(at: Moment) -> str:
    """What the first stage will do."""
    if float(at["full"]) == 0:
        return (
            "No tile is seen whole by all rows of this block, so the loop without a "
            "mask has nothing to do."
        )
    return (
        "All rows of this block see the first {full} keys: their tiles are whole, and "
        "the first loop needs no mask."
    )


def cut(at: Moment) -> str:
    """What the second stage will do, and what nobody does."""
    text = (
        "The second loop masks: the diagonal cuts the tiles of the keys from {full} up "
        "to {last}."
    )
    if float(at["last"]) < float(at["seq_k"]):
        text += (
            " From key {last} on no row sees anything, so that tile is never loaded."
        )
    return text


def visited(q: torch.Tensor, k: torch.Tensor) -> int:
    """The tiles that are not skipped, by their definition."""
    ends = range(BLOCK, len(q) + 1, BLOCK)
    return sum(triton.cdiv(end + len(k) - len(q), BLOCK) for end in ends)


REPLAY = Replay(
    call=call,
    expected=lambda q, k, v: tiles.expected(q, k, v, causal=True),
    runs={
        "square": Run("8 queries, 8 keys", tiles.heads(8, 8, 4, seed=3)),
        "last": Run("The last 4 queries", tiles.heads(4, 8, 4, seed=4)),
    },
    memory=tiles.MEMORY,
    maps=[tiles.scores()],
    state=tiles.STATE,
    rows="offs_m",
    follow="m_i",
    lines={
        **tiles.START,
        "off_band": whole,
        "on_band": cut,
        **tiles.LOOP,
        "s = tl.where(seen": (
            "Scores of keys that a row must not see become -∞, so they will weigh 0."
        ),
        "acc = acc * alpha": tiles.shrink,
        "acc = tl.dot": (
            "Weights times values: what these keys add to the output, on the chip."
        ),
        **tiles.END,
    },
    frames="acc = tl.dot",
    program="query block {0}",
    formulas={
        "read": "N_q · d · b + 2 · T · B_c · d · b",
        "written": "N_q · (d · b + 4)",
    },
    symbols=lambda q, k, v: {
        "N_q": len(q),
        "d": q.shape[1],
        "b": q.element_size(),
        "B_c": BLOCK,
        "T": visited(q, k),
    },
)
