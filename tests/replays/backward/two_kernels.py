"""The backward pass: dQ walks over the keys, then dK and dV over the queries."""

import torch
import triton
import triton.language as tl

from snippets.backward.two_kernels import dkdv_kernel, dq_kernel
from tests.replays import Map, Replay, Run, Sentence, Show, Tensors
from tests.replays.attention import tiles
from tests.replays.attention.tiles import BLOCK
from tests.replays.sentences import Moment
from tests.snippets.attention.reference import reference
from tests.snippets.backward.reference import attention, gradients


def inputs(seq_q: int, seq_k: int, head_dim: int, seed: int) -> dict[str, torch.Tensor]:
    """q, k, v and do of one head, and what the forward pass made of them."""
    found = tiles.heads(seq_q, seq_k, head_dim, seed)
    exact = (x.double() for x in found.values())
    o, lse = (x.float() for x in reference(*exact))
    generator = torch.Generator().manual_seed(seed + 1)
    do = torch.randn(seq_q, head_dim, generator=generator).round(decimals=1)
    return found | {"o": o, "lse": lse, "do": do}


def call(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
) -> Tensors:
    """Both launches for one head, with tiles of 4 x 4."""
    (seq_q, head_dim), seq_k = q.shape, k.shape[0]
    dq, dk, dv, delta = (torch.empty_like(x) for x in (q, k, v, lse))
    options = {
        "heads": 1, "seq_q": seq_q, "seq_k": seq_k, "scale": head_dim**-0.5,
        "HEAD_DIM": head_dim, "BLOCK_M": BLOCK, "BLOCK_N": BLOCK, "BLOCK_D": head_dim,
        "INPUT_PRECISION": "ieee", "INDEX": tl.int32,
    }  # fmt: skip
    dq_kernel[(triton.cdiv(seq_q, BLOCK), 1)](
        q, k, v, o, do, lse, None, delta, dq,
        *((0, 0, *x.stride()) for x in (q, k, v, o, do, dq)), **options,
    )  # fmt: skip
    dkdv_kernel[(triton.cdiv(seq_k, BLOCK), 1)](
        q, k, v, do, lse, delta, dk, dv,
        *((0, 0, *x.stride()) for x in (q, k, v, do, dk, dv)), **options,
    )  # fmt: skip
    return {"dq": dq, "dk": dk, "dv": dv}


def expected(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
) -> Tensors:
    """The gradients by PyTorch."""
    heads = (x[None, None] for x in (q, k, v, do))
    found = (dx[0, 0] for dx in gradients(attention, *heads, None))
    return dict(zip(("dq", "dk", "dv"), found, strict=True))


def by_kernel(first: str, second: str) -> Sentence:
    """What is said of a line that both kernels carry out."""
    return lambda at: first if at.line.kernel == "dq_kernel" else second


def gradient_of_scores(at: Moment) -> str:
    """The tile of dS, and what becomes of keys that do not exist."""
    text = (
        "dS = P (dP - delta), the gradient of the scores, is used at once and never "
        "stored. "
    )
    if int(at.array("offs_n")[-1]) >= int(at.array("seq_k")):
        return text + "A key that does not exist has a score of 0: its dS is made 0."
    return text + "All these keys exist, so none is made 0."


def scores(name: str, label: str, title: str, rows: str, cols: str) -> Map:
    """A gradient of all scores, which no kernel stores."""
    return Map(
        Show(name, "s", title, label, turned=rows == "offs_n"),
        of=name,
        rows=rows,
        cols=cols,
        shape=lambda q, k, **_: (
            (len(k), len(q)) if rows == "offs_n" else (len(q), len(k))
        ),
    )


