"""What every backward kernel is tried on: a suite that its test module derives from.

class TestTwoKernels(BackwardTests):
    function = staticmethod(two_kernels.attention_backward)
    blocks = ({"block_m": 16, "block_n": 16}, {"block_m": 16, "block_n": 32}, {})
    causal = False
"""

from collections.abc import Iterable
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness.inputs import (
    GRID,
    HALVES,
    HEAD_DIMS,
    HEAD_LAYOUTS,
    INF,
    INTERPRETED,
    NAN,
    STRUCTURED,
    View,
    far_apart,
    name,
    normal,
    qkv,
)
from tests.harness.poison import guarded, under_memcheck
from tests.harness.suite import Named, Refusal, Suite, of_each
from tests.snippets.backward.reference import Gradients, attention, gradients

# (seq_q, seq_k): a tile of 16, its neighbours, more than one, and much less.
LENGTHS = (
    (1, 2),
    (3, 5),
    (15, 15),
    (16, 16),
    (17, 17),
    (1, 40),
    (40, 2),
    (15, 33),
    (33, 15),
    (50, 20),
    (20, 50),
)
# Layouts with the values of x itself: o and lse must be those of q, k and v.
SAME_VALUES = {
    layout: view
    for layout, view in HEAD_LAYOUTS.items()
    if not layout.startswith("expanded")
}
# How often the bits of the results are compared. Memcheck sees nothing new after a few.
RUNS = 100 if torch.cuda.is_available() and not under_memcheck() else 3


def strides(x: torch.Tensor) -> list[int]:
    """Of the axes on which it has several elements."""
    pairs = zip(x.shape, x.stride(), strict=True)
    return [stride for size, stride in pairs if size > 1]


