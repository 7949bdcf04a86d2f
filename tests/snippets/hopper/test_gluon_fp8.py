"""Tests of snippets/hopper/gluon_fp8.py: what holds of float8 in Triton, holds here."""

import math
from dataclasses import replace

import pytest
import torch

from snippets.hopper import gluon_fp8
from tests.harness.inputs import GRID, TABLE, normal, pairs_around
from tests.harness.poison import guarded
from tests.snippets.attention import test_flash2_fp8 as fp8
from tests.snippets.attention.reference import reference
from tests.snippets.attention.suite import every_shape_of_the_table
from tests.snippets.hopper.gluon import NO_ACCURACY  # noqa: F401
from verified_docs.evidence.plugin import record_accuracy

INF = float("inf")
NAN = float("nan")
SMALL = {"block_n": 32}
BLOCKS = (SMALL, {"block_n": 64}, {"block_n": 128}, {})
# Around the rows of one, two and three consumers; keys that come in fours, or do not.
SEVERAL = ((127, 31), (128, 32), (129, 33), (191, 47), (192, 48), (193, 49))
attention = gluon_fp8.attention
both_kinds = pytest.mark.parametrize("causal", [False, True])


@pytest.fixture(autouse=True)
def on_a_gpu(request: pytest.FixtureRequest) -> None:
    """Without one, only what is refused is tried: no interpreter runs Gluon."""
    if not torch.cuda.is_available() and request.function.__name__ != "test_refuses":
        pytest.skip("needs a GPU")


def check(
    inputs: fp8.Inputs, causal: bool = False, blocks: dict[str, int] = SMALL
) -> tuple[torch.Tensor, torch.Tensor]:
    """Run the kernel and hold its results to the rule; returns them."""
    arguments = {
        name: guarded(x) if isinstance(x, torch.Tensor) else x
        for name, x in inputs.arguments().items()
    }
    result = attention(**arguments, causal=causal, **blocks)
    fp8.compare(result, inputs, causal)
    return result


def uniform(seq_q: int, seq_k: int, head_dim: int, device: str) -> fp8.Inputs:
    """Each key has the same weight, and all values are of one sign."""
    inputs = fp8.make((1, 2), (1, 1), seq_q, seq_k, head_dim, device)
    inputs.q.zero_()
    inputs.v.copy_(inputs.v.float().abs())
    return inputs


@both_kinds
@pytest.mark.parametrize("lengths", [*pairs_around(64, 32), *SEVERAL], ids=str)
def test_every_length(lengths: tuple[int, int], causal: bool, device: str) -> None:
    for head_dim in (16, 144):
        check(fp8.make((1, 2), (1, 1), *lengths, head_dim, device), causal)


@both_kinds
@pytest.mark.parametrize("seq_k", [*range(1, 9), *range(129, 137)])
def test_keys_that_do_not_come_in_fours(seq_k: int, causal: bool, device: str) -> None:
    inputs = fp8.make((2, 4), (2, 2), 70, seq_k, 48, device)
    wide = inputs.k.new_empty((2, 2, seq_k + 5, 48))
    wide.view(torch.uint8).fill_(0x7F)  # NaN, behind the keys of each head
    inputs = replace(inputs, k=wide[:, :, :seq_k].copy_(inputs.k))
    result = attention(**inputs.arguments(), causal=causal)
    fp8.compare(result, inputs, causal)


@both_kinds
@pytest.mark.parametrize(
    "head_dim", [16, 32, 48, 64, 80, 96, 128, 144, 160, 192, 208, 256]
)
def test_every_head_dim(head_dim: int, causal: bool, device: str) -> None:
    for blocks in BLOCKS:
        inputs = fp8.make((1, 2), (1, 1), 70, 150, head_dim, device)
        check(inputs, causal, blocks)


@both_kinds
@pytest.mark.parametrize("kv_heads", [8, 2, 1])
def test_heads_that_share_keys(kv_heads: int, causal: bool, device: str) -> None:
    for head_dim in (16, 256):
        inputs = fp8.make((2, 8), (2, kv_heads), 5, 40, head_dim, device)
        check(inputs, causal)


@pytest.mark.parametrize("scale", [0.1, math.log(4)])
def test_every_scale(scale: float, device: str) -> None:
    inputs = fp8.make((1, 2), (1, 1), 18, 40, 16, device)
    check(replace(inputs, scale=scale))


def test_each_query_finds_its_own_key(device: str) -> None:
    # Query i looks at key i alone. If the values were not in the order of the keys,
    # another one would come out.
    for head_dim in (64, 128, 256):
        k, v = (
            normal((1, 2, 256, head_dim), torch.float32, device, seed=seed)
            for seed in range(2)
        )
        k, v = k.sign().to(fp8.FLOAT8), v.to(fp8.FLOAT8)
        ones = torch.ones((1, 2), device=device)
        inputs = fp8.Inputs(k, k, fp8.padded(v), ones, ones, ones, scale=4.0)
        for blocks in BLOCKS:
            o, _ = check(inputs, blocks=blocks)
            assert torch.equal(o.float(), v.float())


