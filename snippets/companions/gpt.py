"""A small GPT that learns to sort, with our attention, norm and dropout.

It imports them from their files: python -m snippets.companions.gpt
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from snippets.backward.autograd import attention
from snippets.companions.rms_norm import rms_norm
from snippets.companions.rms_norm_backward import rms_norm_backward
from snippets.companions.seeded_dropout import dropout

CHARACTERS = "0123456789>\n"


# --8<-- [start:norm]
@torch.library.custom_op("gpt::norm", mutates_args=())
def norm_forward(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return rms_norm(x, weight)


@torch.library.custom_op("gpt::norm_backward", mutates_args=())
def norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    # As many partial sums of dw on every GPU, and so the same bits.
    return rms_norm_backward(dy, x, weight, rstd, programs=256)


def keep_rows(ctx, inputs, output):
    ctx.save_for_backward(*inputs, output[1])


norm_forward.register_fake(
    lambda x, weight: (x.new_empty(x.shape), x.new_empty(x.shape[:1]).float())
)
norm_backward.register_fake(
    lambda dy, x, weight, rstd: (x.new_empty(x.shape), weight.new_empty(weight.shape))
)
norm_forward.register_autograd(
    lambda ctx, dy, _: norm_backward(dy, *ctx.saved_tensors), setup_context=keep_rows
)


def norm(x: Tensor, weight: Tensor) -> Tensor:
    """RMS norm over the last dimension of x, which the kernels take as rows."""
    return norm_forward(x.flatten(0, -2), weight)[0].view(x.shape)


# --8<-- [end:norm]
# --8<-- [start:dropout]
@torch.library.custom_op("gpt::dropout", mutates_args=())
def drop(x: Tensor, p: float, seed: Tensor) -> Tensor:
    return dropout(x, p=p, seed=seed)


def keep_seed(ctx, inputs, output):
    _, ctx.p, seed = inputs
    ctx.save_for_backward(seed)


drop.register_fake(lambda x, p, seed: x.new_empty(x.shape))
drop.register_autograd(
    # The same seed, so the same mask.
    lambda ctx, dy: (drop(dy, ctx.p, *ctx.saved_tensors), None, None),
    setup_context=keep_seed,
)


# --8<-- [end:dropout]
# --8<-- [start:block]
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]
Norm = Callable[[Tensor, Tensor], Tensor]


class Block(nn.Module):
    """Attention between tokens, then two layers for each token; x keeps its size."""

    def __init__(
        self, heads: int, width: int, p: float, attention: Attention, norm: Norm
    ) -> None:
        super().__init__()
        self.heads, self.p, self.attention, self.norm = heads, p, attention, norm
        self.first, self.second = (nn.Parameter(torch.ones(width)) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor, seed: Tensor | None) -> Tensor:
        """[batch, seq, width] -> the same; without a seed nothing is dropped."""
        # --8<-- [start:views]
        rows = self.qkv(self.norm(x, self.first)).unflatten(-1, (3, self.heads, -1))
        # --8<-- [line:split]
        q, k, v = rows.permute(2, 0, 3, 1, 4)  # each [batch, heads, seq, head_dim]
        # --8<-- [line:join]
        o = self.attention(q, k, v).transpose(1, 2).flatten(2)
        # --8<-- [end:views]
        x = x + self.dropped(self.out(o), seed, 0)
        hidden = F.gelu(self.up(self.norm(x, self.second)))
        return x + self.dropped(self.down(hidden), seed, 1)

    def dropped(self, x: Tensor, seed: Tensor | None, place: int) -> Tensor:
        return x if seed is None else drop(x, self.p, seed + place)


# --8<-- [end:block]
# --8<-- [start:model]
class GPT(nn.Module):
    """Predicts the token after each token.

    Args:
        attention: of q, k and v, [batch, heads, seq, head_dim]; it must be causal.
        norm: of the last dimension of x, with a weight.
        generator: draws the weights; from the same state come the same weights.
        layers, heads, head_dim, seq: the shape; seq is the most tokens of an input.
        p: the probability of dropout.
    """

    def __init__(
        self, *, attention: Attention, norm: Norm, generator: torch.Generator,
        layers: int = 4, heads: int = 4, head_dim: int = 64, seq: int = 256,
        p: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.norm, width = norm, heads * head_dim
        self.tokens = nn.Embedding(len(CHARACTERS), width)
        self.places = nn.Embedding(seq, width)
        self.last = nn.Parameter(torch.ones(width))
        blocks = (Block(heads, width, p, attention, norm) for _ in range(layers))
        self.blocks = nn.ModuleList(blocks)
        for weight in self.parameters():
            if weight.ndim == 2:
                nn.init.normal_(weight, std=0.02, generator=generator)

    def forward(self, tokens: Tensor, step: Tensor | None = None) -> Tensor:
        """Logits [batch, seq, characters] of tokens [batch, seq], int64.

        With step, one int64 on the device of tokens, elements are dropped: others in
        each step and at each place. Without it none are.
        """
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for i, block in enumerate(self.blocks):
            x = block(x, None if step is None else 2 * (step * len(self.blocks) + i))
        # The embedding again: the weights that say what a token is predict it, too.
        return F.linear(self.norm(x, self.last), self.tokens.weight)


# --8<-- [end:model]
# --8<-- [start:text]
def text(generator: torch.Generator, batch: int, size: int, digits: int = 4) -> Tensor:
    """Lines such as 4719>1479 in a row: [batch, size], int64, of CHARACTERS."""
    lines = -(-size // (2 * digits + 2))
    numbers = torch.randint(10, (batch, lines, digits), generator=generator)
    arrow, end = (numbers.new_full((batch, lines, 1), i) for i in (10, 11))
    parts = numbers, arrow, numbers.sort(dim=-1).values, end
    return torch.cat(parts, dim=-1).flatten(1)[:, :size]


# --8<-- [end:text]
# --8<-- [start:train]
OURS = {"attention": lambda q, k, v: attention(q, k, v, causal=True)[0], "norm": norm}
PYTORCH = {
    "attention": partial(F.scaled_dot_product_attention, is_causal=True),
    "norm": lambda x, weight: F.rms_norm(x, weight.shape, weight, 1e-6),
}


def train(
    *, attention: Attention, norm: Norm, steps: int = 500, seed: int = 0,
    batch: int = 32, seq: int = 256, lr: float = 1e-3, masks: int = 0,
    dtype: torch.dtype = torch.float32, device: str = "cpu",
    wrap: Callable[[nn.Module], Callable[..., Tensor]] = lambda model: model,
    **shape: float,
) -> list[float]:  # fmt: skip
    """The loss of each step of a GPT of that shape; `seed` gives weights and text.

    Args:
        masks: another number is another draw of what is dropped.
        dtype: of the products, by autocast; weights and sums are float32.
        wrap: what the model is called through, such as torch.compile.
    """
    generator = torch.Generator().manual_seed(seed)
    kernels = {"attention": attention, "norm": norm}
    model = GPT(**kernels, generator=generator, seq=seq, **shape).to(device)
    run = wrap(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95))
    batches = text(generator, steps * batch, seq + 1).to(device).split(batch)
    numbers = torch.arange(masks * steps, (masks + 1) * steps, device=device)
    losses = []
    for tokens, number in zip(batches, numbers, strict=True):
        with torch.autocast(device, dtype, enabled=dtype != torch.float32):
            logits = run(tokens[:, :-1], number)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


# --8<-- [end:train]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    small = {"steps": 6, "batch": 2, "seq": 20, "layers": 1, "heads": 2, "head_dim": 16}
    asked = {"dtype": torch.bfloat16} if device == "cuda" else small | {"lr": 1e-2}
    ours, other = (train(**each, **asked, device=device) for each in (OURS, PYTORCH))
    apart = max(abs(a - b) for a, b in zip(ours, other, strict=True))
    print(f"{device}: {ours[0]:.3f} nats for a character before {len(ours)} steps")
    print(f"{ours[-1]:.3f} after them, and {other[-1]:.3f} with PyTorch's kernels")
    print(f"largest difference of a step: {apart:.1e}")
# --8<-- [end:demo]
