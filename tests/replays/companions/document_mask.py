"""A mask of documents: what becomes of a row that sees no key of a tile."""

import numpy as np
import torch
import triton

from snippets.companions.document_mask import forward_kernel
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.attention import tiles, varlen
from tests.replays.attention.tiles import BLOCK
from tests.replays.sentences import Moment, span

HEAD = tiles.heads(8, 8, 4, seed=3)


def run(title: str, *lengths: int) -> Run:
    """The same queries and keys, in documents of these lengths."""
    docs = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    return Run(title, HEAD | {"docs": docs.int()})


def call(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, docs: torch.Tensor
) -> Tensors:
    """The forward kernel for one head, causal, with tiles of 4 x 4."""
    o, lse = torch.empty_like(q), torch.empty(len(q))
    views = (q, k, v, o, *(x[:, None] for x in (lse, docs, docs)))
    forward_kernel[(triton.cdiv(len(q), BLOCK), 1)](
        *((x, 0, 0, *x.stride()) for x in views), q.shape[1] ** -0.5, 1, 1,
        len(q), len(k), CAUSAL=True, BLOCK=BLOCK, HEAD_DIM=q.shape[1],
        BLOCK_D=q.shape[1],
    )  # fmt: skip
    return {"o": o, "lse": lse}


def expected(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, docs: torch.Tensor
) -> Tensors:
    """Each document alone, as a sequence of its own."""
    ends = torch.cat([torch.zeros(1), docs.int().bincount().cumsum(0)])
    return varlen.expected(q, k, v, ends, torch.tensor(True))


def rows(at: Moment, which: np.ndarray) -> str:
    """Some rows of the block, one after the other."""
    own = at.array("offs_m").flat[which.nonzero()[0]]
    return span("row", own[0], own[-1])


def documents(at: Moment) -> str:
    """Which rows have the document of which keys."""
    q_id, k_id = at.array("a_id")[:, 0], at.array("b_id")[:, 0]
    told = []
    for each in dict.fromkeys(q_id):
        keys = at.array("met")[k_id == each]
        seen = span("key", keys[0], keys[-1]) if keys.size else "no key of this tile"
        told.append(f"{rows(at, q_id == each)} may see {seen}")
    return (
        "A row may see a key only if both are of the same document. So "
        f"{', and '.join(told)}."
    )


def causal(at: Moment) -> str:
    """What the other mask takes away."""
    if at.array("met")[-1] < at.array("own")[0]:
        return (
            "The causal mask takes nothing away, because all these keys come before "
            "the rows."
        )
    return "The causal mask takes away the keys that come after a row's own."


def scores(at: Moment) -> str:
    """The product, and what the masks leave of it."""
    text = "Queries times keys, times {scale}, are the scores of the tile. "
    hidden = int(np.isinf(at.array("return")).sum())
    if hidden == BLOCK * BLOCK:
        return text + "But no row may see any of these keys, so all become -∞."
    return text + f"The {hidden} that are masked become -∞."


def blind(at: Moment) -> np.ndarray:
    """The rows that have seen no key yet."""
    return np.isinf(at.array("m_new")[:, 0])


def maximum(at: Moment) -> str:
    """The maxima, and of which rows there is none."""
    none = blind(at)
    if not none.any():
        return tiles.new_maximum(at)
    text = f"No key was seen so far by {rows(at, none)}, so their maximum stays -∞."
    return text if none.all() else f"{tiles.new_maximum(at)} {text}"


def shift(at: Moment) -> str:
    """Why 0 is subtracted where there is no maximum."""
    none = blind(at)
    if not none.any():
        return ""
    return (
        f"In {rows(at, none)}, s - new m would be -∞ - (-∞), which is NaN. So 0 "
        "is subtracted there, in place of the maximum."
    )


def weights(at: Moment) -> str:
    """What the scores weigh, and the past."""
    none = blind(at)
    if none.any():
        text = f"In {rows(at, none)} every weight is exp(-∞) = 0."
        return text if none.all() else f"{text} Row {{row}} has the weights {{p}}."
    return f"{tiles.LOOP['p = tl.exp']} {tiles.factor(at)}"


def added(at: Moment) -> str:
    """The sums and the output."""
    none = blind(at)
    if none.all():
        return (
            "With weights of 0, sums and output stay 0. This tile of K and V was "
            "loaded for nothing."
        )
    text = tiles.added(at)
    return f"{text} In {rows(at, none)} both stay 0." if none.any() else text


REPLAY = Replay(
    call=call,
    expected=expected,
    runs={
        "within": run("5 and 3 tokens", 5, 3),
        "between": run("4 and 4 tokens", 4, 4),
    },
    memory=[*tiles.MEMORY, Show("docs", "", "document of each token", turned=True)],
    maps=[tiles.scores()],
    state=[
        Show("q_id", "", "documents of the queries"),
        Show("k_id", "", "documents of the keys"),
        Show("seen", "", "1 where the row sees the key", place="s"),
        *(show for show in tiles.STATE if show.name not in ("o", "lse")),
    ],
    sizes=tiles.SIZES,
    rows="offs_m",
    follow="m_i",
    lines={
        **tiles.START,
        "q_id = tl.load": "Load the number of each query's document: {bytes} bytes.",
        "k = tl.load": tiles.LOOP["k = tl.load"],
        "v = tl.load": tiles.LOOP["v = tl.load"],
        "k_id = tl.load": "Load the number of each key's document: {bytes} bytes.",
        "seen = (offs_m": documents,
        "seen &=": causal,
        "return tl.where(seen": scores,
        "m_new = tl.maximum": maximum,
        "shift = tl.where": shift,
        "p, alpha": weights,
        "l_i = l_i * alpha": "",
        "acc = tl.dot": added,
        "m_i = m_new": "",
        "tl.store(ptrs, acc": (
            "No key is left for these rows. Divided by l, {l_i} in row {row}, their "
            "output is stored: {bytes} bytes."
        ),
        "tl.store(ptrs, m_i": "Store their logsumexp, m + log(l): {bytes} bytes.",
    },
    frames="acc = tl.dot",
    program="query block {0}",
    formulas={
        "read": "N_q · (d · b + 4) + t · B_c · (2 · d · b + 4)",
        "written": "N_q · (d · b + 4)",
    },
    symbols=lambda q, k, **_: {
        **tiles.symbols(q, k),
        "t": tiles.visited(len(q), len(k)),
    },
    gain="The mask of documents has skipped no tile.",
    names={
        **{f"forward_kernel.{x}_view": x for x in ("q", "k", "v", "o", "lse")},
        **{f"forward_kernel.{x}_docs": "docs" for x in "qk"},
        "forward_kernel.a": "q",
        "forward_kernel.b": "k",
        "forward_kernel.a_id": "q_id",
        "forward_kernel.b_id": "k_id",
        "forward_kernel.return": "s",
    },
)
