"""What each order of summation costs in accuracy, measured against float64."""

# --8<-- [start:setup]
import math
from collections.abc import Callable

import torch

Pair = tuple[torch.Tensor, torch.Tensor]  # m and l, [rows, 1] each
# --8<-- [end:setup]


# --8<-- [start:sums]
def left_to_right(terms: torch.Tensor) -> torch.Tensor:
    """[rows, cols] -> [rows, 1]: one addition after the other, each of them rounded."""
    total = torch.zeros_like(terms[:, :1])
    for term in terms.split(1, dim=1):
        total = total + term
    return total


def pairwise(terms: torch.Tensor) -> torch.Tensor:
    """[rows, cols] -> [rows, 1]: neighbours first, then the sums of neighbours."""
    while terms.shape[1] > 1:
        if terms.shape[1] % 2:
            terms = torch.nn.functional.pad(terms, (0, 1))
        terms = terms[:, ::2] + terms[:, 1::2]
    return terms


# --8<-- [end:sums]


# --8<-- [start:safe]
def naive(x: torch.Tensor) -> Pair:
    """The sum of exp(x) from left to right, without a shift."""
    return torch.zeros_like(x[:, :1]), left_to_right(torch.exp(x))


def safe(x: torch.Tensor) -> Pair:
    """The maximum first, then the sum of exp(x - m) from left to right."""
    m = x.amax(dim=1, keepdim=True)
    return m, left_to_right(torch.exp(x - m))


# --8<-- [end:safe]


# --8<-- [start:online]
def online(x: torch.Tensor, block_cols: int = 1) -> Pair:
    """The running maximum and denominator, block after block.

    A block is summed pairwise, as a kernel does. With blocks of one element this is
    algorithm 3 of Milakov and Gimelshein, 2018.
    """
    m_i = torch.full_like(x[:, :1], -math.inf)
    l_i = torch.zeros_like(m_i)
    for block in x.split(block_cols, dim=1):
        m_new = torch.maximum(m_i, block.amax(dim=1, keepdim=True))
        l_i = l_i * torch.exp(m_i - m_new) + pairwise(torch.exp(block - m_new))
        m_i = m_new
    return m_i, l_i


def tiles(x: torch.Tensor) -> Pair:
    """Online in blocks of 256 columns."""
    return online(x, 256)


# --8<-- [end:online]


# --8<-- [start:tree]
def tree(x: torch.Tensor) -> Pair:
    """Pairs (m, l) of neighbours merged, then the pairs of neighbours."""
    m_i, l_i = x, torch.ones_like(x)
    while m_i.shape[1] > 1:
        if m_i.shape[1] % 2:
            m_i = torch.nn.functional.pad(m_i, (0, 1), value=-math.inf)
            l_i = torch.nn.functional.pad(l_i, (0, 1))
        m_new = torch.maximum(m_i[:, ::2], m_i[:, 1::2])
        l_i = l_i * torch.exp(m_i - m_new.repeat_interleave(2, dim=1))
        m_i, l_i = m_new, l_i[:, ::2] + l_i[:, 1::2]
    return m_i, l_i


# --8<-- [end:tree]


# --8<-- [start:error]
Form = Callable[[torch.Tensor], Pair]
FORMS: list[Form] = [naive, safe, online, tiles, tree]


def error(
    form: Form, x: torch.Tensor, dtype: torch.dtype, inside: torch.dtype | None = None
) -> float:
    """The largest error of a softmax, relative to the largest value of its row.

    Args:
        form: one of FORMS.
        x: [rows, cols], finite.
        dtype: of the input, which is rounded to it first, and of the output.
        inside: of the arithmetic in between; dtype if None.

    Returns:
        The error in units of the machine epsilon of dtype; NaN after an overflow.

    Raises:
        ValueError: x is not [rows, cols] with at least one column.
    """
    if x.ndim != 2 or x.shape[1] == 0:
        raise ValueError(f"x is {list(x.shape)}; it must be [rows, cols], cols >= 1")
    x = x.to(dtype)
    inside = inside or dtype
    m_i, l_i = form(x.to(inside))
    y = (torch.exp(x.to(inside) - m_i) / l_i).to(dtype)
    reference = torch.softmax(x.double(), dim=1)
    errors = (y.double() - reference).abs() / reference.amax(dim=1, keepdim=True)
    return errors.max().item() / torch.finfo(dtype).eps


# --8<-- [end:error]


# --8<-- [start:rows]
def make_rows(cols: int = 4096) -> dict[str, torch.Tensor]:
    """Rows of several kinds, [4, cols] each, in float64."""
    normal = torch.randn(4, cols, generator=torch.Generator().manual_seed(0)).double()
    rise = torch.linspace(0, 1, cols, dtype=torch.float64)
    return {
        "normal": normal,
        "up": normal.sort(dim=1).values,
        "down": normal.sort(dim=1, descending=True).values,
        "slow rise": rise + torch.tensor([[0.0], [0.1], [0.3], [0.7]]),
        "times 100": 100 * normal,
    }


# --8<-- [end:rows]


# --8<-- [start:table]
def print_table(columns: dict[str, tuple]) -> None:
    """One line per form; each column names the arguments of error after the form."""
    print(" " * 7 + "".join(f"{name:>10}" for name in columns))
    for form in FORMS:
        values = (f"{error(form, *column):10.3g}" for column in columns.values())
        print(f"{form.__name__:7}" + "".join(values))


# --8<-- [end:table]


# --8<-- [start:demo]
if __name__ == "__main__":
    # --8<-- [start:dtypes]
    x = make_rows()["normal"]
    columns = {
        "fp16": (x, torch.float16),
        "bf16": (x, torch.bfloat16),
        "fp32": (x, torch.float32),
        "fp16/32": (x, torch.float16, torch.float32),
        "bf16/32": (x, torch.bfloat16, torch.float32),
    }
    print_table(columns)
    # --8<-- [end:dtypes]

    # --8<-- [start:kinds]
    print_table({name: (x, torch.float32) for name, x in make_rows().items()})
    # --8<-- [end:kinds]

    # --8<-- [start:growth]
    lengths = [64, 256, 1024, 4096, 16384]
    rises = {str(cols): make_rows(cols)["slow rise"] for cols in lengths}
    print_table({cols: (x, torch.float32) for cols, x in rises.items()})
    # --8<-- [end:growth]
# --8<-- [end:demo]
