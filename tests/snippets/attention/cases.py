"""Inputs on which every attention kernel is tried, and the tests that try them.

The test module of a kernel derives one class and adds what is its own:

    class TestFlash2(AttentionTests):
        attention = staticmethod(flash2.attention)
        blocks = ({"block_m": 16, "block_n": 16}, {"block_m": 16, "block_n": 64}, {})

Kernels on [batch, heads, seq, head_dim] take `AttentionTests`, kernels on
[seq, head_dim] take `SingleHeadTests`.
"""

import inspect
import mmap
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
import torch
import triton
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness import accuracy

INF = float("inf")
NAN = float("nan")
INTERPRETED = triton.knobs.runtime.interpret

HALVES = (torch.float16, torch.bfloat16)
DTYPES = (*HALVES, torch.float32)
HEAD_DIMS = (32, 40, 59, 64, 96, 111, 128, 160, 192, 224, 256)
QKV = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def lengths_around(block_m: int, block_n: int) -> tuple[tuple[int, int], ...]:
    """(seq_q, seq_k): a block, its neighbours, more than one, and much less."""
    m, n = block_m, block_n
    return (
        (1, 1),
        (1, 2 * n + 8),
        (2 * m + 8, 1),
        (3, 3),
        (m - 1, n - 1),
        (m, n),
        (m + 1, n + 1),
        (m - 1, n + 1),
        (m + 1, n - 1),
        (m, 2 * n + 8),
        (3 * m + 2, n + 4),
        (9, 200),
        (200, 3),
    )


# The grid of lengths in FlashAttention's own tests, in groups that compile alike: each
# length is a multiple of 16 or is not.
GRID = (
    ((256, 512), (512, 256), (1024, 1024), (2048, 2048)),
    ((113, 203),),
    ((128, 217), (1024, 1023)),
    ((108, 256), (1023, 1024)),
)
# (batch, heads, seq, head_dim): the table in the tests of the fused-attention tutorial.
TABLE = (
    (1, 1, 128, 128),
    (1, 2, 256, 256),
    (2, 2, 128, 256),
    (4, 32, 64, 64),
    (4, 32, 1024, 64),
    (4, 32, 4096, 64),
)
# The scores of the last fill 17 GB in float64.
every_shape_of_the_table = pytest.mark.parametrize(
    "shape",
    [*TABLE[:-1], pytest.param(TABLE[-1], marks=pytest.mark.large)],
    ids=str,
)
# Which keys have a score of -inf.
MINUS_INF: dict[str, slice] = {
    "first tiles": slice(None, 35),
    "last tiles": slice(5, None),
    "every other": slice(None, None, 2),
    "all but the last": slice(None, -1),
}


def _once(x: torch.Tensor, axis: int) -> torch.Tensor:
    """The first along an axis, as if it were there for every index."""
    return x.narrow(axis, 0, 1).expand(x.shape)


# Views of x: of the same values, or of some of them repeated.
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "sliced head_dim": lambda x: torch.cat([x, x], dim=-1)[..., : x.shape[-1]],
    "every other row": lambda x: x.repeat_interleave(2, dim=-2)[..., ::2, :],
    "head_dim before seq": lambda x: x.mT.contiguous().mT,
    "every other element": lambda x: x.repeat_interleave(2, dim=-1)[..., ::2],
    "offset": lambda x: torch.cat([x.flatten()[:5], x.flatten()])[5:].view(x.shape),
    "expanded seq": lambda x: _once(x, -2),
    "expanded head_dim": lambda x: _once(x, -1),
}
UNALIGNED = {
    "head_dim before seq",
    "every other element",
    "offset",
    "expanded head_dim",
}
HEAD_LAYOUTS = {
    **LAYOUTS,
    "seq before heads": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "expanded batch": lambda x: _once(x, 0),
    "expanded heads": lambda x: _once(x, 1),
    "every other head": lambda x: x.repeat_interleave(2, dim=1)[:, ::2],
}


def name(dtype: torch.dtype) -> str:
    """The dtype's name without "torch."."""
    return str(dtype).removeprefix("torch.")


# For snippets in PyTorch. On the CPU without bfloat16: some virtual machines announce
# instructions for matrix products of it, and stop the program that uses them.
every_dtype = pytest.mark.parametrize(
    "dtype",
    [
        dtype
        for dtype in (*DTYPES, torch.float64)
        if torch.cuda.is_available() or dtype != torch.bfloat16
    ],
    ids=name,
)


