"""The gradient of attention by hand: every product of the backward pass, in PyTorch."""

from collections.abc import Callable

import torch


# --8<-- [start:scores]
def scores(
    q: torch.Tensor, k: torch.Tensor, causal: bool, scale: float
) -> torch.Tensor:
    """q k^T times the scale; -inf where a query does not see a key."""
    s = q @ k.mT * scale
    if causal:
        rows, cols = s.shape[-2:]
        seen = torch.ones(rows, cols, dtype=torch.bool, device=s.device)
        s = s.masked_fill(~seen.tril(cols - rows), float("-inf"))
    return s


# --8<-- [end:scores]
# --8<-- [start:weights]
def weights(s: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """softmax(s) from the logsumexp of its rows; 0 in a row of nothing but -inf."""
    # (-inf) - (-inf) would be NaN.
    shift = lse.masked_fill(lse == float("-inf"), 0.0)
    return torch.exp(s - shift[..., None])


# --8<-- [end:weights]
# --8<-- [start:forward]
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *,
    causal: bool = False, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v, and the logsumexp of the scores.

    The shapes are those of `attention_backward`. A row that sees no key has o = 0 and
    lse = -inf.
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    compute = torch.promote_types(q.dtype, torch.float32)
    s = scores(q.to(compute), k.to(compute), causal, scale)
    lse = torch.logsumexp(s, dim=-1)
    return (weights(s, lse) @ v.to(compute)).to(q.dtype), lse


# --8<-- [end:forward]
# --8<-- [start:backward]
# --8<-- [start:signature]
def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    o: torch.Tensor, lse: torch.Tensor, do: torch.Tensor, *,
    dlse: torch.Tensor | None = None,
    causal: bool = False, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of q, k and v, from those of o and lse.

    Args:
        q: [..., seq_q, head_dim], any floating dtype.
        k: [..., seq_k, head_dim], dtype of q and as many heads.
        v: as k.
        o: as q, the output of the forward pass.
        lse: [..., seq_q], float32 or float64, the natural logsumexp of the scores.
        do: as q, the gradient of o.
        dlse: as lse, the gradient of lse; None if it has none.
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        scale: what the scores are multiplied by; head_dim ** -0.5 if None.

    Returns:
        dq, dk, dv, as q, k, v. The arithmetic is float32, or float64 for float64. A
        row that sees no key has lse = -inf, gets dq = 0 and adds nothing to dk and dv.

    Source: Dao et al., "FlashAttention", 2022, appendix B.2.
    """
    # --8<-- [end:signature]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    dtype, compute = q.dtype, torch.promote_types(q.dtype, torch.float32)
    q, k, v, o, do = (x.to(compute) for x in (q, k, v, o, do))
    # --8<-- [start:recompute]
    # --8<-- [line:s]
    s = scores(q, k, causal, scale)  # [seq_q, seq_k]
    # --8<-- [line:p]
    p = weights(s, lse)  # [seq_q, seq_k]
    # --8<-- [end:recompute]
    # --8<-- [start:output]
    # --8<-- [line:dv]
    dv = p.mT @ do  # [seq_k, head_dim]
    # --8<-- [line:dp]
    dp = do @ v.mT  # [seq_q, seq_k]
    # --8<-- [end:output]
    # --8<-- [start:softmax]
    # --8<-- [line:delta]
    delta = (do * o).sum(dim=-1)  # [seq_q]
    if dlse is not None:
        # --8<-- [line:dlse]
        delta = delta - dlse
    # --8<-- [line:ds]
    ds = p * (dp - delta[..., None])  # [seq_q, seq_k]
    # --8<-- [end:softmax]
    # --8<-- [start:scores_backward]
    # --8<-- [line:dq]
    dq = ds @ k * scale  # [seq_q, head_dim]
    # --8<-- [line:dk]
    dk = ds.mT @ q * scale  # [seq_k, head_dim]
    # --8<-- [end:scores_backward]
    return dq.to(dtype), dk.to(dtype), dv.to(dtype)


# --8<-- [end:backward]
# --8<-- [start:function]
class Attention(torch.autograd.Function):
    """Keeps q, k, v, o and lse for the backward pass: no square matrix."""

    @staticmethod
    def forward(
        ctx, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
        causal: bool = False, scale: float | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        o, lse = attention(q, k, v, causal=causal, scale=scale)
        # --8<-- [line:save]
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.causal, ctx.scale = causal, scale
        return o, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, do: torch.Tensor, dlse: torch.Tensor):
        dq, dk, dv = attention_backward(
            *ctx.saved_tensors, do, dlse=dlse, causal=ctx.causal, scale=ctx.scale
        )
        return dq, dk, dv, None, None


# --8<-- [end:function]
# --8<-- [start:kept]
def kept(function: Callable[..., object], *inputs: torch.Tensor) -> int:
    """The bytes that autograd keeps between a call of `function` and its backward.

    A tensor that is kept twice, or as a view of another, has its memory counted once.
    """
    memory: dict[int, torch.UntypedStorage] = {}

    def pack(x: torch.Tensor) -> torch.Tensor:
        memory[x.untyped_storage().data_ptr()] = x.untyped_storage()
        return x

    inputs = tuple(x.detach().requires_grad_() for x in inputs)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        function(*inputs)
    return sum(storage.nbytes() for storage in memory.values())


# --8<-- [end:kept]
# --8<-- [start:naive]
def naive(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention in three operators: autograd keeps what each of them needs."""
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, dim=-1) @ v


def naive_float32(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The same with the softmax in float32, as models write it."""
    s = q @ k.mT * q.shape[-1] ** -0.5
    return torch.softmax(s, dim=-1, dtype=torch.float32).to(q.dtype) @ v


# --8<-- [end:naive]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    small = [torch.randn(2, 5, 3, device=device).double() for _ in range(3)]
    small = [x.requires_grad_() for x in small]
    torch.autograd.gradcheck(lambda *x: Attention.apply(*x, True), small)
    print(f"{device}: gradcheck finds no fault in dq, dk and dv")

    print("KiB kept for backward, one head, head_dim 64, float16:")
    print("  seq    naive  softmax in float32  recomputed")
    for seq in (256, 512, 1024, 2048):
        q, k, v = (torch.randn(seq, 64, device=device).half() for _ in range(3))
        found = (kept(f, q, k, v) for f in (naive, naive_float32, Attention.apply))
        print("{:5}{:9.0f}{:20.0f}{:12.0f}".format(seq, *(n / 1024 for n in found)))
# --8<-- [end:demo]
