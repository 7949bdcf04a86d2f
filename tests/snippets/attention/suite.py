"""What every attention kernel is tried on: a suite that its test module derives from.

    class TestFlash2(AttentionTests):
        function = staticmethod(flash2.attention)
        blocks = ({"block_m": 16, "block_n": 16}, {"block_m": 16, "block_n": 64}, {})

Kernels on [batch, heads, seq, head_dim] take `AttentionTests`, kernels on
[seq, head_dim] take `SingleHeadTests`.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness import accuracy
from tests.harness.inputs import (
    DTYPES,
    GRID,
    HALVES,
    HEAD_DIMS,
    HEAD_LAYOUTS,
    INF,
    INTERPRETED,
    LAYOUTS,
    NAN,
    QKV,
    STRUCTURED,
    TABLE,
    UNALIGNED,
    View,
    far_apart,
    name,
    normal,
    pairs_around,
    qkv,
)
from tests.harness.poison import guarded
from tests.harness.suite import Named, Refusal, Suite, of_each
from tests.snippets.attention.reference import baseline, reference

# Which keys have a score of -inf.
MINUS_INF: dict[str, slice] = {
    "first tiles": slice(None, 35),
    "last tiles": slice(5, None),
    "every other": slice(None, None, 2),
    "all but the last": slice(None, -1),
}
# The outputs of a row that sees no key, or only scores of -inf.
BLIND = {"o": 0.0, "lse": -INF}
# The scores of the last shape of the table fill 17 GB in float64.
every_shape_of_the_table = pytest.mark.parametrize(
    "shape",
    [*TABLE[:-1], pytest.param(TABLE[-1], marks=pytest.mark.large)],
    ids=str,
)
# For snippets in PyTorch. On the CPU without bfloat16: some virtual machines announce
# instructions for matrix products of it, and stop the program that uses them.
every_dtype = pytest.mark.parametrize(
    "dtype",
    [d for d in DTYPES if torch.cuda.is_available() or d != torch.bfloat16],
    ids=name,
)


def strides(x: torch.Tensor) -> list[int]:
    """Of the axes on which it has several elements."""
    pairs = zip(x.shape, x.stride(), strict=True)
    return [stride for size, stride in pairs if size > 1]


def resized(x: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """The first along an axis, as often as said."""
    shape = list(x.shape)
    shape[axis] = size
    return x.narrow(axis, 0, 1).expand(shape)


class Attention(Suite):
    """What holds of every attention kernel, whatever the dimensions of its tensors.

    Cheap tests that catch much come first: a mutant runs until the first failure.

    Attributes:
        function: (q, k, v, **options) -> (o, lse).
        refused: values of options that are refused.
        causal: does the kernel take causal=True?
        dtypes: the dtypes that it takes.
        interpreted: those of them that the interpreter computes rightly.
        head_dims: the sizes of head_dim to try.
        bad_head_dims: some that it refuses.
        scales: to try; those of a kernel that takes positive ones only are positive.
        most_rows: how long a sequence may be; None if that is not refused.
        aligned: does it refuse tensors whose last stride is not 1, or whose rows do not
            begin at multiples of 16 bytes, as descriptors do?
        layout_of_q: is o laid out as torch.empty_like(q), or else contiguous?
        lengths: (seq_q, seq_k) to try.
        lead: batch and heads of q in most tests.
        kv_lead: batch and heads of k and v in most tests.
        many: batch and heads of q where strides matter.
        kv_many: batch and heads of k and v where strides matter.
        layouts: views that q, k and v are tried in.
    """

    outputs = ("o", "lse")
    asked = ("causal", "scale", "window")
    refused: ClassVar[dict[str, tuple[Any, ...]]] = {}
    causal: ClassVar[bool] = True
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (*HALVES, torch.float32)
    interpreted: ClassVar[tuple[torch.dtype, ...]] = (torch.float16, torch.float32)
    head_dims: ClassVar[tuple[int, ...]] = HEAD_DIMS
    bad_head_dims: ClassVar[tuple[int, ...]] = (0, 257)
    scales: ClassVar[tuple[float, ...]] = (0.0, 0.3, 1.0, -0.3)
    most_rows: ClassVar[int | None] = 2**31 - 256
    aligned: ClassVar[bool] = False
    layout_of_q: ClassVar[bool] = False
    lengths: ClassVar[tuple[tuple[int, int], ...]] = pairs_around(16, 16)
    lead: ClassVar[tuple[int, ...]]
    kv_lead: ClassVar[tuple[int, ...]]
    many: ClassVar[tuple[int, ...]]
    kv_many: ClassVar[tuple[int, ...]]
    layouts: ClassVar[dict[str, View]]

    def cases(self) -> dict[str, Iterable[Any]]:
        """What to try for arguments of these names."""
        return super().cases() | {
            "dtype": [
                d for d in self.dtypes if not INTERPRETED or d in self.interpreted
            ],
            "causal": [False, True] if self.causal else [False],
            "head_dim": self.head_dims,
            "scale": self.scales,
            "layout": self.views(),
            "lengths": self.lengths,
        }

    # Helpers.

    @property
    def positive_scale(self) -> bool:
        """Does it take positive scales only, as kernels that count in base 2 do?"""
        return min(self.scales) > 0

    def views(self) -> dict[str, View]:
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
    ) -> QKV:
        """q, k and v of normal values."""
        return qkv(self.lead, self.kv_lead, seq_q, seq_k, head_dim, dtype, device)

    def example(self, device: str) -> Named:
        """q, k and v."""
        return dict(zip("qkv", self.inputs(3, 5, device), strict=True))

    def reference(
        self, *inputs: torch.Tensor, **asked: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(o, lse) in float64."""
        return reference(*inputs, **asked)

    def baseline(
        self, *inputs: torch.Tensor, **asked: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(o, lse) as PyTorch computes them unfused, in the dtype of q."""
        return baseline(*inputs, **asked)

    def run(self, *inputs: torch.Tensor, **options: Any) -> Named:
        """The outputs, laid out as promised."""
        if not options.get("causal", True):
            del options["causal"]  # some do not know the word
        found = super().run(*inputs, **options)
        q, o = inputs[0], found["o"]
        if self.layout_of_q:
            assert strides(o) == strides(torch.empty_like(q, device="meta"))
        else:
            assert o.is_contiguous()
        assert "lse" not in found or found["lse"].is_contiguous()
        return found

    # Refusals.

    def refusals(self) -> dict[str, Refusal]:
        """Of tensors that do not fit the kernel or each other, and of options."""
        first, *_, other = self.dtypes
        every = torch.float64, torch.int32, torch.float8_e4m3fn
        strange = [dtype for dtype in every if dtype not in self.dtypes]
        found = {
            **of_each("qkv", "one dimension more", lambda x: x[None], ".*; it must"),
            **of_each("qkv", "one dimension less", lambda x: x[0], ".*; it must"),
            **of_each("kv", "the device", lambda x: x.to("meta"), ".*meta.*; it must"),
            "the head_dim of k": Refusal(
                "k .*15.*; it must.*16", {"k": lambda x: x[..., :15]}
            ),
            "the seq of v": Refusal(
                "v .*4.*; it must.*5", {"v": lambda x: x[..., :4, :]}
            ),
            "the head_dim of v": Refusal(
                "v .*15.*; it must.*16", {"v": lambda x: x[..., :15]}
            ),
        }
        for dtype in strange:
            change = dict.fromkeys("qkv", lambda x, dtype=dtype: x.to(dtype))
            found[f"{name(dtype)}"] = Refusal(f"q is {dtype}.*; it must", change)
        for tensor in "kv":
            change = {x: lambda x: x.to(first) for x in "qkv"}
            change[tensor] = lambda x: x.to(other)
            said = f"{tensor} is {other}.*; it must.*{first}"
            found[f"the dtype of {tensor}"] = Refusal(said, change)
        for size in self.bad_head_dims:
            wrong = dict.fromkeys("qkv", lambda x, n=size: resized(x, -1, n))
            found[f"head_dim {size}"] = Refusal(f"q .*{size}.*; it must", wrong)
        if self.most_rows:
            rows = self.most_rows + 1
            for tensors in ("q", "kv"):
                long = dict.fromkeys(tensors, lambda x: resized(x, -2, rows))
                said = f"{tensors[0]} .*{rows}.*; it must.*{rows - 1}"
                found[f"the rows of {tensors}"] = Refusal(said, long)
        for option, values in self.refused.items():
            for bad in values:
                said = rf"{option} is '?{bad}'?; it must be"
                found[f"{option}={bad}"] = Refusal(said, options={option: bad})
        return found

    # Results.

    def test_every_length(
        self,
        lengths: tuple[int, int],
        causal: bool,
        device: str,
    ) -> None:
        q, k, v = (guarded(x) for x in self.inputs(*lengths, device))
        self.check(q, k, v, causal=causal)

    def test_no_two_strides_alike(self, device: str) -> None:
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
        self.check(guarded(q), guarded(k), guarded(v))

    def test_every_layout(self, layout: str, device: str) -> None:
        # Three layouts at once, so that no stride of one tensor fits another.
        views = list(self.views().values())
        first = list(self.views()).index(layout)
        inputs = qkv(self.many, self.kv_many, 5, 20, 16, torch.float32, device)
        q, k, v = (
            guarded(views[(first + step) % len(views)](x))
            for step, x in zip((0, 1, 3), inputs, strict=True)
        )
        before = [x.clone() for x in (q, k, v)]
        self.check(q, k, v)
        for argument, x, copy in zip("qkv", (q, k, v), before, strict=True):
            assert torch.equal(x, copy), f"{argument} was written to"

    def test_every_dtype(
        self,
        dtype: torch.dtype,
        causal: bool,
        device: str,
    ) -> None:
        inputs = self.inputs(19, 37, device, head_dim=24, dtype=dtype)
        q, k, v = (guarded(x) for x in inputs)
        self.check(q, k, v, causal=causal)

    def test_every_head_dim(self, head_dim: int, device: str) -> None:
        # Not float32: in so small a case the order of summation decides.
        dtype = self.dtypes[0]
        inputs = self.inputs(17, 20, device, head_dim=head_dim, dtype=dtype)
        q, k, v = (guarded(x) for x in inputs)
        self.check(q, k, v)

    def test_every_scale(self, scale: float, device: str) -> None:
        q, k, v = self.inputs(18, 40, device)
        self.check(q, k, v, scale=scale)

    @pytest.mark.parametrize("kind", STRUCTURED)
    def test_structured_inputs(self, kind: str, causal: bool, device: str) -> None:
        inputs = self.inputs(20, 37, device, dtype=self.dtypes[0])
        q, k, v = (STRUCTURED[kind](x) for x in inputs)
        self.check(q, k, v, causal=causal)

    @pytest.mark.parametrize("where", MINUS_INF)
    def test_scores_of_minus_inf(self, where: str, device: str) -> None:
        q, k, v = self.inputs(17, 41, device)
        q[..., 0] = 1
        k[..., MINUS_INF[where], 0] = -INF
        self.check(q, k, v)

    def test_nothing_but_scores_of_minus_inf(self, device: str) -> None:
        q, k, v = self.inputs(3, 41, device)
        found = self.run(q.abs() + 1, k - INF, v)
        assert all((x == BLIND[output]).all() for output, x in found.items())

    def test_nan(self, device: str) -> None:
        # Of q in one row, of k in all, of v in one column: no more, and no less.
        for argument in range(3):
            inputs = self.inputs(18, 20, device)
            inputs[argument][..., 17, 3] = NAN
            self.check(*inputs)

    def test_nan_everywhere(self, device: str) -> None:
        q, k, v = self.inputs(3, 20, device)
        self.check(q * NAN, k, v)

    def test_nan_that_a_row_does_not_see(self, causal: bool, device: str) -> None:
        q, k, v = self.inputs(20, 20, device)
        k[..., 10, 3] = NAN
        found = self.check(q, k, v, causal=causal)
        assert found["o"][..., :10, :].isnan().any() != causal

    @pytest.mark.parametrize(("seq_q", "seq_k"), [(0, 5), (5, 0), (0, 0)])
    def test_empty(
        self,
        seq_q: int,
        seq_k: int,
        dtype: torch.dtype,
        causal: bool,
        device: str,
    ) -> None:
        q, k, v = self.inputs(seq_q, seq_k, device, dtype=dtype)
        found = self.check(q, k, v, causal=causal)
        assert found["o"].shape == q.shape
        assert all((x == BLIND[output]).all() for output, x in found.items())

    def test_weights_sum_to_one(
        self, dtype: torch.dtype, causal: bool, device: str
    ) -> None:
        q, k, v = self.inputs(5, 200, device, dtype=dtype)
        o = self.run(q, k, torch.ones_like(v), causal=causal)["o"]
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
        v = v.to(dtype)
        found, moved = (self.run(q, x, v, scale=0.5) for x in (k, shifted))
        rounding = 4 * torch.finfo(torch.float32).eps * abs(shift)
        torch.testing.assert_close(
            moved["o"], found["o"], rtol=torch.finfo(dtype).eps, atol=4 * rounding
        )
        if "lse" in found:
            expected = found["lse"] + shift
            torch.testing.assert_close(moved["lse"], expected, rtol=0, atol=rounding)

    def test_large_scores(self, dtype: torch.dtype, causal: bool, device: str) -> None:
        # Of magnitude 1e4, and within float16, whose largest number is 65504. What is
        # compared is not recorded: it says how coarse such scores are.
        q, k, v = self.inputs(18, 50, device, head_dim=32, dtype=dtype)
        inputs = q * 50, k * 40, v
        found = self.check(
            *inputs, judge=accuracy.compare_all, causal=causal, scale=1.0
        )
        assert found["o"].isfinite().all()

    def test_huge_scores(self, dtype: torch.dtype, causal: bool, device: str) -> None:
        # All alike, so each key has the same weight. Scores below 2^23 or 2^35, which
        # float32 holds in steps of a half or of 2048: what is subtracted must be
        # rounded as what it is subtracted from.
        q, k, v = self.inputs(100, 100, device, head_dim=80, dtype=dtype)
        q, k = (x.fill_(900.0 if self.positive_scale else 5e4) for x in (q, k))
        found = self.run(q, k, v.fill_(1), causal=causal)
        # In base 2 the weights are not 1, and summed with a rounding for each.
        roundings = 16 if self.positive_scale else 2
        assert ((found["o"] - 1).abs() <= roundings * torch.finfo(dtype).eps).all()
        if "lse" in found:
            _, expected = self.reference(q, k, v, causal=causal)
            lse = found["lse"].double()
            torch.testing.assert_close(lse, expected, rtol=1e-5, atol=0)

    def test_every_block_size(self, causal: bool, device: str) -> None:
        if "block_m" in self.blocks[0]:
            orders = {
                blocks["block_m"] < blocks["block_n"]
                for blocks in self.blocks
                if blocks
            }
            assert orders == {False, True}, "block_m is never, or always, the smaller"
        q, k, v = (guarded(x) for x in self.inputs(50, 70, device))
        results = [
            self.check(q, k, v, causal=causal, blocks=blocks)["o"]
            for blocks in self.blocks
        ]
        for o in results[1:]:
            torch.testing.assert_close(o, results[0], rtol=1e-5, atol=1e-6)

    @pytest.mark.large
    def test_offsets_beyond_31_bits(self, device: str) -> None:
        shape = (*(3,) * (len(self.lead) + 1), 16 if self.aligned else 3)
        for axis in range(len(shape) - self.aligned):
            q, k, v = (
                far_apart(shape, axis, torch.float16, device, seed=seed)
                for seed in range(3)
            )
            self.check(q, k, v)

    # FlashAttention's grid: each head_dim with four of the combinations of dtype and
    # causal, and each combination with every length.
    @pytest.mark.gpu
    @pytest.mark.parametrize("group", GRID, ids=str)
    def test_grid(
        self,
        group: tuple[tuple[int, int], ...],
        head_dim: int,
        device: str,
    ) -> None:
        pick = self.head_dims.index(head_dim) + GRID.index(group)
        dtype = self.dtypes[pick % len(self.dtypes)]
        causal = self.causal and pick % 2 == 0
        for lengths in group:
            q, k, v = self.inputs(*lengths, device, head_dim=head_dim, dtype=dtype)
            self.check(q, k, v, causal=causal, blocks={})

    # The second half of a kernel's memory: row 2^25 of 64 columns is element 2^31.
    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements_in_q(self, device: str) -> None:
        rows, ones = 2**25 + 5, (1,) * len(self.lead)
        q, k, v = qkv(ones, ones, 1, 17, 64, torch.bfloat16, device)
        q = torch.empty((*ones, rows, 64), dtype=q.dtype, device=device).normal_()
        found = self.run(q, k, v, blocks={})
        for some in (slice(3), slice(rows // 2 - 1, rows // 2 + 1), slice(-3, None)):
            part = q[..., some, :]
            self.compare(
                {
                    x: y[..., some] if x == "lse" else y[..., some, :]
                    for x, y in found.items()
                },
                self.reference(part, k, v),
                self.baseline(part, k, v),
            )

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements_in_k_and_v(self, device: str) -> None:
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
        )


class SingleHeadTests(Attention):
    """What holds of every kernel on q [seq_q, head_dim], k and v [seq_k, head_dim]."""

    causal = False
    lead = kv_lead = many = kv_many = ()
    layouts = LAYOUTS


class AttentionTests(Attention):
    """What holds of every kernel on q, k and v of [batch, heads, seq, head_dim]."""

    lead, kv_lead = (1, 2), (1, 1)
    many, kv_many = (2, 4), (2, 2)
    layout_of_q = True
    layouts = HEAD_LAYOUTS

    def example(self, device: str) -> Named:
        """q, k and v."""
        inputs = qkv((2, 8), (2, 2), 3, 5, 16, torch.float32, device)
        return dict(zip("qkv", inputs, strict=True))

    def refusals(self) -> dict[str, Refusal]:
        """Also of batches and heads that do not fit."""
        found = super().refusals()
        one = dict.fromkeys("kv", lambda x: x[:1])
        found["the batch of k"] = Refusal("k .*1.*; it must.*2", one)
        for heads in (3, 16, 0):
            some = dict.fromkeys("kv", lambda x, n=heads: resized(x, 1, n))
            found[f"{heads} heads of k"] = Refusal(f"k .*{heads}.*; it must.*8", some)
        for axis, x in (("batch", lambda x: x[:1]), ("heads", lambda x: x[:, :1])):
            said = "v .*; it must.*2, 2, 5"
            found[f"the {axis} of v"] = Refusal(said, {"v": x})
        return found

    @pytest.mark.parametrize("kv_heads", [8, 4, 2, 1])
    def test_heads_that_share_keys(
        self, kv_heads: int, causal: bool, device: str
    ) -> None:
        inputs = qkv((2, 8), (2, kv_heads), 5, 20, 16, torch.float32, device)
        self.check(*inputs, causal=causal)

    def test_one_tensor_for_all_three(self, causal: bool, device: str) -> None:
        packed = guarded(normal((2, 20, 3, 2, 16), torch.float32, device))
        q, k, v = packed.transpose(1, 3).unbind(2)
        self.check(q, k, v, causal=causal)

    @pytest.mark.parametrize("lead", [(0, 2), (2, 0), (0, 0)])
    def test_no_batch_or_no_heads(self, lead: tuple[int, int], device: str) -> None:
        inputs = qkv(lead, lead, 5, 6, 16, torch.float32, device)
        o, lse = self.check(*inputs).values()
        assert (o.shape, lse.shape) == ((*lead, 5, 16), (*lead, 5))

    @pytest.mark.parametrize(("seq_q", "seq_k"), [(40, 9), (40, 24), (60, 1), (17, 0)])
    def test_rows_that_see_nothing(
        self, seq_q: int, seq_k: int, causal: bool, dtype: torch.dtype, device: str
    ) -> None:
        q, k, v = self.inputs(seq_q, seq_k, device, dtype=dtype)
        o, lse = self.run(q, k, v, causal=causal).values()
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
        self.check(q, k, v, causal=self.causal and bottom_right)

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
    ) -> None:
        *lead, seq, head_dim = shape
        q, k, v = qkv(lead, lead, seq, seq, head_dim, half, device)
        expected = self.reference(q, k, v, causal=causal)
        own = self.baseline(q, k, v, causal=causal)
        pick = 4 * TABLE.index(shape) + 2 * HALVES.index(half) + causal
        for blocks in ({}, self.blocks[pick % len(self.blocks)]):
            actual = self.run(q, k, v, causal=causal, blocks=blocks)
            self.compare(actual, expected, own)

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements_in_heads(
        self, causal: bool, device: str
    ) -> None:
        # Views of [batch, seq, heads, head_dim]; the last batches lie beyond 2^31.
        batch, heads, seq, head_dim = 2021, 32, 521, 64
        q, k, v = (
            torch.empty((batch, seq, heads, head_dim), dtype=half, device=device)
            .normal_()
            .transpose(1, 2)
            for half in 3 * (torch.bfloat16,)
        )
        o, lse = self.run(q, k, v, causal=causal, blocks={}).values()
        assert o.isfinite().all()
        for some in (slice(1), slice(batch // 2, batch // 2 + 1), slice(-1, None)):
            part = q[some], k[some], v[some]
            self.compare(
                (o[some], lse[some]),
                self.reference(*part, causal=causal),
                self.baseline(*part, causal=causal),
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
    ) -> None:
        q, k, v = (guarded(x) for x in self.inputs(*sizes, device))
        for window in (1, 5, 16, 17, 33, 1000):
            self.check(q, k, v, causal=True, window=window)
