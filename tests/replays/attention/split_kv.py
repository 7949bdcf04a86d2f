"""Decoding: two programs share the keys of a head, and a second launch merges."""

import torch
import triton.language as tl

from snippets.attention.split_kv import attention_kernel, merge_kernel
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.attention import tiles
from tests.replays.attention.tiles import BLOCK
from tests.replays.sentences import Moment

SPLITS = 2


def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
    """Both launches for one query of heads that share their keys."""
    (heads, head_dim), seq_k = q.shape, k.shape[0]
    o, lse = torch.empty_like(q), torch.empty(heads)
    o_parts, lse_parts = q.new_empty(SPLITS, *q.shape), q.new_empty(SPLITS, heads)
    attention_kernel[(1, SPLITS)](
        q, k, v, None, o_parts, lse_parts, head_dim**-0.5,
        0, head_dim, 0, 1, 0, 0, *k.stride(), 0, 0, *v.stride(), 1, 1, 1, 1, seq_k,
        GROUP=heads, HEAD_DIM=head_dim, BLOCK_M=heads, BLOCK_N=BLOCK, BLOCK_D=head_dim,
        INPUT_PRECISION="ieee", INDEX=tl.int32, CAUSAL=False,
    )  # fmt: skip
    merge_kernel[(heads, 1)](
        o_parts, lse_parts, o, lse, heads, SPLITS,
        HEAD_DIM=head_dim, BLOCK_S=SPLITS, BLOCK_D=head_dim,
    )  # fmt: skip
    return {"o": o, "lse": lse}


def begins(at: Moment) -> str:
    """Which keys a program has."""
    first = int(at.array("start_n"))
    which = "first" if at["tile"] == 1 else "next"
    return (
        f"Part {{split}} takes its {which} tile: keys {first} to "
        f"{min(first + BLOCK, int(at.array('last'))) - 1}."
    )


REPLAY = Replay(
    call=call,
    expected=tiles.expected,
    runs={"two": Run("2 heads, 12 keys", tiles.heads(2, 12, 4, seed=9))},
    memory=[
        Show("q", "q", "one query of 2 heads", "Q"),
        Show("k", "k", "keys", "K", turned=True),
        Show("v", "v", "values", "V"),
        Show("o_parts", "o", "outputs of the parts", "O parts"),
        Show("lse_parts", "lse", "logsumexps of the parts", "lse parts"),
        Show("o", "o", "output", "O"),
        Show("lse", "lse", "logsumexp", turned=True),
    ],
    state=[
        *(show for show in tiles.STATE if show.name != "lse"),
        Show("lse_s", "lse", "logsumexps of the parts", "lse parts"),
        Show("o_s", "o", "outputs of the parts", "O parts"),
        Show("m", "m", "the largest of them"),
        Show("w", "p", "weights of the parts", "w"),
        Show("l", "l", "their sum"),
        Show("merged", "o", "merged output", "o"),
    ],
    rows="offs_h",
    follow="m_i",
    lines={
        "part": begins,
        "q = tl.load": (
            "Each part of the keys has a program. This one has part {split}, and loads "
            "the query of both heads: {bytes} bytes."
        ),
        "m_i = tl.full": "",
        "l_i = tl.zeros": "",
        "acc = tl.zeros": tiles.START["acc = tl.zeros"],
        **tiles.LOOP,
        "s = tl.where(offs_n": "",
        "acc = acc * alpha": tiles.shrink,
        "acc = tl.dot": tiles.ADDED,
        "o = acc /": "The part is divided by its own sum: {l_i} in row {row}.",
        "kernel: tl.store(o_ptr": (
            "Store the output of this part, which the next launch will merge: {bytes} "
            "bytes."
        ),
        "kernel: tl.store(lse_ptr": (
            "Store its logsumexp, which says how much the part counts: {bytes} bytes."
        ),
        "lse_s = tl.load": (
            "The second launch has a program for each head. Load the logsumexps of "
            "both parts of head {row}: {bytes} bytes."
        ),
        "o_s = tl.load": "Load the outputs of both parts: {bytes} bytes.",
        "merge_max": "The larger logsumexp is {m_i}.",
        "merge_weights": "Each part has the weight exp(lse - {m_i}): {w}.",
        "merge_sum": "The weights add up to {l_i}.",
        "merge_output": (
            "The output is the mean of the parts, each with its weight: as if the keys "
            "had never been split."
        ),
        "merge: tl.store(o_ptr": "Store the output of head {row}: {bytes} bytes.",
        "merge: tl.store(lse_ptr": "Store its logsumexp: {bytes} bytes.",
    },
    frames="acc = tl.dot",
    program={"attention_kernel": "part {1}", "merge_kernel": "merge head {0}"},
    formulas={
        "read": "2 · N · d · b + K · g · d · b + 4 · g · K · (d + 1)",
        "written": "4 · g · K · (d + 1) + g · (d · b + 4)",
    },
    symbols=lambda q, k, v: {
        "N": len(k),
        "d": q.shape[1],
        "b": q.element_size(),
        "g": len(q),
        "K": SPLITS,
    },
    gain="Two programs shared the keys, and each key was read once.",
    names={
        "attention_kernel.o_ptr": "o_parts",
        "attention_kernel.lse_ptr": "lse_parts",
        "merge_kernel.m_i": "m",
        "merge_kernel.l_i": "l",
        "merge_kernel.o": "merged",
    },
)
