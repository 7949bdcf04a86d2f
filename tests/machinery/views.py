"""Views of a tensor of 3 times 10, and where their elements are."""

import torch

VIEWS = [
    lambda x: x,
    lambda x: x[:, :4],
    lambda x: x[1:, 1:4],
    lambda x: x[:, ::2],
    lambda x: x.t()[:4],
    lambda x: x[0].expand(3, 10),
    lambda x: x[:2],
    lambda x: x[:, :0],
    lambda x: x[2, 9],
]


def places(view: torch.Tensor) -> set[int]:
    """The places of its elements, counted from the first one."""
    steps = torch.ones(view.shape).nonzero() * torch.tensor(view.stride())
    return {*steps.sum(-1).tolist()}
