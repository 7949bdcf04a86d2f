"""Tests of snippets/attention/flash2_fp8.py.

Triton's interpreter converts to float8 wrongly: what rounds up to a power of two may
come out as half of it. So scores are whole numbers there, in base 2, and weights are
powers of two, which it converts rightly. On a GPU they are any numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from snippets.attention import flash2_fp8
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import GRID, INTERPRETED, TABLE, normal, pairs_around
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite, of_each
from tests.snippets.attention.reference import for_heads_of, reference, scores
from tests.snippets.attention.suite import Attention, every_shape_of_the_table
from tests.snippets.attention.tuning import tuned_to, with_blocks
from verified_docs.evidence.plugin import record_accuracy

FLOAT8 = torch.float8_e4m3fn
INF = float("inf")
NAN = float("nan")
SMALL = {"block_m": 16, "block_n": 32}
BLOCKS = (
    SMALL,
    {"block_m": 32, "block_n": 32},
    {"block_m": 16, "block_n": 128},
    {"block_m": 64, "block_n": 32},
    {},
)
attention = with_blocks(flash2_fp8)
both_kinds = pytest.mark.parametrize("causal", [False, True])


@dataclass
class Inputs:
    """The arguments of `attention`, and what they stand for."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    q_scale: torch.Tensor
    k_scale: torch.Tensor
    v_scale: torch.Tensor
    scale: float | None = None

    def arguments(self) -> dict[str, Any]:
        """All of them, by name."""
        return vars(self).copy()

    def meant(self) -> tuple[torch.Tensor, ...]:
        """q, k and v in float64, v no longer transposed."""
        pairs = (
            (self.q, self.q_scale),
            (self.k, self.k_scale),
            (self.v.mT, self.v_scale),
        )
        return tuple(x.double() * scale[:, :, None, None] for x, scale in pairs)


