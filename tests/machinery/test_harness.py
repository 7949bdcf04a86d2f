"""What watches the tests of the snippets: poison, guards, the rule of accuracy."""

import math
import re
from contextlib import nullcontext

import pytest
import torch

from tests.harness import accuracy, poison
from tests.machinery.views import VIEWS, places

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
DTYPES = [*FLOATS, torch.int32, torch.bool]
LAYOUT = torch.zeros(6, 4, 5)[:, 1:3].transpose(0, 2)
ALLOCATIONS = {
    "size": lambda dtype: torch.empty(3, 5, dtype=dtype),
    "device": lambda dtype: torch.empty((3, 5), dtype=dtype, device="cpu"),
    "keyword": lambda dtype: torch.empty(size=(3, 5), dtype=dtype),
    "like": lambda dtype: torch.empty_like(LAYOUT.to(dtype)),
    "like, dtype": lambda dtype: torch.empty_like(LAYOUT, dtype=dtype),
    "strided": lambda dtype: torch.empty_strided((3, 5), (1, 4), dtype=dtype),
    "new": lambda dtype: LAYOUT.new_empty((3, 5), dtype=dtype),
    "new, strided": lambda dtype: LAYOUT.new_empty_strided((3, 5), (1, 4), dtype=dtype),
    "none": lambda dtype: torch.empty(0, 5, dtype=dtype),
    "scalar": lambda dtype: torch.empty((), dtype=dtype),
}


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> poison.Poison:
    monkeypatch.delenv("PYTORCH_NO_CUDA_MEMORY_CACHING", raising=False)
    watch = poison.Poison()
    watch.install(monkeypatch)
    return watch


def reach(tensor: torch.Tensor, offset: int) -> torch.Tensor:
    """One element of a tensor's storage, inside the tensor or not."""
    place = tensor.storage_offset() + offset
    element = torch.zeros(0, dtype=tensor.dtype)
    return element.set_(tensor.untyped_storage(), place, (1,))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("allocate", ALLOCATIONS.values(), ids=ALLOCATIONS)
def test_only_values_differ_from_what_torch_allocates(watch, dtype, allocate):
    with watch.lifted():
        plain = allocate(dtype)
    assert plain.untyped_storage().nbytes() <= 60 * dtype.itemsize  # without guards
    tensor = allocate(dtype)
    assert (tensor.shape, tensor.stride()) == (plain.shape, plain.stride())
    assert (tensor.dtype, tensor.device) == (plain.dtype, plain.device)
    assert tensor._base is None, "autograd treats views differently"
    assert tensor.data_ptr() % 64 == plain.data_ptr() % 64, "kernels are specialised"
    if dtype.is_floating_point:
        assert tensor.isnan().all()
    tensor.zero_()
    assert not watch.check()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("offset", [-1, -100, 15, 114])
def test_a_write_next_to_the_tensor_is_seen(watch, dtype, offset):
    tensor = torch.empty(3, 5, dtype=dtype)
    reach(tensor, offset).fill_(0)
    (message,) = watch.check()
    side = f"{-offset} before its first" if offset < 0 else f"{offset - 14} after its"
    assert re.match(rf"1 elements .* \(3, 5\) allocated at {__file__}.*{side}", message)


def test_the_guards_of_a_tensor_that_is_gone_are_looked_at(watch):
    tensor = torch.empty(4)
    reach(tensor, 4).fill_(math.nan)  # Not the NaN that stands there.
    del tensor
    assert len(watch.broken) == len(watch.check()) == 1


def test_under_memcheck_tensors_end_where_their_memory_ends(watch, monkeypatch):
    monkeypatch.setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
    tensor = torch.empty(3, 5)
    assert tensor.untyped_storage().nbytes() == 15 * 4
    assert tensor.isnan().all()
    assert poison.guarded(tensor).untyped_storage().nbytes() == 15 * 4


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("view", VIEWS)
def test_guarded_copies_into_a_sea_of_nan(dtype, view):
    x = view(torch.randn(3, 10).mul(9).to(dtype))
    copy = poison.guarded(x)
    assert torch.equal(copy, x)
    assert (copy.stride(), copy.dtype) == (x.stride(), x.dtype)
    if x.numel() and dtype.is_floating_point:
        around = {at: reach(copy, at) for at in range(-40, 40)}
        assert {at for at, each in around.items() if not each.isnan()} == places(x)


# The rule of accuracy.


def close(error: float = 0.0, own: float = 0.0, dtype=torch.float32, **options):
    """Compare one result that is off by `error`, PyTorch's being off by `own`."""
    reference = torch.tensor([[0.25, 0.5]], dtype=torch.float64)
    actual = (reference + torch.tensor([[0.0, error]])).to(dtype)
    baseline = (reference + torch.tensor([[own, 0.0]])).to(dtype)
    return accuracy.compare(actual, reference, baseline, **options)


