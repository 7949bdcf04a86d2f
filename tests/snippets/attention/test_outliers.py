"""Tests of snippets/attention/outliers.py."""

import math

import pytest
import torch

from snippets.attention import flash2_fp8, outliers
from tests.harness.inputs import HEAD_LAYOUTS, name, normal, qkv
from tests.harness.poison import guarded
from tests.snippets.attention.reference import reference
from verified_docs.evidence.plugin import record_accuracy

HEAD_DIMS = [1, 16, 40, 64, 80, 96, 128, 256]
DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32], ids=name
)
every_layout = pytest.mark.parametrize("layout", HEAD_LAYOUTS)


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
def test_rotation_is_orthogonal(head_dim: int) -> None:
    matrix = outliers.rotation(head_dim).double()
    torch.testing.assert_close(
        matrix @ matrix.T, torch.eye(head_dim).double(), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
def test_rotation_mixes_as_many_columns_as_a_power_of_two(head_dim: int) -> None:
    size = math.gcd(head_dim, 256)
    found = outliers.rotation(head_dim).abs()
    blocks = torch.full((size, size), size**-0.5)
    expected = torch.block_diag(*[blocks] * (head_dim // size))
    torch.testing.assert_close(found, expected)


def test_the_signs_are_random_and_the_same_for_a_seed() -> None:
    first, again, other = (outliers.rotation(128, seed=n) for n in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    # Hadamard's first column is all ones.
    assert 40 < (first[:, 0] > 0).sum() < 88


def test_equal_numbers_do_not_become_an_outlier(device: str) -> None:
    # Without signs, Hadamard's first column would add up all of them.
    row = torch.ones(1, 128, device=device)
    assert outliers.rotate(row, row)[0].abs().max() < 4


@DTYPES
@every_layout
def test_scores_stay(layout: str, dtype: torch.dtype, device: str) -> None:
    q, k, _ = qkv((2, 3), (2, 3), 20, 33, 96, dtype, device)
    q, k = (guarded(HEAD_LAYOUTS[layout](x)) for x in (q, k))
    before = q.clone(), k.clone()
    turned = outliers.rotate(q, k, seed=3)
    assert [x.dtype for x in turned] == [torch.float32] * 2
    assert torch.equal(q, before[0])
    assert torch.equal(k, before[1])
    q, k, q_turned, k_turned = (x.double() for x in (q, k, *turned))
    distance = (q_turned @ k_turned.mT - q @ k.mT).abs()
    # Each of the 192 numbers is off by some eps of its row.
    lengths = q.norm(dim=-1, keepdim=True) * k.norm(dim=-1)[..., None, :]
    bound = 4 * torch.finfo(torch.float32).eps * lengths
    worst = (distance - bound).argmax()
    assert (distance <= bound).all()
    record_accuracy("float32", *(x.flatten()[worst].item() for x in (distance, bound)))


def test_an_outlier_is_spread_over_all_columns(device: str) -> None:
    q, k = torch.zeros(2, 1, 64, device=device)
    q[:, 5], k[:, 9] = 40.0, -8.0
    q_turned, k_turned = outliers.rotate(q, k)
    torch.testing.assert_close(q_turned.abs(), torch.full_like(q, 5.0))
    torch.testing.assert_close(k_turned.abs(), torch.full_like(k, 1.0))


def test_seeds_that_differ_do_not_fit(device: str) -> None:
    q, k, _ = qkv((), (), 8, 8, 64, torch.float32, device)
    mixed = outliers.rotate(q, k, seed=1)[0] @ outliers.rotate(q, k, seed=2)[1].mT
    assert (mixed - q @ k.mT).abs().max() > 1


@DTYPES
@every_layout
def test_without_their_mean_keys_have_the_same_weights(
    layout: str, dtype: torch.dtype, device: str
) -> None:
    q, k, v = qkv((2, 4), (2, 2), 20, 33, 64, dtype, device)
    k = guarded(HEAD_LAYOUTS[layout](k + 3))
    before = k.clone()
    centred, mean = outliers.centre(k)
    assert torch.equal(k, before)
    assert centred.dtype == mean.dtype == torch.float32
    assert mean.shape == (2, 2, 1, 64)
    assert centred.mean(dim=-2).abs().max() < 1e-5
    torch.testing.assert_close(centred + mean, k.float(), rtol=0, atol=1e-5)
    q, k, v, centred, mean = (x.double() for x in (q, k, v, centred, mean))
    k, v, centred, mean = (x.repeat_interleave(2, 1) for x in (k, v, centred, mean))
    o, lse = reference(q, centred, v, scale=0.3)
    expected, expected_lse = reference(q, k, v, scale=0.3)
    torch.testing.assert_close(o, expected, rtol=1e-5, atol=1e-5)
    lse += 0.3 * (q * mean).sum(-1)
    torch.testing.assert_close(lse, expected_lse, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 7, 16, 40, 100])
def test_rounded_has_a_scale_for_each_block(rows: int, device: str) -> None:
    x = normal((2, 40, 24), torch.float32, device)
    found = outliers.rounded(x, rows)
    assert found.shape == x.shape
    for first in range(0, 40, rows):
        block = x[None, :, first : first + rows]
        x8, scale = flash2_fp8.quantise(block)
        expected = (x8.float() * scale[..., None, None])[0]
        assert torch.equal(found[:, first : first + rows], expected)


def test_rounded_zeros(device: str) -> None:
    x = torch.zeros(3, 8, 16, device=device)
    assert torch.equal(outliers.rounded(x, 4), x)


def test_errors_are_those_of_the_output(device: str) -> None:
    torch.manual_seed(1)
    q, k, v = (x.to(device) for x in outliers.inputs("columns", 300, heads=2))
    expected, _ = reference(q.double(), k.double(), v.double())
    turned = outliers.rotate(q, k)
    for kind, q_, k_ in (
        ("as they are", outliers.rounded(q, 64), outliers.rounded(k, 300)),
        ("128 rows", outliers.rounded(q, 128), outliers.rounded(k, 128)),
        ("rotated", *(outliers.rounded(x, 300) for x in turned)),
    ):
        o, _ = reference(q_.double(), k_.double(), v.double())
        error = (o - expected).square().mean().sqrt() / expected.square().mean().sqrt()
        assert outliers.errors(q, k, v)[kind] == pytest.approx(error.item(), rel=1e-3)


@pytest.fixture(params=[512, 2048, 8192], scope="module")
def seq(request: pytest.FixtureRequest) -> int:
    """The numbers of keys of the demo."""
    return request.param


def told(kind: str, seq: int, device: str) -> dict[str, float]:
    """The errors of the demo's inputs."""
    torch.manual_seed(0)
    return outliers.errors(*(x.to(device) for x in outliers.inputs(kind, seq)))


def test_without_outliers_nothing_matters(seq: int, device: str) -> None:
    found = told("none", seq, device)
    assert max(found.values()) < 1.1 * min(found.values())
    assert 0.035 < found["as they are"] < 0.042


def test_what_helps_against_scattered_outliers(seq: int, device: str) -> None:
    found = told("scattered", seq, device)
    assert found["rotated"] < 0.7 * found["as they are"]
    assert found["rotated"] < 0.7 * found["128 rows"]
    assert found["both"] < 0.7 * found["as they are"]
    assert found["no mean"] > 0.9 * found["as they are"]


def test_what_helps_against_columns(seq: int, device: str) -> None:
    found = told("columns", seq, device)
    assert found["no mean"] < 0.45 * found["as they are"]
    assert found["both"] < 0.45 * found["as they are"]
    assert found["rotated"] > found["as they are"]
    assert found["128 rows"] > 0.9 * found["as they are"]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["scattered", "columns"])
def test_with_the_kernel(kind: str, device: str) -> None:
    # Weights and values are in 8 bits, too.
    torch.manual_seed(0)
    q, k, v = (x[None].to(device) for x in outliers.inputs(kind, 2048))
    v8, v_scale = flash2_fp8.quantise(torch.randn_like(v))
    values = (v8.float() * v_scale[..., None, None]).double()
    expected, expected_lse = reference(q.double(), k.double(), values)
    found = {}
    centred, mean = outliers.centre(k)
    for prepared, (q_, k_) in {
        "as they are": (q, k),
        "both": outliers.rotate(q, centred),
    }.items():
        (q8, q_scale), (k8, k_scale) = map(flash2_fp8.quantise, (q_, k_))
        o, lse = flash2_fp8.attention(
            q8, k8, v8.mT.contiguous(), q_scale, k_scale, v_scale
        )
        found[prepared] = ((o - expected).norm() / expected.norm()).item()
    assert found["both"] < 0.75 * found["as they are"]
    lse += q.shape[-1] ** -0.5 * (q * mean).sum(-1)
    assert (lse - expected_lse).abs().max() < 1


def test_refuses(device: str) -> None:
    x = normal((5, 64), torch.float32, device)
    with pytest.raises(ValueError, match=r"^k has head_dim 32; it must have q's, 64$"):
        outliers.rotate(x, x[:, :32])
    with pytest.raises(ValueError, match=r"^k has 0 keys; their mean needs 1 at least"):
        outliers.centre(x[:0])


def test_no_queries(device: str) -> None:
    q, k = torch.randn(0, 64, device=device), torch.randn(3, 64, device=device)
    assert outliers.rotate(q, k)[0].shape == (0, 64)