def normal(
    shape: Sequence[int], dtype: torch.dtype, device: str, *, seed: int = 0
) -> torch.Tensor:
    """Normal values, the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(tuple(shape), generator=generator, dtype=torch.float64)
    return x.to(dtype=dtype, device=device)


def qkv(
    lead: Sequence[int],
    kv_lead: Sequence[int],
    seq_q: int,
    seq_k: int,
    head_dim: int,
    dtype: torch.dtype,
    device: str,
    *,
    seed: int = 0,
) -> QKV:
    """q, k and v of normal values.

    Args:
        lead: batch and heads of q; () for [seq, head_dim].
        kv_lead: batch and heads of k and v.
        seq_q: rows of q.
        seq_k: rows of k and v.
        head_dim: columns of all three.
        dtype: of all three.
        device: of all three.
        seed: other values for another seed.
    """
    q = normal((*lead, seq_q, head_dim), dtype, device, seed=3 * seed)
    k = normal((*kv_lead, seq_k, head_dim), dtype, device, seed=3 * seed + 1)
    v = normal((*kv_lead, seq_k, head_dim), dtype, device, seed=3 * seed + 2)
    return q, k, v


def visible(
    seq_q: int,
    seq_k: int,
    device: torch.device | str,
    *,
    causal: bool = False,
    window: int | None = None,
) -> torch.Tensor:
    """[seq_q, seq_k], bool: which keys each query sees; aligned bottom right.

    With a window, a query sees the last `window` keys of those that causal leaves.
    """
    rows = torch.arange(seq_q, device=device)[:, None] + seq_k - seq_q
    cols = torch.arange(seq_k, device=device)[None, :]
    seen = torch.ones((seq_q, seq_k), dtype=torch.bool, device=device)
    if causal:
        seen &= cols <= rows
    if window is not None:
        seen &= cols > rows - window
    return seen


def scores(
    q: torch.Tensor, k: torch.Tensor, causal: bool, scale: float, window: int | None
) -> torch.Tensor:
    """[..., seq_q, seq_k] in the dtype of q and k; -inf where a query does not see."""
    s = (q @ k.mT).mul_(scale)
    seen = visible(*s.shape[-2:], s.device, causal=causal, window=window)
    return s.masked_fill_(~seen, -INF)


def for_heads_of(q: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """k or v, repeated for the query heads that share a head of it."""
    if q.ndim < 4 or x.shape[1] in (0, q.shape[1]):
        return x
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)


def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) in float64. A row with no score but -inf: o = 0, lse = -inf."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    k, v = (for_heads_of(q, x).double() for x in (k, v))
    s = scores(q.double(), k, causal, scale, window)
    if s.shape[-1]:
        m_i = s.amax(dim=-1, keepdim=True)
    else:
        m_i = s.new_full((*s.shape[:-1], 1), -INF)
    m_i = torch.where(m_i == -INF, 0.0, m_i)
    p = s.sub_(m_i).exp_()  # in place: the scores of the largest case fill 17 GB
    l_i = p.sum(dim=-1, keepdim=True)
    o = (p @ v) / torch.where(l_i == 0, 1.0, l_i)
    return o, (m_i + l_i.log()).squeeze(-1)


def baseline(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) as PyTorch computes them unfused.

    o is matmul, softmax, matmul in the dtype of q; lse comes from float32 scores.
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    k, v = (for_heads_of(q, x) for x in (k, v))
    s = scores(q, k, causal, scale, window)
    p = torch.softmax(s, dim=-1)
    p = torch.where((s == -INF).all(dim=-1, keepdim=True), 0.0, p)
    s = scores(q.float(), k.float(), causal, scale, window)
    return p @ v, torch.logsumexp(s, dim=-1)


def far_apart(
    shape: Sequence[int], axis: int, dtype: torch.dtype, device: str, *, seed: int
) -> torch.Tensor:
    """Normal values, 2^30 elements from one to the next along an axis.

    On the CPU the memory between the elements is never touched, so it costs nothing.
    """
    strides = list(torch.empty(tuple(shape), device="meta").stride())
    strides[axis] = 2**30
    size = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True)) + 1
    if device == "cpu":
        storage = torch.frombuffer(mmap.mmap(-1, size * dtype.itemsize), dtype=dtype)
    else:
        storage = torch.empty(size, dtype=dtype, device=device)
    x = storage.as_strided(tuple(shape), strides)
    return x.copy_(normal(shape, dtype, device, seed=seed))


class Attention:
    """What holds of every attention kernel, whatever the dimensions of its tensors.

    Cheap tests that catch much come first: a mutant runs until the first failure.

    Attributes:
        attention: the function under test: (q, k, v, **options) -> (o, lse), or o.
        blocks: options to try: all give the same result. Most tests use the first,
            whose tiles are small: a few rows make several tiles.
        refused: bad values of the options that are not called block_*.
        causal: does the kernel take causal=True?
        dtypes: the dtypes that it takes.
        interpreted: those of them that the interpreter computes rightly.
        head_dims: the sizes of head_dim to try.
        bad_head_dims: some that it refuses.
        positive_scale: does it refuse a scale of 0 or below?
        most_rows: how long a sequence may be.
        aligned: does it refuse tensors whose last stride is not 1, or whose rows do not
            begin at multiples of 16 bytes, as descriptors do?
        lengths: (seq_q, seq_k) to try.
        lead: batch and heads of q in most tests.
        kv_lead: batch and heads of k and v in most tests.
        many: batch and heads of q where strides matter.
        kv_many: batch and heads of k and v where strides matter.
        layouts: views that q, k and v are tried in.
    """

    attention: ClassVar[Callable[..., Any]]
    blocks: ClassVar[tuple[dict[str, Any], ...]]
    refused: ClassVar[dict[str, tuple[Any, ...]]] = {}
    causal: ClassVar[bool] = True
    dtypes: ClassVar[tuple[torch.dtype, ...]] = DTYPES
    interpreted: ClassVar[tuple[torch.dtype, ...]] = (torch.float16, torch.float32)
    head_dims: ClassVar[tuple[int, ...]] = HEAD_DIMS
    bad_head_dims: ClassVar[tuple[int, ...]] = (0, 257)
    positive_scale: ClassVar[bool] = False
    most_rows: ClassVar[int] = 2**31 - 256
    aligned: ClassVar[bool] = False
    lengths: ClassVar[tuple[tuple[int, int], ...]] = lengths_around(16, 16)
    lead: ClassVar[tuple[int, ...]]
    kv_lead: ClassVar[tuple[int, ...]]
    many: ClassVar[tuple[int, ...]]
    kv_many: ClassVar[tuple[int, ...]]
    layouts: ClassVar[dict[str, Callable[[torch.Tensor], torch.Tensor]]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Cases from the attributes of the class, for arguments of these names."""
        dtypes = [d for d in self.dtypes if not INTERPRETED or d in self.interpreted]
        for argument, values in {
            "dtype": dtypes,
            "causal": [False, True] if self.causal else [False],
            "head_dim": self.head_dims,
            "layout": self.views(),
            "lengths": self.lengths,
        }.items():
            if argument in metafunc.fixturenames:
                ids = {"dtype": name, "lengths": str}.get(argument)
                metafunc.parametrize(argument, list(values), ids=ids)

    # Helpers.

    def views(self) -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
        """Those of the layouts that the kernel takes."""
        return {
            layout: view
            for layout, view in self.layouts.items()
            if not (self.aligned and layout in UNALIGNED)
        }

    def inputs(
        self,
        seq_q: int,
        seq_k: int,
        device: str,
        *,
        head_dim: int = 16,
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
    ) -> QKV:
        """q, k and v of normal values."""
        lead, kv_lead = self.lead, self.kv_lead
        return qkv(lead, kv_lead, seq_q, seq_k, head_dim, dtype, device, seed=seed)

    def run(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        *,
        blocks: dict[str, Any] | None = None,
        **options: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(o, lse or None) of the kernel, with the first of `blocks` or those given."""
        if not options.get("causal", True):
            del options["causal"]  # some do not know the word
        blocks = self.blocks[0] if blocks is None else blocks
        result = self.attention(q, k, v, **{**blocks, **options})
        return result if isinstance(result, tuple) else (result, None)

    def check(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        check_accuracy: Callable,
        **options: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Run the kernel and hold o and lse against the rule; returns them."""
        o, lse = self.run(q, k, v, **options)
        asked = {
            word: options[word]
            for word in ("causal", "scale", "window")
            if word in options
        }
        self.compare(
            (o, lse),
            self.reference(q, k, v, **asked),
            self.baseline(q, k, v, **asked),
            check_accuracy,
        )
        return o, lse

    def reference(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(o, lse) in float64."""
        return reference(q, k, v, **options)

    def baseline(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(o, lse) as PyTorch computes them unfused, in the dtype of q."""
        return baseline(q, k, v, **options)

    def compare(
        self,
        actual: tuple[torch.Tensor, torch.Tensor | None],
        expected: tuple[torch.Tensor, torch.Tensor],
        own: tuple[torch.Tensor, torch.Tensor],
        check_accuracy: Callable,
    ) -> None:
        """The rule for o, recorded, and for lse."""
        o, lse = actual
        assert o.is_contiguous()
        check_accuracy(o, expected[0], own[0])
        if lse is not None:
            assert lse.is_contiguous()
            # An 8 beside the values: an error of eps in lse is one of eps in the sum of
            # exponentials, even where lse is near 0, and a GPU's exponentials and
            # logarithm are off by a few of them.
            both = (
                torch.cat([x.flatten(), x.new_full((1,), 8.0)])
                for x in (expected[1], own[1])
            )
            beside = torch.cat([lse.flatten(), lse.new_full((1,), 8.0)])
            accuracy.compare(beside, *both)
            assert lse.shape == expected[1].shape

    # Refusals.

    def test_refuses_other_shapes(self, device: str) -> None:
        q, k, v = self.inputs(3, 5, device)
        for at, argument in enumerate("qkv"):
            for wrong in (lambda x: x[None], lambda x: x[0]):
                tensors = [q, k, v]
                tensors[at] = wrong(tensors[at])
                match = f"^{argument} has {tensors[at].ndim} dimensions.* {q.ndim}"
                with pytest.raises(ValueError, match=match):
                    self.run(*tensors)

    def test_refuses_other_dtypes(self, device: str) -> None:
        q, k, v = self.inputs(3, 5, device)
        for dtype in (torch.float64, torch.int32, torch.float8_e4m3fn):
            if dtype in self.dtypes:
                continue
            with pytest.raises(ValueError, match=f"^q is {dtype}.*; it must be"):
                self.run(q.to(dtype), k.to(dtype), v.to(dtype))
        first, *_, other = self.dtypes
        q, k, v = (x.to(first) for x in (q, k, v))
        with pytest.raises(ValueError, match=f"^k is {other}.*; it must be .*{first}"):
            self.run(q, k.to(other), v)
        with pytest.raises(ValueError, match=f"^v is {other}.*; it must be .*{first}"):
            self.run(q, k, v.to(other))

    def test_refuses_the_cpu_without_the_interpreter(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        q, k, v = self.inputs(3, 5, "cpu")
        monkeypatch.setattr(triton.knobs.runtime, "interpret", False)
        with pytest.raises(ValueError, match=r"^q is on cpu.*TRITON_INTERPRET"):
            self.run(q, k, v)

    def test_refuses_what_the_interpreter_multiplies_wrongly(
        self, device: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(triton.knobs.runtime, "interpret", True)
        for dtype in set(self.dtypes) - set(self.interpreted):
            inputs = self.inputs(3, 5, device, dtype=dtype)
            with pytest.raises(ValueError, match=f"^q is {name(dtype)}.*interpreter"):
                self.run(*inputs)

    def test_refuses_another_device(self, device: str) -> None:
        q, k, v = self.inputs(3, 5, device)
        # Without the interpreter, that meta is no GPU is seen first.
        where = q.device if INTERPRETED else "a GPU"
        match = f"^k is .*on meta; it must be .*{where}"
        with pytest.raises(ValueError, match=match):
            self.run(q, k.to("meta"), v)
        with pytest.raises(ValueError, match=match.replace("k", "v", 1)):
            self.run(q, k, v.to("meta"))

    def test_refuses_other_sizes(self, device: str) -> None:
        q, k, v = self.inputs(3, 5, device)
        with pytest.raises(ValueError, match=r"^k has head_dim 15; it must.*16"):
            self.run(q, k[..., :15], v)
        with pytest.raises(ValueError, match=r"^v has shape .*4, 16[\])]; it must.*5"):
            self.run(q, k, v[..., :4, :])
        with pytest.raises(ValueError, match=r"^v has shape .*5, 15[\])]; it must.*16"):
            self.run(q, k, v[..., :15])
        for head_dim in self.bad_head_dims:
            match = f"^q has head_dim {head_dim}; it must be"
            with pytest.raises(ValueError, match=match):
                self.run(*self.inputs(3, 5, device, head_dim=head_dim))

    def test_refuses_more_rows_than_32_bits_count(self, device: str) -> None:
        q, k, v = self.inputs(1, 1, device)
        most = self.most_rows
        longer = [x.expand(*x.shape[:-2], most + 1, x.shape[-1]) for x in (q, k, v)]
        with pytest.raises(ValueError, match=rf"^q has \w+ {most + 1}; .* to {most}$"):
            self.run(longer[0], k, v)
        with pytest.raises(ValueError, match=rf"^k has \w+ {most + 1}; .* to {most}$"):
            self.run(q, *longer[1:])

    @pytest.mark.parametrize("bad", [NAN, INF, -INF, 3.5e38])
    def test_refuses_other_scales(self, bad: float, device: str) -> None:
        match = f"^scale is {re.escape(str(bad))}; it must be .*finite"
        with pytest.raises(ValueError, match=match):
            self.run(*self.inputs(3, 5, device), scale=bad)
        if self.positive_scale:
            for scale in (0.0, -0.5):
                with pytest.raises(ValueError, match=f"^scale is {scale}; .*positive"):
                    self.run(*self.inputs(3, 5, device), scale=scale)

    def test_refuses_other_options(self, device: str) -> None:
        parameters = inspect.signature(self.attention).parameters.values()
        options = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
        options -= {"causal", "scale"}
        blocks = {option for option in options if option.startswith("block_")}
        assert options - blocks == set(self.refused), "refused lacks an option"
        assert blocks <= set(self.blocks[0]), "the first of blocks lacks an option"
        refused = {**dict.fromkeys(blocks, (0, -16, 3, 8, 24, 2**17)), **self.refused}
        q, k, v = self.inputs(3, 5, device)
        for option, values in refused.items():
            for bad in values:
                match = rf"^{option} is '?{bad}'?; it must be"
                with pytest.raises(ValueError, match=match):
                    self.run(q, k, v, **{option: bad})

    def test_refuses_causal_if_it_has_none(self, device: str) -> None:
        known = "causal" in inspect.signature(self.attention).parameters
        q, k, v = self.inputs(3, 5, device)
        if known and not self.causal:
            with pytest.raises(ValueError, match=r"^causal is True; it must be False"):
                self.run(q, k, v, causal=True)
        else:
            assert known == self.causal

    # Results.

    def test_every_length(
        self,
        lengths: tuple[int, int],
        causal: bool,
        device: str,
        guarded: Callable,
        check_accuracy: Callable,
    ) -> None:
        q, k, v = (guarded(x) for x in self.inputs(*lengths, device))
        self.check(q, k, v, check_accuracy, causal=causal)

    def test_no_two_strides_alike(
        self, device: str, guarded: Callable, check_accuracy: Callable
    ) -> None:
        # q the wrong way round, so that torch.empty_like(q) is too; k and v with gaps.
        q, k, v = qkv(self.many, self.kv_many, 5, 20, 16, torch.float32, device)
        axes = [*range(q.ndim)]
        turned = axes[-2::-1] + axes[-1:] if self.aligned else axes[::-1]
        q = q.permute(turned).contiguous().permute(turned)
        stepped = axes[: -1 if self.aligned else None]
        for axis in stepped:
            k = k.repeat_interleave(axis + 2, dim=axis)
            v = v.repeat_interleave(axis + 3, dim=axis)
        k = k[tuple(slice(None, None, axis + 2) for axis in stepped)]
        v = v[tuple(slice(None, None, axis + 3) for axis in stepped)]
        strides = [x.stride(axis) for x in (q, k, v) for axis in stepped]
        assert len(set(strides)) == len(strides)
        self.check(guarded(q), guarded(k), guarded(v), check_accuracy)

    def test_every_layout(
        self, layout: str, device: str, guarded: Callable, check_accuracy: Callable
    ) -> None:
        # Three layouts at once, so that no stride of one tensor fits another.
        views = list(self.views().values())
        first = list(self.views()).index(layout)
        inputs = qkv(self.many, self.kv_many, 5, 20, 16, torch.float32, device)
        q, k, v = (
            guarded(views[(first + step) % len(views)](x))
            for step, x in zip((0, 1, 3), inputs, strict=True)
        )
        before = [x.clone() for x in (q, k, v)]
        self.check(q, k, v, check_accuracy)
        for argument, x, copy in zip("qkv", (q, k, v), before, strict=True):
            assert torch.equal(x, copy), f"{argument} was written to"

    def test_every_dtype(
        self,
        dtype: torch.dtype,
        causal: bool,
        device: str,
        guarded: Callable,
        check_accuracy: Callable,
    ) -> None:
        inputs = self.inputs(19, 37, device, head_dim=24, dtype=dtype)
        q, k, v = (guarded(x) for x in inputs)
        self.check(q, k, v, check_accuracy, causal=causal)

    def test_every_head_dim(
        self, head_dim: int, device: str, guarded: Callable, check_accuracy: Callable
    ) -> None:
        # Not float32: in so small a case the order of summation decides.
        dtype = self.dtypes[0]
        inputs = self.inputs(17, 20, device, head_dim=head_dim, dtype=dtype)
        q, k, v = (guarded(x) for x in inputs)
        self.check(q, k, v, check_accuracy)

    @pytest.mark.parametrize("scale", [0.0, 0.3, 1.0, -0.3])
    def test_every_scale(
        self, scale: float, device: str, check_accuracy: Callable
    ) -> None:
        if scale > 0 or not self.positive_scale:
            q, k, v = self.inputs(18, 40, device)
            self.check(q, k, v, check_accuracy, scale=scale)

    @pytest.mark.parametrize("where", MINUS_INF)
    def test_scores_of_minus_inf(
        self, where: str, device: str, check_accuracy: Callable
    ) -> None:
        q, k, v = self.inputs(17, 41, device)
        q[..., 0] = 1
        k[..., MINUS_INF[where], 0] = -INF
        self.check(q, k, v, check_accuracy)

    def test_nothing_but_scores_of_minus_inf(self, device: str) -> None:
        q, k, v = self.inputs(3, 41, device)
        o, lse = self.run(q.abs() + 1, k - INF, v)
        assert (o == 0).all()
        assert lse is None or (lse == -INF).all()

    def test_nan(self, device: str, check_accuracy: Callable) -> None:
        # Of q in one row, of k in all, of v in one column: no more, and no less.
        for argument in range(3):
            inputs = self.inputs(18, 20, device)
            inputs[argument][..., 17, 3] = NAN
            self.check(*inputs, check_accuracy)

    def test_nan_everywhere(self, device: str, check_accuracy: Callable) -> None:
        q, k, v = self.inputs(3, 20, device)
        self.check(q * NAN, k, v, check_accuracy)

    def test_nan_that_a_row_does_not_see(
        self, causal: bool, device: str, check_accuracy: Callable
    ) -> None:
        q, k, v = self.inputs(20, 20, device)
        k[..., 10, 3] = NAN
        o, _ = self.check(q, k, v, check_accuracy, causal=causal)
        assert o[..., :10, :].isnan().any() != causal

    @pytest.mark.parametrize(("seq_q", "seq_k"), [(0, 5), (5, 0), (0, 0)])
    def test_empty(
        self,
        seq_q: int,
        seq_k: int,
        dtype: torch.dtype,
        causal: bool,
        device: str,
        check_accuracy: Callable,
    ) -> None:
        q, k, v = self.inputs(seq_q, seq_k, device, dtype=dtype)
        o, lse = self.check(q, k, v, check_accuracy, causal=causal)
        assert o.shape == q.shape
        assert (o == 0).all()
        assert lse is None or (lse == -INF).all()

    def test_weights_sum_to_one(
        self, dtype: torch.dtype, causal: bool, device: str
    ) -> None:
        q, k, v = self.inputs(5, 200, device, dtype=dtype)
        o, _ = self.run(q, k, torch.ones_like(v), causal=causal)
        allowed = 2 * torch.finfo(dtype).eps + 32 * torch.finfo(torch.float32).eps
        assert ((o.double() - 1).abs() <= allowed).all()

    @pytest.mark.parametrize("shift", [-100, 1000])
    def test_a_shift_of_the_scores_changes_nothing_but_lse(
        self, shift: int, dtype: torch.dtype, device: str
    ) -> None:
        # The last component of q and k adds `shift` to every score. All are integers
        # halved by the scale: no product and no sum of theirs is rounded.
        q, k, v = self.inputs(17, 60, device)
        q, k = ((x * 2).round().clamp(-6, 6).to(dtype) for x in (q, k))
        q[..., -1], k[..., -1] = 2, 0
        shifted = k.clone()
        shifted[..., -1] = shift
        o, lse = self.run(q, k, v.to(dtype), scale=0.5)
        o_shifted, lse_shifted = self.run(q, shifted, v.to(dtype), scale=0.5)
        rounding = 4 * torch.finfo(torch.float32).eps * abs(shift)
        torch.testing.assert_close(
            o_shifted, o, rtol=torch.finfo(dtype).eps, atol=4 * rounding
        )
        if lse is not None:
            torch.testing.assert_close(lse_shifted, lse + shift, rtol=0, atol=rounding)

    def test_large_scores(self, dtype: torch.dtype, causal: bool, device: str) -> None:
        # Of magnitude 1e4, and within float16, whose largest number is 65504. What is
        # compared is not recorded: it says how coarse such scores are.
        q, k, v = self.inputs(18, 50, device, head_dim=32, dtype=dtype)
        inputs = q * 50, k * 40, v
        o, _ = self.check(*inputs, accuracy.compare, causal=causal, scale=1.0)
        assert o.isfinite().all()

    def test_huge_scores(self, dtype: torch.dtype, causal: bool, device: str) -> None:
        # All alike, so each key has the same weight. Scores below 2^23 or 2^35, which
        # float32 holds in steps of a half or of 2048: what is subtracted must be
        # rounded as what it is subtracted from.
        q, k, v = self.inputs(100, 100, device, head_dim=80, dtype=dtype)
        q, k = (x.fill_(900.0 if self.positive_scale else 5e4) for x in (q, k))
        o, lse = self.run(q, k, v.fill_(1), causal=causal)
        # In base 2 the weights are not 1, and summed with a rounding for each.
        roundings = 16 if self.positive_scale else 2
        assert ((o - 1).abs() <= roundings * torch.finfo(dtype).eps).all()
        if lse is not None:
            expected = self.reference(q, k, v, causal=causal)[1]
            torch.testing.assert_close(lse.double(), expected, rtol=1e-5, atol=0)

    def test_every_block_size(
        self, causal: bool, device: str, guarded: Callable, check_accuracy: Callable
    ) -> None:
        if "block_m" in self.blocks[0]:
            orders = {
                blocks["block_m"] < blocks["block_n"]
                for blocks in self.blocks
                if blocks
            }
            assert orders == {False, True}, "block_m is never, or always, the smaller"
        q, k, v = (guarded(x) for x in self.inputs(50, 70, device))
        results = [
            self.check(q, k, v, check_accuracy, causal=causal, blocks=blocks)[0]
            for blocks in self.blocks
        ]
        for o in results[1:]:
            torch.testing.assert_close(o, results[0], rtol=1e-5, atol=1e-6)

    @pytest.mark.large
    def test_offsets_beyond_31_bits(
        self, device: str, check_accuracy: Callable
    ) -> None:
        shape = (*(3,) * (len(self.lead) + 1), 16 if self.aligned else 3)
        for axis in range(len(shape) - self.aligned):
            q, k, v = (
                far_apart(shape, axis, torch.float16, device, seed=seed)
                for seed in range(3)
            )
            self.check(q, k, v, check_accuracy)

    # FlashAttention's grid: each head_dim with four of the combinations of dtype and
    # causal, and each combination with every length.
    @pytest.mark.gpu
    @pytest.mark.parametrize("group", GRID, ids=str)
    def test_grid(
        self,
        group: tuple[tuple[int, int], ...],
        head_dim: int,
        device: str,
        check_accuracy: Callable,
    ) -> None:
        pick = self.head_dims.index(head_dim) + GRID.index(group)
        dtype = self.dtypes[pick % len(self.dtypes)]
        causal = self.causal and pick % 2 == 0
        for lengths in group:
            q, k, v = self.inputs(*lengths, device, head_dim=head_dim, dtype=dtype)
            self.check(q, k, v, check_accuracy, causal=causal, blocks={})

    # The second half of a kernel's memory: row 2^25 of 64 columns is element 2^31.
    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements_in_q(
        self, device: str, check_accuracy: Callable
    ) -> None:
        rows, ones = 2**25 + 5, (1,) * len(self.lead)
        q, k, v = qkv(ones, ones, 1, 17, 64, torch.bfloat16, device)
        q = torch.empty((*ones, rows, 64), dtype=q.dtype, device=device).normal_()
        o, lse = self.run(q, k, v, blocks={})
        for some in (slice(3), slice(rows // 2 - 1, rows // 2 + 1), slice(-3, None)):
            part = q[..., some, :]
            self.compare(
                (o[..., some, :].contiguous(), lse if lse is None else lse[..., some]),
                self.reference(part, k, v),
                self.baseline(part, k, v),
                check_accuracy,
            )

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements_in_k_and_v(
        self, device: str, check_accuracy: Callable
    ) -> None:
        # A few keys count. The score of the others is so low that their weight is 0,
        # and so PyTorch need not see them: in float64 they would fill 34 GB.
        rows, ones = 2**25 + 5, (1,) * len(self.lead)
        few = [rows // 3, 2**25 - 1, 2**25, rows - 1]
        q, *_ = qkv(ones, ones, 3, 1, 64, torch.bfloat16, device)
        k, v = (
            torch.empty((*ones, rows, 64), dtype=q.dtype, device=device).normal_()
            for _ in range(2)
        )
        q[..., 0], k[..., 0], k[..., few, 0] = 100, -100, 0
        blocks = {"block_n": 128} if "block_n" in self.blocks[0] else {}
        part = q, k[..., few, :], v[..., few, :]
        self.compare(
            self.run(q, k, v, blocks=blocks),
            self.reference(*part),
            self.baseline(*part),
            check_accuracy,
        )


def check_where_it_launches(
    attention: Callable[..., Any], q: torch.Tensor, *tensors: Any, **options: Any
) -> None:
    """Every launch of the file of `attention` is made on the device of q."""
    current: list[torch.device] = []
    launched: list[list[torch.device]] = []

    @contextmanager
    def device_of(x: torch.Tensor) -> Iterator[None]:
        current.append(x.device)
        yield
        current.pop()

    def watched(run: Callable[..., Any]) -> Callable[..., Any]:
        def launch(*args: Any, **options: Any) -> Any:
            launched.append(current.copy())
            return run(*args, **options)

        return launch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "device_of", device_of)
        for word, kernel in inspect.unwrap(attention).__globals__.items():
            if word.endswith("_kernel"):
                patch.setattr(kernel, "run", watched(kernel.run))
        attention(q, *tensors, **options)
    assert launched
    assert all(devices == [q.device] for devices in launched)


class SingleHeadTests(Attention):
    """What holds of every kernel on q [seq_q, head_dim], k and v [seq_k, head_dim]."""

    causal = False
    lead = kv_lead = many = kv_many = ()
    layouts = LAYOUTS


class AttentionTests(Attention):
    """What holds of every kernel on q, k and v of [batch, heads, seq, head_dim]."""

    lead, kv_lead = (1, 2), (1, 1)
    many, kv_many = (2, 4), (2, 2)
    layouts = HEAD_LAYOUTS

    def test_launches_on_the_device_of_q(self, device: str) -> None:
        inputs = self.inputs(40, 50, device)
        check_where_it_launches(self.attention, *inputs, **self.blocks[0])

    def test_refuses_other_batches_and_heads(self, device: str) -> None:
        q, k, v = qkv((2, 8), (2, 2), 3, 5, 16, torch.float32, device)
        with pytest.raises(ValueError, match=r"^k has batch 1; it must .*2"):
            self.run(q, k[:1], v[:1])
        for heads in (3, 16, 0):
            x = torch.zeros((2, heads, 5, 16), device=device)
            with pytest.raises(ValueError, match=rf"^k has {heads} heads; it must .*8"):
                self.run(q, x, x)
        for x in (v[:1], v[:, :1]):
            with pytest.raises(ValueError, match=r"^v has shape .*; it must .*2, 2, 5"):
                self.run(q, k, x)

    @pytest.mark.parametrize("kv_heads", [8, 4, 2, 1])
    def test_heads_that_share_keys(
        self, kv_heads: int, causal: bool, device: str, check_accuracy: Callable
    ) -> None:
        inputs = qkv((2, 8), (2, kv_heads), 5, 20, 16, torch.float32, device)
        self.check(*inputs, check_accuracy, causal=causal)

    def test_one_tensor_for_all_three(
        self, causal: bool, device: str, guarded: Callable, check_accuracy: Callable
    ) -> None:
        packed = guarded(normal((2, 20, 3, 2, 16), torch.float32, device))
        q, k, v = packed.transpose(1, 3).unbind(2)
        self.check(q, k, v, check_accuracy, causal=causal)

    @pytest.mark.parametrize("lead", [(0, 2), (2, 0), (0, 0)])
    def test_no_batch_or_no_heads(
        self, lead: tuple[int, int], device: str, check_accuracy: Callable
    ) -> None:
        inputs = qkv(lead, lead, 5, 6, 16, torch.float32, device)
        o, lse = self.check(*inputs, check_accuracy)
        assert (o.shape, lse.shape) == ((*lead, 5, 16), (*lead, 5))

    @pytest.mark.parametrize(("seq_q", "seq_k"), [(40, 9), (40, 24), (60, 1), (17, 0)])
    def test_rows_that_see_nothing(
        self, seq_q: int, seq_k: int, causal: bool, dtype: torch.dtype, device: str
    ) -> None:
        q, k, v = self.inputs(seq_q, seq_k, device, dtype=dtype)
        o, lse = self.run(q, k, v, causal=causal)
        blind = seq_q - seq_k if causal or not seq_k else 0
        assert (o[..., :blind, :] == 0).all()
        assert (lse[..., :blind] == -INF).all()
        assert lse[..., blind:].isfinite().all()

    # One property, inherited by the tests of every kernel. Few sizes of head_dim: a
    # GPU compiles the kernel for each.
    @settings(
        suppress_health_check=[HealthCheck.differing_executors],
        max_examples=min(20, settings.default.max_examples),
    )
    @given(
        kv_heads=st.integers(1, 2),
        group=st.integers(1, 3),
        seq_q=st.integers(1, 40),
        seq_k=st.integers(0, 40),
        head_dim=st.sampled_from([16, 24]),
        half=st.booleans(),
        bottom_right=st.booleans(),
        where=st.lists(st.integers(0, len(HEAD_LAYOUTS) - 1), min_size=3, max_size=3),
        minus_inf=st.sets(st.integers(0, 39), max_size=20),
        seed=st.integers(0, 2**20),
    )
    def test_any_input(
        self,
        device: str,
        check_accuracy: Callable,
        kv_heads: int,
        group: int,
        seq_q: int,
        seq_k: int,
        head_dim: int,
        half: bool,
        bottom_right: bool,
        where: list[int],
        minus_inf: set[int],
        seed: int,
    ) -> None:
        dtype = torch.float16 if half else torch.float32
        lead, kv_lead = (1, kv_heads * group), (1, kv_heads)
        q, k, v = qkv(lead, kv_lead, seq_q, seq_k, head_dim, dtype, device, seed=seed)
        # All of q is positive, so that -inf in k is -inf in the score.
        q = q.abs() + 0.1
        k[..., [j for j in minus_inf if j < seq_k], 0] = -INF
        views = list(self.views().values())
        q, k, v = (
            views[i % len(views)](x) if x.numel() else x
            for i, x in zip(where, (q, k, v), strict=True)
        )
        self.check(q, k, v, check_accuracy, causal=self.causal and bottom_right)

    # The table: the default blocks and, in turn, one of the others.
    @pytest.mark.gpu
    @every_shape_of_the_table
    @pytest.mark.parametrize("half", HALVES, ids=name)
    def test_table(
        self,
        shape: tuple[int, int, int, int],
        half: torch.dtype,
        causal: bool,
        device: str,
        check_accuracy: Callable,
    ) -> None:
        *lead, seq, head_dim = shape
        q, k, v = qkv(lead, lead, seq, seq, head_dim, half, device)
        expected = self.reference(q, k, v, causal=causal)
        own = self.baseline(q, k, v, causal=causal)
        pick = 4 * TABLE.index(shape) + 2 * HALVES.index(half) + causal
        for blocks in ({}, self.blocks[pick % len(self.blocks)]):
            actual = self.run(q, k, v, causal=causal, blocks=blocks)
            self.compare(actual, expected, own, check_accuracy)

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements_in_heads(
        self, causal: bool, device: str, check_accuracy: Callable
    ) -> None:
        # Views of [batch, seq, heads, head_dim]; the last batches lie beyond 2^31.
        batch, heads, seq, head_dim = 2021, 32, 521, 64
        q, k, v = (
            torch.empty((batch, seq, heads, head_dim), dtype=half, device=device)
            .normal_()
            .transpose(1, 2)
            for half in 3 * (torch.bfloat16,)
        )
        o, lse = self.run(q, k, v, causal=causal, blocks={})
        assert o.isfinite().all()
        for some in (slice(1), slice(batch // 2, batch // 2 + 1), slice(-1, None)):
            part = q[some], k[some], v[some]
            self.compare(
                (o[some], lse[some]),
                self.reference(*part, causal=causal),
                self.baseline(*part, causal=causal),
                check_accuracy,
            )


class WindowTests(AttentionTests):
    """Of a kernel that also takes `window`: how many keys up to its own a query sees.

    The module's class adds `"window": (0, -1)` to `refused`.
    """

    def test_refuses_a_window_without_causal(self, device: str) -> None:
        q, k, v = self.inputs(3, 5, device)
        with pytest.raises(ValueError, match=r"^causal is False; .*must be True"):
            self.run(q, k, v, window=2)

    @pytest.mark.parametrize("sizes", [(60, 60), (20, 70), (70, 20)], ids=str)
    def test_every_window(
        self,
        sizes: tuple[int, int],
        device: str,
        guarded: Callable,
        check_accuracy: Callable,
    ) -> None:
        q, k, v = (guarded(x) for x in self.inputs(*sizes, device))
        for window in (1, 5, 16, 17, 33, 1000):
            self.check(q, k, v, check_accuracy, causal=True, window=window)
