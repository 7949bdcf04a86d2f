"""FlashAttention-2: a strip of queries walks over three tiles of keys."""

import torch
import triton
import triton.language as tl

from snippets.attention.flash2_single_head import attention_kernel
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.attention import tiles
from tests.replays.attention.tiles import BLOCK
from tests.replays.sentences import Moment


def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
    """The kernel with tiles of 4 x 4."""
    (seq_q, head_dim), seq_k = q.shape, k.shape[0]
    o, lse = torch.empty_like(q), torch.empty(seq_q)
    attention_kernel[(triton.cdiv(seq_q, BLOCK),)](
        q, k, v, o, lse, head_dim**-0.5,
        *q.stride(), *k.stride(), *v.stride(), *o.stride(), seq_q, seq_k,
        HEAD_DIM=head_dim, BLOCK_D=head_dim, BLOCK_M=BLOCK, BLOCK_N=BLOCK,
        INDEX=tl.int32,
    )  # fmt: skip
    return {"o": o, "lse": lse}


def rising() -> Tensors:
    """Keys that grow, so that most queries meet their largest score last."""
    found = tiles.heads(8, 12, 4, seed=1)
    found["k"] = (found["k"].abs() * torch.linspace(0.2, 1.8, 12)[:, None]).round(
        decimals=1
    )
    return found | {"q": found["q"].abs()}


def added(at: Moment) -> str:
    """The output so far, and what the tile adds."""
    if not at["before"].acc.data.any():
        return "The output begins with this part. It stays on the chip."
    return f"{tiles.shrink(at)} The new part is added. It stays on the chip."


REPLAY = Replay(
    call=call,
    expected=tiles.expected,
    runs={
        "random": Run("Random scores", tiles.heads(8, 12, 4, seed=0)),
        "rising": Run("Rising scores", rising()),
    },
    memory=tiles.MEMORY,
    maps=[tiles.scores()],
    state=[*tiles.STATE, Show("pv", "o", "what the tile adds", "p v", place="acc")],
    sizes=tiles.SIZES,
    rows="offs_m",
    follow="m_i",
    lines={
        **tiles.START,
        **tiles.LOOP,
        "s = tl.where": "",
        "pv = tl.dot": "Weights times values: what these keys add to the output.",
        "acc = tl.fma": added,
        **tiles.END,
    },
    frames="pv = tl.dot",
    program="query block {0}",
    formulas={
        "read": "N_q · d · b + 2 · T_r · N_k · d · b",
        "written": "N_q · (d · b + 4)",
    },
    symbols=lambda q, k, v: tiles.symbols(q, k),
    gain="No score was stored, and the output was written once.",
)