def test_every_factor_is_of_its_own_head(device: str) -> None:
    inputs = fp8.make((2, 4), (2, 2), 5, 40, 16, device)
    for name in ("q_scale", "k_scale", "v_scale"):
        factors = getattr(inputs, name).clone()
        factors[1, 1] *= 2
        apart = factors.repeat_interleave(2, dim=1)[:, ::2]
        check(replace(inputs, **{name: apart}))


def test_no_two_strides_alike(device: str) -> None:
    for seq_k in (40, 41):
        inputs = fp8.make((2, 4), (2, 2), 5, seq_k, 16, device)
        apart = {}
        for at, name in enumerate("qkv"):
            x = getattr(inputs, name)
            *lead, rows, cols = x.shape
            wide = torch.empty((rows, *lead, cols + 16 * (at + 1) + -cols % 16))
            wide = wide.to(fp8.FLOAT8).to(device)[..., :cols].permute(1, 2, 0, 3)
            apart[name] = wide.copy_(x)
        check(replace(inputs, **apart))


def test_expanded_keys(device: str) -> None:
    for seq_k in (150, 152):
        inputs = fp8.make((2, 4), (1, 1), 70, seq_k, 64, device)
        for name in ("k", "v", "k_scale", "v_scale"):
            x = getattr(inputs, name)
            inputs = replace(inputs, **{name: x.expand(2, 2, *x.shape[2:])})
        result = attention(**inputs.arguments())
        fp8.compare(result, inputs)


def test_small_weights_count(device: str) -> None:
    # As in the test of flash2_fp8: without a factor, a weight of 2^-12 is 0.
    inputs = fp8.make((1, 1), (1, 1), 3, 91, 16, device, powers=True)
    inputs.q.fill_(0)
    inputs.k.fill_(0)
    inputs.v.fill_(1)
    inputs.q[..., 0], inputs.k[..., 50, 0], inputs.v[..., 50] = 1, 12, 0
    o, _ = check(inputs)
    assert (o > 0).all()


def test_rows_that_see_nothing(device: str) -> None:
    for head_dim, seq_q, seq_k in ((16, 60, 17), (128, 500, 30), (256, 500, 170)):
        inputs = fp8.make((1, 2), (1, 1), seq_q, seq_k, head_dim, device)
        o, lse = check(inputs, causal=True, blocks={})
        none = seq_q - seq_k
        assert (o[:, :, :none] == 0).all()
        assert (lse[:, :, :none] == -INF).all()
        assert lse[:, :, none:].isfinite().all()


@pytest.mark.parametrize(("seq_q", "seq_k"), [(0, 5), (5, 0), (0, 0)])
@pytest.mark.parametrize("lead", [(1, 2), (0, 2), (2, 0)])
def test_empty(seq_q: int, seq_k: int, lead: tuple[int, int], device: str) -> None:
    inputs = fp8.make((2, 2), (2, 2), 5, 5, 16, device)
    batch, heads = (slice(n) for n in lead)
    cut = {name: x[batch, heads] for name, x in vars(inputs).items() if name != "scale"}
    cut["q"], cut["k"] = cut["q"][:, :, :seq_q], cut["k"][:, :, :seq_k]
    cut["v"] = cut["v"][..., :seq_k]
    cut = {n: x.contiguous() if n.endswith("scale") else x for n, x in cut.items()}
    o, lse = attention(**cut)
    assert (o.shape, lse.shape) == ((*lead, seq_q, 16), (*lead, seq_q))
    assert (o == 0).all()
    assert (lse == -INF).all()


# How exact.


@pytest.mark.parametrize("head_dim", [64, 128, 256])
@pytest.mark.parametrize("seq_k", [4000, 20000])
def test_long_sums_keep_their_digits(head_dim: int, seq_k: int, device: str) -> None:
    # The tensor core adds with fewer bits than float32 has: what it adds to must not
    # grow with the number of keys. PyTorch's own error is next to nothing here.
    inputs = uniform(3, seq_k, head_dim, device)
    o, _ = attention(**inputs.arguments())
    expected = inputs.meant()[2].mean(dim=2, keepdim=True)
    error = ((o.double() - expected).abs() / expected).max().item()
    assert error <= 0.01


@pytest.mark.parametrize("factor", [0.0, 1e-22, 1e-30])
def test_scores_that_are_all_0(factor: float, device: str) -> None:
    x = normal((3, 1, 1, 64, 32), torch.float32, device)
    q, k, v = x[0] * factor, x[1] * factor, x[2].mT.contiguous()
    quantised = map(gluon_fp8.quantise, (q, k, v))
    (q, q_scale), (k, k_scale), (v, v_scale) = quantised
    o, lse = attention(q, k, v, q_scale, k_scale, v_scale, causal=True)
    count = torch.arange(1, 65, device=device)
    mean = (v.float() * v_scale[..., None, None]).mT.cumsum(2) / count[:, None]
    torch.testing.assert_close(o.float(), mean, rtol=2**-7, atol=2**-14)
    torch.testing.assert_close(lse, count.log().expand_as(lse))


