"""Tests of snippets/companions/gpt.py."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.library import opcheck

from snippets.companions import gpt
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import INTERPRETED, normal
from tests.harness.poison import Poison
from tests.snippets.companions.philox import kept_elements, kept_share

HEADS, P = 2, 0.25
SHAPE = {"layers": 2, "heads": HEADS, "head_dim": 16, "seq": 24, "p": P}
# What becomes of the rest of the graph; Inductor needs a compiler on the CPU.
BACKEND = "inductor" if torch.cuda.is_available() else "aot_eager"
OPERATORS = torch.ops.gpt.norm, torch.ops.gpt.norm_backward, torch.ops.gpt.dropout
Weights = dict[str, Tensor]


@pytest.fixture
def plain(poisoned: Poison) -> Iterator[None]:
    """Fresh tensors are as torch makes them: a fake one has no memory to poison."""
    with poisoned.lifted():
        yield


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seed of each call of dropout from now on, in both passes."""
    found: list[int] = []

    def dropout(x: Tensor, *, p: float, seed: Tensor) -> Tensor:
        found.append(int(seed))
        return called(x, p=p, seed=seed)

    called = gpt.dropout
    monkeypatch.setattr(gpt, "dropout", dropout)
    return found


def made(device: str, **changes: Any) -> gpt.GPT:
    """A model with our kernels, whose weights are no small numbers."""
    generator = torch.Generator().manual_seed(3)
    model = gpt.GPT(**gpt.OURS | SHAPE | changes, generator=generator)
    with torch.no_grad():
        for i, weight in enumerate(model.parameters()):
            drawn = normal(weight.shape, torch.float32, "cpu", seed=i)
            weight.copy_(0.3 * drawn + (weight.ndim == 1))
    return model.to(device)


def batch(device: str, size: int = 21) -> Tensor:
    """Tokens of two texts, the second of which repeats one character."""
    tokens = torch.randint(12, (2, size), generator=torch.Generator().manual_seed(5))
    tokens[1] = 7
    return tokens.to(device)


# The same model, of PyTorch's plainest operations.


def normed(x: Tensor, weight: Tensor) -> Tensor:
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight


