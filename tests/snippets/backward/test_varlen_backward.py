"""Tests of snippets/backward/varlen_backward.py."""

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from triton.runtime import interpreter

from snippets.backward import varlen_backward
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import (
    INF,
    INTERPRETED,
    LAYOUTS,
    NAN,
    STRUCTURED,
    far_apart,
    normal,
)
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite, of_each
from tests.snippets.attention.test_varlen import (
    BATCHES,
    Pairs,
    bounds,
    cumulative,
    pack,
)
from tests.snippets.backward.reference import Gradients, attention, gradients
from tests.snippets.backward.suite import BackwardTests

SMALL = {"block_m": 16, "block_n": 16}
BLOCKS = (
    SMALL,
    {"block_m": 16, "block_n": 32},
    {"block_m": 32, "block_n": 16},
    {},
)
NAMES = "dq", "dk", "dv"

both_kinds = pytest.mark.parametrize("causal", [False, True])


def packed(pairs: Pairs, device: str, **options: Any) -> list[torch.Tensor]:
    """q, k, v and do of sequences with so many queries and keys."""
    q, k, v = pack(pairs, device, **{"dtype": torch.float16, **options})
    return [q, k, v, normal(q.shape, q.dtype, device, seed=9)]


def sequences(pairs: Pairs) -> list[tuple[slice, slice]]:
    """Rows and keys of each."""
    lengths = zip(*pairs, strict=True)
    starts = [[slice(*x) for x in pairwise([0, *accumulate(n)])] for n in lengths]
    return list(zip(*starts, strict=True))


