"""Variants of attention forward and backward, as a layer that trains sees them.

All are causal. Beside each runs the operator that it was made from, under the causal
mask alone; where values are narrower than keys, it gets them padded with zeros, for the
same result. FlexAttention is compiled for the same function. It has no sink of its own:
o is scaled by what the sink leaves of it, sigmoid(lse - sink). Masks of blocks, ranges
and numbers of documents are made before the clock starts.

FLOPs are those of seven products between a query and the keys that it sees.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import torch
import torch._inductor.config
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from benchmarks import timing
from benchmarks.calls import Call, Inputs
from benchmarks.part import Part, Shape, near
from benchmarks.parts.attention import TOKENS, WIDTH, shape
from benchmarks.parts.backward.training import Passes, Trained

PLAIN = "backward/autograd.py"
RANGES = "companions/key_ranges.py"
FILES = {
    "causal": [RANGES],
    "alibi": ["companions/alibi.py"],
    "softcap": ["companions/softcap.py"],
    "sink": ["companions/sink.py"],
    "documents": ["companions/document_mask.py", RANGES],
    "prefix": ["companions/prefix_mask.py", RANGES],
    "widths": ["companions/value_dim.py"],
}
SEQS = (1024, 4096, 8192)
KEY_DIM, VALUE_DIM = 192, 128  # of DeepSeek's models
CAP = 50.0  # Gemma 2's
DOCUMENTS = 7  # equally long, and no tile ends where they do


def shapes() -> list[Shape]:
    """Each recipe at two head dimensions, but one at widths of its own."""
    found = []
    for recipe, seq in product(FILES, SEQS):
        for dim in (VALUE_DIM,) if recipe == "widths" else (64, 128):
            facts = vars(shape(dim, seq, TOKENS // seq, WIDTH // dim, causal=True))
            if recipe == "widths":
                facts |= {"head_dim": KEY_DIM, "value_dim": VALUE_DIM}
            found.append(Shape(recipe=recipe, **facts))
    return found


def width(shape: Shape) -> int:
    """Columns of the values."""
    return vars(shape).get("value_dim", shape.head_dim)


def inputs(shape: Shape) -> list[Inputs]:
    """q, k, v and do, and what the recipes take besides."""
    size, seq = (shape.batch, shape.heads, shape.seq), shape.seq
    q, k = (timing.normal(*size, shape.head_dim, dtype=shape.dtype) for _ in "qk")
    v, do = (timing.normal(*size, width(shape), dtype=shape.dtype) for _ in "vo")
    heads = torch.arange(1, shape.heads + 1, device=q.device)
    tokens = torch.arange(seq, dtype=torch.int32, device=q.device)
    docs, prefix = tokens * DOCUMENTS // seq, tokens[seq // 2]
    first, end = torch.zeros_like(tokens), tokens + 1
    if shape.recipe == "documents":
        first = (docs * seq + DOCUMENTS - 1) // DOCUMENTS
    if shape.recipe == "prefix":
        end = end.clamp(min=prefix)
    found = {
        "slopes": 2.0 ** (-8 * heads / shape.heads),
        "cap": CAP,
        "sink": timing.normal(shape.heads, dtype="float32"),
        "docs": docs.repeat(shape.batch, 1),
        "prefix": prefix.repeat(shape.batch),
        "ranges": torch.stack((first, end), dim=-1).repeat(shape.batch, 1, 1),
    }
    qkv = {"q": q, "k": k, "v": v, "do": do}
    return [{"recipe": shape.recipe, "causal": True} | qkv | found]


class Padded(Trained):
    """The operator, whose values are as wide as its keys."""

    def call(self, inputs: Inputs) -> Call:
        """Both passes of it."""
        more = inputs["q"].shape[-1] - inputs["v"].shape[-1]
        wide = {x: F.pad(inputs[x], (0, more)) for x in ("v", "do")}
        return super().call(inputs | wide)


def bends(recipe: str, slopes: Tensor, cap: float, **_: Any) -> Callable | None:
    """What a recipe makes of the score of query i and key j."""
    if recipe == "alibi":
        return lambda s, b, h, i, j: s - slopes[h] * (i - j)
    if recipe == "softcap":
        return lambda s, b, h, i, j: cap * torch.tanh(s / cap)
    return None


def sees(recipe: str, docs: Tensor, prefix: Tensor, **_: Any) -> Callable:
    """Whether query i sees key j."""
    if recipe == "documents":
        return lambda b, h, i, j: (i >= j) & (docs[b, i] == docs[b, j])
    if recipe == "prefix":
        return lambda b, h, i, j: (i >= j) | (j < prefix[b])
    return lambda b, h, i, j: i >= j


def with_sink(q: Tensor, k: Tensor, v: Tensor, sink: Tensor, **options: Any) -> Tensor:
    """FlexAttention with one more term in the denominator."""
    o, more = flex_attention(q, k, v, **options)
    return (o * torch.sigmoid(more.lse - sink[:, None])[..., None]).to(q.dtype)


def flex(q: Tensor, k: Tensor, v: Tensor, do: Tensor, **given: Any) -> Call:
    """Both passes of FlexAttention, compiled for this recipe and shape."""
    rows, attend = q.shape[2], flex_attention
    of_each = len(q) if given["recipe"] in ("documents", "prefix") else None
    size = of_each, None, rows, rows
    options = {
        "score_mod": bends(**given),
        "block_mask": create_block_mask(sees(**given), *size, device=q.device),
    }
    if given["recipe"] == "sink":
        from torch.nn.attention.flex_attention import AuxRequest

        attend, more = with_sink, {"return_aux": AuxRequest(lse=True)}
        options |= more | {"sink": given["sink"]}
    torch._dynamo.reset()
    torch._inductor.config.compile_threads = 1  # processes of its own would not pay
    compiled = torch.compile(attend, dynamic=False, fullgraph=True)
    return Passes(partial(compiled, **options), q, k, v, do)


def check(name: str, inputs: Inputs, found: Any) -> None:
    """Compare the last head with float64.

    Raises:
        Wrong: they differ.
    """
    if name == PLAIN:
        inputs = inputs | {"recipe": "causal"}
    q, k, v, do = (inputs[x][-1, -1].double() for x in ("q", "k", "v", "do"))
    keys = torch.arange(len(k), device=q.device)
    where = len(inputs["q"]) - 1, inputs["q"].shape[1] - 1, keys[:, None], keys
    with torch.enable_grad():
        leaves = [x.requires_grad_() for x in (q, k, v)]
        s = q @ k.T * q.shape[-1] ** -0.5
        if bend := bends(**inputs):
            s = bend(s, *where)
        s = s.masked_fill(~sees(**inputs)(*where), float("-inf"))
        if inputs["recipe"] == "sink":
            s = torch.cat([s, inputs["sink"][-1].to(s).expand(len(s), 1)], dim=1)
            v = F.pad(v, (0, 0, 0, 1))
        expected = torch.autograd.grad(torch.softmax(s, dim=-1) @ v, leaves, do)
    for got, exact in zip(found, expected, strict=True):
        near(got[-1, -1, :, : exact.shape[1]].double(), exact)


def facts(name: str, shape: Shape) -> dict[str, Any]:
    """Of the seven products, four are as wide as the keys and three as the values."""
    recipe, seq = "causal" if name == PLAIN else shape.recipe, shape.seq
    squares = seq**2
    if recipe == "documents":
        lengths = Counter(i * DOCUMENTS // seq for i in range(seq))
        squares = sum(length**2 for length in lengths.values())
    if recipe == "prefix":
        squares += (seq // 2) ** 2
    columns = 4 * shape.head_dim + 3 * width(shape)
    return {"flops": shape.batch * shape.heads * squares * columns}


def own() -> dict[str, Trained]:
    """The operator for all shapes, and the files of the recipes for theirs."""
    found: dict[str, Trained] = {PLAIN: Padded(PLAIN)}
    for name in dict.fromkeys(file for files in FILES.values() for file in files):
        recipes = {recipe for recipe, files in FILES.items() if name in files}
        found[name] = Trained(name, takes=lambda s, of=recipes: s.recipe in of)
    return found


PART = Part(
    shapes=shapes(),
    inputs=inputs,
    own=own(),
    peers={"flex_attention": flex},
    check=check,
    facts=facts,
    measure=timing.one_by_one,
    against={"times_plain": PLAIN, "times_flex": "flex_attention"},
)
