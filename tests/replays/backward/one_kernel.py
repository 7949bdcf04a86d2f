"""The backward pass in one kernel: delta, then each program adds to the sum of dQ."""

import pytest
import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from snippets.backward.one_kernel import backward_kernel, delta_kernel
from tests.harness import traces
from tests.replays import Map, Replay, Run, Show, Tensors
from tests.replays.attention import tiles
from tests.replays.attention.tiles import BLOCK
from tests.replays.backward import two_kernels
from tests.replays.backward.two_kernels import inputs


def call(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
) -> Tensors:
    """Both launches for one head, with tiles of 4 x 4, and dQ as they leave it."""
    (seq_q, head_dim), seq_k = q.shape, k.shape[0]
    dk, dv, delta = (torch.empty_like(x) for x in (k, v, lse))
    dq_sum = torch.zeros_like(q)

    def described(*tensors: torch.Tensor) -> list[TensorDescriptor]:
        shape = [1, 1, BLOCK, head_dim]
        return [TensorDescriptor.from_tensor(x[None, None], shape) for x in tensors]

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(traces.VERBS, "updates", "store")  # what an atomic addition does
        delta_kernel[(triton.cdiv(seq_q, BLOCK),)](
            *described(o, do), None, delta, 1, seq_q, BLOCK, head_dim
        )
        backward_kernel[(triton.cdiv(seq_k, BLOCK),)](
            *described(q, do, k, v, dk, dv), dq_sum, lse, delta,
            head_dim**-0.5, 1, seq_q, seq_k, GROUP=1, CAUSAL=False,
            MASKED=seq_k % BLOCK > 0, TMA=False, HEAD_DIM=head_dim, BLOCK_M=BLOCK,
            BLOCK_N=BLOCK, BLOCK_D=head_dim,
        )  # fmt: skip
    return {"dq_sum": dq_sum, "dk": dk, "dv": dv}


def expected(q: torch.Tensor, **others: torch.Tensor) -> Tensors:
    """The gradients by PyTorch; that of q is the sum times the scale."""
    found = two_kernels.expected(q, **others)
    return {"dq_sum": found.pop("dq") / q.shape[1] ** -0.5, **found}


SUM = Show("dq_sum", "q", "sum of dQ, of all programs", "dQ / scale")
MEMORY = [SUM if x.name == "dq" else x for x in two_kernels.REPLAY.memory]