def alone(x: torch.Tensor, rows: slice) -> torch.Tensor:
    """[1, heads, seq, head_dim] of one sequence."""
    return x[rows].transpose(0, 1)[None]


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, pairs: Pairs, **options: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) as the best of all forward passes would return them."""
    o = torch.zeros_like(q, memory_format=torch.contiguous_format)
    lse = torch.full((q.shape[1], len(q)), -INF, device=q.device)
    for rows, keys in sequences(pairs):
        x = (alone(x, at).double() for x, at in ((q, rows), (k, keys), (v, keys)))
        o_i, lse_i = attention(*x, **options)
        o[rows], lse[:, rows] = o_i[0].transpose(0, 1).to(o), lse_i[0].to(lse)
    return o, lse


def apart(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    do: torch.Tensor,
    pairs: Pairs,
    dtype: torch.dtype,
    **options: Any,
) -> Gradients:
    """The gradients of each sequence by itself; 0 behind the last."""
    found = tuple(torch.zeros_like(x, dtype=dtype) for x in (q, k, v))
    for rows, keys in sequences(pairs):
        places = rows, keys, keys
        x = [alone(x, at).to(dtype) for x, at in zip((q, k, v), places, strict=True)]
        grads = gradients(
            lambda *x: attention(*x, **options), *x, alone(do, rows), None
        )
        for dx, at, grad in zip(found, places, grads, strict=True):
            dx[at] = grad[0].transpose(0, 1)
    return found


def check(tensors: list[torch.Tensor], pairs: Pairs, **options: Any) -> Named:
    """Hold all sequences at once against each by itself."""
    q, k, v, do = tensors
    asked = {key: options[key] for key in ("causal", "scale") if key in options}
    o, lse = (guarded(x) for x in forward(q, k, v, pairs, **asked))
    ends = (guarded(x) for x in bounds(pairs, q.device))
    options = {**SMALL, **options}
    found = varlen_backward.attention_backward(q, k, v, o, lse, do, *ends, **options)
    for x, dx in zip((q, k, v), found, strict=True):
        assert dx.stride() == torch.empty_like(x, device="meta").stride()
    exact, own = (
        apart(*tensors, pairs, dtype, **asked) for dtype in (torch.float64, q.dtype)
    )
    named = [dict(zip(NAMES, each, strict=True)) for each in (found, exact, own)]
    check_accuracy(*named)
    return named[0]


@pytest.mark.parametrize("batch", BATCHES)
@both_kinds
def test_every_batch(batch: str, causal: bool, device: str) -> None:
    tensors = [guarded(x) for x in packed(BATCHES[batch], device)]
    check(tensors, BATCHES[batch], causal=causal)


@both_kinds
def test_keys_that_nobody_asks_for(causal: bool, device: str) -> None:
    pairs = BATCHES["without queries"]
    found = check(packed(pairs, device), pairs, causal=causal)
    for (queries, _), (_, keys) in zip(pairs, sequences(pairs), strict=True):
        for dx in (found["dk"], found["dv"]):
            assert queries or (dx[keys] == 0).all()


@pytest.mark.skipif(not INTERPRETED, reason="a GPU has an order of its own")
def test_the_order_of_the_programs_changes_nothing(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In the usual order, what a program writes into the next sequence is mended there.
    builder = interpreter.InterpreterBuilder
    usual = builder.set_grid_idx

    def backwards(self: Any, x: int, y: int, z: int) -> None:
        usual(self, self.grid_dim[0] - 1 - x, y, z)

    monkeypatch.setattr(builder, "set_grid_idx", backwards)
    pairs = [(5, 7), (17, 20), (1, 3), (20, 10)]
    check(packed(pairs, device, heads=2, kv_heads=1), pairs)


def test_more_sequences_than_are_loaded_at_once(device: str) -> None:
    pairs = [(i % 3, (i + 1) % 4) for i in range(140)]
    check(packed(pairs, device, heads=1, kv_heads=1), pairs)


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_every_block_size(blocks: dict[str, int], device: str) -> None:
    pairs = [(40, 40), (0, 3), (70, 50), (3, 90), (64, 0), (32, 33)]
    check(packed(pairs, device, heads=2, kv_heads=1), pairs, causal=True, **blocks)


@pytest.mark.parametrize("kv_heads", [6, 3, 2, 1])
def test_heads_that_share_keys(kv_heads: int, device: str) -> None:
    pairs = [(5, 7), (18, 20), (3, 1)]
    tensors = packed(pairs, device, heads=6, kv_heads=kv_heads)
    check(tensors, pairs, causal=True)


@pytest.mark.parametrize("kind", STRUCTURED)
@both_kinds
def test_structured_inputs(kind: str, causal: bool, device: str) -> None:
    pairs = [(5, 7), (18, 37), (20, 3)]
    q, k, v, do = packed(pairs, device, heads=2, kv_heads=1)
    for x in (do, STRUCTURED[kind](do)):
        check([*map(STRUCTURED[kind], (q, k, v)), x], pairs, causal=causal)


def test_scores_far_below_zero(device: str) -> None:
    # exp(0 - lse) overflows where a key that does not exist has a score of 0.
    pairs = [(18, 20), (5, 7)]
    q, k, v, do = packed(pairs, device)
    check([q.abs() + 5, -k.abs() - 5, v, do], pairs, scale=1.0)


@pytest.mark.parametrize("first", range(len(LAYOUTS)))
def test_every_layout(first: int, device: str) -> None:
    # Several layouts at once, so that no stride of one tensor fits another.
    pairs = [(5, 7), (17, 20)]
    views = list(LAYOUTS.values())
    views = [views[(first + step) % len(views)] for step in (0, 1, 3, 5)]
    tensors = packed(pairs, device)
    check([guarded(view(x)) for view, x in zip(views, tensors, strict=True)], pairs)


def test_o_lse_and_ends_of_any_strides(device: str) -> None:
    pairs = [(5, 7), (17, 20)]
    q, k, v, do = packed(pairs, device)
    o, lse = forward(q, k, v, pairs)
    ends = bounds(pairs, q.device)
    backward = varlen_backward.attention_backward
    found = backward(q, k, v, o, lse, do, *ends, **SMALL)
    o = o.repeat_interleave(3, dim=2).repeat_interleave(2, dim=0)[::2, :, ::3]
    ends = (x.repeat_interleave(2)[::2] for x in ends)
    again = backward(q, k, v, o, lse.T.contiguous().T, do, *ends, **SMALL)
    assert all(map(torch.equal, found, again))


@both_kinds
@pytest.mark.parametrize("value", [NAN, 1e4])
def test_no_gradient_meets_another_sequence(
    value: float, causal: bool, device: str
) -> None:
    pairs = [(5, 7), (17, 20), (20, 3)]
    q, k, v, do = packed(pairs, device, heads=2, kv_heads=1)
    o, lse = forward(q, k, v, pairs, causal=causal)
    ends, options = bounds(pairs, q.device), {"causal": causal, **SMALL}
    backward = varlen_backward.attention_backward
    found = backward(q, k, v, o, lse, do, *ends, **options)
    for rows, keys in sequences(pairs):
        others = []
        for x, at in ((q, rows), (k, keys), (v, keys), (o, rows), (do, rows)):
            others.append(torch.full_like(x, value))
            others[-1][at] = x[at]
        others.insert(4, torch.full_like(lse, value))
        others[4][:, rows] = lse[:, rows]
        again = backward(*others, *ends, **options)
        for dx, x, at in zip(found, again, (rows, keys, keys), strict=True):
            assert torch.equal(dx[at], x[at])


@both_kinds
def test_rows_and_keys_behind_the_last_sequence(causal: bool, device: str) -> None:
    pairs = [(5, 7), (20, 30)]
    q, k, v, do = packed([*pairs, (40, 50)], device)
    o, lse = forward(q, k, v, pairs, causal=causal)
    for x, size in ((q, 25), (do, 25), (o, 25), (lse.T, 25), (k, 37), (v, 37)):
        x[size:] = NAN
    ends, options = bounds(pairs, q.device), {"causal": causal, **SMALL}
    found = varlen_backward.attention_backward(q, k, v, o, lse, do, *ends, **options)
    shorter = [x[:size] for x, size in ((q, 25), (k, 37), (v, 37), (do, 25))]
    exact = apart(*shorter, pairs, torch.float64, causal=causal)
    own = apart(*shorter, pairs, q.dtype, causal=causal)
    sizes = 25, 37, 37
    assert all((dx[n:] == 0).all() for dx, n in zip(found, sizes, strict=True))
    found = [dx[:n] for dx, n in zip(found, sizes, strict=True)]
    check_accuracy(*(dict(zip(NAMES, x, strict=True)) for x in (found, exact, own)))


def test_no_sequences(device: str) -> None:
    q, k, v, do = packed([(5, 7)], device)
    o, lse = forward(q, k, v, [(5, 7)])
    ends = 2 * (cumulative([], device),)
    found = varlen_backward.attention_backward(q, k, v, o, lse, do, *ends)
    assert all((dx == 0).all() for dx in found)


def test_wrong_ends_lead_nowhere(device: str) -> None:
    # The fixtures look at every address. Some wrong ends of keys need wrong ends of
    # queries too, or right ones.
    low, high = -(2**31), 2**31 - 1
    tensors = packed([(20, 20)], device, heads=1, kv_heads=1)
    q, k, v, do = (guarded(x) for x in tensors)
    o, lse = (guarded(x) for x in forward(q, k, v, [(20, 20)]))
    right = cumulative([4, 0, 16], device)
    for ends in (
        [5, 9, 14, 20],
        [0, 9, 4, 20],
        [20, 14, 9, 0],
        [0, -5, 30, 20],
        [0, 10, 1000, 2000],
        [high, low, high, low],
        [low, high, low, high],
        [0, 0, 0, high],
    ):
        wrong = torch.tensor(ends, dtype=torch.int32, device=device)
        for pair in ((wrong, wrong), (wrong, right), (right, wrong)):
            dq, *_ = varlen_backward.attention_backward(
                q, k, v, o, lse, do, *map(guarded, pair), causal=True, **SMALL
            )
    assert dq.shape == q.shape


class TestRefusals(Suite):
    """Of the function itself, and where it launches."""

    function = staticmethod(varlen_backward.attention_backward)
    outputs = NAMES
    blocks = (SMALL,)

    def example(self, device: str) -> Named:
        """Two sequences."""
        pairs = [(3, 5), (2, 2)]
        q, k, v, do = packed(pairs, device, heads=8)
        named = {"q": q, "k": k, "v": v}
        o, lse = forward(q, k, v, pairs)
        named |= {"o": o, "lse": lse, "do": do}
        names = "cu_seqlens_q", "cu_seqlens_k"
        return named | dict(zip(names, bounds(pairs, q.device), strict=True))

    def refusals(self) -> dict[str, Refusal]:
        """Of each tensor, and of where the sequences end."""
        tensors, ends = ("q", "k", "v", "o", "do"), ("cu_seqlens_q", "cu_seqlens_k")
        found = {
            **of_each(tensors, "an axis more", lambda x: x[None], "is .*; it must"),
            **of_each(tensors, "an axis less", lambda x: x[0], "is .*; it must"),
            **of_each(
                (*tensors[1:], "lse"),
                "the device",
                lambda x: x.to("meta"),
                "is .*meta; it must",
            ),
            **of_each(
                ("v", "o", "do"), "the rows", lambda x: x[:4], r"is .*\[4,.*it must"
            ),
            **of_each(("o", "do"), "the heads", lambda x: x[:, :4], "is .*; it must"),
            **of_each(("v", "k"), "head_dim", lambda x: x[..., :15], "is .*; it must"),
            **of_each(("o", "do"), "head_dim", lambda x: x[..., :15], "is .*; it must"),
            **of_each(("k", "v"), "the dtype", torch.Tensor.float, "is torch.float32"),
            **of_each(("o", "do"), "the dtype", torch.Tensor.float, "is torch.float32"),
            "the heads of v": Refusal("v is .*; it must", {"v": lambda x: x[:, :1]}),
            "the dtype of lse": Refusal(
                "lse is torch.float64.*; it must.*float32", {"lse": torch.Tensor.double}
            ),
            "lse the wrong way round": Refusal(
                r"lse is .*\[5, 8\].*; it must .*\[8, 5\]", {"lse": lambda x: x.T}
            ),
            "too many heads": Refusal(
                "q is .*65536.*; it must .*65535",
                {"q": lambda x: x.new_zeros(0, 65536, 16)},  # a mutant has no work
            ),
            "no heads": Refusal(
                r"q is .*\[5, 0, 16\]; it must", {"q": lambda x: x[:, :0]}
            ),
            "fewer ends of keys": Refusal(
                r"cu_seqlens_k is .*\[2\].*; it must be .*\[3\]",
                {"cu_seqlens_k": lambda x: x[:2]},
            ),
        }
        for dtype in (torch.float64, torch.int32):
            change = dict.fromkeys(tensors, lambda x, dtype=dtype: x.to(dtype))
            found[str(dtype)] = Refusal(f"q is {dtype}.*; it must", change)
        for size in (0, 257):
            wrong = dict.fromkeys(tensors, lambda x, n=size: x.new_zeros(5, 8, n))
            found[f"head_dim {size}"] = Refusal(f"q .*{size}.*; it must", wrong)
        for heads in (3, 16, 0):
            other = dict.fromkeys("kv", lambda x, n=heads: x.new_zeros(7, n, 16))
            said = f"k has {heads} heads; it must .*8"
            found[f"{heads} heads of k"] = Refusal(said, other)
        for what, change in {
            "no ends": lambda x: x[:0],
            "one end": lambda x: x[0],
            "ends of two dimensions": lambda x: x[None],
            "ends of 64 bits": lambda x: x.long(),
            "ends elsewhere": lambda x: x.to("meta"),
            "a list": torch.Tensor.tolist,
        }.items():
            found |= of_each(ends, what, change, "is .*; it must be torch.int32")
        return found


@pytest.mark.large
def test_a_second_sequence_beyond_31_bits(device: str) -> None:
    pairs = [(2, 2), (2, 3)]
    q, k, v, do = (
        far_apart((size, heads, 3), 0, torch.float16, device, seed=seed)
        for seed, (size, heads) in enumerate(((4, 4), (5, 2), (5, 2), (4, 4)))
    )
    o, lse = forward(q, k, v, pairs)
    o = far_apart((4, 4, 3), 0, torch.float16, device).copy_(o)
    ends = bounds(pairs, q.device)
    found = varlen_backward.attention_backward(q, k, v, o, lse, do, *ends, **SMALL)
    exact, own = (
        apart(q, k, v, do, pairs, dtype) for dtype in (torch.float64, q.dtype)
    )
    check_accuracy(*(dict(zip(NAMES, x, strict=True)) for x in (found, exact, own)))


@pytest.mark.large
def test_heads_beyond_31_bits(device: str) -> None:
    q, k, v, do = (
        far_apart((4, 3, 3), 1, torch.float16, device, seed=seed) for seed in range(4)
    )
    check([q, k, v, do], [(4, 4)])


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=min(10, settings.default.max_examples),
)
@given(
    pairs=st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from([0, *range(2, 41)])),
        min_size=1,
        max_size=5,
    ),
    causal=st.booleans(),
)
def test_any_batch(device: str, pairs: Pairs, causal: bool) -> None:
    check(packed(pairs, device, heads=2, kv_heads=1), pairs, causal=causal)


@pytest.mark.gpu
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
@both_kinds
@pytest.mark.parametrize("head_dim", [64, 128])
def test_long_sequences(
    half: torch.dtype, causal: bool, head_dim: int, device: str
) -> None:
    pairs = [(4096, 4096), (1, 2000), (0, 100), (1023, 1024), (512, 2048), (77, 77)]
    tensors = packed(pairs, device, heads=8, head_dim=head_dim, dtype=half)
    check(tensors, pairs, causal=causal, block_m=64, block_n=64)


def as_sequences(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    **options: Any,
) -> Gradients:
    """What all kernels are tried on: the entries of a batch as sequences of a pack."""
    rows = (x.transpose(1, 2).flatten(0, 1) for x in (q, k, v, o, do))
    ends = (cumulative([x.shape[2]] * len(x), x.device) for x in (q, k))
    q_rows, k_rows, v_rows, o_rows, do_rows = rows
    found = varlen_backward.attention_backward(
        q_rows, k_rows, v_rows, o_rows, lse.transpose(0, 1).flatten(1), do_rows,
        *ends, **options,
    )  # fmt: skip
    return tuple(
        dx.unflatten(0, (len(x), x.shape[2])).transpose(1, 2).contiguous()
        for dx, x in zip(found, (q, k, v), strict=True)
    )


class TestVarlenBackward(BackwardTests):
    """A batch."""

    function: Callable[..., Gradients] = staticmethod(as_sequences)
    blocks = BLOCKS
    copies = True

    # Above, of the function itself.
    test_refuses = None
    test_refuses_to_lose_a_gradient = None
    test_launches_on_the_device_of_its_inputs = None
    test_offsets_beyond_31_bits = None
    # There is no dlse, and there is at least one head.
    test_refuses_a_dlse_of_another_shape = None
    test_lse_has_a_gradient_too = None
    test_no_batch_or_no_heads = None
