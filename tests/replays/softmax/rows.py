"""What the replays of softmax share: rows, and what PyTorch makes of them."""

import torch

from tests.replays import Run, Show, Tensors

INF = float("inf")
RISING = [-1.0, 0.2, 0.5, 0.1, 0.8, 1.9, 1.2, 1.5, 2.0, 2.4, 3.1, 2.2]
RANDOM = [
    [0.3, -0.9, 1.4, 0.6, -1.2, 0.1, 1.1, -0.4, 2.3, 0.7],
    [1.7, 0.2, -0.5, 0.9, 2.6, -1.1, 0.4, 1.3, -0.2, 0.8],
]
MASKED = [*[-INF] * 4, 0.8, 1.9, -INF, 1.5, 2.0, 0.4, 1.1, -INF]
MEMORY = [Show("x", "x", "the input"), Show("y", "y", "the output")]
# One input for the right loop and for the wrong one: they are shown side by side.
RUNS = {
    "rising": Run("One row", {"x": torch.tensor([RISING])}),
    "random": Run("Two random rows", {"x": torch.tensor(RANDOM)}),
}
# Of a tile that the second pass needs once more.
AGAIN = (
    "Second pass: load tile {tile} again, {bytes} bytes, because the kernel keeps one "
    "tile at a time."
)


def expected(x: torch.Tensor) -> Tensors:
    """The softmax of PyTorch, in the dtype of x."""
    return {"y": torch.softmax(x, dim=-1)}


def symbols(x: torch.Tensor) -> dict[str, int]:
    """Rows, columns and bytes of an element."""
    return {"R": x.shape[0], "C": x.shape[1], "b": x.element_size()}
