"""Tests of snippets/attention/varlen.py."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snippets.attention import varlen
from tests.harness.inputs import LAYOUTS, QKV, far_apart, normal
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite, of_each
from tests.snippets.attention.reference import baseline, reference
from tests.snippets.attention.suite import Attention

NAN = float("nan")
INF = float("inf")
SMALL = {"block_m": 16, "block_n": 16}
BLOCKS = (SMALL, {"block_m": 16, "block_n": 64}, {"block_m": 32, "block_n": 16}, {})
Pairs = Sequence[tuple[int, int]]
# (queries, keys) of each sequence.
BATCHES: dict[str, Pairs] = {
    "one": [(17, 23)],
    "several": [(5, 7), (17, 40), (1, 3), (33, 20)],
    "blocks": [(16, 16), (32, 16), (16, 48), (15, 17), (17, 15)],
    "without queries": [(0, 5), (7, 4), (0, 0), (0, 9), (20, 6), (0, 3)],
    "without keys": [(5, 0), (3, 8), (18, 0), (4, 4), (2, 0)],
    "decoding": [(1, length) for length in (1, 70, 16, 33, 2)],
}


def cumulative(lengths: Sequence[int], device: torch.device | str) -> torch.Tensor:
    """Where each sequence begins, and where the last one ends."""
    ends = [0, *accumulate(lengths)]
    return torch.tensor(ends, dtype=torch.int32, device=device)


def pack(
    pairs: Pairs,
    device: str,
    *,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int = 16,
    dtype: torch.dtype = torch.float32,
) -> QKV:
    """q [total_q, heads, head_dim], k and v [total_k, kv_heads, head_dim]."""
    total_q, total_k = (sum(lengths) for lengths in zip(*pairs, strict=True))
    shapes = [(total_q, heads, head_dim), *2 * ((total_k, kv_heads, head_dim),)]
    return tuple(
        normal(shape, dtype, device, seed=seed) for seed, shape in enumerate(shapes)
    )


def bounds(pairs: Pairs, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """cu_seqlens_q and cu_seqlens_k."""
    lengths_q, lengths_k = zip(*pairs, strict=True)
    return cumulative(lengths_q, device), cumulative(lengths_k, device)


def apart(
    method: Callable[..., tuple[torch.Tensor, torch.Tensor]],
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    pairs: Pairs,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) of a method that takes [batch, heads, seq, head_dim], packed."""
    o, lse = [], []
    lengths = zip(*pairs, strict=True)
    starts_q, starts_k = (pairwise([0, *accumulate(x)]) for x in lengths)
    for (first_q, last_q), (first_k, last_k) in zip(starts_q, starts_k, strict=True):
        sequence = q[first_q:last_q], k[first_k:last_k], v[first_k:last_k]
        o_i, lse_i = method(*(x.transpose(0, 1)[None] for x in sequence), **options)
        o.append(o_i[0].transpose(0, 1))
        lse.append(lse_i[0])
    return torch.cat(o).contiguous(), torch.cat(lse, dim=1).contiguous()


def one_sequence(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    input_precision: str = "ieee",
    block_m: int = 64,
    block_n: int = 32,
) -> tuple[torch.Tensor, torch.Tensor]:
    """What all kernels are tried on, q [heads, seq, head_dim], as a batch of one."""
    packed = [x.transpose(0, 1) for x in (q, k, v)]
    cu_seqlens = [cumulative([len(x)], q.device) for x in packed[:2]]
    o, lse = varlen.attention(
        *packed,
        *cu_seqlens,
        causal=causal,
        scale=scale,
        input_precision=input_precision,
        block_m=block_m,
        block_n=block_n,
    )
    assert o.stride() == torch.empty_like(packed[0], device="meta").stride()
    return o.transpose(0, 1).contiguous(), lse


both_kinds = pytest.mark.parametrize("causal", [False, True])


