"""Five ways to the variance of a row, and what each loses if the mean is large."""

from collections.abc import Callable

import torch

# --8<-- [start:squares]
# What is left of x [rows, cols] without its mean, and the variance [rows, 1].
Centred = tuple[torch.Tensor, torch.Tensor]


def squares(x: torch.Tensor) -> Centred:
    """The mean of the squares, less the square of the mean."""
    mean = x.mean(dim=1, keepdim=True)
    # --8<-- [line:difference]
    variance = (x * x).mean(dim=1, keepdim=True) - mean * mean
    return x - mean, variance


# --8<-- [end:squares]


# --8<-- [start:passes]
def two_passes(x: torch.Tensor) -> Centred:
    """The mean first, then the mean of the squared deviations from it."""
    # --8<-- [line:centred]
    centred = x - x.mean(dim=1, keepdim=True)
    return centred, (centred * centred).mean(dim=1, keepdim=True)


def shifted(x: torch.Tensor) -> Centred:
    """The same of the distances from the first element of each row."""
    # --8<-- [line:first]
    return two_passes(x - x[:, :1])


# --8<-- [end:passes]


# --8<-- [start:welford]
def parts(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and sum of squared deviations of each row, one element after the other."""
    mean, m2 = torch.zeros_like(x[:, :1]), torch.zeros_like(x[:, :1])
    for seen, value in enumerate(x.split(1, dim=1), 1):
        # --8<-- [line:delta]
        delta = value - mean
        mean = mean + delta / seen
        # --8<-- [line:m2]
        m2 = m2 + delta * (value - mean)
    return mean, m2


def welford(x: torch.Tensor) -> Centred:
    """One pass over the whole row."""
    mean, m2 = parts(x)
    return x - mean, m2 / x.shape[1]


# --8<-- [end:welford]


# --8<-- [start:merged]
def merged(x: torch.Tensor) -> Centred:
    """The same of 32 columns at a time, whose results are merged."""
    n, mean, m2 = 0, torch.zeros_like(x[:, :1]), torch.zeros_like(x[:, :1])
    for part in x.split(32, dim=1):
        more, (part_mean, part_m2) = part.shape[1], parts(part)
        delta = part_mean - mean
        shift = delta * (more / (n + more))
        # --8<-- [line:merged]
        n, mean, m2 = n + more, mean + shift, m2 + part_m2 + delta * n * shift
    return x - mean, m2 / n


# --8<-- [end:merged]


# --8<-- [start:error]
Form = Callable[[torch.Tensor], Centred]
FORMS: list[Form] = [squares, two_passes, shifted, welford, merged]


def error(
    form: Form, x: torch.Tensor, inner: torch.dtype = torch.float32, eps: float = 1e-5
) -> float:
    """The largest error of a layer norm whose deviations come from a form.

    Args:
        form: one of FORMS.
        x: [rows, cols], finite.
        inner: the dtype of all arithmetic.
        eps: is added to the variance.

    Returns:
        The largest distance from the same in float64; NaN where a variance is so wrong
        that it has no root.

    Raises:
        ValueError: x is not [rows, cols] with at least one column.
    """
    if x.ndim != 2 or x.shape[1] == 0:
        raise ValueError(f"x is {list(x.shape)}; it must be [rows, cols], cols >= 1")
    centred, variance = form(x.to(inner))
    y = centred / torch.sqrt(variance + eps)
    expected = torch.nn.functional.layer_norm(x.double(), x.shape[1:], eps=eps)
    return (y - expected).abs().max().item()


# --8<-- [end:error]


# --8<-- [start:table]
def print_table(rows: dict[str, torch.Tensor], inner: torch.dtype) -> None:
    """One line for each form, one column for each matrix of rows."""
    print(f"{str(inner).removeprefix('torch.'):10}" + "".join(f"{k:>11}" for k in rows))
    for form in FORMS:
        values = (f"{error(form, x, inner):11.1e}" for x in rows.values())
        print(f"{form.__name__:10}" + "".join(values))


# --8<-- [end:table]

# --8<-- [start:demo]
if __name__ == "__main__":
    normal = torch.randn(64, 1000, generator=torch.Generator().manual_seed(0))
    # The input is float16, as what a layer before has put out.
    rows = {f"mean {mean}": (normal + mean).half() for mean in (0, 10, 1000)}
    rows["constant"] = torch.full((64, 1000), 1001.5).half()
    print_table(rows, torch.float32)
    print_table(rows, torch.float16)
# --8<-- [end:demo]