def test_the_bound_is_twice_the_own_error_and_one_rounding():
    found = close(error=3e-3, own=2e-3)
    assert found.error == pytest.approx(3e-3, rel=1e-4)
    assert found.bound == pytest.approx(4e-3 + 2**-23 * 0.5, rel=1e-4)
    with pytest.raises(AssertionError, match=r"error .* above .* at \(0, 1\): 0.50"):
        close(error=5e-3, own=2e-3)


# Binary digits of an error that passes, and of one that does not.
ROUNDINGS = dict(zip(FLOATS, [(11, 9), (8, 6), (24, 22), (51, 48)], strict=True))


@pytest.mark.parametrize(("dtype", "digits"), ROUNDINGS.items(), ids=str)
def test_one_rounding_is_one_of_the_dtype(dtype, digits):
    passes, fails = (2.0**-each for each in digits)
    close(error=passes, dtype=dtype)
    with pytest.raises(AssertionError, match="above the bound"):
        close(error=fails, dtype=dtype)


def of(*values: float | str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor([*map(float, values)], dtype=dtype)


INF, NAN, HUGE, HALF = math.inf, math.nan, 1e6, torch.float16
KIND, ABOVE = "not of the same kind: 1 of 2", "above the bound"
# What was computed, the truth, PyTorch's own, and what is wrong.
COMPARED = [
    *(
        (of(1.0, other), of(1.0, value), None, "" if other == value else KIND)
        for value in ("nan", "inf", "-inf")
        for other in ("nan", "inf", "-inf", "1")
    ),
    (of(1.0, NAN), of(1.0, 1.0), None, KIND),
    (of(2.0, NAN), of(1.0, NAN), None, ABOVE),
    (of(1.0, HUGE, dtype=HALF), of(1.0, HUGE), None, KIND),
    (torch.zeros(2, 3), torch.zeros(3), torch.zeros(2, 3), "shape"),
    (torch.zeros(2), torch.zeros(2), torch.zeros(2).half(), "but the baseline is"),
    (torch.zeros(0, 3), torch.zeros(0, 3), None, ""),
]


@pytest.mark.parametrize(("actual", "truth", "own", "wrong"), COMPARED)
def test_what_is_compared_is_of_one_kind(actual, truth, own, wrong):
    own = truth.to(actual.dtype) if own is None else own
    with pytest.raises(AssertionError, match=wrong) if wrong else nullcontext():
        accuracy.compare(actual, truth.double(), own)


def test_beyond_the_range_of_the_dtype_only_where_pytorch_is_too():
    truth = of(1.0, HUGE, dtype=torch.float64)
    own = truth.half()
    accuracy.compare(own, truth, own, allow_nonfinite=True)
    with pytest.raises(AssertionError, match=KIND):
        accuracy.compare(of(INF, INF, dtype=HALF), truth, own, allow_nonfinite=True)
    with pytest.raises(TypeError, match="must be float64"):
        accuracy.compare(own, own, own)


# Named outputs.


def outputs(**errors: float) -> list[dict[str, torch.Tensor]]:
    """Two values each, off by these errors; PyTorch's are off by 1e-3."""
    reference = dict.fromkeys(errors, torch.tensor([0.25, 0.5], dtype=torch.float64))
    actual = {name: (reference[name] + error).float() for name, error in errors.items()}
    baseline = {name: (x + 1e-3).float() for name, x in reference.items()}
    return [actual, reference, baseline]


def test_a_gradient_may_be_off_by_three_times_the_own_error():
    found = accuracy.compare_all(*outputs(o=1.9e-3, dq=2.9e-3))
    assert found["dq"].bound == pytest.approx(1.5 * found["o"].bound, rel=1e-3)
    for errors in ({"o": 2.1e-3, "dq": 0.0}, {"o": 0.0, "dq": 3.1e-3}):
        (wrong,) = [name for name, error in errors.items() if error]
        with pytest.raises(AssertionError, match=f"^{wrong}: error .* above the bound"):
            accuracy.compare_all(*outputs(**errors))


def test_a_logsumexp_near_0_is_as_exact_as_one_of_8():
    exact = torch.zeros(1, dtype=torch.float64)
    own, actual = exact.float(), (exact + 7 * 2**-23).float()
    accuracy.compare_all({"lse": actual}, {"lse": exact}, {"lse": own})
    with pytest.raises(AssertionError, match=r"^lse: error"):
        accuracy.compare_all({"lse": 2 * actual}, {"lse": exact}, {"lse": own})


def test_no_output_is_left_out_and_all_but_lse_are_recorded(monkeypatch):
    seen: list[tuple] = []
    monkeypatch.setattr(accuracy, "record_accuracy", lambda *found: seen.append(found))
    actual, reference, baseline = named = outputs(o=0.0, lse=0.0)
    accuracy.check_accuracy(*named)
    accuracy.check_accuracy(*(x["o"] for x in named))
    assert [dtype for dtype, *_ in seen] == ["float32", "float32"]
    del actual["lse"]
    with pytest.raises(AssertionError):
        accuracy.compare_all(actual, reference, baseline)