def test_values_that_are_all_tiny(device: str) -> None:
    # Their factor is the smallest normal number: divided by anything, it loses digits.
    inputs = fp8.make((1, 1), (1, 1), 1, 4000, 16, device)
    inputs.q.zero_()
    inputs.v.fill_(448)
    inputs.v_scale.fill_(torch.finfo(torch.float32).tiny)
    o, _ = attention(**inputs.arguments())
    torch.testing.assert_close(
        o.double(), inputs.meant()[2][:, :, :1], rtol=0.01, atol=0
    )


@both_kinds
def test_huge_scores(causal: bool, device: str) -> None:
    # All alike, so each key has the same weight, rounded to a float8.
    inputs = fp8.make((1, 2), (1, 1), 100, 100, 80, device)
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


@pytest.mark.parametrize("seq", [1024, 16384])
def test_error_with_that_of_the_inputs(seq: int, device: str) -> None:
    exact = [
        normal((1, 2, seq, 128), torch.float32, device, seed=seed) for seed in range(3)
    ]
    (q, q_scale), (k, k_scale), (v, v_scale) = map(gluon_fp8.quantise, exact)
    inputs = fp8.Inputs(q, k, fp8.padded(v), q_scale, k_scale, v_scale)
    o, _ = attention(**inputs.arguments())
    expected, _ = reference(*exact)
    rounded, _ = reference(*inputs.meant())
    error, of_inputs = ((x - expected).abs().max().item() for x in (o, rounded))
    bound = 3 * of_inputs
    record_accuracy("float8_e4m3fn", error, bound)
    assert error <= bound


# Many tiles, many blocks.


@both_kinds
@pytest.mark.parametrize("columns", [64, 128, 256])
@pytest.mark.parametrize("sizes", [(700, 3001), (330, 260), (700, 300)], ids=str)
def test_many_tiles_and_blocks(
    sizes: tuple[int, int], columns: int, causal: bool, device: str
) -> None:
    # More tiles than places in shared memory, and more blocks than programs: phases go
    # round. Odd and even numbers of blocks, and causally blocks that see nothing.
    inputs = fp8.make((2, 40), (2, 10), *sizes, columns, device)
    first = attention(**inputs.arguments(), causal=causal)
    fp8.compare(first, inputs, causal)
    for _ in range(20):  # the order in which warps come changes no bit
        again = attention(**inputs.arguments(), causal=causal)
        assert all(map(torch.equal, first, again))


@both_kinds
def test_nan(causal: bool, device: str) -> None:
    for name, at in (("q", (0, 1, 7, 3)), ("k", (0, 0, 20, 3))):
        inputs = fp8.make((1, 2), (1, 1), 40, 40, 16, device)
        getattr(inputs, name)[at] = NAN
        check(inputs, causal=causal)


@both_kinds
@pytest.mark.parametrize("head_dim", [64, 80, 128, 256])
def test_grid(head_dim: int, causal: bool, device: str) -> None:
    for group in GRID:
        for lengths in group:
            inputs = fp8.make((1, 2), (1, 1), *lengths, head_dim, device)
            result = attention(**inputs.arguments(), causal=causal)
            fp8.compare(result, inputs, causal)


# The table: the default blocks and, in turn, one of the others.
@both_kinds
@pytest.mark.parametrize("default", [False, True])
@every_shape_of_the_table
def test_table(
    shape: tuple[int, int, int, int], default: bool, causal: bool, device: str
) -> None:
    batch, heads, seq, head_dim = shape
    inputs = fp8.make((batch, heads), (batch, heads), seq, seq, head_dim, device)
    blocks = {} if default else BLOCKS[(TABLE.index(shape) + causal) % 4]
    result = attention(**inputs.arguments(), causal=causal, **blocks)
    fp8.compare(result, inputs, causal)


@pytest.mark.large
def test_more_than_31_bits_of_elements(device: str) -> None:
    # A few keys count, as in the test of flash2_fp8.
    rows = 2**25 + 16
    few = [rows // 3, 2**25 - 1, 2**25, rows - 1]
    inputs = fp8.make((1, 1), (1, 1), 3, 16, 64, device)
    inputs.q[..., 0] = 448
    k, v = (
        torch.randn(shape, dtype=torch.float16, device=device).to(fp8.FLOAT8)
        for shape in ((1, 1, rows, 64), (1, 1, 64, rows))
    )
    k[..., 0], k[..., few, 0] = -448, 0
    inputs = replace(inputs, k=k, v=v, scale=10.0)
    result = attention(**inputs.arguments())
    fp8.compare(result, replace(inputs, k=k[..., few, :], v=v[..., few]))


class TestRefusals(fp8.TestRefusals):
    """What it refuses, and where it launches, as in Triton."""

    function = staticmethod(attention)
    blocks = (SMALL,)
