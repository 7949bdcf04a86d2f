"""Tests of snippets/backward/autograd_tuned.py: those of the operator, and others."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.library import opcheck

from snippets.backward import autograd_tuned
from tests.harness.inputs import HALVES, HEAD_LAYOUTS, INTERPRETED, normal, qkv
from tests.harness.suite import Refusal
from tests.snippets.backward import test_autograd
from tests.snippets.backward.suite import resized
from tests.snippets.backward.test_autograd import (  # noqa: F401
    leaves,
    plain,
    step,
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

OPERATORS = torch.ops.tuned.attention, torch.ops.tuned.attention_backward
# Rows that begin where no descriptor can, and rows that lie in memory twice.
LAYOUTS = HEAD_LAYOUTS | {
    "at an odd address": lambda x: torch.cat((x.new_zeros(1), x.flatten()))[1:].view(
        x.shape
    ),
    "rows of 17": lambda x: torch.nn.functional.pad(x, (0, 1))[..., :-1],
}
DTYPES = (torch.float16,) if INTERPRETED else HALVES


@pytest.fixture(autouse=True)
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests of the other operator try is this one."""
    monkeypatch.setattr(test_autograd, "autograd", autograd_tuned)
    monkeypatch.setattr(test_autograd, "BLOCK", {})


def attention(*given: torch.Tensor, **asked: bool) -> tuple[torch.Tensor, ...]:
    """Of the operator that is tried: the one on Hopper has these tests, too."""
    return test_autograd.autograd.attention(*given, **asked)


# What needs no kernel.


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_training_step_of_fake_tensors(
    layout: str, dtype: torch.dtype, device: str
) -> None:
    sizes = (2, 4), (2, 2), 5, 7, 16
    given = [LAYOUTS[layout](x) for x in qkv(*sizes, dtype, device)]
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(x).requires_grad_() for x in given]
        o, lse = attention(*fakes, causal=True)
        found = torch.autograd.grad((2 * o).sum() + lse.sum(), fakes)
        for x, y in ((fakes[0], o), *zip(fakes, found, strict=True)):
            assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
            assert y.stride() == torch.empty_like(x).stride()
    assert (lse.shape, lse.dtype) == (o.shape[:3], torch.float32)


@pytest.mark.usefixtures("plain")
def test_a_model_can_be_exported(device: str) -> None:
    class Layer(torch.nn.Module):
        def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return step(x, weight, causal=True)

    x = normal((2, 21, 32), torch.float16, device)
    weight = normal((32, 96), torch.float16, device, seed=1)
    program = torch.export.export(Layer(), (x, weight), strict=True)
    called = [node.target for node in program.graph.nodes]
    assert called.count(OPERATORS[0].default) == 1


# What the tests of the other operator say otherwise.


@pytest.mark.parametrize("low", DTYPES, ids=str)
def test_autocast(low: torch.dtype, device: str) -> None:
    given = leaves(device, dtype=torch.float32)
    do = normal(given[0].shape, torch.float32, device, seed=5)
    with torch.autocast(device, low):
        o, lse = attention(*given)
    assert (o.dtype, lse.dtype) == (low, torch.float32)
    found = torch.autograd.grad(o, given, do.to(low))
    assert [x.dtype for x in found] == 3 * [torch.float32]
    halves = [x.detach().to(low).requires_grad_() for x in given]
    o, _ = attention(*halves)
    wanted = torch.autograd.grad(o, halves, do.to(low))
    for x, y in zip(found, wanted, strict=True):
        assert torch.equal(x, y.float())
    with torch.autocast(device, low):
        mixed, _ = attention(halves[0], *given[1:])
    assert torch.equal(mixed, o)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fake_result_is_like_the_real_one(layout: str, device: str) -> None:
    given = qkv((2, 4), (2, 2), 5, 7, 16, torch.float16, device)
    q, k, v = (LAYOUTS[layout](x) for x in given)
    o, lse = OPERATORS[0](q, k, v, True, 0.3)
    found = OPERATORS[1](q, k, v, o, lse, torch.ones_like(o), lse, True, 0.3)
    for x, y in zip((q, q, k, v), (o, *found), strict=True):
        assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
        assert y.stride() == torch.empty_like(x).stride()
    assert lse.is_contiguous()


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("layout", ["seq before heads", "rows of 17"])
def test_opcheck(layout: str, device: str) -> None:
    given = qkv((1, 2), (1, 1), 18, 37, 16, torch.float16, device)
    q, k, v = (LAYOUTS[layout](x) for x in given)
    o, lse = OPERATORS[0](q, k, v, True, 0.3)
    of_all = {"rtol": 1e-3, "atol": 1e-3}
    trained = [x.detach().requires_grad_() for x in (q, k, v)]
    passed = opcheck(OPERATORS[0], (*trained, True, 0.3), **of_all)
    assert set(passed.values()) == {"SUCCESS"}
    # That it can be compiled, too, test_compile says.
    some = "test_schema", "test_autograd_registration", "test_faketensor"
    given = (q, k, v, o, lse, torch.ones_like(o), lse, True, 0.3)
    passed = opcheck(OPERATORS[1], given, test_utils=some, **of_all)
    assert set(passed.values()) == {"SUCCESS"}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("head_dim", [64, 128])
def test_as_a_model_calls_it(
    head_dim: int, causal: bool, dtype: torch.dtype, device: str
) -> None:
    # Views of one product, [batch, seq, 3, heads, head_dim], over some tiles.
    seq, heads = (81, 1) if INTERPRETED else (333, 4)
    product = normal((2, seq, 3, heads, head_dim), dtype, device).requires_grad_()
    q, k, v = given = product.permute(2, 0, 3, 1, 4).unbind()
    o, lse = attention(q, k, v, causal=causal)
    do = normal((2, seq, heads, head_dim), o.dtype, device, seed=1).transpose(1, 2)
    dlse = normal(lse.shape, lse.dtype, device, seed=2)
    found = torch.autograd.grad((o, lse), given, (do, dlse))
    test_autograd.check(found, list(given), do, dlse, causal=causal)


class TestAutogradTuned(test_autograd.TestAutograd):
    blocks = ({},)
    dtypes = HALVES
    copies = True  # so that tensors far apart have rows of 16 bytes
    head_dims = (
        (16, 40, 128) if INTERPRETED else (16, 32, 40, 64, 80, 96, 128, 192, 256)
    )
    layouts = test_autograd.LAYOUTS if INTERPRETED else LAYOUTS
    most_heads = None
    bad_head_dims = (0, 12, 264)
    scales = (0.3, 1.0)
    # They are launched by files of their own.
    test_launches_on_the_device_of_its_inputs = None
    test_every_block_size = None  # there is one

    def refusals(self) -> dict[str, Refusal]:
        """Also of float32, and of what the kernel's base of 2 cannot count."""
        change = dict.fromkeys("qkv", lambda x: x.float())
        wide = dict.fromkeys("qkv", lambda x: resized(x, -1, 264))
        return super().refusals() | {
            "float32": Refusal("q is torch.float32.*; it must", change),
            "wide heads": Refusal(r"q .*264\]; it must.* or 256$", wide),
            "scale 0": Refusal("scale is 0.0; it must", options={"scale": 0.0}),
            "scale -0.3": Refusal("scale is -0.3; it must", options={"scale": -0.3}),
        }

    @pytest.mark.usefixtures("plain")
    def test_refuses(self, refusal: str, device: str) -> None:
        super().test_refuses(refusal, device)
        with FakeTensorMode():  # no kernel runs that could refuse it
            super().test_refuses(refusal, device)
