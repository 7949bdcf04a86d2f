"""When is a result right? The one rule, and what it measured."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from verified_docs.evidence.plugin import record_accuracy

Outputs = Mapping[str, torch.Tensor]

# The reference is float64 itself, so it is no truth for a float64 result: both are
# rounded, each by a few units in the last place.
FLOAT64_UNITS = 8


@dataclass(frozen=True)
class Rule:
    """What the name of an output says about it.

    Attributes:
        factor: the bound on its error, in errors of PyTorch.
        least: its magnitude is taken to be at least this.
        recorded: is its error shown on the pages?
    """

    factor: int = 2
    least: float = 0.0
    recorded: bool = True


RULE = Rule()
RULES = {
    # An error of eps in a logsumexp is one of eps in the sum of exponentials, even
    # where it is near 0, and a GPU's exponentials and logarithm are off by a few.
    "lse": Rule(least=8.0, recorded=False),
    **dict.fromkeys(("dx", "dq", "dk", "dv"), Rule(factor=3)),
}


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
    rule: Rule = RULE,
    allow_nonfinite: bool = False,
) -> Accuracy:
    """Hold one output against a float64 reference and PyTorch's own error.

    The bound is 2 * err(baseline) + eps(dtype) * max|reference|; 3 * for gradients.

    Args:
        actual: what the snippet computed.
        reference: the same in float64, of the same shape.
        baseline: the same computation in PyTorch, in the dtype of `actual`.
        rule: what is special about this output.
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
    largest = torch.where(compared, expected.abs(), zero).max().item()
    rounding = units * torch.finfo(actual.dtype).eps * max(largest, rule.least)
    error = distance.max().item()
    bound = rule.factor * own_distance.max().item() + rounding
    if error > bound:
        what = f"error {error:.2e} above the bound {bound:.2e}"
        raise AssertionError(_first(what, distance == distance.max(), got, expected))
    return Accuracy(dtype, error, bound)


def compare_all(
    actual: Outputs, reference: Outputs, baseline: Outputs, **options: bool
) -> dict[str, Accuracy]:
    """Hold named outputs, such as "o" and "lse", against others of the same names.

    Raises:
        AssertionError: as of `compare`; it names the output.
    """
    assert actual.keys() == reference.keys() == baseline.keys()
    found = {}
    for name in actual:
        tensors, rule = (actual[name], reference[name], baseline[name]), RULES.get(name)
        try:
            found[name] = compare(*tensors, rule=rule or RULE, **options)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None
    return found


def check_accuracy(
    actual: torch.Tensor | Outputs,
    reference: torch.Tensor | Outputs,
    baseline: torch.Tensor | Outputs,
    **options: bool,
) -> None:
    """`compare` one output, or `compare_all`, and record what was measured."""
    if isinstance(actual, torch.Tensor):
        found = {"": compare(actual, reference, baseline, **options)}
    else:
        found = compare_all(actual, reference, baseline, **options)
    for name, accuracy in found.items():
        if RULES.get(name, RULE).recorded:
            record_accuracy(accuracy.dtype, accuracy.error, accuracy.bound)


def _first(
    what: str, where: torch.Tensor, got: torch.Tensor, expected: torch.Tensor
) -> str:
    """A message that names the first of the wrong places."""
    index = tuple(int(i) for i in where.nonzero()[0])
    return (
        f"{what}: {int(where.sum())} of {where.numel()} values; the first at "
        f"{index}: {got[index].item()!r} instead of {expected[index].item()!r}"
    )
