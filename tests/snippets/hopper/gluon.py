"""What the tests of Gluon kernels share."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.harness.inputs import HALVES

# Off the GPU, these tests see what is refused, and what needs no kernel.
NO_ACCURACY = "" if torch.cuda.is_available() else "no interpreter runs Gluon"


class OnGpu:
    """A suite of kernels in 16 bits that only a GPU runs."""

    dtypes = HALVES
    interpreted = ()

    @pytest.fixture(autouse=True)
    def on_a_gpu(self, request: pytest.FixtureRequest) -> None:
        """Without one, only what is refused is tried: no interpreter runs Gluon."""
        if (
            not torch.cuda.is_available()
            and request.function.__name__ != "test_refuses"
        ):
            pytest.skip("needs a GPU")

    def cases(self) -> dict[str, Any]:
        """All dtypes: they wait for a GPU, too."""
        return super().cases() | {"dtype": self.dtypes}


def in_rows_of_16_bytes(x: torch.Tensor) -> torch.Tensor:
    """x in a wider matrix, so that its rows begin where the TMA unit can."""
    rows, cols = x.shape
    each = 16 // x.element_size()
    wide = x.new_zeros(rows, -(-cols // each) * each)
    wide[:, :cols] = x
    return wide[:, :cols]


def check_what_is_filled(call: Callable[[], torch.Tensor]) -> None:
    """Each row is filled up to a multiple of 16 bytes, with zeros, and no further.

    Rows of what `call` allocates end there, so they are given more room.
    """
    wide = []

    def wider(allocate: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def allocated(*args: object, **kwargs: object) -> torch.Tensor:
            *source, (rows, cols) = args
            wide.append(allocate(*source, (rows, cols + 64), **kwargs))
            return wide[-1][:, :cols]

        return allocated

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "empty", wider(torch.empty))
        patch.setattr(torch.Tensor, "new_empty", wider(torch.Tensor.new_empty))
        y = call()
    (whole,) = wide
    assert y.data_ptr() == whole.data_ptr()
    assert y.stride() == whole.stride()
    each = 16 // y.element_size()
    cols = y.shape[1]
    end = -(-cols // each) * each
    assert not whole[:, cols:end].any()
    assert whole[:, end:].isnan().all()