def resized(x: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """The first along an axis, as often as said."""
    shape = list(x.shape)
    shape[axis] = size
    return x.narrow(axis, 0, 1).expand(shape)


class BackwardTests(Suite):
    """What holds of every kernel that computes dq, dk and dv.

    Inputs are (q, k, v, do), or (q, k, v, do, dlse) where lse has a gradient, too: o
    and lse are made of them, as an exact forward pass would return them.

    Attributes:
        function: (q, k, v, o, lse, do, *, dlse, **options) -> (dq, dk, dv).
        refused: values of options that are refused.
        causal: does the kernel take causal=True?
        grouped: may there be fewer heads of keys than of queries?
        deterministic: are the bits of the results the same in every run?
        copies: does it copy what it cannot take, and return contiguous gradients then?
        dtypes: the dtypes that it takes.
        interpreted: those of them that the interpreter computes rightly.
        head_dims: the sizes of head_dim to try.
        bad_head_dims: some that it refuses.
        most_heads: how many a batch may have in all; None if that is not refused.
        scales: to try; those of a kernel that takes positive ones only are positive.
        layouts: views that q, k, v and do are tried in.
    """

    outputs = ("dq", "dk", "dv")
    asked = ("causal", "scale", "window")
    refused: ClassVar[dict[str, tuple[Any, ...]]] = {}
    causal: ClassVar[bool] = True
    grouped: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True
    copies: ClassVar[bool] = False
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (*HALVES, torch.float32)
    interpreted: ClassVar[tuple[torch.dtype, ...]] = (torch.float16, torch.float32)
    head_dims: ClassVar[tuple[int, ...]] = HEAD_DIMS
    bad_head_dims: ClassVar[tuple[int, ...]] = (0, 257)
    most_heads: ClassVar[int | None] = 65535
    scales: ClassVar[tuple[float, ...]] = (0.0, 0.3, -0.3)
    layouts: ClassVar[dict[str, View]] = HEAD_LAYOUTS

    def cases(self) -> dict[str, Iterable[Any]]:
        """What to try for arguments of these names."""
        return super().cases() | {
            "dtype": [
                d for d in self.dtypes if not INTERPRETED or d in self.interpreted
            ],
            "causal": [False, True] if self.causal else [False],
            "head_dim": self.head_dims,
            "scale": self.scales,
            "layout": self.layouts,
            "kv_heads": [4, 2, 1] if self.grouped else [4],
        }

    # Helpers.

    def inputs(
        self,
        seq_q: int,
        seq_k: int,
        device: str,
        *,
        lead: tuple[int, int] = (1, 2),
        kv_lead: tuple[int, int] | None = None,
        head_dim: int = 16,
        dtype: torch.dtype | None = None,
        seed: int = 0,
    ) -> list[torch.Tensor]:
        """q, k, v and do of normal values; as many heads share a key as may.

        In half precision: lse is rounded, which the rule for float32 hardly allows.
        """
        shared = (lead[0], 1) if self.grouped and lead[1] == 2 else lead
        dtype = dtype or self.dtypes[0]
        sizes = seq_q, seq_k, head_dim, dtype, device
        q, k, v = qkv(lead, kv_lead or shared, *sizes, seed=seed)
        return [q, k, v, normal(q.shape, dtype, device, seed=99 + seed)]

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **asked: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(o, lse) as the best of all forward passes would return them."""
        o, lse = attention(q.double(), k.double(), v.double(), **asked)
        return o.to(q.dtype), lse.float()

    def example(self, device: str) -> Named:
        """q, k, v, o, lse and do."""
        lead, kv_lead = (2, 4), (2, 2) if self.grouped else (2, 4)
        q, k, v, do = self.inputs(3, 5, device, lead=lead, kv_lead=kv_lead)
        o, lse = self.forward(q, k, v)
        return {"q": q, "k": k, "v": v, "o": o, "lse": lse, "do": do}

    def reference(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        do: torch.Tensor,
        dlse: torch.Tensor | None = None,
        **asked: Any,
    ) -> Gradients:
        """(dq, dk, dv) in float64."""
        exact = (x.double() for x in (q, k, v, do))
        return gradients(lambda *x: attention(*x, **asked), *exact, dlse)

    def baseline(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        do: torch.Tensor,
        dlse: torch.Tensor | None = None,
        **asked: Any,
    ) -> Gradients:
        """(dq, dk, dv) as PyTorch computes them unfused, in the dtype of q."""
        return gradients(lambda *x: attention(*x, **asked), q, k, v, do, dlse)

    def run(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        do: torch.Tensor,
        dlse: torch.Tensor | None = None,
        *,
        outputs: tuple[torch.Tensor, torch.Tensor] | None = None,
        **options: Any,
    ) -> Named:
        """dq, dk and dv, laid out as q, k and v are."""
        if not options.get("causal", True):
            del options["causal"]  # some do not know the word
        asked = {word: options[word] for word in self.asked if word in options}
        o, lse = outputs or self.forward(q, k, v, **asked)
        if dlse is not None:
            options["dlse"] = dlse
        found = super().run(q, k, v, guarded(o), guarded(lse), do, **options)
        for x, dx in zip((q, k, v), found.values(), strict=True):
            as_x = strides(dx) == strides(torch.empty_like(x, device="meta"))
            assert as_x or (self.copies and dx.is_contiguous())
        return found

    # Refusals.

    def refusals(self) -> dict[str, Refusal]:
        """Of tensors that do not fit the kernel or each other, and of options."""
        first, *_, other = self.dtypes
        tensors = "q", "k", "v", "o", "do"
        found = {
            **of_each(tensors, "one dimension more", lambda x: x[None], ".*; it must"),
            **of_each(tensors, "one dimension less", lambda x: x[0], ".*; it must"),
            **of_each(
                (*tensors[1:], "lse"),
                "the device",
                lambda x: x.to("meta"),
                ".*meta.*; it must",
            ),
            **of_each(("k", "v", "o", "do"), "the batch", lambda x: x[:1], ".*it must"),
            **of_each(("o", "do", "lse"), "the heads", lambda x: x[:, :3], ".*it must"),
            **of_each(("o", "do", "lse"), "seq_q", lambda x: x[:, :, :2], ".*it must"),
            "the seq of v": Refusal("v .*; it must", {"v": lambda x: x[:, :, :4]}),
            "the heads of v": Refusal("v .*; it must", {"v": lambda x: x[:, :1]}),
            "the dtype of lse": Refusal(
                "lse is torch.float64.*; it must.*float32", {"lse": torch.Tensor.double}
            ),
            "the dtype of do": Refusal(
                f"do is {other}.*; it must", {"do": lambda x: x.to(other)}
            ),
        }
        for tensor in ("k", "v", "o", "do"):
            wrong = {tensor: lambda x: x[..., :15]}
            found[f"head_dim of {tensor}"] = Refusal(f"{tensor} .*; it must", wrong)
        for dtype in (torch.float64, torch.int32):
            change = dict.fromkeys(tensors, lambda x, dtype=dtype: x.to(dtype))
            found[name(dtype)] = Refusal(f"q is {dtype}.*; it must", change)
        for tensor in ("k", "v"):
            change = {x: lambda x: x.to(first) for x in tensors}
            change[tensor] = lambda x: x.to(other)
            said = f"{tensor} is {other}.*; it must.*{first}"
            found[f"the dtype of {tensor}"] = Refusal(said, change)
        for size in self.bad_head_dims:
            wrong = dict.fromkeys(tensors, lambda x, n=size: resized(x, -1, n))
            found[f"head_dim {size}"] = Refusal(f"q .*{size}.*; it must", wrong)
        if self.most_heads:
            many = {"q": lambda x: resized(x, 1, self.most_heads + 1)}
            said = f"q .*{self.most_heads + 1}.*; it must.*{self.most_heads}"
            found["too many heads of q"] = Refusal(said, many)
        for heads in (3, 16, 0):
            some = dict.fromkeys("kv", lambda x, n=heads: resized(x, 1, n))
            found[f"{heads} heads of k"] = Refusal(f"k .*{heads}.*; it must", some)
        for option, values in self.refused.items():
            for bad in values:
                said = rf"{option} is '?{bad}'?; it must be"
                found[f"{option}={bad}"] = Refusal(said, options={option: bad})
        return found

    def test_refuses_a_dlse_of_another_shape(self, device: str) -> None:
        inputs = self.example(device)
        with pytest.raises(ValueError, match=r"^dlse .*; it must"):
            self.function(**inputs, dlse=inputs["lse"][..., :2], **self.blocks[0])

    # Results.

    @pytest.mark.parametrize("lengths", LENGTHS, ids=str)
    def test_every_length(
        self, lengths: tuple[int, int], causal: bool, device: str
    ) -> None:
        inputs = [guarded(x) for x in self.inputs(*lengths, device)]
        self.check(*inputs, causal=causal)

    def test_one_key(self, causal: bool, device: str) -> None:
        # Its weight is 1 whatever the score: dq and dk are 0 but for rounding.
        q, k, v, do = self.inputs(3, 1, device)
        found = self.run(q, k, v, do, causal=causal, scale=1.0)
        seen = do[..., -1:, :] if causal else do
        of_a_group = seen.unflatten(1, (k.shape[1], -1)).sum(dim=(2, 3))
        torch.testing.assert_close(found["dv"][..., 0, :], of_a_group)
        rounding = 32 * torch.finfo(torch.float32).eps
        for x in ("dq", "dk"):
            assert found[x].abs().max() <= rounding * max(q.abs().max(), k.abs().max())

    def test_no_two_strides_alike(self, device: str) -> None:
        # q the wrong way round, so that torch.empty_like(q) is too; the others with
        # gaps, each with larger ones than the one before.
        q, k, v, do = self.inputs(17, 20, device, lead=(3, 4), head_dim=8)
        o, lse = self.forward(q, k, v)
        q = q.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
        spread = []
        for gap, x in enumerate((k, v, o, do), start=2):
            for axis in range(4):
                x = x.repeat_interleave(axis + gap, dim=axis)
            spread.append(x[tuple(slice(None, None, axis + gap) for axis in range(4))])
        k, v, o, do = spread
        apart = [x.stride(axis) for x in (q, k, v, o, do) for axis in range(4)]
        assert len(set(apart)) == len(apart)
        inputs = [guarded(x) for x in (q, k, v, do)]
        self.check_with((o, lse), *inputs)

    def check_with(
        self, outputs: tuple[torch.Tensor, torch.Tensor], *inputs: torch.Tensor
    ) -> None:
        """`check` with these o and lse."""
        found = self.run(*inputs, outputs=outputs)
        self.compare(found, self.reference(*inputs), self.baseline(*inputs))

    def test_every_layout(self, layout: str, device: str) -> None:
        # Several layouts at once, so that no stride of one tensor fits another.
        views, same = list(self.layouts.values()), list(SAME_VALUES.values())
        first = list(self.layouts).index(layout)
        whole = self.inputs(5, 20, device, lead=(2, 4), kv_lead=self.some_heads)
        q, k, v, do = (
            guarded(views[(first + step) % len(views)](x))
            for step, x in zip((0, 1, 3, 5), whole, strict=True)
        )
        o, lse = self.forward(q, k, v)
        before = [x.clone() for x in (q, k, v, do)]
        self.check_with((same[(first + 2) % len(same)](o), lse), q, k, v, do)
        assert all(map(torch.equal, (q, k, v, do), before)), "an input was written to"

    @property
    def some_heads(self) -> tuple[int, int]:
        """Batch and heads of keys, where there are 4 heads of queries."""
        return (2, 2) if self.grouped else (2, 4)

    def test_a_gradient_that_is_one_number(self, causal: bool, device: str) -> None:
        # What o.sum().backward() passes on: one element, and strides of 0.
        q, k, v, do = self.inputs(18, 20, device)
        do = torch.ones_like(do[:1, :1, :1, :1]).expand(do.shape)
        self.check(q, k, v, do, causal=causal)

    def test_lse_has_a_gradient_too(self, causal: bool, device: str) -> None:
        inputs = self.inputs(18, 37, device)
        dlse = normal(inputs[0].shape[:3], torch.float32, device, seed=7)
        self.check(*inputs, guarded(dlse), causal=causal)
        spread = dlse.mT.contiguous().mT
        self.check(*inputs, spread, causal=causal)

    def test_lse_in_any_layout(self, device: str) -> None:
        inputs = self.inputs(18, 20, device, lead=(2, 4), kv_lead=self.some_heads)
        o, lse = self.forward(*inputs[:3])
        self.check_with((o, lse.transpose(0, 2).contiguous().transpose(0, 2)), *inputs)

    def test_every_dtype(self, dtype: torch.dtype, causal: bool, device: str) -> None:
        inputs = self.inputs(19, 37, device, head_dim=24, dtype=dtype)
        self.check(*(guarded(x) for x in inputs), causal=causal)

    def test_every_head_dim(self, head_dim: int, device: str) -> None:
        inputs = self.inputs(17, 20, device, head_dim=head_dim)
        self.check(*(guarded(x) for x in inputs))

    def test_every_scale(self, scale: float, device: str) -> None:
        self.check(*self.inputs(18, 40, device), scale=scale)

    @pytest.mark.parametrize("kind", STRUCTURED)
    def test_structured_inputs(self, kind: str, causal: bool, device: str) -> None:
        q, k, v, do = self.inputs(20, 37, device)
        q, k, v = (STRUCTURED[kind](x) for x in (q, k, v))
        self.check(q, k, v, do, causal=causal)
        self.check(q, k, v, STRUCTURED[kind](do), causal=causal)

    def test_heads_that_share_keys(
        self, kv_heads: int, causal: bool, device: str
    ) -> None:
        lead, kv_lead = (2, 4), (2, kv_heads)
        inputs = self.inputs(5, 20, device, lead=lead, kv_lead=kv_lead)
        self.check(*inputs, causal=causal)

    def test_rows_that_see_nothing(self, causal: bool, device: str) -> None:
        # Without a mask only where there are no keys.
        for seq_q, seq_k in ((40, 9), (40, 24), (17, 2)) if causal else ((17, 0),):
            inputs = self.inputs(seq_q, seq_k, device)
            found = self.check(*inputs, causal=causal)
            assert (found["dq"][:, :, : seq_q - seq_k] == 0).all()

    def test_a_row_whose_lse_is_minus_inf_adds_nothing(self, device: str) -> None:
        q, k, v, do = self.inputs(18, 20, device)
        o, lse = self.forward(q, k, v)
        lse[..., 3] = -INF
        found = self.run(q, k, v, do, outputs=(o, lse))
        assert (found["dq"][..., 3, :] == 0).all()
        others = [i for i in range(18) if i != 3]
        q, do = q[:, :, others], do[:, :, others]
        rest = dict(zip(self.outputs, self.reference(q, k, v, do), strict=True))
        found["dq"] = found["dq"][:, :, others]
        own = dict(zip(self.outputs, self.baseline(q, k, v, do), strict=True))
        self.compare(found, rest, own)

    @pytest.mark.parametrize("shift", [-100, 10000])
    def test_a_shift_of_the_scores_changes_nothing(
        self, shift: int, dtype: torch.dtype, causal: bool, device: str
    ) -> None:
        # The last component of q and k adds `shift` to every score. All are integers
        # halved by the scale: no score is rounded, but lse is.
        q, k, v, do = self.inputs(18, 50, device, dtype=dtype)
        q, k = ((x * 2).round().clamp(-6, 6) for x in (q, k))
        q[..., -1], k[..., -1] = 2, 0
        shifted = k.clone()
        shifted[..., -1] = shift
        found, moved = (
            self.run(q, x, v, do, scale=0.5, causal=causal) for x in (k, shifted)
        )
        rounding = 2 * torch.finfo(torch.float32).eps * abs(shift)
        close = rounding + 2 * torch.finfo(dtype).eps
        for output in self.outputs:
            old, new = (x[output].double()[..., :-1] for x in (found, moved))
            assert (new - old).abs().max() <= close * old.abs().max()

    def test_large_scores(self, dtype: torch.dtype, causal: bool, device: str) -> None:
        # Of magnitude 1e4, so coarse that one key has all the weight.
        q, k, v, do = self.inputs(18, 50, device, head_dim=32, dtype=dtype)
        found = self.run(q * 50, k * 40, v, do, causal=causal, scale=1.0)
        assert all(dx.isfinite().all() for dx in found.values())
        *_, dv = self.reference(q * 50, k * 40, v, do, causal=causal, scale=1.0)
        assert (found["dv"] - dv).abs().max() <= 0.01 * dv.abs().max()

    def test_scores_far_below_zero(self, causal: bool, device: str) -> None:
        # exp(0 - lse) overflows where a key that does not exist has a score of 0.
        q, k, v, do = self.inputs(18, 20, device)
        self.check(q.abs() + 5, -k.abs() - 5, v, do, causal=causal, scale=1.0)

    def test_nan(self, device: str) -> None:
        # In one row of q or do, of k or v: no more rows of the results, and no less.
        for argument in range(4):
            inputs = self.inputs(18, 20, device)
            inputs[argument][..., 17, 3] = NAN
            self.check(*inputs)

    @pytest.mark.parametrize(("seq_q", "seq_k"), [(0, 5), (5, 0), (0, 0)])
    def test_empty(self, seq_q: int, seq_k: int, causal: bool, device: str) -> None:
        found = self.check(*self.inputs(seq_q, seq_k, device), causal=causal)
        assert all((dx == 0).all() for dx in found.values())

    @pytest.mark.parametrize("lead", [(0, 2), (2, 0)])
    def test_no_batch_or_no_heads(self, lead: tuple[int, int], device: str) -> None:
        inputs = self.inputs(5, 6, device, lead=lead, kv_lead=lead)
        found = self.check(*inputs)
        assert found["dq"].shape == (*lead, 5, 16)

    def test_every_block_size(self, causal: bool, device: str) -> None:
        exact = torch.float32 in self.dtypes
        dtype = torch.float32 if exact else torch.float16
        inputs = [guarded(x) for x in self.inputs(50, 70, device, dtype=dtype)]
        results = [
            self.run(*inputs, causal=causal, blocks=blocks) for blocks in self.blocks
        ]
        for found in results[1:]:
            for dx, first in zip(found.values(), results[0].values(), strict=True):
                close = 1e-5 if exact else 4e-3
                torch.testing.assert_close(dx, first, rtol=close, atol=close)
        self.compare(
            {x: dx.half() for x, dx in found.items()},
            self.reference(*inputs, causal=causal),
            self.baseline(*(x.half() for x in inputs), causal=causal),
        )

    def test_the_same_bits_in_every_run(self, causal: bool, device: str) -> None:
        if not self.deterministic:
            pytest.skip("the order of its additions is left to the GPU")
        inputs = self.inputs(30, 40, device, lead=(2, 4), kv_lead=self.some_heads)
        first = self.run(*inputs, causal=causal)
        for _ in range(RUNS):
            again = self.run(*inputs, causal=causal)
            assert all(torch.equal(first[x], again[x]) for x in self.outputs)

    def test_small_terms_add_up(self, device: str) -> None:
        # A sum begins with 1. What a tile adds to it is less than half a unit in the
        # last place of float16, and all tiles together are more than 6 units.
        many, few, small = 256, 16, 1.75 * 2**-16

        def ones(seq: int) -> torch.Tensor:
            x = torch.full((1, 1, seq, 16), small, device=device)
            x[:, :, 0] = 1
            return x.half()

        def signs(seq: int) -> torch.Tensor:
            x = torch.ones(1, 1, seq, 16, device=device).half()
            x[:, :, 1::2] = -1
            return x

        nothing, even = torch.zeros_like(ones(few)), signs(many).abs() / 16
        for q, k, v, do in (
            (torch.zeros_like(even), nothing, signs(few), ones(many)),  # for dv
            (ones(many), nothing, signs(few), even),  # for dk
            (nothing, ones(many) * signs(many), signs(many), even[:, :, :few]),
        ):
            self.check(q, k, v, do)

    # Few sizes of head_dim: a GPU compiles the kernel for each.
    @settings(
        suppress_health_check=[HealthCheck.differing_executors],
        max_examples=5 if torch.cuda.is_available() else 10,
    )
    @given(
        kv_heads=st.integers(1, 2),
        group=st.integers(1, 3),
        seq_q=st.integers(1, 40),
        seq_k=st.sampled_from([0, *range(2, 41)]),  # one key: a test of its own
        bottom_right=st.booleans(),
        where=st.lists(st.integers(0, len(HEAD_LAYOUTS) - 1), min_size=4, max_size=4),
        seed=st.integers(0, 2**20),
    )
    def test_any_input(
        self,
        device: str,
        kv_heads: int,
        group: int,
        seq_q: int,
        seq_k: int,
        bottom_right: bool,
        where: list[int],
        seed: int,
    ) -> None:
        heads = kv_heads * (group if self.grouped else 1)
        inputs = self.inputs(
            seq_q,
            seq_k,
            device,
            lead=(1, heads),
            kv_lead=(1, kv_heads),
            seed=seed,
        )
        views = list(self.layouts.values())
        inputs = [
            views[i % len(views)](x) if x.numel() else x
            for i, x in zip(where, inputs, strict=True)
        ]
        self.check(*inputs, causal=self.causal and bottom_right)

    @pytest.mark.large
    def test_offsets_beyond_31_bits(self, device: str) -> None:
        # Inside a head each tensor alone: the largest decides for all.
        shape, each = (3, 3, 3, 8 if self.copies else 3), range(5)
        alone = (2, [0]), (3, [1]), (2, [2]), (3, [3]), (2, [4])
        for axis, far in ((0, each), (1, each), *alone):
            q, k, v, do = (
                normal(shape, torch.float16, device, seed=seed) for seed in range(4)
            )
            o, lse = self.forward(q, k, v)
            q, k, v, o, do = (
                far_apart(shape, axis, x.dtype, device).copy_(x) if i in far else x
                for i, x in enumerate((q, k, v, o, do))
            )
            found = self.function(q, k, v, o, lse, do, **self.blocks[0])
            inputs = q, k, v, do
            self.compare(found, self.reference(*inputs), self.baseline(*inputs))

    # FlashAttention's grid: each length with every other head_dim, because a GPU
    # compiles several kernels for each.
    @pytest.mark.gpu
    @pytest.mark.parametrize("half", [0, 1])
    def test_grid(self, half: int, head_dim: int, device: str) -> None:
        pick = self.head_dims.index(head_dim)
        # Exact products of large tiles are unrolled: they compile for long.
        dtypes = self.dtypes if head_dim <= 64 else HALVES
        dtype = dtypes[pick % len(dtypes)]
        causal = self.causal and pick % 4 < 2
        for lengths in GRID[pick % 2 :: 2][half]:
            inputs = self.inputs(*lengths, device, head_dim=head_dim, dtype=dtype)
            self.check(*inputs, causal=causal, blocks={})

    @pytest.mark.gpu
    @pytest.mark.large
    def test_more_than_31_bits_of_elements(self, causal: bool, device: str) -> None:
        # Views of [batch, seq, heads, head_dim]; the last batches lie beyond 2^31.
        batch, heads, seq, head_dim = 1021, 32, 1042, 64
        q, k, v, o, do = (
            torch.empty((batch, seq, heads, head_dim), dtype=half, device=device)
            .normal_()
            .transpose(1, 2)
            for half in 5 * (torch.bfloat16,)
        )
        lse = torch.empty((batch, heads, seq), device=device)
        some = [0, batch // 2, batch - 1]
        for i in some:
            o[i : i + 1], lse[i : i + 1] = self.forward(
                *(x[i : i + 1] for x in (q, k, v)), causal=causal
            )
        options = {"causal": True} if causal else {}
        found = self.named(self.function(q, k, v, o, lse, do, **options))
        for i in some:
            part = [x[i : i + 1] for x in (q, k, v, do)]
            self.compare(
                {x: dx[i : i + 1] for x, dx in found.items()},
                self.named(self.reference(*part, causal=causal)),
                self.named(self.baseline(*part, causal=causal)),
            )
