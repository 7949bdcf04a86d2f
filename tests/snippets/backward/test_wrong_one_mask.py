"""Tests of snippets/backward/wrong_one_mask.py: dq is right, dk and dv are not."""

import torch

from snippets.backward import wrong_one_mask
from tests.harness.inputs import normal, qkv
from tests.snippets.backward.reference import attention, gradients

NAMES = "dq", "dk", "dv"
NO_ACCURACY = "wrong on purpose: what counts is which rows are wrong, in float64"


def inputs(device: str, seq: int = 40) -> list[torch.Tensor]:
    """q, k, v and do of two heads, in float64."""
    found = qkv((1, 2), (1, 2), seq, seq, 16, torch.float64, device)
    return [*found, normal(found[0].shape, torch.float64, device, seed=99)]


def errors(device: str, seq: int = 40) -> dict[str, torch.Tensor]:
    """The largest of each row of dq, dk and dv."""
    q, k, v, do = inputs(device, seq)
    found = wrong_one_mask.gradients(q, k, v, *wrong_one_mask.attention(q, k, v), do)
    exact = gradients(lambda *x: attention(*x, causal=True), q, k, v, do, None)
    pairs = zip(NAMES, found, exact, strict=True)
    return {x: (dx - right).abs().amax(dim=(0, 1, 3)) for x, dx, right in pairs}


def test_its_forward_pass_is_right(device: str) -> None:
    *x, _ = inputs(device)
    for found, exact in zip(
        wrong_one_mask.attention(*x), attention(*x, causal=True), strict=True
    ):
        torch.testing.assert_close(found, exact)


def test_its_dq_is_right(device: str) -> None:
    assert errors(device)["dq"].max() < 1e-12


def test_the_first_key_is_seen_by_all_so_it_is_right(device: str) -> None:
    found = errors(device)
    assert found["dk"][0] < 1e-12
    assert found["dv"][0] < 1e-12


def test_every_other_key_is_wrong(device: str) -> None:
    found = errors(device)
    assert found["dk"][1:].min() > 0.01
    assert found["dv"][1:].min() > 0.01


def test_one_token_hides_it(device: str) -> None:
    assert all(each.max() < 1e-12 for each in errors(device, seq=1).values())


def test_weights_of_keys_that_are_not_seen_exceed_1(device: str) -> None:
    q, k, v, _ = inputs(device)
    _, lse = wrong_one_mask.attention(q, k, v)
    p = torch.exp(q @ k.mT / 4 - lse[..., None])
    assert p.tril().max() <= 1 + 1e-12
    assert p.triu(1).max() > 2
