"""When is a result right? The one rule, and what it measured."""

from dataclasses import dataclass

import torch

# The reference is float64 itself, so it is no truth for a float64 result: both are
# rounded, each by a few units in the last place.
FLOAT64_UNITS = 8


@dataclass(frozen=True)
class Accuracy:
    """The largest error of one comparison, and what was allowed."""

    dtype: str
    error: float
    bound: float


def compare(
    actual: torch.Tensor,
    reference: torch.Tensor,
    baseline: torch.Tensor,
    *,
    allow_nonfinite: bool = False,
) -> Accuracy:
    """Hold `actual` against a float64 reference and PyTorch's own error.

    The bound is 2 * err(baseline) + eps(dtype) * max|reference|.

    Args:
        actual: what the snippet computed.
        reference: the same in float64, of the same shape.
        baseline: the same computation in PyTorch, in the dtype of `actual`.
        allow_nonfinite: where the baseline is not finite, `actual` need not be either
            (values beyond the range of the dtype).

    Returns:
        The error and the bound.

    Raises:
        AssertionError: another shape or dtype, a value that is not finite where the
            reference is (or the reverse), or an error above the bound.
        TypeError: the reference is not float64.
    """
    if reference.dtype != torch.float64:
        raise TypeError(f"the reference is {reference.dtype}; it must be float64")
    for name, other in (("reference", reference), ("baseline", baseline)):
        assert actual.shape == other.shape, (
            f"shape {tuple(actual.shape)}, but the {name} has {tuple(other.shape)}"
        )
    assert actual.dtype == baseline.dtype, (
        f"{actual.dtype}, but the baseline is {baseline.dtype}"
    )
    dtype = str(actual.dtype).removeprefix("torch.")
    if not actual.numel():
        return Accuracy(dtype, 0.0, 0.0)

    got, expected, own = actual.detach().double(), reference, baseline.detach().double()
    compared = expected.isfinite()
    if allow_nonfinite:
        compared = compared & own.isfinite()
        got = torch.where(expected.isfinite() & ~own.isfinite(), expected, got)
    same = got.isfinite() == expected.isfinite()
    same &= got.isnan() == expected.isnan()
    same &= ~expected.isinf() | (got == expected)
    if not same.all():
        raise AssertionError(_first("not of the same kind", ~same, got, expected))

    zero = torch.zeros((), dtype=torch.float64, device=got.device)
    distance = torch.where(compared, (got - expected).abs(), zero)
    own_distance = torch.where(compared & own.isfinite(), (own - expected).abs(), zero)
    units = FLOAT64_UNITS if actual.dtype == torch.float64 else 1
    scale = torch.where(compared, expected.abs(), zero).max().item()
    error = distance.max().item()
    bound = (
        2 * own_distance.max().item() + units * torch.finfo(actual.dtype).eps * scale
    )
    if error > bound:
        what = f"error {error:.2e} above the bound {bound:.2e}"
        raise AssertionError(_first(what, distance == distance.max(), got, expected))
    return Accuracy(dtype, error, bound)


def _first(
    what: str, where: torch.Tensor, got: torch.Tensor, expected: torch.Tensor
) -> str:
    """A message that names the first of the wrong places."""
    index = tuple(int(i) for i in where.nonzero()[0])
    return (
        f"{what}: {int(where.sum())} of {where.numel()} values; the first at "
        f"{index}: {got[index].item()!r} instead of {expected[index].item()!r}"
    )
