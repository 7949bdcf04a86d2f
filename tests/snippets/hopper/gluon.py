"""What the tests of Gluon kernels share."""

import torch

# Off the GPU, these tests see what is refused, and what needs no kernel.
NO_ACCURACY = "" if torch.cuda.is_available() else "no interpreter runs Gluon"


def in_rows_of_16_bytes(x: torch.Tensor) -> torch.Tensor:
    """x in a wider matrix, so that its rows begin where the TMA unit can."""
    rows, cols = x.shape
    each = 16 // x.element_size()
    wide = x.new_zeros(rows, -(-cols // each) * each)
    wide[:, :cols] = x
    return wide[:, :cols]


def check_unwritten(x: torch.Tensor) -> None:
    """Nothing is written into what the rows of x are padded with."""
    assert x._base is not None
    assert x._base[:, x.shape[1] :].isnan().all()