REPLAY = Replay(
    call=call,
    expected=expected,
    runs={
        "whole": Run("8 queries, 8 keys", inputs(8, 8, 4, seed=3)),
        "ragged": Run("6 queries, 7 keys", inputs(6, 7, 4, seed=5)),
    },
    memory=MEMORY,
    maps=[
        Map(
            Show("dS", "s", "never stored", "dS", turned=True),
            of="ds_t",
            rows="offs_n",
            cols="offs_m",
            shape=lambda q, k, **_: (len(k), len(q)),
        )
    ],
    state=[
        Show("own_o", "o", "output", "O", level="shared"),
        Show("own_do", "o", "gradient of the output", "dO", level="shared"),
        Show("row_dot", "", "rowsum(dO O)", "delta"),
        Show("k", "k", "keys", "K", level="shared", turned=True),
        Show("v", "v", "values", "V", level="shared", turned=True),
        Show("q", "q", "queries", "Q", level="shared"),
        Show("do", "o", "gradient of the output", "dO", level="shared"),
        Show("lse", "lse", "logsumexp"),
        Show("delta", "", "rowsum(dO O)", "delta"),
        Show("s", "s", "scores of the tile", "S", turned=True),
        Show("p_t", "p", "weights of the tile", "P", turned=True, place="s"),
        Show("dp", "p", "gradient of the weights", "dP", turned=True),
        Show("ds_t", "s", "gradient of the scores", "dS", turned=True, place="dp"),
        Show("dq_t", "q", "what these keys add to dQ", "dS K", turned=True),
        Show("dk", "k", "gradient of the keys so far", "dK", turned=True),
        Show("dv", "v", "gradient of the values so far", "dV", turned=True),
    ],
    sizes=tiles.SIZES,
    rows="offs_m",
    lines={
        "delta: o = o_desc": (
            "A preparing kernel runs first. Its program {program} loads the rows "
            "{all.offs_m:{seq_q}} of the output: {bytes} bytes."
        ),
        "delta: do = do_desc": "Load the same rows of dO: {bytes} bytes.",
        "delta: delta = tl.sum": (
            "Multiply dO and O, and add up each row. That is delta, of which the other "
            "kernel needs all rows."
        ),
        "delta: tl.store": "Store delta: {bytes} bytes.",
        "backward: k = k_desc": (
            "Program {program} of the kernel owns the keys {all.offs_n:{seq_k}}. "
            "Load their rows of K: {bytes} bytes."
        ),
        "backward: v = v_desc": "Load the same rows of V: {bytes} bytes.",
        "backward: dk = tl.zeros": "",
        "backward: dv = tl.zeros": "",
        "backward: q = q_desc": (
            "Walk over the queries. Load the rows of Q from {start_m} on: {bytes} "
            "bytes."
        ),
        "backward: do = do_desc": "Load the same rows of dO: {bytes} bytes.",
        "backward: lse = tl.load": "Load their logsumexp: {bytes} bytes.",
        "backward: delta = tl.load": "Load their delta: {bytes} bytes.",
        "s = tl.dot": "First product: keys times queries, the scores of the tile.",
        "p = tl.exp2": ("The weights are exp(S - lse), computed as powers of 2."),
        "p = tl.where": "A key that does not exist gets a weight of 0.",
        "dp = tl.dot": "Second product: V times dO. That is dP.",
        "ds = p *": (
            "dS = P (dP - delta), the gradient of the scores. It is computed once, and "
            "used for dK and for dQ."
        ),
        "dv": "Third product: weights times dO are what these queries add to dV.",
        "dk": "Fourth product: dS times Q is what these queries add to dK.",
        "dq": (
            "Fifth product: K times dS is what these keys add to dQ. That sum is in "
            "memory, because other programs add to it as well."
        ),
        "tl.atomic_add": (
            "Add it to the sum in memory: {count} additions, {bytes} bytes. On a GPU "
            "other programs do so at the same time, in any order."
        ),
        "backward: dk = (dk": (
            "No query is left. dK is multiplied by the scale, which was no part of dS."
        ),
        "backward: dv = dv": "",
        "dk_desc.store": "Store dK of these keys: {bytes} bytes.",
        "dv_desc.store": "Store their dV, which has no scale: {bytes} bytes.",
    },
    frames="tl.atomic_add",
    program={
        "delta_kernel": "delta, query block {0}",
        "backward_kernel": "key block {0}",
    },
    formulas={
        "read": ("2 · N_q · d · b + 2 · N_k · d · b + T_c · N_q · (2 · d · b + 8)"),
        "written": "4 · N_q + 4 · T_c · N_q · d + 2 · N_k · d · b",
    },
    symbols=lambda q, k, **_: tiles.symbols(q, k),
    gain="Five products for each tile, not seven, but dQ is summed in memory.",
    names={
        **{
            f"{kernel}.{x.name}_desc": x.name
            for kernel in ("backward_kernel", "delta_kernel")
            for x in MEMORY
        },
        # Two kernels, two chips.
        "delta_kernel.o": "own_o",
        "delta_kernel.do": "own_do",
        "delta_kernel.delta": "row_dot",
        "backward_kernel.a": "k",
        "backward_kernel.b": "q",
        "backward_kernel.c": "v",
        "backward_kernel.d": "do",
        "backward_kernel.p": "p_t",
        "backward_kernel.ds": "ds_t",
    },
)