def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention; each is [batch, seq, heads, head_dim], and so is the result."""
    s = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(q.shape[-1])
    future = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1)
    p = torch.softmax(s.masked_fill(future, -math.inf), dim=-1).to(v.dtype)
    return torch.einsum("bhij,bjhd->bihd", p, v)


def dropped(x: Tensor, masks: Iterator[int]) -> Tensor:
    """x with the elements dropped that the next seed drops; without one, none."""
    if (seed := next(masks, None)) is None:
        return x
    keep = kept_elements(x.numel(), p=P, seed=seed, device=x.device.type)
    return torch.where(keep.view(x.shape), x / kept_share(P), 0)


def logits(w: Weights, tokens: Tensor, seeds: list[int], heads: int = HEADS) -> Tensor:
    """What a model with these weights says, in their dtype."""
    masks = iter(seeds)
    x = w["tokens.weight"][tokens] + w["places.weight"][: tokens.shape[1]]
    for i in itertools.count():
        at = {
            name.removeprefix(f"blocks.{i}."): weight
            for name, weight in w.items()
            if name.startswith(f"blocks.{i}.")
        }
        if not at:
            return normed(x, w["last"]) @ w["tokens.weight"].T
        rows = normed(x, at["first"]) @ at["qkv.weight"].T
        q, k, v = (y.unflatten(-1, (heads, -1)) for y in rows.chunk(3, dim=-1))
        x = x + dropped(attended(q, k, v).flatten(2) @ at["out.weight"].T, masks)
        hidden = F.gelu(normed(x, at["second"]) @ at["up.weight"].T)
        x = x + dropped(hidden @ at["down.weight"].T, masks)
    raise AssertionError


def gradients(w: Weights, given: Tensor, targets: Tensor) -> Weights:
    """Of the mean loss, with respect to each of the weights."""
    loss = F.cross_entropy(given.flatten(0, 1), targets.flatten())
    return dict(zip(w, torch.autograd.grad(loss, [*w.values()]), strict=True))


@pytest.mark.parametrize("dropout", [False, True], ids=["whole", "dropout"])
@pytest.mark.parametrize(
    "low",
    [
        None,
        torch.float16,
        *([] if INTERPRETED else [torch.bfloat16]),
    ],
    ids=str,
)
def test_logits_and_gradients(
    low: torch.dtype | None, dropout: bool, device: str, seeds: list[int]
) -> None:
    model, tokens = made(device), batch(device)
    step = torch.tensor(4, device=device) if dropout else None
    # PyTorch's own matrix products, in the low dtype, are those of the baseline.
    cast = torch.autocast(device, low or torch.float16, enabled=low is not None)
    with cast:
        found = model(tokens[:, :-1], step)
    given = seeds.copy()
    assert len(given) == (4 if dropout else 0)
    named = dict(model.named_parameters())
    ours = gradients(named, found.float(), tokens[:, 1:])

    def of(dtype: torch.dtype, cast: Any) -> tuple[Tensor, Weights]:
        weights = {
            name: weight.detach().to(dtype).requires_grad_()
            for name, weight in named.items()
        }
        with cast:
            said = logits(weights, tokens[:, :-1], given)
        wide = said if dtype == torch.float64 else said.float()
        return said.detach(), gradients(weights, wide, tokens[:, 1:])

    exact, baseline = (
        of(torch.float64, torch.autocast(device, enabled=False)),
        of(torch.float32, cast),
    )
    check_accuracy(found, exact[0], baseline[0])
    for name in named:
        three = ({"dx": each[name]} for each in (ours, exact[1], baseline[1]))
        check_accuracy(*three)


def test_it_computes_what_it_does_with_pytorchs_kernels(device: str) -> None:
    ours, other, tokens = made(device), made(device, **gpt.PYTORCH), batch(device)
    step = torch.tensor(1, device=device)
    torch.testing.assert_close(
        ours(tokens, step), other(tokens, step), rtol=1e-4, atol=1e-4
    )


# What the model does with layouts, and what it keeps.


def test_no_copies_around_attention(device: str) -> None:
    seen: dict[str, Tensor] = {}

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        seen.update(q=q, k=k, v=v, o=gpt.OURS["attention"](q, k, v))
        return seen["o"]

    model = made(device, attention=attention, layers=1)
    block = model.blocks[0]
    block.qkv.register_forward_hook(lambda _, __, rows: seen.update(rows=rows))
    block.out.register_forward_pre_hook(lambda _, given: seen.update(joined=given[0]))
    model(batch(device)).sum().backward()
    width = 16 * HEADS
    for name, place in (("q", 0), ("k", 1), ("v", 2)):
        assert seen[name].shape == (2, HEADS, 21, 16)
        assert seen[name].stride() == (21 * 3 * width, 16, 3 * width, 1)
        start = seen["rows"].data_ptr() + place * width * 4
        assert seen[name].data_ptr() == start
    assert seen["o"].stride() == (21 * width, 16, width, 1)
    assert seen["joined"].data_ptr() == seen["o"].data_ptr()
    assert seen["joined"].is_contiguous()


def test_what_the_kernels_keep(device: str) -> None:
    kept: list[Tensor] = []
    x, weight = normal((2, 3, 16), torch.float32, device), torch.ones(16, device=device)
    x.requires_grad_()
    note = torch.autograd.graph.saved_tensors_hooks(kept.append, lambda x: x)
    with note:
        gpt.norm(x, weight)
        gpt.drop(x, P, torch.tensor(1, device=device))
    # x, the weight and a number for each row; and a seed, but no mask.
    sizes = [each.numel() for each in kept]
    assert sorted(sizes) == [1, 6, 16, 96]
    assert kept[sizes.index(96)].data_ptr() == x.data_ptr()


def test_a_later_token_changes_no_earlier_logits(device: str) -> None:
    model, tokens = made(device), batch(device)
    with torch.no_grad():
        before = model(tokens)
        for place in (0, 9, 20):
            other = tokens.clone()
            other[:, place] = (other[:, place] + 1) % 12
            after = model(other)
            assert torch.equal(after[:, :place], before[:, :place])
            assert not torch.isclose(after[:, place:], before[:, place:]).all(-1).any()


def test_the_embedding_predicts_too(device: str) -> None:
    model = made(device)
    names = {name for name, _ in model.named_parameters()}
    ours = {"tokens.weight", "places.weight", "last"}
    block = ("first", "second", "qkv", "out", "up", "down")
    assert {name.removesuffix(".weight") for name in names - ours} == {
        f"blocks.{i}.{name}" for i in range(2) for name in block
    }
    assert ours <= names


def test_a_shorter_input(device: str) -> None:
    model, tokens = made(device), batch(device)
    with torch.no_grad():
        torch.testing.assert_close(model(tokens[:, :5]), model(tokens)[:, :5])


# Dropout.


def test_seeds(device: str, seeds: list[int]) -> None:
    model, tokens = made(device), batch(device, 5)
    every: list[int] = []
    for step in range(3):
        seeds.clear()
        said = model(tokens, torch.tensor(step, device=device))
        drawn = seeds.copy()
        assert len(drawn) == 4
        said.sum().backward()
        assert seeds == [*drawn, *reversed(drawn)]
        every += drawn
    assert len(set(every)) == len(every) == 12


def test_nothing_is_dropped_without_a_step(device: str, seeds: list[int]) -> None:
    model, tokens = made(device), batch(device, 5)
    assert torch.equal(model(tokens), model(tokens))
    assert seeds == []


# The text, and the training.


def test_the_text_is_sorted() -> None:
    tokens = gpt.text(torch.Generator().manual_seed(1), 3, 41)
    assert (tokens.shape, tokens.dtype) == ((3, 41), torch.int64)
    texts = ["".join(gpt.CHARACTERS[i] for i in row) for row in tokens.tolist()]
    for each in texts:
        for line in each.split("\n")[:-1]:
            given, arrow, found = line.partition(">")
            assert (len(given), arrow) == (4, ">")
            assert found == "".join(sorted(given))
        assert len(each.split("\n")) == 5
    assert len({*texts}) == 3
    again = gpt.text(torch.Generator().manual_seed(1), 3, 41)
    assert torch.equal(tokens, again)
    assert gpt.text(torch.Generator(), 1, 30, digits=6)[0, [6, 13]].tolist() == [10, 11]


SMALL = {"layers": 1, "heads": 1, "head_dim": 16, "batch": 2, "seq": 19, "lr": 1e-2}
STEPS = 12


@pytest.fixture(scope="module")
def curve() -> list[float]:
    """The losses of a training with our kernels."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return gpt.train(**gpt.OURS, **SMALL, steps=STEPS, device=device)


