"""Tests of snippets/backward/autograd.py."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.library import opcheck

from snippets.backward import autograd
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import HEAD_DIMS, HEAD_LAYOUTS, INTERPRETED, normal, qkv
from tests.harness.poison import Poison, guarded
from tests.harness.suite import Refusal
from tests.snippets.attention.reference import baseline, reference
from tests.snippets.backward.reference import Gradients, attention, gradients
from tests.snippets.backward.suite import BackwardTests, resized, strides

BLOCK = {"block": 16}
# Of the layouts, those that differ most.
LAYOUTS = {
    layout: HEAD_LAYOUTS[layout]
    for layout in ("transposed", "seq before heads", "expanded heads", "sliced columns")
}
OPERATORS = torch.ops.flash.attention, torch.ops.flash.attention_backward
# What becomes of the rest of the graph; Inductor needs a compiler on the CPU.
BACKEND = "inductor" if torch.cuda.is_available() else "aot_eager"
Leaves = list[torch.Tensor]


def leaves(
    device: str,
    *,
    lengths: tuple[int, int] = (18, 37),
    dtype: torch.dtype = torch.float16,
    batch: int = 1,
) -> Leaves:
    """q, k and v as a model has them, [batch, seq, heads, head_dim]; 2 heads share."""
    inputs = qkv((batch, 2), (batch, 1), *lengths, 16, dtype, device)
    seq_first = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs)
    return [x.requires_grad_() for x in seq_first]


def expected(
    inputs: Leaves,
    do: torch.Tensor | None,
    dlse: torch.Tensor | None,
    exact: bool,
    **asked: Any,
) -> dict[str, torch.Tensor]:
    """The gradients in float64, or as PyTorch computes them in the dtype of q."""
    q, k, v = (x.detach().double() if exact else x.detach() for x in inputs)
    do = torch.zeros_like(q) if do is None else do
    found = gradients(lambda *x: attention(*x, **asked), q, k, v, do, dlse)
    return dict(zip(("dq", "dk", "dv"), found, strict=True))


def check(
    found: Gradients,
    inputs: Leaves,
    do: torch.Tensor | None,
    dlse: torch.Tensor | None = None,
    **asked: Any,
) -> None:
    """Hold gradients against the rule."""
    named = dict(zip(("dq", "dk", "dv"), found, strict=True))
    both = (expected(inputs, do, dlse, exact, **asked) for exact in (True, False))
    check_accuracy(named, *both)


@pytest.fixture
def plain(poisoned: Poison) -> Iterator[None]:
    """Fresh tensors are as torch makes them: a fake one has no memory to poison."""
    with poisoned.lifted():
        yield


# The forward pass.


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("lengths", [(18, 37), (20, 9), (4, 0)], ids=str)
def test_forward(lengths: tuple[int, int], causal: bool, device: str) -> None:
    q, k, v = (guarded(x) for x in leaves(device, lengths=lengths, batch=2))
    for asked in ({"causal": causal}, {"causal": causal, "scale": 0.3}):
        o, lse = autograd.attention(q, k, v, **asked, **BLOCK)
        assert strides(o) == strides(torch.empty_like(q, device="meta"))
        assert lse.is_contiguous()
        given = [x.detach() for x in (q, k, v)]
        check_accuracy(
            {"o": o, "lse": lse},
            *(
                dict(zip(("o", "lse"), of(*given, **asked), strict=True))
                for of in (reference, baseline)
            ),
        )


def test_a_model_gets_its_own_layout_back(device: str) -> None:
    q, k, v = leaves(device)
    o, _ = autograd.attention(q, k, v, **BLOCK)
    rows = o.transpose(1, 2).reshape(1, 18, 32)
    assert rows.data_ptr() == o.data_ptr()
    assert rows.is_contiguous()


def test_what_is_kept(device: str) -> None:
    q, k, v = leaves(device)
    kept: list[torch.Tensor] = []

    def keep(x: torch.Tensor) -> torch.Tensor:
        kept.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        o, lse = autograd.attention(q, k, v, **BLOCK)
    assert [x.data_ptr() for x in kept] == [x.data_ptr() for x in (q, k, v, o, lse)]
    assert sum(x.nbytes for x in kept) == 2 * 16 * (2 * 2 * 18 + 2 * 37) + 4 * 2 * 18


# The gradient.


@pytest.mark.parametrize("through", ["o", "lse", "both"])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_gradient_through(through: str, causal: bool, device: str) -> None:
    q, k, v = given = leaves(device)
    do = normal(q.shape, q.dtype, device, seed=5)
    dlse = normal(q.shape[:3], torch.float32, device, seed=6)
    o, lse = autograd.attention(q, k, v, causal=causal, scale=0.3, **BLOCK)
    if through == "both":
        found = torch.autograd.grad((o, lse), given, (do, dlse))
    elif through == "o":
        found, dlse = torch.autograd.grad(o, given, do), None
    else:
        found, do = torch.autograd.grad(lse, given, dlse), None
    check(found, given, do, dlse, causal=causal, scale=0.3)


def test_expanded_gradients(device: str) -> None:
    q, k, v = given = leaves(device)
    o, lse = autograd.attention(q, k, v, **BLOCK)
    (o.sum() + 2 * lse.sum()).backward()
    for x in given:
        assert strides(x.grad) == strides(x)
    dlse = torch.full_like(lse, 2)
    check([x.grad for x in given], given, torch.ones_like(o), dlse)


def test_the_graph_can_be_kept(device: str) -> None:
    given = leaves(device)
    o, _ = autograd.attention(*given, **BLOCK)
    do = normal(o.shape, o.dtype, device, seed=5)
    first, again = (
        torch.autograd.grad(o, given, do, retain_graph=True) for _ in range(2)
    )
    assert all(map(torch.equal, first, again))
    check(first, given, do)


@pytest.mark.parametrize("frozen", [0, 1, 2], ids=["q", "k", "v"])
def test_some_tensors_may_be_frozen(frozen: int, device: str) -> None:
    given = leaves(device)
    o, _ = autograd.attention(*given, **BLOCK)
    do = normal(o.shape, o.dtype, device, seed=5)
    wanted = torch.autograd.grad(o, given, do)
    given[frozen] = given[frozen].detach()
    o, _ = autograd.attention(*given, **BLOCK)
    o.backward(do)
    for i, x in enumerate(given):
        assert x.grad is None if i == frozen else torch.equal(x.grad, wanted[i])


def test_without_gradients(device: str) -> None:
    given = leaves(device)
    o, lse = autograd.attention(*given, **BLOCK)
    assert o.requires_grad
    assert lse.requires_grad
    with torch.no_grad():
        results = autograd.attention(*given, **BLOCK)
    for x, y in zip(results, (o, lse), strict=True):
        assert not x.requires_grad
        assert torch.equal(x, y)
    with torch.inference_mode():
        results = autograd.attention(*(x.detach() for x in given), **BLOCK)
    assert torch.equal(results[0], o)


def test_there_is_no_second_gradient(device: str) -> None:
    given = leaves(device)
    o, _ = autograd.attention(*given, **BLOCK)
    found = torch.autograd.grad(o.float().square().sum(), given, create_graph=True)
    for dx in found:
        with pytest.raises(RuntimeError, match="no autograd formula"):
            torch.autograd.grad(dx.float().sum(), given, retain_graph=True)


# Autocast.


def test_autocast(device: str) -> None:
    low = torch.float16  # the interpreter has no bfloat16
    given = leaves(device, dtype=torch.float32)
    with torch.autocast(device, low):
        o, lse = autograd.attention(*given, **BLOCK)
    assert (o.dtype, lse.dtype) == (low, torch.float32)
    do = normal(o.shape, low, device, seed=5)
    found = torch.autograd.grad(o, given, do)
    assert [x.dtype for x in found] == 3 * [torch.float32]
    halves = [x.detach().to(low).requires_grad_() for x in given]
    o, _ = autograd.attention(*halves, **BLOCK)
    for x, y in zip(found, torch.autograd.grad(o, halves, do), strict=True):
        assert torch.equal(x, y.float())
    with torch.autocast(device, low, enabled=False):
        assert autograd.attention(*given, **BLOCK)[0].dtype == torch.float32
    mixed = halves[0], *given[1:]
    with torch.autocast(device, low):
        assert torch.equal(autograd.attention(*mixed, **BLOCK)[0], o)


# What torch.compile knows of the operators.


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fake_result_is_like_the_real_one(
    layout: str, device: str, plain: None
) -> None:
    view, dtype = LAYOUTS[layout], torch.float16
    sizes = ((2, 4), (2, 2), 5, 7, 16, dtype, device)
    q, k, v = (view(x) for x in qkv(*sizes))
    o, lse = OPERATORS[0](q, k, v, True, 0.3, 16)
    given = (q, k, v, o, lse, torch.ones_like(o), lse, True, 0.3, 16)
    for operator, arguments, real in (
        (OPERATORS[0], (q, k, v, True, 0.3, 16), (o, lse)),
        (OPERATORS[1], given, OPERATORS[1](*given)),
    ):
        with FakeTensorMode() as mode:
            faked = [
                mode.from_tensor(x) if isinstance(x, torch.Tensor) else x
                for x in arguments
            ]
            results = operator(*faked)
        for x, y in zip(results, real, strict=True):
            assert (x.shape, x.dtype, x.device) == (y.shape, y.dtype, y.device)
            assert x.stride() == y.stride()


def test_opcheck(device: str, plain: None) -> None:
    q, k, v = (x.detach() for x in leaves(device))
    o, lse = OPERATORS[0](q, k, v, True, 0.3, 16)
    of_all = {"rtol": 1e-3, "atol": 1e-3}
    trained = [x.requires_grad_() for x in (q, k, v)]
    passed = opcheck(OPERATORS[0], (*trained, True, 0.3, 16), **of_all)
    assert set(passed.values()) == {"SUCCESS"}
    given = (*(x.detach() for x in (q, k, v)), o, lse, torch.ones_like(o), lse)
    # That it can be compiled, too, test_compile says.
    some = "test_schema", "test_autograd_registration", "test_faketensor"
    passed = opcheck(OPERATORS[1], (*given, True, 0.3, 16), test_utils=some, **of_all)
    assert set(passed.values()) == {"SUCCESS"}


def step(
    x: torch.Tensor, weight: torch.Tensor, heads: int = 2, **asked: Any
) -> torch.Tensor:
    """The loss of a layer with attention, whose x is [batch, seq, heads * head_dim]."""
    q, k, v = (x @ weight).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    o, lse = autograd.attention(q, k, v, **asked, **BLOCK)
    rows = o.transpose(1, 2).reshape(x.shape)
    return (rows * x).float().mean() + lse.square().mean()


def of_step(
    loss: Callable[..., torch.Tensor], *leaves: torch.Tensor, **asked: Any
) -> list[torch.Tensor]:
    """The loss, and the gradients of x and weight."""
    given = [y.detach().requires_grad_() for y in leaves]
    value = loss(*given, **asked)
    return [value.detach(), *torch.autograd.grad(value, given)]


def test_compile(device: str, plain: None) -> None:
    def loss(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, torch.float16):
            return step(x, weight, causal=True, scale=0.3)

    torch._dynamo.reset()
    compiled = torch.compile(loss, backend=BACKEND, fullgraph=True)
    x = normal((2, 21, 32), torch.float32, device)
    weight = normal((32, 96), torch.float32, device, seed=1) / 6
    wanted, found = of_step(loss, x, weight), of_step(compiled, x, weight)
    for y, z in zip(found, wanted, strict=True):
        assert (y.dtype, y.shape) == (z.dtype, z.shape)
        # Inductor fuses operations, and rounds to float16 less often.
        assert (y - z).abs().max() <= 1e-2 * z.abs().max()


@pytest.mark.gpu
def test_a_training_step_in_a_cuda_graph(device: str, plain: None) -> None:
    x = normal((2, 70, 32), torch.float16, device)
    weight = normal((32, 96), torch.float16, device, seed=1) / 6
    given = [y.detach().requires_grad_() for y in (x, weight)]

    def run() -> tuple[torch.Tensor, ...]:
        value = step(*given, causal=True)
        return value.detach(), *torch.autograd.grad(value, given)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = run()
    for seed in (2, 3):
        fresh = normal(x.shape, x.dtype, device, seed=seed)
        with torch.no_grad():
            given[0].copy_(fresh)
        graph.replay()
        torch.cuda.synchronize()
        wanted = of_step(step, fresh, weight, causal=True)
        assert all(map(torch.equal, results, wanted))


# The suite of the backward kernels, through autograd.


@wraps(autograd.attention)
def through_autograd(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    *,
    dlse: torch.Tensor | None = None,
    **options: Any,
) -> Gradients:
    """The gradients as a loss finds them: o and lse are those of the snippet."""
    with torch.enable_grad():
        given = [x.detach() for x in (q, k, v)]
        for x in given:
            x.requires_grad_(x.is_floating_point())
        outputs, arriving = autograd.attention(*given, **options), (do, dlse)
        some = 1 if dlse is None else 2
        return torch.autograd.grad(outputs[:some], given, arriving[:some])


class TestAutograd(BackwardTests):
    function = staticmethod(through_autograd)
    blocks = (BLOCK, {"block": 32}, {})
    # Each case runs the forward pass, too: of those on the CPU, some are enough.
    interpreted = (torch.float16,)
    layouts = LAYOUTS if INTERPRETED else HEAD_LAYOUTS
    head_dims = (1, 40, 128) if INTERPRETED else HEAD_DIMS

    def refusals(self) -> dict[str, Refusal]:
        """Of what is given to it: q, k and v."""
        every = super().refusals().items()
        said = "k .*; it must .*a divisor of 4"
        return {what: each for what, each in every if each.said[0] in "qkv"} | {
            "k of three dimensions": Refusal(f"{said}.*seq_k", {"k": lambda x: x[0]}),
            "a tensor as scale": Refusal(
                "scale is .*ensor.*; it must", options={"scale": torch.tensor(0.3)}
            ),
            "three heads of k": Refusal(
                said, dict.fromkeys("kv", lambda x: resized(x, 1, 3))
            ),
        }

    # Autograd looks at the shapes of do and dlse, and o and lse are its own.
    test_refuses_a_dlse_of_another_shape = None
    test_refuses_to_lose_a_gradient = None
    test_lse_in_any_layout = None
    test_a_row_whose_lse_is_minus_inf_adds_nothing = None
    if INTERPRETED:  # which runs one program after the other
        test_the_same_bits_in_every_run = None
