"""Attention that trains on Hopper: two kernels in Gluon behind a pair of operators."""

import torch
from torch import Tensor

from snippets.backward.one_kernel import aligned
from snippets.hopper.gluon_backward import attention_backward
from snippets.hopper.gluon_persistent import attention as attention_forward


# --8<-- [start:promised]
def promised(found: Tensor, x: Tensor, taken: Tensor) -> Tensor:
    """`found` in the layout that torch.empty_like(x) has: it has that of `taken`."""
    return found if taken is x else torch.empty_like(x).copy_(found)


# --8<-- [end:promised]
# --8<-- [start:forward]
@torch.library.custom_op("hopper::attention", mutates_args=())
def forward(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    taken = [aligned(x) for x in (q, k, v)]  # copies of what descriptors cannot take
    o, lse = attention_forward(*taken, causal=causal, scale=scale)
    return promised(o, q, taken[0]), lse


# --8<-- [end:forward]
# --8<-- [start:backward]
@torch.library.custom_op("hopper::attention_backward", mutates_args=())
def backward(
    q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor, do: Tensor, dlse: Tensor,
    causal: bool, scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    given = q, k, v
    taken = [aligned(x) for x in given]
    found = attention_backward(
        *taken, o, lse, do, dlse=dlse, causal=causal, scale=scale
    )
    dq, dk, dv = map(promised, found, given, taken)
    return dq, dk, dv


# --8<-- [end:backward]
# --8<-- [start:autograd]
def keep(ctx, inputs, output):
    ctx.options = inputs[3:]
    ctx.save_for_backward(*inputs[:3], *output)


def gradients(ctx, do, dlse):
    return *backward(*ctx.saved_tensors, do, dlse, *ctx.options), None, None


forward.register_fake(
    lambda q, *_: (torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32))
)
backward.register_fake(lambda *x: tuple(torch.empty_like(y) for y in x[:3]))
forward.register_autograd(gradients, setup_context=keep)


# --8<-- [end:autograd]
# --8<-- [start:attention]
def attention(
    q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """softmax(q k^T * scale) v and the logsumexp of its scores; autograd knows both.

    Args:
        q: [batch, heads, seq_q, head_dim], float16 or bfloat16, on a Hopper GPU;
            head_dim a multiple of 8 up to 128. What descriptors cannot take is copied.
        k, v: [batch, kv_heads, seq_k, head_dim], as q; kv_heads divides heads.
        causal: query i sees key j only if j <= i + seq_k - seq_q.
        scale: positive; head_dim ** -0.5 if None. Scores times it stay below 2^23.
    Under autocast, float32 becomes what that asks for.
    Returns o: as q, in its layout; lse: [batch, heads, seq_q], float32. Gradients have
        the layouts of their tensors. dq is not the same bits in every run.
    Raises ValueError: an argument is not one of the above.
    Source: Shah et al., "FlashAttention-3", 2024: algorithm 2 and appendix B.1.
    """
    if torch.is_autocast_enabled(q.device.type):
        low = torch.get_autocast_dtype(q.device.type)
        q, k, v = (x.to(low) if x.dtype == torch.float32 else x for x in (q, k, v))
    right = q.ndim == 4 and 8 <= q.shape[3] <= 128 and q.shape[3] % 8 == 0
    if not right or q.dtype not in (torch.float16, torch.bfloat16):
        right = "float16 or bfloat16, 4-D, with a head_dim of 8, 16, ..., or 128"
        raise ValueError(f"q is {q.dtype} of {list(q.shape)}; it must be {right}")
    batch, heads, _, head_dim = q.shape
    kv_heads, seq_k = k.shape[1:3] if k.ndim == 4 else (0, "seq_k")
    divides = heads % kv_heads == 0 if kv_heads else heads == 0
    of_keys = (batch, kv_heads if divides else f"a divisor of {heads}", seq_k, head_dim)
    for name, x in (("k", k), ("v", v)):
        if (x.shape, x.dtype, x.device) != (of_keys, q.dtype, q.device):
            got = f"{x.dtype} on {x.device} of {list(x.shape)}"
            right = f"{q.dtype} on {q.device} of {list(of_keys)}"
            raise ValueError(f"{name} is {got}; it must be {right}")
    scale = head_dim**-0.5 if scale is None else scale
    if isinstance(scale, Tensor) or not scale > 0:
        raise ValueError(f"scale is {scale!r}; it must be a positive number")
    return forward(q, k, v, causal, scale)


# --8<-- [end:attention]
# --8<-- [start:demo]
if __name__ == "__main__":
    if torch.cuda.is_available():
        kept, make = [], lambda: torch.randn(1, 2, 512, 64, device="cuda").half()
        leaves = [make().requires_grad_() for _ in "qkv"]
        note, give = lambda x: kept.append(x.nbytes) or x, lambda x: x
        with torch.autograd.graph.saved_tensors_hooks(note, give):
            o, lse = attention(*leaves)
        found = torch.autograd.grad(o.float().square().sum() + lse.sum(), leaves)
        q, k, v = exact = [x.detach().double().requires_grad_() for x in leaves]
        o, lse = torch.softmax(q @ k.mT / 8, -1) @ v, torch.logsumexp(q @ k.mT / 8, -1)
        true = torch.autograd.grad(o.square().sum() + lse.sum(), exact)
        error = max((x - y).abs().max() for x, y in zip(found, true, strict=True))
        print(f"cuda: largest error {error:.1e}, {sum(kept)} bytes kept for backward")
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
