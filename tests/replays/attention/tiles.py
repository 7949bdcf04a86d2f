"""What the replays of attention by tiles share: inputs, and what is said of a tile."""

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl

from tests.replays import Map, Sentence, Show, Tensors
from tests.replays.sentences import Moment, span
from tests.snippets.attention.reference import baseline, reference, visible

INF = float("inf")
BLOCK = 4


def heads(seq_q: int, seq_k: int, head_dim: int, seed: int) -> dict[str, torch.Tensor]:
    """q, k and v of one head, numbers of one decimal."""
    generator = torch.Generator().manual_seed(seed)
    sizes = {"q": seq_q, "k": seq_k, "v": seq_k}
    return {
        name: torch.randn(size, head_dim, generator=generator).round(decimals=1)
        for name, size in sizes.items()
    }


def launch(
    kernel: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *arguments: Any
) -> Tensors:
    """A kernel for batches of heads, causal, for one head, with tiles of 4 x 4."""
    (seq_q, head_dim), seq_k = q.shape, k.shape[0]
    o, lse = torch.empty_like(q), torch.empty(seq_q)
    strides = [each for x in (q, k, v, o) for each in (0, 0, *x.stride())]
    kernel[(triton.cdiv(seq_q, BLOCK), 1)](
        q, k, v, o, lse, head_dim**-0.5, *strides, 1, 1, seq_q, seq_k, *arguments,
        CAUSAL=True, HEAD_DIM=head_dim, BLOCK_M=BLOCK, BLOCK_N=BLOCK, BLOCK_D=head_dim,
        INPUT_PRECISION="ieee", INDEX=tl.int32,
    )  # fmt: skip
    return {"o": o, "lse": lse}


def of_keys(at: Moment, first: str, end: str) -> str:
    """The tiles from the key at one bound to that below another."""
    begin, stop = (int(at.array(name)) for name in (first, end))
    many = "tiles" if stop - begin > BLOCK else "tile"
    return f"the {many} of {span('key', begin, stop - 1)}"


def visited(
    seq_q: int, seq_k: int, window: int | None = None, block: int = BLOCK
) -> int:
    """The tiles of which some query sees some key, counted one by one."""
    seen = visible(seq_q, seq_k, "cpu", causal=True, window=window)
    strips = (strip for row in seen.split(block) for strip in row.split(block, dim=1))
    return sum(bool(tile.any()) for tile in strips)


def symbols(q: torch.Tensor, k: torch.Tensor) -> dict[str, int]:
    """The symbols of the pages that depend on the shapes alone."""
    return {
        "N_q": len(q),
        "N_k": len(k),
        "d": q.shape[1],
        "b": q.element_size(),
        "B_c": BLOCK,
        "T_r": triton.cdiv(len(q), BLOCK),
        "T_c": triton.cdiv(len(k), BLOCK),
    }


def expected(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: bool | int
) -> dict[str, torch.Tensor]:
    """o and lse: exact in float64, and else what PyTorch computes in that dtype."""
    function = reference if q.dtype == torch.float64 else baseline
    o, lse = function(q, k, v, **options)
    return {"o": o, "lse": lse}


def scores(rows: str = "offs_m", cols: str = "offs_n") -> Map:
    """All scores, which no kernel of these stores."""
    return Map(
        Show("S", "s", "never stored", "S"),
        of="s",
        rows=rows,
        cols=cols,
        shape=lambda q, k, **_: (len(q), len(k)),
    )


MEMORY = [
    Show("q", "q", "queries", "Q"),
    Show("k", "k", "keys", "K", turned=True),
    Show("v", "v", "values", "V"),
    Show("o", "o", "output", "O"),
    Show("lse", "lse", "logsumexp of each row", turned=True),
]
# Of an H200, and of each of its 132 multiprocessors.
SIZES = {
    "memory": "141 GB (NVIDIA H200 datasheet)",
    "shared": "228 KiB in each SM (Hopper tuning guide)",
    "registers": "256 KiB in each SM",
}
STATE = [
    Show("q", "q", "the queries of this program", level="shared"),
    Show("k", "k", "a tile of keys", level="shared", turned=True),
    Show("v", "v", "a tile of values", level="shared"),
    Show("s", "s", "scores of the tile"),
    Show("p", "p", "weights of the tile", place="s"),
    Show("m_i", "m", "largest score so far"),
    Show("m_new", "m", "the largest with this tile", "new m"),
    Show("alpha", "", "what the past shrinks by", "alpha"),
    Show("l_i", "l", "sum of the weights so far"),
    Show("acc", "o", "output so far, not divided", "acc"),
    Show("o", "o", "output", place="acc"),
    Show("lse", "lse", "logsumexp", "lse"),
]


