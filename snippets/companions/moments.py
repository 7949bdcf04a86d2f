"""Four ways to the variance of a row, and what each loses if the mean is large."""

from collections.abc import Callable

import torch

Moments = tuple[torch.Tensor, torch.Tensor]  # mean and variance, [rows, 1] each


# --8<-- [start:squares]
def squares(x: torch.Tensor) -> Moments:
    """The mean of the squares, less the square of the mean."""
    mean = x.mean(dim=1, keepdim=True)
    # --8<-- [line:difference]
    return mean, (x * x).mean(dim=1, keepdim=True) - mean * mean


# --8<-- [end:squares]


# --8<-- [start:two_passes]
def two_passes(x: torch.Tensor) -> Moments:
    """The mean first, then the mean of the squared deviations from it."""
    mean = x.mean(dim=1, keepdim=True)
    # --8<-- [line:centred]
    centred = x - mean
    return mean, (centred * centred).mean(dim=1, keepdim=True)


# --8<-- [end:two_passes]


# --8<-- [start:welford]
def welford(x: torch.Tensor) -> Moments:
    """One element after the other: the mean so far, and the squares around it."""
    mean, m2 = torch.zeros_like(x[:, :1]), torch.zeros_like(x[:, :1])
    for seen, value in enumerate(x.split(1, dim=1), 1):
        # --8<-- [line:delta]
        delta = value - mean
        mean = mean + delta / seen
        # --8<-- [line:m2]
        m2 = m2 + delta * (value - mean)
    return mean, m2 / x.shape[1]


# --8<-- [end:welford]


# --8<-- [start:merged]
def merged(x: torch.Tensor) -> Moments:
    """The moments of 32 columns each, by Welford, and these merged one by one."""
    n, mean, m2 = 0, torch.zeros_like(x[:, :1]), torch.zeros_like(x[:, :1])
    for part in x.split(32, dim=1):
        more = part.shape[1]
        part_mean, part_variance = welford(part)
        delta = part_mean - mean
        # --8<-- [line:merged]
        mean = mean + delta * (more / (n + more))
        m2 = m2 + part_variance * more + delta * delta * (n * more / (n + more))
        n += more
    return mean, m2 / n


# --8<-- [end:merged]


# --8<-- [start:error]
FORMS: list[Callable[[torch.Tensor], Moments]] = [squares, two_passes, welford, merged]


def error(
    form: Callable[[torch.Tensor], Moments],
    x: torch.Tensor,
    inner: torch.dtype = torch.float32,
    eps: float = 1e-5,
) -> float:
    """The largest error of a layer norm of x whose moments come from `form`.

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
    mean, variance = form(x.to(inner))
    y = (x.to(inner) - mean) / torch.sqrt(variance + eps)
    expected = torch.nn.functional.layer_norm(x.double(), x.shape[1:], eps=eps)
    return (y - expected).abs().max().item()


# --8<-- [end:error]


# --8<-- [start:table]
def print_table(rows: dict[str, torch.Tensor], inner: torch.dtype) -> None:
    """One line for each form, one column for each matrix of rows."""
    print(f"{str(inner).removeprefix('torch.'):12}" + "".join(f"{k:>12}" for k in rows))
    for form in FORMS:
        values = (f"{error(form, x, inner):12.1e}" for x in rows.values())
        print(f"{form.__name__:12}" + "".join(values))


# --8<-- [end:table]

# --8<-- [start:demo]
if __name__ == "__main__":
    normal = torch.randn(64, 1000, generator=torch.Generator().manual_seed(0))
    means = (0, 10, 1000)
    # The input is float16, as the output of a layer before would be.
    rows = {f"mean {mean}": (normal + mean).half() for mean in means}
    print_table(rows, torch.float32)
    print_table(rows, torch.float16)
# --8<-- [end:demo]