def test_the_loss_falls(curve: list[float]) -> None:
    assert len(curve) == STEPS
    assert curve[0] == pytest.approx(math.log(12), abs=0.05)
    assert sum(curve[-3:]) / 3 < 2.3


def test_the_losses_are_those_of_pytorchs_kernels(
    curve: list[float], device: str
) -> None:
    other = gpt.train(**gpt.PYTORCH, **SMALL, steps=STEPS, device=device)
    assert curve == pytest.approx(other, abs=1e-3)
    assert len({*curve, *other}) > STEPS  # They are two trainings.


def test_the_first_loss_is_that_of_the_next_tokens(
    curve: list[float], device: str, seeds: list[int]
) -> None:
    """Weights, text and masks by themselves, and one step of each."""
    shape = {key: SMALL[key] for key in ("layers", "heads", "head_dim", "seq")}
    generator = torch.Generator().manual_seed(0)
    model = gpt.GPT(**gpt.PYTORCH, **shape, p=P, generator=generator).to(device)
    tokens = gpt.text(generator, STEPS * 2, 20).to(device)[:2]
    weights = {name: w.detach().double() for name, w in model.named_parameters()}
    for masks in (0, 3):
        seeds.clear()
        found = gpt.train(**gpt.OURS, **SMALL, p=P, steps=1, masks=masks, device=device)
        # Another number of steps draws the same text first.
        said = logits(weights, tokens[:, :-1], seeds[:2], heads=1)
        expected = F.cross_entropy(said.flatten(0, 1), tokens[:, 1:].flatten())
        assert found == [pytest.approx(expected.item(), abs=1e-5)]


def test_each_step_follows_its_own_gradient(curve: list[float], device: str) -> None:
    shape = {key: SMALL[key] for key in ("layers", "heads", "head_dim", "seq")}
    generator = torch.Generator().manual_seed(0)
    model = gpt.GPT(**gpt.PYTORCH, **shape, generator=generator).to(device)
    tokens = gpt.text(generator, STEPS * 2, 20).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95))
    for step in range(4):
        given = tokens[2 * step : 2 * step + 2]
        said = model(given[:, :-1], torch.tensor(step, device=device))
        loss = F.cross_entropy(said.flatten(0, 1), given[:, 1:].flatten())
        assert loss.item() == pytest.approx(curve[step], abs=1e-4)
        found = torch.autograd.grad(loss, [*model.parameters()])
        for weight, gradient in zip(model.parameters(), found, strict=True):
            weight.grad = gradient
        optimizer.step()