def padded(v: torch.Tensor) -> torch.Tensor:
    """[..., seq, head_dim] as [..., head_dim, seq], rows at multiples of 16 bytes."""
    *lead, seq, head_dim = v.shape
    rows = torch.empty((*lead, head_dim, -(-seq // 16) * 16), dtype=v.dtype)
    return rows.to(v.device)[..., :seq].copy_(v.mT)


def whole(
    shape: Sequence[int], largest: int, used: int, device: str, *, seed: int
) -> torch.Tensor:
    """Whole numbers up to `largest` in the first `used` columns, 0 in the others."""
    x = normal(shape, torch.float32, device, seed=seed).mul(largest)
    x = x.round().clamp(-largest, largest)
    x[..., used:] = 0
    return x


def make(
    lead: tuple[int, int],
    kv_lead: tuple[int, int],
    seq_q: int,
    seq_k: int,
    head_dim: int,
    device: str,
    *,
    powers: bool = INTERPRETED,
    seed: int = 0,
) -> Inputs:
    """Random inputs; if `powers`, all weights are powers of two, of 2^-16 or above."""
    shapes = [
        (*some, rows, head_dim)
        for some, rows in ((lead, seq_q), (kv_lead, seq_k), (kv_lead, seq_k))
    ]
    v, v_scale = flash2_fp8.quantise(
        normal(shapes[2], torch.float32, device, seed=seed)
    )
    if not powers:
        q, k = (
            flash2_fp8.quantise(normal(shape, torch.float32, device, seed=seed + at))
            for at, shape in enumerate(shapes[:2], 1)
        )
        return Inputs(q[0], k[0], padded(v), q[1], k[1], v_scale)
    q, k = (
        whole(shape, 1, 2, device, seed=seed + at).to(FLOAT8)
        for at, shape in enumerate(shapes[:2], 1)
    )
    q_scale = torch.arange(math.prod(lead), device=device).view(lead) % 2 + 1.0
    k_scale = torch.arange(math.prod(kv_lead), device=device).view(kv_lead) % 2 + 1.0
    scale = math.log(2)
    return Inputs(q, k, padded(v), q_scale, k_scale.contiguous(), v_scale, scale)


def in_pytorch(
    inputs: Inputs, causal: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) as PyTorch computes them, weights of 8 bits included, o in bfloat16."""
    q, k, v = inputs.meant()
    k, v = (for_heads_of(q, x) for x in (k, v))
    scale = q.shape[-1] ** -0.5 if inputs.scale is None else inputs.scale
    s = scores(q.float(), k.float(), causal, scale, None)
    if not s.shape[-1]:
        return torch.zeros_like(q).bfloat16(), s.new_full(s.shape[:-1], -INF)
    m_i = s.amax(dim=-1, keepdim=True)
    # In place: the scores of the largest case fill 9 GB.
    p = s.sub_(torch.where(m_i == -INF, 0.0, m_i)).exp_()
    l_i = p.sum(dim=-1, keepdim=True)
    p8 = p.mul_(256).to(FLOAT8).float().div_(256)
    o = (p8 @ v.float()) / torch.where(l_i == 0, 1.0, l_i)
    return o.bfloat16(), (m_i + l_i.log()).squeeze(-1)


def compare(
    result: tuple[torch.Tensor, torch.Tensor],
    inputs: Inputs,
    causal: bool = False,
) -> None:
    """Hold o and lse against float64, with the inputs as they were rounded."""
    expected = reference(*inputs.meant(), causal=causal, scale=inputs.scale)
    assert result[0].dtype == torch.bfloat16
    own = in_pytorch(inputs, causal)
    # A GPU's matrix unit adds float8 products with fewer bits than float32 has.
    exact = ("o", "lse") if INTERPRETED else ("o",)
    found = (dict(zip(exact, x, strict=False)) for x in (result, expected, own))
    check_accuracy(*found)
    torch.testing.assert_close(
        result[1].double(), expected[1], rtol=0, atol=2e-3, equal_nan=True
    )


def check(
    inputs: Inputs,
    causal: bool = False,
    **blocks: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Run the kernel and hold its results to the rule; returns them."""
    arguments = {
        name: guarded(x) if isinstance(x, torch.Tensor) else x
        for name, x in inputs.arguments().items()
    }
    result = attention(**arguments, causal=causal, **(blocks or SMALL))
    compare(result, inputs, causal)
    return result


@both_kinds
@pytest.mark.parametrize("lengths", pairs_around(16, 32), ids=str)
def test_every_length(
    lengths: tuple[int, int],
    causal: bool,
    device: str,
) -> None:
    inputs = make((1, 2), (1, 1), *lengths, 16, device)
    check(inputs, causal)


@pytest.mark.parametrize("head_dim", [16, 32, 48, 64, 80, 128, 160, 192, 256])
def test_every_head_dim(head_dim: int, device: str) -> None:
    check(make((1, 2), (1, 1), 17, 40, head_dim, device))


@both_kinds
@pytest.mark.parametrize("kv_heads", [8, 2, 1])
def test_heads_that_share_keys(kv_heads: int, causal: bool, device: str) -> None:
    inputs = make((2, 8), (2, kv_heads), 5, 40, 16, device)
    check(inputs, causal=causal)


def test_every_block_size(device: str) -> None:
    inputs = make((1, 2), (1, 1), 70, 150, 16, device)
    for blocks in BLOCKS:
        result = attention(**inputs.arguments(), causal=True, **blocks)
        compare(result, inputs, causal=True)


def test_every_scale(device: str) -> None:
    inputs = make((1, 2), (1, 1), 18, 40, 16, device)
    for scale in (math.log(2) / 2, math.log(4)):
        # Half of a whole number of bits: weights stay powers of two if it is even.
        even = replace(inputs, q_scale=inputs.q_scale * 2, scale=scale)
        check(even)


def test_every_factor_is_of_its_own_head(device: str) -> None:
    inputs = make((2, 4), (2, 2), 5, 40, 16, device)
    for name in ("q_scale", "k_scale", "v_scale"):
        factors = torch.ones_like(getattr(inputs, name))
        factors[1, 1] = 2
        apart = factors.repeat_interleave(2, dim=1)[:, ::2]
        check(replace(inputs, **{name: apart}))


def test_no_two_strides_alike(device: str) -> None:
    inputs = make((2, 4), (2, 2), 5, 40, 16, device)
    apart = {}
    for at, name in enumerate("qkv"):
        x = getattr(inputs, name)
        *lead, rows, cols = x.shape
        wide = torch.empty((rows, *lead, cols + 16 * (at + 1) + -cols % 16)).to(FLOAT8)
        wide = wide.to(device)[..., :cols].permute(1, 2, 0, 3)
        apart[name] = wide.copy_(x)
    check(replace(inputs, **apart))


def test_small_weights_count(device: str) -> None:
    # One key has 2^12 times the weight of each of the 90 others, which have all the
    # values: without a factor, a weight of 2^-12 is 0 in eight bits.
    inputs = make((1, 1), (1, 1), 3, 91, 16, device, powers=True)
    inputs.q.fill_(0)
    inputs.k.fill_(0)
    inputs.v.fill_(1)
    inputs.q[..., 0], inputs.k[..., 50, 0], inputs.v[..., 50] = 1, 12, 0
    o, _ = check(inputs)
    assert (o > 0).all()


def test_rows_that_see_nothing(device: str) -> None:
    inputs = make((1, 2), (1, 1), 60, 17, 16, device)
    o, lse = attention(**inputs.arguments(), causal=True, **SMALL)
    assert (o[:, :, :43] == 0).all()
    assert (lse[:, :, :43] == -INF).all()
    assert lse[:, :, 43:].isfinite().all()


@pytest.mark.parametrize(("seq_q", "seq_k"), [(0, 5), (5, 0), (0, 0)])
@pytest.mark.parametrize("lead", [(1, 2), (0, 2), (2, 0)])
def test_empty(seq_q: int, seq_k: int, lead: tuple[int, int], device: str) -> None:
    inputs = make((2, 2), (2, 2), 5, 5, 16, device)
    batch, heads = (slice(n) for n in lead)
    cut = {name: x[batch, heads] for name, x in vars(inputs).items() if name != "scale"}
    cut["q"], cut["k"] = cut["q"][:, :, :seq_q], cut["k"][:, :, :seq_k]
    cut["v"] = cut["v"][..., :seq_k]
    cut = {n: x.contiguous() if n.endswith("scale") else x for n, x in cut.items()}
    o, lse = flash2_fp8.attention(**cut)
    assert (o.shape, lse.shape) == ((*lead, seq_q, 16), (*lead, seq_q))
    assert (o == 0).all()
    assert (lse == -INF).all()


# Rounding to eight bits.


def test_quantise(device: str) -> None:
    x = normal((2, 3, 40, 24), torch.float32, device) * 7
    x[0, 1], x[1, 2] = 0, x[1, 2] * 1000
    x8, scale = flash2_fp8.quantise(x)
    assert (x8.dtype, scale.dtype, scale.shape) == (FLOAT8, torch.float32, (2, 3))
    largest = x8.float().abs().amax(dim=(2, 3))
    assert (largest == torch.where(x.abs().amax(dim=(2, 3)) == 0, 0, 448)).all()
    assert scale[0, 1] == torch.finfo(torch.float32).tiny
    back = x8.double() * scale[:, :, None, None].double()
    # Half a unit of 3 bits of fraction, or of the smallest number of the format.
    allowed = torch.maximum(x.double().abs() / 16, scale[:, :, None, None] / 1024)
    assert ((back - x).abs() <= 1.0001 * allowed).all()


@pytest.mark.parametrize("factor", [0.0, 1e-22, 1e-30])
def test_scores_that_are_all_0(factor: float, device: str) -> None:
    x = normal((3, 1, 1, 64, 32), torch.float32, device)
    q, k, v = x[0] * factor, x[1] * factor, x[2].mT.contiguous()
    (q, q_scale), (k, k_scale), (v, v_scale) = map(flash2_fp8.quantise, (q, k, v))
    o, lse = attention(q, k, v, q_scale, k_scale, v_scale, causal=True)
    count = torch.arange(1, 65, device=device)
    mean = (v.float() * v_scale[..., None, None]).mT.cumsum(2) / count[:, None]
    torch.testing.assert_close(o.float(), mean, rtol=2**-7, atol=2**-14)
    torch.testing.assert_close(lse, count.log().expand_as(lse))


def test_values_that_are_all_tiny(device: str) -> None:
    # Their factor is the smallest normal number: divided by anything, it loses digits.
    inputs = make((1, 1), (1, 1), 1, 4000, 16, device)
    inputs.q.zero_()
    inputs.v.fill_(448)
    inputs.v_scale.fill_(torch.finfo(torch.float32).tiny)
    o, _ = attention(**inputs.arguments())
    torch.testing.assert_close(
        o.double(), inputs.meant()[2][:, :, :1], rtol=0.01, atol=0
    )


@pytest.mark.gpu
@both_kinds
def test_huge_scores(causal: bool, device: str) -> None:
    # All alike, so each key has the same weight, rounded to a float8.
    inputs = make((1, 2), (1, 1), 100, 100, 80, device)
    for x in (inputs.q, inputs.k, inputs.v):
        x.fill_(448)
    for scale in (inputs.q_scale, inputs.k_scale):
        scale.fill_(2)  # scores of 7.2e6, below 2^23
    inputs.v_scale.fill_(1 / 448)
    o, lse = attention(**inputs.arguments(), causal=causal)
    assert ((o.float() - 1).abs() <= 2**-4).all()
    q, k, v = inputs.meant()
    expected = reference(q, k.repeat_interleave(2, 1), v, causal=causal)[1]
    torch.testing.assert_close(lse.double(), expected, rtol=1e-5, atol=0)


def test_quantise_tiny_values(device: str) -> None:
    x = normal((1, 1, 40, 24), torch.float32, device).sign() * 9e-43
    x8, scale = flash2_fp8.quantise(x)
    assert x8.float().abs().amax() <= 448
    assert (scale >= torch.finfo(torch.float32).tiny).all()


def test_quantise_keeps_the_order_in_memory(device: str) -> None:
    x = normal((2, 3, 40, 24), torch.float16, device).mT
    assert flash2_fp8.quantise(x)[0].stride() == x.stride()


# Refusals.


class TestRefusals(Suite):
    """What else is true of the function itself: what it refuses, where it launches."""

    function = staticmethod(attention)
    outputs = Attention.outputs
    blocks = BLOCKS[:1]

    def example(self, device: str) -> Named:
        """Two sequences of 8 heads."""
        inputs = make((2, 8), (2, 2), 32, 48, 16, device).arguments()
        del inputs["scale"]
        return inputs

    def refusals(self) -> dict[str, Refusal]:
        """Of tensors that do not fit the kernel or each other."""
        scales = ("q_scale", "k_scale", "v_scale")
        found = {
            "the dimensions of q": Refusal(
                "q and k have 5 and 4 dim.*; it must", {"q": lambda x: x[None]}
            ),
            "the dimensions of k": Refusal(
                "q and k have 4 and 3 dim.*; it must", {"k": lambda x: x[0]}
            ),
            **of_each("v", "one dimension more", lambda x: x[None], "is.*; it must"),
            **of_each("v", "one dimension less", lambda x: x[0], "is.*; it must"),
            **of_each("kv", "the device", lambda x: x.to("meta"), ".*meta; it must"),
            "the batch of k": Refusal("k is .*1, 2, 48.*; it", {"k": lambda x: x[:1]}),
            "the head_dim of k": Refusal(
                r"k is .*32\] on .*; it must be .*16\] on",
                {"k": lambda x: x.new_zeros(2, 2, 48, 32)},
            ),
            **{
                f"scale={bad}": Refusal(f"scale is {bad}; it", options={"scale": bad})
                for bad in (0.0, -1.0, NAN)
            },
            "a tensor": Refusal("scale is t.*; it", options={"scale": torch.ones(())}),
        }
        for dtype in (torch.bfloat16, torch.float8_e5m2):
            said = f"is {dtype}.*; it must be {FLOAT8}"
            found |= of_each("qkv", f"{dtype}", lambda x, d=dtype: x.to(d), said)
        for heads in (3, 0):
            other = {"k": lambda x, n=heads: x.new_zeros(2, n, 48, 16)}
            said = f"k has {heads} heads; it must divide q's 8"
            found[f"{heads} heads of k"] = Refusal(said, other)
        for size in (0, 8, 24, 272):
            other = {"q": lambda x, n=size: x.new_zeros(2, 8, 32, n)}
            said = f"q has head_dim {size}; it must be 16, 32"
            found[f"head_dim {size}"] = Refusal(said, other)
        for what, change in {
            "not transposed": lambda x: x.mT.contiguous(),
            "fewer keys": lambda x: x[..., :32],
            "fewer heads": lambda x: x[:, :1],
        }.items():
            said = rf"v is .*; it must be {FLOAT8} \[2, 2, 16, 48\]"
            found[f"v {what}"] = Refusal(said, {"v": change})
        for what, change in {
            "turned columns": lambda x: x.mT.contiguous().mT,
            "columns apart": lambda x: x.repeat_interleave(2, dim=-1)[..., ::2],
            "odd rows": lambda x: torch.cat([x, x[..., :8]], -1)[..., : x.shape[-1]],
            "odd address": lambda x: torch.cat([x.flatten()[:8], x.flatten()])[8:].view(
                x.shape
            ),
        }.items():
            found |= of_each("qkv", what, change, "has strides.*; it must.*16 bytes")
        for what, change in {
            "fewer": lambda x: x[:1],
            "of 64 bits": lambda x: x.double(),
            "of one dimension": lambda x: x.flatten(),
            "elsewhere": lambda x: x.to("meta"),
        }.items():
            found |= of_each(scales, what, change, r"is .*; it must be torch.float32 ")
        # As many factors as there are heads of the other tensor.
        swapped = {"q_scale": lambda x: x[:, :2], "k_scale": lambda x: x}
        found["factors of k for q"] = Refusal(r"q_scale .*\[2, 8\]", swapped)
        return found


# Any numbers, and NaN, which the interpreter takes for 480: on the GPU only.


@pytest.mark.gpu
@both_kinds
def test_nan(causal: bool, device: str) -> None:
    for name, at in (("q", (0, 1, 7, 3)), ("k", (0, 0, 20, 3))):
        inputs = make((1, 2), (1, 1), 40, 40, 16, device)
        getattr(inputs, name)[at] = NAN
        check(inputs, causal=causal)


@pytest.mark.gpu
@both_kinds
@pytest.mark.parametrize("head_dim", [64, 80, 128, 256])
def test_grid(head_dim: int, causal: bool, device: str) -> None:
    for group in GRID:
        for lengths in group:
            inputs = make((1, 2), (1, 1), *lengths, head_dim, device)
            result = attention(**inputs.arguments(), causal=causal)
            compare(result, inputs, causal)


# The table: the default blocks and, in turn, one of the others.
@pytest.mark.gpu
@both_kinds
@pytest.mark.parametrize("default", [False, True])
@every_shape_of_the_table
def test_table(
    shape: tuple[int, int, int, int],
    default: bool,
    causal: bool,
    device: str,
) -> None:
    batch, heads, seq, head_dim = shape
    inputs = make((batch, heads), (batch, heads), seq, seq, head_dim, device)
    blocks = {} if default else BLOCKS[(TABLE.index(shape) + causal) % 4]
    result = attention(**inputs.arguments(), causal=causal, **blocks)
    compare(result, inputs, causal)


@pytest.mark.gpu
def test_what_the_autotuner_chooses(device: str) -> None:
    inputs = make((1, 8), (1, 2), 512, 704, 128, device)
    result, config = tuned_to(flash2_fp8, **inputs.arguments())
    assert config in flash2_fp8.CONFIGS
    compare(result, inputs)


@pytest.mark.gpu
@pytest.mark.parametrize("seq", [1024, 16384])
def test_error_with_that_of_the_inputs(seq: int, device: str) -> None:
    exact = [
        normal((1, 2, seq, 128), torch.float32, device, seed=seed) for seed in range(3)
    ]
    (q, q_scale), (k, k_scale), (v, v_scale) = map(flash2_fp8.quantise, exact)
    inputs = Inputs(q, k, padded(v), q_scale, k_scale, v_scale)
    o, _ = attention(**inputs.arguments())
    expected, _ = reference(*exact)
    rounded, _ = reference(*inputs.meant())
    error, of_inputs = ((x - expected).abs().max().item() for x in (o, rounded))
    bound = 3 * of_inputs
    record_accuracy("float8_e4m3fn", error, bound)
    assert error <= bound


@pytest.mark.gpu
@pytest.mark.large
def test_more_than_31_bits_of_elements(device: str) -> None:
    # A few keys count. The score of the others is so low that their weight is 0, and so
    # PyTorch need not see them: in float64 they would fill 34 GB.
    rows = 2**25 + 16
    few = [rows // 3, 2**25 - 1, 2**25, rows - 1]
    inputs = make((1, 1), (1, 1), 3, 16, 64, device)
    inputs.q[..., 0] = 448
    k, v = (
        torch.randn(shape, dtype=torch.float16, device=device).to(FLOAT8)
        for shape in ((1, 1, rows, 64), (1, 1, 64, rows))
    )
    k[..., 0], k[..., few, 0] = -448, 0
    inputs = replace(inputs, k=k, v=v, scale=10.0)
    result = attention(**inputs.arguments(), block_m=64, block_n=64)
    seen = replace(inputs, k=k[..., few, :], v=v[..., few])
    compare(result, seen)
