"""Tests of snippets/hopper/autograd.py: those of the operators in Triton."""

from typing import ClassVar

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from snippets.hopper import autograd
from tests.harness.suite import Refusal
from tests.snippets.backward import test_autograd, test_autograd_tuned
from tests.snippets.backward.suite import resized
from tests.snippets.backward.test_autograd import (  # noqa: F401
    plain,
    test_a_model_gets_its_own_layout_back,
    test_a_training_step_in_a_cuda_graph,
    test_compile,
    test_expanded_gradients,
    test_forward,
    test_gradient_through,
    test_some_tensors_may_be_frozen,
    test_the_graph_can_be_kept,
    test_there_is_no_second_gradient,
    test_what_is_kept,
    test_without_gradients,
)
from tests.snippets.backward.test_autograd_tuned import (  # noqa: F401
    LAYOUTS,
    test_a_fake_result_is_like_the_real_one,
    test_a_model_can_be_exported,
    test_a_training_step_of_fake_tensors,
    test_as_a_model_calls_it,
    test_autocast,
    test_opcheck,
)
from tests.snippets.hopper.gluon import NO_ACCURACY, OnGpu  # noqa: F401

OPERATORS = torch.ops.hopper.attention, torch.ops.hopper.attention_backward
NO_KERNEL = ("test_a_model_can_be_exported", "test_a_training_step_of_fake_tensors")


@pytest.fixture(autouse=True)
def ours(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests of the operators in Triton try is this one, on a GPU."""
    theirs = request.function.__module__ != __name__
    kernel = request.function.__name__ not in NO_KERNEL
    if theirs and kernel and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    monkeypatch.setattr(test_autograd, "autograd", autograd)
    monkeypatch.setattr(test_autograd, "BLOCK", {})
    monkeypatch.setattr(test_autograd_tuned, "OPERATORS", OPERATORS)


class TestHopperAutograd(OnGpu, test_autograd.TestAutograd):
    blocks = ({},)
    copies = True  # so that tensors far apart have rows of 16 bytes
    head_dims = (16, 32, 40, 64, 80, 96, 128)
    layouts = LAYOUTS
    most_heads = None
    bad_head_dims: ClassVar = (0, 12, 136, 256, 264)
    scales = (0.3, 1.0)
    # They are launched by files of their own.
    test_launches_on_the_device_of_its_inputs = None
    test_every_block_size = None  # there is one
    test_the_same_bits_in_every_run = None  # those of dq are not

    def refusals(self) -> dict[str, Refusal]:
        """Also of float32, and of what the kernel's base of 2 cannot count."""
        change = dict.fromkeys("qkv", lambda x: x.float())
        wide = dict.fromkeys("qkv", lambda x: resized(x, -1, 256))
        return super().refusals() | {
            "float32": Refusal("q is torch.float32.*; it must", change),
            "what forward alone takes": Refusal(r"q .*256\]; it must.* or 128$", wide),
            "scale 0": Refusal("scale is 0.0; it must", options={"scale": 0.0}),
            "scale -0.3": Refusal("scale is -0.3; it must", options={"scale": -0.3}),
        }

    @pytest.mark.usefixtures("plain")
    def test_refuses(self, refusal: str, device: str) -> None:
        super().test_refuses(refusal, device)
        with FakeTensorMode():  # no kernel runs that could refuse it
            super().test_refuses(refusal, device)
