"""Tests of snippets/attention/exp2.py."""

import math

import pytest
import torch

from snippets.attention import exp2
from tests.harness.accuracy import check_accuracy
from tests.harness.launches import check_where_it_launches
from tests.harness.poison import guarded

BASES = ["e", "2"]


def scores(size: int, device: str) -> torch.Tensor:
    """[size], float32, as the product of a query and keys of head_dim 64."""
    generator = torch.Generator().manual_seed(size)
    return (torch.randn(size, generator=generator) * 8).to(device)


@pytest.mark.parametrize("scale", [0.125, 1.0, -0.5])
@pytest.mark.parametrize("size", [1, 3, 1023, 1024, 1025, 5000])
def test_weights(
    size: int,
    scale: float,
    device: str,
) -> None:
    s = guarded(scores(size, device))
    m = (scale * s).max().item()
    p = exp2.weights(s, m, scale=scale, base="e")
    check_accuracy(p, torch.exp(scale * s.double() - m), torch.exp(scale * s - m))
    # The constants of base 2 are rounded, which moves the exponents by some 1e-6.
    p2 = exp2.weights(s, m, scale=scale, base="2")
    torch.testing.assert_close(p2, p, rtol=1e-5, atol=0)
    m = torch.tensor(m * math.log2(math.e), device=device)
    scale = torch.tensor(scale * math.log2(math.e), device=device)
    expected = torch.exp2(scale.double() * s.double() - m.double())
    check_accuracy(p2, expected, torch.exp2(scale * s - m))


@pytest.mark.parametrize("base", BASES)
def test_masked_scores_weigh_nothing(base: str, device: str) -> None:
    s = torch.tensor([0.0, -math.inf, -1e30, 1.0, math.nan], device=device)
    p = exp2.weights(s, 1.0, scale=1.0, base=base)
    torch.testing.assert_close(p, torch.exp(s - 1), equal_nan=True)


@pytest.mark.gpu
def test_below_the_normal_numbers_base_2_gives_zero(device: str) -> None:
    s = torch.full((10,), -88.0, device=device)  # exp(-88) is 0.5 * 2 ** -126
    assert (exp2.weights(s, 0.0, scale=1.0, base="e") > 0).all()
    assert (exp2.weights(s, 0.0, scale=1.0, base="2") == 0).all()


def test_instructions() -> None:
    base_e = {"FFMA": 1, "FMUL": 3, "FSETP": 1, "MUFU.EX2": 1}
    assert exp2.instructions(exp2.base_e_kernel) == base_e
    assert exp2.instructions(exp2.base_2_kernel) == {"FFMA": 1, "MUFU.EX2": 1}


@pytest.mark.parametrize("base", BASES)
def test_empty(base: str, device: str) -> None:
    s = torch.empty(0, device=device)
    assert exp2.weights(s, 0.0, scale=1.0, base=base).shape == (0,)


def test_refuses(device: str) -> None:
    s = scores(6, device)
    for bad, said in [
        (s.view(2, 3), r"\[2, 3\]"),
        (s.half(), r"\[6\], torch.float16"),
        (s[::2], r".* strides \[2\]"),
    ]:
        with pytest.raises(ValueError, match=f"^s is {said}.* contiguous"):
            exp2.weights(bad, 0.0, scale=1.0, base="e")
    with pytest.raises(ValueError, match=r"^base is 2; it must be 'e' or '2'"):
        exp2.weights(s, 0.0, scale=1.0, base=2)
    with pytest.raises(ValueError, match=r"^s requires a gradient"):
        exp2.weights(s.requires_grad_(), 0.0, scale=1.0, base="e")


@pytest.mark.parametrize("base", BASES)
def test_launches_on_the_device_of_s(base: str, device: str) -> None:
    check_where_it_launches(exp2.weights, scores(6, device), 0.0, scale=1.0, base=base)


@pytest.mark.gpu
@pytest.mark.large
@pytest.mark.parametrize("base", BASES)
def test_more_than_31_bits_of_elements(base: str) -> None:
    s = torch.empty(2**31 + 5, device="cuda").uniform_(-1, 0)
    p = exp2.weights(s, 0.0, scale=1.0, base=base)
    for some in (slice(5), slice(2**30 - 5, 2**30 + 5), slice(-10, None)):
        torch.testing.assert_close(p[some], torch.exp(s[some]))
