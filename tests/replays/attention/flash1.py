"""FlashAttention-1: a launch for each block of keys, its state in memory between."""

import torch
import triton
import triton.language as tl

from snippets.attention.flash1 import attention_kernel
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.attention import tiles
from tests.replays.attention.tiles import BLOCK, INF
from tests.replays.sentences import Moment


def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
    """The launches of the published function, with tiles of 4 x 4."""
    (seq_q, head_dim), seq_k = q.shape, k.shape[0]
    o, l_i = torch.zeros_like(q), torch.zeros(seq_q)
    m_i = torch.full((seq_q,), -INF)
    for start_n in range(0, seq_k, BLOCK):
        attention_kernel[(triton.cdiv(seq_q, BLOCK),)](
            q, k, v, o, m_i, l_i, head_dim**-0.5,
            *q.stride(), *k.stride(), *v.stride(), *o.stride(), start_n, seq_q, seq_k,
            HEAD_DIM=head_dim, BLOCK_D=head_dim, BLOCK_M=BLOCK, BLOCK_N=BLOCK,
            INDEX=tl.int32,
        )  # fmt: skip
    return {"o": o}


def loaded(at: Moment) -> str:
    """The output that the launch before has left."""
    if not at.array("o").any():
        return "Load the output so far of these rows: nothing but zeros, {bytes} bytes."
    return "Load the output so far of these rows: {bytes} bytes."


def new_maximum(at: Moment) -> str:
    """The maximum of the keys so far and the tile."""
    if float(at["m_i"]) == -INF:
        return "There were no keys before, so this is the maximum so far: {m_new}."
    if at.rises("m_i", "m_new"):
        return (
            "The keys before had {m_i}, so the maximum of row {row} rises to {m_new}."
        )
    return "The keys before had {m_i}, and no row meets more than before."


def past(at: Moment) -> str:
    """What becomes of the keys so far."""
    if float(at["m_i"]) == -INF:
        return "Nothing came before, so alpha = exp(-∞) = 0."
    return "What came before is multiplied by alpha = {alpha} in row {row}."


def stored(at: Moment) -> str:
    """Where the output goes, and whether it comes back."""
    text = "Store the output of these rows: {bytes} bytes."
    if float(at["start_n"]) + BLOCK < float(at["seq_k"]):
        return text + " The next launch will load it again."
    return text


REPLAY = Replay(
    call=call,
    expected=lambda q, k, v: {"o": tiles.expected(q, k, v)["o"]},
    runs={"random": Run("Random scores", tiles.heads(8, 8, 4, seed=6))},
    memory=[
        *tiles.MEMORY[:-1],
        Show("m", "m", "the maximum so far of each row", turned=True),
        Show("l", "l", "the sum so far of each row", turned=True),
    ],
    maps=[tiles.scores()],
    state=[
        *tiles.STATE[:5],
        Show("m_i", "m", "the maximum so far"),
        Show("m_ij", "m", "the maximum of the tile", "tile m"),
        Show("m_new", "m", "the maximum of both", "new m"),
        Show("l_i", "l", "the sum so far"),
        Show("l_ij", "l", "the sum of the tile", "tile l"),
        Show("alpha", "", "what the past shrinks by", "alpha"),
        Show("beta", "", "what the tile shrinks by", "beta"),
        Show("l_new", "l", "the sum of both", "new l"),
        Show("o", "o", "the output so far, divided"),
        Show("pv", "o", "what the tile adds", "p v", place="o"),
    ],
    rows="offs_m",
    follow="m_i to m_new",
    lines={
        "load_q": (
            "Each launch takes one block of keys, this one from key {start_n} on. "
            "Program {program} loads its queries, {all.offs_m:{seq_q}}: {bytes} bytes."
        ),
        "load_state": loaded,
        "m_i = tl.load": "Load their maxima so far: {bytes} bytes.",
        "l_i = tl.load": "Load their sums so far: {bytes} bytes.",
        "k = tl.load": tiles.LOOP["k = tl.load"],
        "v = tl.load": tiles.LOOP["v = tl.load"],
        "s = tl.dot": tiles.LOOP["s = tl.dot"],
        "s = tl.where": "",
        "tile_max": "The largest score of row {row} in this tile is {m_ij}.",
        "weights": (
            "Each score s becomes a weight exp(s - tile m), and row {row} has "
            "tile m = {m_ij}."
        ),
        "tile_sum": "The weights of row {row} add up to {l_ij}.",
        "max": new_maximum,
        "alpha": past,
        "beta": (
            "The tile itself is multiplied by beta = {beta}. One of the two factors is "
            "always 1."
        ),
        "l_i = l_i * alpha": "",
        "sum": "Both sums together make {l_new} in row {row}.",
        "product": "Weights times values: what these keys add to the output.",
        "output": (
            "The output so far was divided by l. It is multiplied by l again, which "
            "alpha has rescaled, and the new part times beta is added."
        ),
        "divide": "Then it is divided by the new sum, {l_new} in row {row}.",
        "store": stored,
        "store_state": "Store their sums: {bytes} bytes.",
        "tl.store(m_ptr": "Store their maxima: {bytes} bytes.",
    },
    frames="output",
    program="key block {launch}, query block {0}",
    formulas={
        "read": "T_c · N_q · (d · b + 4 · d + 8) + 2 · T_r · N_k · d · b",
        "written": "T_c · N_q · (4 · d + 8)",
    },
    symbols=lambda q, k, v: tiles.symbols(q, k),
    gain="No score was stored, but each launch loads the output again.",
)
