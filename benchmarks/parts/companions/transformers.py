"""A training step of a model of transformers, by the attention that it asks for.

Two layers of a Llama with random weights: a forward pass, its loss and the gradients of
all weights. The memory is the most that a step allocates beside the weights.
"""

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

from benchmarks import calls, timing
from benchmarks.calls import Call, Inputs
from benchmarks.part import Kernel, Part, Shape, near

VOCABULARY = 1024  # small, so that the last layer does not hide the others
OURS = "companions/transformers_attention.py"


def model(shape: Shape, implementation: str) -> Any:
    """A model whose weights are the same each time."""
    from transformers import LlamaConfig, LlamaForCausalLM

    width = shape.heads * shape.head_dim
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=shape.seq,
        attn_implementation=implementation,
        use_cache=False,
    )
    torch.manual_seed(0)
    with torch.device(timing.DEVICE):
        made = LlamaForCausalLM(config)
    # The weights alone: frequencies of RoPE that are rounded turn by other angles.
    for each in made.parameters():
        each.data = each.data.to(getattr(torch, shape.dtype))
    return made


def step(shape: Shape, tokens: Tensor, seen: Tensor, implementation: str) -> Call:
    """The gradients of the weights of a model, in an order that is always the same."""
    trained = model(shape, implementation)
    # Row i predicts token i + 1: what a row of padding predicts has no loss.
    labels = tokens.clone()
    labels[:, 1:].masked_fill_(seen[:, :-1] == 0, -100)

    def call() -> tuple[Tensor, ...]:
        with torch.enable_grad():
            loss = trained(tokens, attention_mask=seen, labels=labels).loss
            loss = 1024 * loss  # so that float16 has its gradients, too
        return torch.autograd.grad(loss, [*trained.parameters()])

    return call


@dataclass(frozen=True)
class Registered(Kernel):
    """The attention of a file that registers it."""

    def call(self, inputs: Inputs) -> Call:
        """A step of a model that asks for it by its name."""
        calls.load(self.of, self.changes).register("benchmarked")
        return step(**inputs, implementation="benchmarked")


def texts(shape: Shape) -> list[Inputs]:
    """Random tokens; with padding, each text is shorter than the one before."""
    size = shape.batch, shape.seq
    tokens = torch.randint(VOCABULARY, size, device=timing.DEVICE)
    seen = torch.ones_like(tokens)
    if shape.padded:
        for i in range(shape.batch):
            seen[i, : i * shape.seq // (2 * shape.batch)] = 0
    return [{"shape": shape, "tokens": tokens, "seen": seen}]


def check(name: str, inputs: Inputs, found: tuple[Tensor, ...]) -> None:
    """Compare the gradients with those of PyTorch's attention in float32.

    Raises:
        Wrong: they differ.
    """
    exact = Shape(**vars(inputs["shape"]) | {"dtype": "float32"})
    expected = step(**inputs | {"shape": exact}, implementation="sdpa")()
    both = (torch.cat([x.flatten().float() for x in xs]) for xs in (found, expected))
    # In bfloat16, the libraries' gradients of these models are off by 2 percent.
    near(*both, tolerance=0.1)


def measure(calls: timing.Calls) -> dict[str, dict[str, float]]:
    """Steps per second, and the most that a step allocates at a time."""
    peaks = timing.peaks(calls)
    return {
        name: found
        | {
            "steps_per_second": 1 / found["seconds"],
            "peak_bytes": peaks[name]["bytes"],
        }
        for name, found in timing.one_by_one(calls).items()
    }


PART = Part(
    shapes=[
        Shape(
            dtype="bfloat16",
            layers=2,
            heads=16,
            kv_heads=4,
            head_dim=128,
            seq=seq,
            batch=8192 // seq,
            padded=padded,
        )
        for seq, padded in product((1024, 4096), (False, True))
    ],
    inputs=texts,
    own={OURS: Registered(OURS)},
    peers={
        "sdpa": partial(step, implementation="sdpa"),
        "eager": partial(step, implementation="eager"),
    },
    check=check,
    facts=lambda name, shape: {},
    measure=measure,
    against={"times_eager": "eager"},
)