def check(
    tensors: QKV, pairs: Pairs, **options: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Hold all sequences at once against each by itself."""
    ends = bounds(pairs, tensors[0].device)
    o, lse = varlen.attention(*tensors, *ends, **{**SMALL, **options})
    options = {key: options[key] for key in ("causal", "scale") if key in options}
    Attention().compare(
        (o, lse),
        apart(reference, *tensors, pairs, **options),
        apart(baseline, *tensors, pairs, **options),
    )
    return o, lse


@pytest.mark.parametrize("batch", BATCHES)
@both_kinds
def test_every_batch(batch: str, causal: bool, device: str) -> None:
    tensors = tuple(guarded(x) for x in pack(BATCHES[batch], device))
    check(tensors, BATCHES[batch], causal=causal)


def test_more_sequences_than_are_loaded_at_once(device: str) -> None:
    pairs = [(i % 3, (i + 1) % 4) for i in range(140)]
    check(pack(pairs, device, heads=1, kv_heads=1), pairs)


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_every_block_size(blocks: dict[str, int], device: str) -> None:
    pairs = [(40, 40), (0, 3), (130, 90), (3, 200), (64, 0), (32, 33)]
    check(pack(pairs, device), pairs, causal=True, **blocks)


@both_kinds
@pytest.mark.parametrize("value", [NAN, 1e4])
def test_no_token_sees_another_sequence(
    value: float, causal: bool, device: str
) -> None:
    pairs = BATCHES["several"]
    q, k, v = pack(pairs, device)
    cu_q, cu_k = bounds(pairs, device)
    o, lse = varlen.attention(q, k, v, cu_q, cu_k, causal=causal, **SMALL)
    for i in range(len(pairs)):
        mine_q, mine_k = (slice(x[i], x[i + 1]) for x in (cu_q, cu_k))
        others = [torch.full_like(x, value) for x in (q, k, v)]
        others[0][mine_q] = q[mine_q]
        others[1][mine_k], others[2][mine_k] = k[mine_k], v[mine_k]
        o_i, lse_i = varlen.attention(*others, cu_q, cu_k, causal=causal, **SMALL)
        assert torch.equal(o_i[mine_q], o[mine_q])
        assert torch.equal(lse_i[:, mine_q], lse[:, mine_q])


@both_kinds
def test_rows_behind_the_last_sequence(causal: bool, device: str) -> None:
    pairs = [(5, 7), (20, 30)]
    q, k, v = pack([*pairs, (40, 9)], device)
    k[37:], v[37:] = NAN, NAN
    ends = bounds(pairs, device)
    o, lse = varlen.attention(q, k, v, *ends, causal=causal, **SMALL)
    assert (o[25:] == 0).all()
    assert (lse[:, 25:] == -INF).all()
    Attention().compare(
        (o[:25], lse[:, :25].contiguous()),
        apart(reference, q, k, v, pairs, causal=causal),
        apart(baseline, q, k, v, pairs, causal=causal),
    )


def test_no_sequences(device: str) -> None:
    q, k, v = pack([(5, 7)], device)
    o, lse = varlen.attention(q, k, v, *2 * (cumulative([], device),))
    assert (o == 0).all()
    assert (lse == -INF).all()


def test_wrong_ends_lead_nowhere(device: str) -> None:
    # The fixtures look at every address. Some wrong ends of keys need wrong ends of
    # queries too, or right ones.
    low, high = -(2**31), 2**31 - 1
    q, k, v = (guarded(x) for x in pack([(20, 20)], device, heads=1, kv_heads=1))
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
            o, _ = varlen.attention(q, k, v, *map(guarded, pair), causal=True, **SMALL)
    assert o.isfinite().all()


class TestRefusals(Suite):
    """Of the function itself, and where it launches."""

    function = staticmethod(varlen.attention)
    outputs = Attention.outputs
    blocks = (SMALL,)

    def example(self, device: str) -> Named:
        """Two sequences."""
        pairs = [(3, 5), (2, 2)]
        names = ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")
        tensors = *pack(pairs, device, heads=8), *bounds(pairs, device)
        return dict(zip(names, tensors, strict=True))

    def refusals(self) -> dict[str, Refusal]:
        """Of heads, and of where the sequences end."""
        ends = ("cu_seqlens_q", "cu_seqlens_k")
        found = {
            "too many heads": Refusal(
                "q is .*65536.*; it must .*65535",
                {"q": lambda x: x.new_zeros(0, 65536, 16)},  # a mutant has no work
            ),
            "fewer ends of keys": Refusal(
                r"cu_seqlens_k is .*\[2\].*; it must be .*\[3\]",
                {"cu_seqlens_k": lambda x: x[:2]},
            ),
        }
        for heads in (3, 16, 0):
            other = dict.fromkeys("kv", lambda x, n=heads: x.new_zeros(7, n, 16))
            said = f"k has .*{heads}.*; it must .*8"
            found[f"{heads} heads of k"] = Refusal(said, other)
        for what, change in {
            "no ends": lambda x: x[:0],
            "one end": lambda x: x[0],
            "ends of two dimensions": lambda x: x[None],
            "every other end": lambda x: x.repeat_interleave(2)[::2],
            "ends of 64 bits": lambda x: x.long(),
            "ends elsewhere": lambda x: x.to("meta"),
        }.items():
            found |= of_each(ends, what, change, "is .*; it must be torch.int32")
        return found


@pytest.mark.large
def test_a_second_sequence_beyond_31_bits(device: str) -> None:
    pairs = [(2, 2), (2, 2)]
    q, k, v = (
        far_apart((4, heads, 3), 0, torch.float16, device, seed=seed)
        for seed, heads in enumerate((4, 2, 2))
    )
    check((q, k, v), pairs)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=min(20, settings.default.max_examples),
)
@given(
    pairs=st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=6
    ),
    causal=st.booleans(),
    half=st.booleans(),
)
def test_any_batch(device: str, pairs: Pairs, causal: bool, half: bool) -> None:
    dtype = torch.float16 if half else torch.float32
    tensors = pack(pairs, device, heads=2, kv_heads=1, dtype=dtype)
    check(tensors, pairs, causal=causal)


@pytest.mark.gpu
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
@both_kinds
@pytest.mark.parametrize("head_dim", [64, 128])
def test_long_sequences(
    half: torch.dtype,
    causal: bool,
    head_dim: int,
    device: str,
) -> None:
    pairs = [(4096, 4096), (1, 2000), (0, 100), (1023, 1024), (512, 2048), (77, 77)]
    tensors = pack(pairs, device, heads=8, head_dim=head_dim, dtype=half)
    options = {"causal": causal, "block_m": 64, "block_n": 32}
    check(tensors, pairs, **options)


@pytest.mark.gpu
@pytest.mark.large
def test_more_than_31_bits_of_elements(device: str) -> None:
    half = 2**24 + 3
    q = torch.empty((2 * half, 1, 64), dtype=torch.bfloat16, device=device).normal_()
    pairs = [(half, 9), (half, 17)]
    _, k, v = pack([(1, 26)], device, head_dim=64, kv_heads=1, dtype=q.dtype)
    o, lse = varlen.attention(q, k, v, *bounds(pairs, device))
    for first, keys in (
        (0, slice(9)),
        (half, slice(9, 26)),
        (2 * half - 3, slice(9, 26)),
    ):
        rows = slice(first, first + 3)
        part, alone = (q[rows], k[keys], v[keys]), [(3, keys.stop - (keys.start or 0))]
        Attention().compare(
            (o[rows], lse[:, rows].contiguous()),
            apart(reference, *part, alone),
            apart(baseline, *part, alone),
        )


class TestVarlen(Attention):
    """One sequence; q is [heads, seq, head_dim] here."""

    function = staticmethod(one_sequence)
    blocks = BLOCKS
    lead, kv_lead = (2,), (1,)
    many, kv_many = (6,), (2,)
    most_rows = None
    layouts: ClassVar = {
        **LAYOUTS,
        "seq before heads": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
        "expanded heads": lambda x: x[:1].expand(x.shape),
    }

    test_launches_on_the_device_of_its_inputs = None  # below, of varlen itself

    def reference(
        self, *tensors: torch.Tensor, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        o, lse = reference(*(x[None] for x in tensors), **options)
        return o[0], lse[0]

    def baseline(
        self, *tensors: torch.Tensor, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        o, lse = baseline(*(x[None] for x in tensors), **options)
        return o[0], lse[0]