def test_the_same_seeds_give_the_same_losses(curve: list[float], device: str) -> None:
    again = gpt.train(**gpt.OURS, **SMALL, steps=3, device=device)
    assert again == curve[:3]
    for other in ({"seed": 1}, {"masks": 1}):
        found = gpt.train(**gpt.OURS, **SMALL, steps=1, device=device, **other)
        assert found[0] != curve[0]


def test_the_model_is_called_through_what_wraps_it(
    curve: list[float], device: str
) -> None:
    seen = []

    def wrap(model: gpt.GPT) -> Any:
        def run(tokens: Tensor, step: Tensor) -> Tensor:
            seen.append(int(step))
            return model(tokens, step)

        return run

    found = gpt.train(**gpt.OURS, **SMALL, steps=2, wrap=wrap, device=device)
    assert (found, seen) == (curve[:2], [0, 1])


# What torch.compile knows of it.


def test_opcheck(device: str, plain: None) -> None:
    x = normal((6, 16), torch.float32, device).requires_grad_()
    weight = torch.ones(16, device=device).requires_grad_()
    seed = torch.tensor(1, device=device)
    rstd = torch.ones(6, device=device)
    still = [t.detach() for t in (x, x, weight)]
    # That they can be compiled, too, test_compile says.
    some = "test_schema", "test_autograd_registration", "test_faketensor"
    for operator, given in (
        (OPERATORS[0], (x, weight)),
        (OPERATORS[1], (*still, rstd)),
        (OPERATORS[2], (x, P, seed)),
    ):
        passed = opcheck(operator, given, test_utils=some)
        assert set(passed.values()) == {"SUCCESS"}


def test_a_fake_result_is_like_the_real_one(device: str, plain: None) -> None:
    x = normal((16, 6), torch.float16, device).T
    weight, rstd = torch.ones(16, device=device), torch.ones(6, device=device)
    seed = torch.tensor(1, device=device)
    for operator, given in (
        (OPERATORS[0], (x, weight)),
        (OPERATORS[1], (x, x, weight, rstd)),
        (OPERATORS[2], (x, P, seed)),
    ):
        with FakeTensorMode() as mode:
            faked = [mode.from_tensor(y) if y is not P else y for y in given]
            results = operator(*faked)
        real = operator(*given)
        several = (results, real) if isinstance(real, tuple) else ([results], [real])
        for y, z in zip(*several, strict=True):
            assert (y.shape, y.dtype, y.stride()) == (z.shape, z.dtype, z.stride())


def test_compile(device: str, plain: None) -> None:
    model, tokens = made(device, layers=1), batch(device, 9)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=BACKEND, fullgraph=True)
    for step in range(2):
        number = torch.tensor(step, device=device)
        # Another step, another mask, but no other code.
        with torch._dynamo.config.patch(error_on_recompile=bool(step)):
            losses = [
                each(tokens, number).square().mean() for each in (model, compiled)
            ]
        wanted, found = (
            torch.autograd.grad(loss, [*model.parameters()]) for loss in losses
        )
        for y, z in zip(found, wanted, strict=True):
            assert (y - z).abs().max() <= 1e-3 * z.abs().max()


@pytest.mark.gpu
def test_a_training_step_in_a_cuda_graph(plain: None) -> None:
    model, tokens = made("cuda"), batch("cuda")
    step = torch.tensor(0, device="cuda")

    def run() -> list[Tensor]:
        loss = F.cross_entropy(
            model(tokens[:, :-1], step).flatten(0, 1), tokens[:, 1:].flatten()
        )
        return [loss.detach(), *torch.autograd.grad(loss, [*model.parameters()])]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = run()
    losses = []
    for number in (5, 6, 5):
        step.fill_(number)
        graph.replay()
        torch.cuda.synchronize()
        losses.append(results[0].item())
        for y, z in zip(results, run(), strict=True):
            torch.testing.assert_close(y, z)
    assert losses[0] == losses[2] != losses[1]
