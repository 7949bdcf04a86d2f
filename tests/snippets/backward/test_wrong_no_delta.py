"""Tests of snippets/backward/wrong_no_delta.py: on noise almost right, else not."""

import torch

from snippets.backward import wrong_no_delta
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import normal, qkv
from tests.snippets.backward.reference import attention, gradients

NAMES = "dq", "dk", "dv"


def inputs(device: str) -> list[torch.Tensor]:
    """q, k, v and do of two heads of 300 rows."""
    q, k, v = qkv((1, 2), (1, 2), 300, 300, 64, torch.float32, device)
    return [q, k, v, normal(q.shape, q.dtype, device, seed=99)]


def compared(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, do: torch.Tensor
) -> list[dict[str, torch.Tensor]]:
    """The gradients of the file, exact ones, and PyTorch's."""
    _, lse = attention(q.double(), k.double(), v.double())
    exact = gradients(attention, *(x.double() for x in (q, k, v, do)), None)
    own = gradients(attention, q, k, v, do, None)
    found = wrong_no_delta.gradients(q, k, v, lse.float(), do)
    return [dict(zip(NAMES, each, strict=True)) for each in (found, exact, own)]


def cosines(found: dict[str, torch.Tensor], exact: dict[str, torch.Tensor]) -> list:
    """Of wrong and right dq, dk and dv."""
    pairs = ((found[x].double().flatten(), exact[x].flatten()) for x in NAMES)
    return [torch.cosine_similarity(*pair, dim=0).item() for pair in pairs]


def test_on_noise_it_is_almost_right(device: str) -> None:
    found, exact, _ = compared(*inputs(device))
    dq, dk, _ = cosines(found, exact)
    assert 0.95 < dq < 0.999
    assert 0.95 < dk < 0.999


def test_what_is_added_to_every_key_shows_it(device: str) -> None:
    # The right dq does not change.
    q, k, v, do = inputs(device)
    (_, before, _), (found, exact, _) = (compared(q, x, v, do) for x in (k, k + 5))
    torch.testing.assert_close(before["dq"], exact["dq"], rtol=1e-4, atol=1e-5)
    assert cosines(found, exact)[0] < 0.5


def test_its_dv_is_right(device: str) -> None:
    found, exact, own = ({"dv": x["dv"]} for x in compared(*inputs(device)))
    check_accuracy(found, exact, own)


def test_where_every_delta_is_0_all_is_right(device: str) -> None:
    # So nothing else is wrong with it: rows of dO at right angles to those of O.
    q, k, v, do = (x.double() for x in inputs(device))
    o, lse = attention(q, k, v)
    do -= o * (do * o).sum(-1, keepdim=True) / (o * o).sum(-1, keepdim=True)
    exact = gradients(attention, q, k, v, do, None)
    found = wrong_no_delta.gradients(q, k, v, lse, do)
    for dx, right in zip(found, exact, strict=True):
        torch.testing.assert_close(dx, right)


def test_its_rows_of_ds_do_not_add_up_to_0(device: str) -> None:
    # Were all keys the same vector, dq would be that vector times those sums.
    q, k, v, do = inputs(device)
    k = k[:, :, :1].expand(k.shape)
    found, exact, _ = compared(q, k, v, do)
    assert exact["dq"].abs().max() < 1e-12
    assert found["dq"].abs().max() > 0.01
