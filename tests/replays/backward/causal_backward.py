"""The causal backward pass: dQ's walk ends early, that of dK and dV begins late."""

from typing import Any

import torch
import triton
import triton.language as tl

from snippets.backward.causal_backward import dkdv_kernel, dq_kernel
from tests.replays import Replay, Run, Tensors
from tests.replays.attention import tiles
from tests.replays.attention.tiles import BLOCK
from tests.replays.backward import two_kernels
from tests.replays.backward.two_kernels import by_kernel, scores
from tests.replays.sentences import Moment
from tests.snippets.attention.reference import reference
from tests.snippets.backward.reference import attention, gradients

HEAD_DIM = 2


def inputs(
    heads: int, seq_q: int, seq_k: int, seed: int, window: int | None = None
) -> dict[str, torch.Tensor]:
    """Query heads, one after the other in the rows, that share one head of keys.

    And what the forward pass made of them.
    """
    found = tiles.heads(heads * seq_q, seq_k, HEAD_DIM, seed)
    o, lse = reference(*batch(heads, **found), causal=True, window=window)
    generator = torch.Generator().manual_seed(seed + 1)
    do = torch.randn(heads * seq_q, HEAD_DIM, generator=generator).round(decimals=1)
    o, lse = o.float().reshape(do.shape), lse.float().flatten()
    return found | {"o": o, "lse": lse, "do": do}