def new_maximum(at: Moment) -> str:
    """Whether the tile brings the row a larger score."""
    if not at.rises("m_i", "m_new"):
        return "No score of the tile is above the maxima so far, so they stay."
    if float(at["m_i"]) == -INF:
        return "The largest score of row {row} is {s.max}: it is the maximum so far."
    return (
        "Row {row} meets a larger score, {s.max}: its maximum rises from {m_i} to "
        "{m_new}."
    )


def factor(at: Moment) -> str:
    """What the past shrinks by."""
    if float(at["m_i"]) == -INF:
        return "Nothing came before, so alpha = exp(-∞) = 0."
    if at.rises("m_i", "m_new"):
        return (
            "What row {row} has summed fits m = {m_i}. To fit the new m it is "
            "multiplied by alpha = exp(m - new m) = {alpha}."
        )
    return "The maximum of row {row} is what it was, so its alpha is 1."


def rescale(at: Moment) -> str:
    """The sum of the row."""
    if float(at["before"].l_i) == 0:
        return "The weights of row {row} add up to {l_i}."
    return (
        "The sum of row {row} was {before.l_i}. Times {alpha}, and with the weights of "
        "this tile, it is {l_i}."
    )


def shrink(at: Moment) -> str:
    """The output so far."""
    if not at["before"].acc.data.any():
        return "There is no output yet that could be rescaled."
    if (at.array("alpha") == 1).all():
        return "Every alpha is 1, so the output so far stays as it is."
    return "Each row of the output so far is multiplied by its alpha, as its sum was."


def added(at: Moment) -> str:
    """The sum and the output, told together."""
    if not at.array("start_n"):
        return (
            "The weights of row {row} add up to {l_i}. Weights times values are its "
            "output so far, not yet divided."
        )
    return (
        "In row {row}, what came before is multiplied by alpha = {alpha}. With this "
        "tile its weights add up to {l_i}, and weights times values are added to its "
        "output."
    )


START: Mapping[str, Sentence] = {
    "q = tl.load": (
        "Program {program} loads its queries, {all.offs_m:{seq_q}}: {bytes} bytes. "
        "They stay on the chip for all keys."
    ),
    "m_i = tl.full": "",
    "l_i = tl.zeros": "",
    "acc = tl.zeros": (
        "No key was seen yet, so each row starts with the maximum -∞, the sum 0 and "
        "the output 0."
    ),
}
LOOP: Mapping[str, Sentence] = {
    "k = tl.load": "Load a tile of K, keys {all.offs_n:{seq_k}}: {bytes} bytes.",
    "v = tl.load": "Load the same rows of V: {bytes} bytes.",
    "s = tl.dot": (
        "Queries times keys: one tile of scores, scaled by {scale}. It is used at once "
        "and never stored."
    ),
    "m_new = tl.maximum": new_maximum,
    "p = tl.exp": (
        "Each score s becomes a weight exp(s - new m), 1 at most. Row {row} has "
        "new m = {m_new} and the weights {p}."
    ),
    "alpha = tl.exp": factor,
    "l_i = l_i * alpha": rescale,
    "m_i = m_new": "The new maxima are the old ones of the next tile.",
}
ADDED = "Weights times values: what these keys add to the output, on the chip."
# The kernels for batches of heads, which mask and skip tiles.
STEPS: Mapping[str, Sentence] = {
    "s = tl.where(seen": (
        "Scores of keys that a row must not see become -∞, so they will weigh 0."
    ),
    "acc = acc * alpha": shrink,
    "acc = tl.dot": ADDED,
}
FORMULAS = {
    "read": "N_q · d · b + 2 · t · B_c · d · b",
    "written": "N_q · (d · b + 4)",
}
END: Mapping[str, Sentence] = {
    "o = acc /": (
        "No key is left for these rows. One division by l, {l_i} in row {row}, makes "
        "each row of the output a weighted mean of V."
    ),
    "lse = m_i +": (
        "The logsumexp, m + log(l), is the one number of each row that the backward "
        "pass will need."
    ),
    "tl.store(o_ptrs": "Store the output of these queries: {bytes} bytes.",
    "tl.store(lse_ptr": "Store their logsumexp: {bytes} bytes.",
}