REPLAY = Replay(
    call=call,
    expected=expected,
    runs={
        "whole": Run("8 queries, 8 keys", inputs(8, 8, 4, seed=3)),
        "ragged": Run("6 queries, 7 keys", inputs(6, 7, 4, seed=5)),
    },
    memory=[
        Show("q", "q", "queries", "Q"),
        Show("k", "k", "keys", "K", turned=True),
        Show("v", "v", "values", "V", turned=True),
        Show("o", "o", "output", "O"),
        Show("do", "o", "gradient of the output", "dO"),
        Show("lse", "lse", "logsumexp of each row", turned=True),
        Show("delta", "", "rowsum(dO O)", "delta", turned=True),
        Show("dq", "q", "gradient of the queries", "dQ"),
        Show("dk", "k", "gradient of the keys", "dK", turned=True),
        Show("dv", "v", "gradient of the values", "dV", turned=True),
    ],
    maps=[
        scores("ds", "dS", "never stored", "offs_m", "offs_n"),
        scores("ds_t", "dS", "computed again", "offs_n", "offs_m"),
    ],
    state=[
        Show("q", "q", "queries", "Q", level="shared"),
        Show("k", "k", "keys", "K", level="shared", turned=True),
        Show("v", "v", "values", "V", level="shared", turned=True),
        Show("o", "o", "output", "O", level="shared"),
        Show("do", "o", "gradient of the output", "dO", level="shared"),
        Show("s", "s", "scores of the tile", "S"),
        Show("s_t", "s", "scores of the tile", "S", turned=True),
        Show("p", "p", "weights of the tile", "P", place="s"),
        Show("p_t", "p", "weights of the tile", "P", turned=True, place="s_t"),
        Show("dp", "p", "gradient of the weights", "dP"),
        Show("dp_t", "p", "gradient of the weights", "dP", turned=True),
        Show("ds", "s", "gradient of the scores", "dS", place="dp"),
        Show("ds_t", "s", "gradient of the scores", "dS", turned=True, place="dp_t"),
        Show("lse", "lse", "logsumexp"),
        Show("delta", "", "rowsum(dO O)", "delta"),
        Show("own_k", "k", "keys", "K", level="shared", turned=True),
        Show("own_v", "v", "values", "V", level="shared", turned=True),
        Show("own_q", "q", "queries", "Q", level="shared"),
        Show("own_do", "o", "gradient of the output", "dO", level="shared"),
        Show("lse_t", "lse", "logsumexp", "lse"),
        Show("delta_t", "", "rowsum(dO O)", "delta"),
        Show("dq", "q", "gradient of the queries so far", "dQ"),
        Show("dk", "k", "gradient of the keys so far", "dK", turned=True),
        Show("dv", "v", "gradient of the values so far", "dV", turned=True),
    ],
    sizes=tiles.SIZES,
    rows="offs_m",
    lines={
        "dq: q = tl.load": (
            "This program of the first kernel owns the queries {all.offs_m:{seq_q}}: "
            "nobody else adds to their gradient. Load their rows of Q: {bytes} bytes."
        ),
        "dq:  o = tl.load": "Load the same rows of the output: {bytes} bytes.",
        "dq: do = tl.load": "Load the same rows of dO: {bytes} bytes.",
        "dq: lse = tl.load": (
            "Load the logsumexp of these rows, which the forward pass has kept: "
            "{bytes} bytes."
        ),
        "delta": (
            "Multiply dO and O, and add up each row. That is delta: {delta} in row "
            "{row}."
        ),
        "keep": (
            "Store delta, {bytes} bytes. The second kernel will read these and not O."
        ),
        "dq = tl.zeros": "",
        "dq: k = tl.load": (
            "Walk over the keys. Load {all.offs_n:{seq_k}}: {bytes} bytes."
        ),
        "dq: v = tl.load": "Load the same rows of V: {bytes} bytes.",
        "s = tl.dot": by_kernel(
            "First product: queries times keys, times {scale}. These are the scores of "
            "the tile, as the forward pass had them.",
            "Keys times queries: the scores of the tile once more, turned.",
        ),
        "p": by_kernel(
            "The weights are exp(s - lse). They need no maximum and no sum, because "
            "the logsumexp holds both.",
            "The same weights as in the first kernel, computed again.",
        ),
        "dp": by_kernel(
            "Second product: dO times V. That is dP, the gradient of the weights.",
            "V times dO: the same dP once more, turned.",
        ),
        "ds": "",
        "ds = tl.where": gradient_of_scores,
        "dq": (
            "Third product: dS times K is what these keys add to dQ. The sum stays on "
            "the chip."
        ),
        "tl.store(ptrs, dq": (
            "No key is left. dQ of these queries is multiplied by the scale and "
            "stored, once: {bytes} bytes."
        ),
        "dkdv: k = tl.load": (
            "This program of the second kernel owns the keys {all.offs_n:{seq_k}}. "
            "Load their rows of K: {bytes} bytes."
        ),
        "dkdv: v = tl.load": "Load the same rows of V: {bytes} bytes.",
        "dk = tl.zeros": "",
        "dv = tl.zeros": "",
        "dkdv: q = tl.load": (
            "Walk over the queries. Load {all.offs_m:{seq_q}}: {bytes} bytes."
        ),
        "dkdv: do = tl.load": "Load the same rows of dO: {bytes} bytes.",
        "dkdv: lse = tl.load": "Load their logsumexp: {bytes} bytes.",
        "delta = tl.load": (
            "Load their delta, which the first kernel has left: {bytes} bytes."
        ),
        "dv": (
            "The function has returned P and dS, turned. P times dO is what these "
            "queries add to dV."
        ),
        "dk": "dS times Q is what they add to dK.",
        "tl.store(ptrs, dk": (
            "No query is left. dK of these keys is multiplied by the scale and stored: "
            "{bytes} bytes."
        ),
        "tl.store(ptrs, dv": "Store their dV, which has no scale: {bytes} bytes.",
    },
    frames="ds = tl.where",
    program={
        "dq_kernel": "dQ, query block {0}",
        "dkdv_kernel": "dK, dV, key block {0}",
    },
    formulas={
        "read": (
            "3 · N_q · d · b + 4 · N_q + 2 · T_r · N_k · d · b + 2 · N_k · d · b + "
            "T_c · N_q · (2 · d · b + 8)"
        ),
        "written": "N_q · (d · b + 4) + 2 · N_k · d · b",
    },
    symbols=lambda q, k, **_: tiles.symbols(q, k),
    gain="Each gradient was written once, but S was computed twice.",
    names={
        "dq_kernel.a": "q",
        "dq_kernel.b": "k",
        "dq_kernel.c": "do",
        "dq_kernel.d": "v",
        # Each kernel has a chip of its own, so its tiles have names of their own.
        "dkdv_kernel.a": "own_k",
        "dkdv_kernel.b": "own_q",
        "dkdv_kernel.c": "own_v",
        "dkdv_kernel.d": "own_do",
        **{f"dkdv_kernel.{x}": f"own_{x}" for x in ("q", "k", "v", "do")},
        **{
            f"dkdv_kernel.{x}": f"{x}_t" for x in ("s", "p", "dp", "ds", "lse", "delta")
        },
    },
)