def batch(
    heads: int | torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> list[torch.Tensor]:
    """The same as [batch, heads, rows, columns]."""
    return [x.view(1, n, -1, x.shape[1]) for x, n in ((q, int(heads)), (k, 1), (v, 1))]


def launch(
    kernels: tuple[Any, Any], block: int, heads: int, tensors: Tensors, **options: int
) -> Tensors:
    """Both launches, with square tiles."""
    q, k, v, o, lse, do = (tensors[name] for name in ("q", "k", "v", "o", "lse", "do"))
    seq_q, (seq_k, head_dim) = len(q) // heads, k.shape
    dq, dk, dv, delta = (torch.empty_like(x) for x in (q, k, v, lse))
    options |= {
        "heads": heads, "group": heads, "seq_q": seq_q, "seq_k": seq_k,
        "diagonal": seq_k - seq_q, "HEAD_DIM": head_dim, "BLOCK_M": block,
        "BLOCK_N": block, "BLOCK_D": head_dim,
    }  # fmt: skip
    how = {"scale": head_dim**-0.5, "INPUT_PRECISION": "ieee", "INDEX": tl.int32}
    of_q, of_k = ((0, n * head_dim, head_dim, 1) for n in (seq_q, seq_k))
    for_dq, for_dkdv = kernels
    for_dq[(triton.cdiv(seq_q, block), heads)](
        q, k, v, o, do, lse, None, delta, dq, of_q, of_k, of_k, of_q, of_q, of_q,
        **options, **how,
    )  # fmt: skip
    for_dkdv[(triton.cdiv(seq_k, block), 1)](
        q, k, v, do, lse, delta, dk, dv, of_q, of_k, of_k, of_q, of_k, of_k,
        **options, **how,
    )  # fmt: skip
    return {"dq": dq, "dk": dk, "dv": dv}


def expected(heads: int, tensors: Tensors, window: int | None = None) -> Tensors:
    """The gradients by PyTorch."""
    found = gradients(
        lambda *x: attention(*x, causal=True, window=window),
        *batch(heads, *(tensors[name] for name in "qkv")),
        tensors["do"].view(1, heads, -1, HEAD_DIM),
        None,
    )
    return {
        name: x.reshape(-1, HEAD_DIM)
        for name, x in zip(("dq", "dk", "dv"), found, strict=True)
    }


def runs(**found: tuple[str, int, int, int, int]) -> dict[str, Run]:
    """What they are called, heads, queries and keys, and the seed."""
    return {
        key: Run(title, inputs(heads, *sizes) | {"heads": torch.tensor(heads)})
        for key, (title, heads, *sizes) in found.items()
    }


def number(at: Moment, name: str) -> int:
    """A variable, or the first or only number of it."""
    return int(at.array(name).flat[0])


def span(first: int, end: int, what: str) -> str:
    """Some queries or keys, by number."""
    return f"{what} {first} to {end - 1}"


def of_head(at: Moment, head: int) -> str:
    """Whose queries they are, if several heads share the keys."""
    return f" of head {head}" if number(at, "group") > 1 else ""


def own_queries(at: Moment) -> str:
    """The first line of a program of the first kernel."""
    start = number(at, "start_m")
    block = span(start, start + BLOCK, "queries") + of_head(at, at.line.program[1])
    return (
        f"This program of the first kernel owns {block}. Load their rows of Q: "
        "{bytes} bytes."
    )


def logsumexp(at: Moment) -> str:
    """Of queries that see some key, or none."""
    text = "Load their logsumexp: {bytes} bytes."
    if at.array("lse").max() == -tiles.INF:
        text += " It is -∞, because these queries see no key."
    return text


def seen_by_all(at: Moment) -> str:
    """Where the tiles end that need no mask."""
    start, full = number(at, "start_m"), number(at, "full")
    text = f"Query i sees the keys up to i + δ, and δ is {number(at, 'diagonal')}. "
    if full <= 0:
        return text + f"So query {start} sees none: no tile is whole for this block."
    return (
        f"{text}So all queries of the block see what query {start} sees, the keys "
        f"before key {full}. A tile that has only such keys is whole."
    )


def last_seen(at: Moment) -> str:
    """Where the walk over the keys ends."""
    last, seq_k = number(at, "last"), number(at, "seq_k")
    row = number(at, "start_m") + BLOCK - 1
    if last <= 0:
        return (
            f"Not even the last query of the block, {row}, sees a key. The walk has no "
            "tile at all."
        )
    text = f"The last query of the block, {row}, sees the keys before key {last}. "
    if last == seq_k:
        return text + "These are all keys, so the walk goes on to the end."
    return (
        f"{text}The walk ends there: no query of the block sees "
        f"{span(last, seq_k, 'keys')}, so they are skipped."
    )


def keys(at: Moment) -> str:
    """A tile of the first walk, and whose keys they are."""
    start = number(at, "start_n")
    text = f"Load {span(start, start + BLOCK, 'keys')}: {{bytes}} bytes."
    if at.line.program[1] and not start:
        text += " They are the keys that the head before has read, too."
    return text


def mask(at: Moment) -> str:
    """Whether a tile is masked."""
    key, end = at.array("key"), int(at.array("end").min())
    block = span(int(key.min()), int(key.max()) + 1, "keys")
    if at.array("on_band"):
        return (
            f"The tile has {block}, but its first query sees only the keys before "
            f"key {end}. The diagonal cuts this tile, so it is masked."
        )
    return (
        f"The first query of the tile sees the keys before key {end}, so it sees "
        f"{block}, and so do the others. The tile is whole, and needs no mask."
    )


def unseen(at: Moment) -> str:
    """What the mask does."""
    count = int((at.array("key") >= at.array("end")).sum())
    return (
        f"In {count} of {BLOCK * BLOCK} places the query does not see the key. These "
        "scores become -∞."
    )


def weighed(at: Moment) -> str:
    """The weights of a tile."""
    text = "The weights are exp(s - lse). "
    if at.array("on_band"):
        return text + "Where s is -∞, the weight is exactly 0."
    return text + "Every query gives each of these keys some weight."


def gradient_of_scores(at: Moment) -> str:
    """The tile of dS."""
    text = "dS = P (dP - delta) is the gradient of the scores. "
    if at.array("on_band"):
        return text + "Where the weight is 0, so is dS: the key adds nothing."
    return text + "It is used at once and never stored."


def stored(at: Moment) -> str:
    """The end of a program of the first kernel."""
    if number(at, "last") <= 0:
        return (
            "No tile was visited, so dQ of these queries is 0. The zeros are stored "
            "all the same, because nobody else writes there: {bytes} bytes."
        )
    return (
        "The walk has ended. dQ of these queries is multiplied by the scale and "
        "stored, once: {bytes} bytes."
    )


def first_seen(at: Moment) -> str:
    """Where the walk over the queries begins."""
    start, first = number(at, "start_n"), number(at, "first")
    query = start - number(at, "diagonal")
    text = f"Turned round: key j is seen from query j - δ on. Key {start}, the first, "
    if query < 0:
        return text + "is seen by all queries, so the walk begins with query 0."
    text += f"is seen from query {query} on, so the walk begins there."
    if not first:
        return text
    return (
        f"{text} No query before it sees a key of this block, so "
        f"{span(0, first, 'queries')} are skipped."
    )


def all_seen(at: Moment) -> str:
    """From where on tiles need no mask."""
    key, whole = number(at, "start_n") + BLOCK - 1, number(at, "whole")
    if whole <= number(at, "first"):
        return (
            f"Key {key}, the last of the block, is seen by all queries of the walk as "
            "well. None of its tiles is masked."
        )
    return (
        f"Key {key}, the last of the block, is seen from query {whole} on. A tile that "
        "begins before that is masked."
    )


def queries(at: Moment) -> str:
    """A tile of the second walk, and whose queries they are."""
    start, head = number(at, "start_m"), number(at, "each")
    block = span(start, start + BLOCK, "queries") + of_head(at, head)
    text = f"Load {block}: {{bytes}} bytes."
    if head and start == number(at, "first"):
        text += " The sums go on, because both heads read these keys."
    return text


REPLAY = Replay(
    call=lambda heads, **x: launch((dq_kernel, dkdv_kernel), BLOCK, int(heads), x),
    expected=lambda heads, **x: expected(int(heads), x),
    runs=runs(
        square=("8 queries, 8 keys", 1, 8, 8, 3),
        fewer=("8 queries, 4 keys", 1, 8, 4, 5),
        grouped=("2 heads", 2, 4, 8, 7),
    ),
    memory=two_kernels.REPLAY.memory,
    maps=[
        scores("s", "S", "never stored", "rows", "offs_n"),
        scores("s_t", "S", "computed again", "offs_n", "rows"),
    ],
    state=two_kernels.REPLAY.state,
    sizes=tiles.SIZES,
    rows="offs_m",
    lines={
        "dq: q = tl.load": own_queries,
        "dq:  o = tl.load": "Load the same rows of the output: {bytes} bytes.",
        "dq: do = tl.load": "Load the same rows of dO: {bytes} bytes.",
        "dq: lse = tl.load": logsumexp,
        "delta = tl.sum": (
            "Multiply dO and O, and add up each row. That is delta: {delta} in row "
            "{row}."
        ),
        "tl.store(delta_ptr": "Store delta for the second kernel: {bytes} bytes.",
        "dq = tl.zeros": "",
        "full": seen_by_all,
        "last": last_seen,
        "dq: k = tl.load": keys,
        "dq: v = tl.load": "Load the same rows of V: {bytes} bytes.",
        "s = tl.dot": by_kernel(
            "Queries times keys, times {scale}: the scores of the tile.",
            "Keys times queries: the scores of the tile once more, turned.",
        ),
        "if on_band": mask,
        "s = tl.where": unseen,
        "p = tl.exp": weighed,
        "dp = tl.dot": by_kernel(
            "dO times V is dP, the gradient of the weights.",
            "V times dO: the same dP once more, turned.",
        ),
        "return p, p *": gradient_of_scores,
        "dq = tl.dot": "dS times K is what these keys add to dQ.",
        "tl.store(ptrs, dq": stored,
        "dkdv: k = tl.load": (
            "This program of the second kernel owns keys {all.offs_n:{seq_k}}. Load "
            "their rows of K: {bytes} bytes."
        ),
        "dkdv: v = tl.load": "Load the same rows of V: {bytes} bytes.",
        "dk = tl.zeros": "",
        "dv = tl.zeros": "",
        "first": first_seen,
        "whole": all_seen,
        "dkdv: q = tl.load": queries,
        "dkdv: do = tl.load": "Load the same rows of dO: {bytes} bytes.",
        "dkdv: lse = tl.load": "Load their logsumexp: {bytes} bytes.",
        "delta = tl.load": "Load their delta: {bytes} bytes.",
        "dv = tl.dot": "P times dO is what these queries add to dV.",
        "dk = tl.dot": "dS times Q is what they add to dK.",
        "tl.store(ptrs, dk": (
            "No query is left. dK of these keys is multiplied by the scale and stored: "
            "{bytes} bytes."
        ),
        "tl.store(ptrs, dv": "Store their dV, which has no scale: {bytes} bytes.",
    },
    frames="return p, p *",
    program={
        "dq_kernel": "dQ, head {1}, query block {0}",
        "dkdv_kernel": "dK, dV, key block {0}",
    },
    formulas={
        "read": (
            "g · (3 · N_q · d · b + 4 · N_q + 2 · t · B_c · d · b) + "
            "2 · N_k · d · b + g · t · B_r · (2 · d · b + 8)"
        ),
        "written": "g · N_q · (d · b + 4) + 2 · N_k · d · b",
    },
    symbols=lambda q, k, heads, **_: {
        **tiles.symbols(q, k),
        "g": int(heads),
        "N_q": len(q) // int(heads),
        "B_r": BLOCK,
        "t": tiles.visited(len(q) // int(heads), len(k)),
    },
    gain="Neither kernel visited a tile in vain.",
    names=two_kernels.REPLAY.names,
)
