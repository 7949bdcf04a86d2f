"""Tests of snippets/softmax/numerics.py."""

import math

import pytest
import torch

from snippets.softmax import numerics
from tests.harness.accuracy import check_accuracy

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("form", numerics.FORMS)
@pytest.mark.parametrize("cols", [1, 2, 3, 257, 400])
def test_each_form_is_a_softmax(form, dtype, cols, device):
    x = torch.randn(3, cols, generator=torch.Generator().manual_seed(1))
    x = x.to(device, dtype)
    inside = torch.float64 if dtype == torch.float64 else torch.float32
    m_i, l_i = form(x.to(inside))
    assert m_i.shape == l_i.shape == (3, 1)
    actual = (torch.exp(x.to(inside) - m_i) / l_i).to(dtype)
    # The worst of the forms, term by term from left to right, in the same dtype.
    total = torch.zeros_like(m_i)
    for column in torch.exp(x.to(inside)).split(1, dim=1):
        total = total + column
    baseline = (torch.exp(x.to(inside)) / total).to(dtype)
    check_accuracy(actual, torch.softmax(x.double(), dim=1), baseline)


@pytest.mark.parametrize("form", numerics.FORMS[1:])
def test_the_maximum_is_exact(form):
    x = torch.tensor([[3.0, -1.0, 88.0, 7.0, 88.0]])
    m_i, l_i = form(x)
    assert m_i.item() == 88
    assert l_i.item() == 2


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_only_the_naive_form_overflows(dtype):
    x = numerics.make_rows(64)["times 100"]
    found = [math.isnan(numerics.error(form, x, dtype)) for form in numerics.FORMS]
    assert found == [True, False, False, False, False]


def test_error_counts_machine_epsilons_of_the_dtype():
    def half_too_much(x):
        return x.amax(dim=1, keepdim=True), 0.5 * numerics.safe(x)[1]

    x = torch.zeros(2, 4)
    for dtype in DTYPES[:3]:
        for inside in (None, torch.float32):
            found = numerics.error(half_too_much, x, dtype, inside)
            assert found == 1 / torch.finfo(dtype).eps
        assert numerics.error(numerics.safe, x, dtype) == 0


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_error_leaves_out_the_rounding_of_the_input(dtype):
    x = numerics.make_rows(64)["normal"]
    found = numerics.error(numerics.safe, x, dtype)
    assert found == numerics.error(numerics.safe, x.to(dtype), dtype)
    assert found > 0


def test_inside_is_the_dtype_of_the_arithmetic():
    seen = []

    def spy(x):
        seen.append(x.dtype)
        return numerics.safe(x)

    numerics.error(spy, torch.zeros(1, 2), torch.float16)
    numerics.error(spy, torch.zeros(1, 2), torch.bfloat16, torch.float32)
    assert seen == [torch.float16, torch.float32]


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (1, 2, 3)])
def test_bad_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="x is"):
        numerics.error(numerics.safe, torch.zeros(shape), torch.float32)


def test_sixteen_bits_do_not_hold_a_long_sum():
    """The page: terms below half an epsilon of the sum so far vanish."""
    x = torch.zeros(1, 4096)
    assert numerics.safe(x.bfloat16())[1].item() == 256
    assert numerics.safe(x.half())[1].item() == 2048
    assert numerics.tiles(x.bfloat16())[1].item() == 4096


def test_only_a_slow_rise_element_by_element_costs_accuracy():
    """The page: the rescale factors are the cause, and blocks remove them."""
    x = numerics.make_rows()["slow rise"]
    safe, online, tiles, tree = (
        numerics.error(form, x, torch.float32) for form in numerics.FORMS[1:]
    )
    assert online > 20 * safe
    assert max(tiles, tree) < 4


def test_rows_are_what_their_names_say():
    rows = numerics.make_rows(300)
    assert all(x.shape == (4, 300) for x in rows.values())
    assert (rows["up"].diff(dim=1) >= 0).all()
    assert (rows["down"].diff(dim=1) <= 0).all()
    assert (rows["slow rise"].diff(dim=1) > 0).all()
    assert rows["slow rise"].diff(dim=1).sum(dim=1).allclose(torch.ones(4).double())


def test_sums_differ_in_their_order_only():
    ones = torch.ones(1, 3, dtype=torch.float16) * torch.tensor([2048, 1, 1])
    assert numerics.left_to_right(ones.half()).item() == 2048
    assert numerics.pairwise(torch.tensor([[1.0, 1.0, 2048.0]]).half()).item() == 2050
    assert numerics.pairwise(torch.ones(2, 7)).tolist() == [[7], [7]]


def test_table_has_a_line_for_each_form(capsys):
    numerics.print_table({"a": (torch.zeros(1, 4), torch.float32)})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "a",
        *(form.__name__ for form in numerics.FORMS),
    ]
    assert lines[1].split()[1] == "0"
