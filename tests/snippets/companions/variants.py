"""What every variant of attention is tried on, forward and backward at once.

    class TestSoftcap(VariantTests):
        function = staticmethod(softcap.attention)
        operator = "softcap_attention"
        takes = {"cap": 2.0}

A module says what its variant does to scores, mask and values in float64 or any other
dtype; the suite holds o, lse and all gradients against that formula.
"""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.library import opcheck

from tests.harness.inputs import (
    GRID,
    HALVES,
    HEAD_LAYOUTS,
    INF,
    INTERPRETED,
    NAN,
    STRUCTURED,
    View,
    far_apart,
    normal,
    qkv,
)
from tests.harness.launches import check_where_it_launches
from tests.harness.poison import Poison, guarded
from tests.harness.suite import Named, Refusal, Suite, of_each
from tests.snippets.attention.reference import for_heads_of, visible
from tests.snippets.backward.suite import resized, strides

Terms = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # scores, which are seen, v

# (seq_q, seq_k): tiles of 16, their neighbours, more than one, and much less.
LENGTHS = (
    (1, 2),
    (3, 5),
    (16, 16),
    (17, 17),
    (1, 40),
    (40, 2),
    (15, 33),
    (33, 15),
    (50, 20),
    (20, 50),
)
# Of the layouts, those that differ most.
LAYOUTS = {
    layout: HEAD_LAYOUTS[layout]
    for layout in ("transposed", "seq before heads", "expanded heads", "sliced columns")
}
BACKEND = "inductor" if torch.cuda.is_available() else "aot_eager"


class VariantTests(Suite):
    """What holds of every variant of snippets/backward/autograd.py.

    Inputs are (q, k, v, do, dlse). What else a variant takes, such as slopes, is an
    option `extras`, which its formula takes as well.

    Attributes:
        function: (q, k, v, *, causal, scale, block, **extras) -> (o, lse).
        operator: the name of its operator of the forward pass.
        trained: the extras that have a gradient; their names in `outputs` begin with d.
        causal: what to try.
        given: the name of a tensor among the extras, and how it may be wrong.
    """

    outputs: ClassVar[tuple[str, ...]] = ("o", "lse", "dq", "dk", "dv")
    asked = ("causal", "scale", "extras")
    blocks = ({"block": 16}, {"block": 32}, {})
    operator: ClassVar[str]
    trained: ClassVar[tuple[str, ...]] = ()
    causal: ClassVar[tuple[bool, ...]] = (False, True)
    given: ClassVar[tuple[str, dict[str, View]]] = ("", {})
    layouts: ClassVar[dict[str, View]] = LAYOUTS if INTERPRETED else HEAD_LAYOUTS

    def extras(self, q: torch.Tensor, k: torch.Tensor) -> dict[str, Any]:
        """What the variant takes beside q, k and v, in an ordinary call."""
        return {}

    def terms(
        self, s: torch.Tensor, seen: torch.Tensor, v: torch.Tensor, **extras: Any
    ) -> Terms:
        """What the variant makes of the scores, the mask and the values."""
        return s, seen, v

    def values(self, head_dim: int) -> int:
        """How wide the values are beside such keys."""
        return head_dim

    def operands(self, extras: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        """The operator's arguments after q, k and v: tensors, and those between the
        scale and the block."""
        tensors = [x for x in extras.values() if isinstance(x, torch.Tensor)]
        return tensors, [x for x in extras.values() if not isinstance(x, torch.Tensor)]

    def cases(self) -> dict[str, Iterable[Any]]:
        """What to try for arguments of these names."""
        halves = HALVES[:1] if INTERPRETED else HALVES
        return super().cases() | {
            "dtype": (*halves, torch.float32),
            "causal": self.causal,
            "layout": self.layouts,
            "kv_heads": (4, 2, 1),
        }

    # Helpers.

    def inputs(
        self,
        seq_q: int,
        seq_k: int,
        device: str,
        *,
        lead: tuple[int, int] = (1, 2),
        kv_heads: int = 1,
        head_dim: int = 16,
        width: int | None = None,
        dtype: torch.dtype = torch.float16,
        seed: int = 0,
    ) -> list[torch.Tensor]:
        """q, k, v, do and dlse of normal values.

        In half precision: lse is rounded, which the rule for float32 hardly allows.
        """
        sizes = seq_q, seq_k, head_dim, dtype, device
        q, k, v = qkv(lead, (lead[0], kv_heads), *sizes, seed=seed)
        width = self.values(head_dim) if width is None else width
        v = normal((*v.shape[:3], width), dtype, device, seed=98 + seed)
        do = normal((*q.shape[:3], v.shape[3]), dtype, device, seed=99 + seed)
        dlse = normal(q.shape[:3], torch.float32, device, seed=100 + seed)
        return [q, k, v, do, dlse]

    def formula(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        *,
        causal: bool = False,
        scale: float | None = None,
        extras: dict[str, Any],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(o, lse) in the dtype of q, differentiable; with no key seen, o = 0.

        A key with a score of -inf counts as one that is not seen.
        """
        k, v = (for_heads_of(q, x) for x in (k, v))
        s = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
        seen = visible(*s.shape[-2:], s.device, causal=causal).expand(s.shape)
        s, seen, v = self.terms(s, seen, v, **extras)
        seen = seen & (s != -INF)
        some = seen.any(dim=-1, keepdim=True)
        # Where a row sees nothing, its scores are 0: -inf alone would give NaN.
        s = s.where(seen, s.new_tensor(-INF).where(some, 0.0))
        p = torch.softmax(s, dim=-1) * some if s.shape[-1] else s
        return p @ v, torch.logsumexp(s, dim=-1).where(some[..., 0], -INF)

    def computed(self, dtype: torch.dtype, *inputs: torch.Tensor, **asked: Any) -> Any:
        """The outputs by autograd, from the formula in this dtype."""
        *tensors, do, dlse = inputs
        leaves = [x.detach().to(dtype).requires_grad_() for x in tensors]
        extras = asked.pop("extras")
        some = {key: extras[key].detach().requires_grad_() for key in self.trained}
        with torch.enable_grad():
            o, lse = self.formula(*leaves, **asked, extras=extras | some)
        wanted = (*leaves, *some.values())
        given = do.to(o), dlse.to(lse)
        found = torch.autograd.grad((o, lse), wanted, given, materialize_grads=True)
        return o.detach(), lse.detach(), *found

    def reference(self, *inputs: torch.Tensor, **asked: Any) -> Named:
        """In float64."""
        found = self.named(self.computed(torch.float64, *inputs, **asked))
        return {name: x.double() for name, x in found.items()}

    def baseline(self, *inputs: torch.Tensor, **asked: Any) -> Named:
        """As PyTorch computes them in the dtype of q; lse from float32."""
        dtype = inputs[0].dtype
        found = self.named(self.computed(dtype, *inputs, **asked))
        if dtype != torch.float32:
            exact = self.named(self.computed(torch.float32, *inputs, **asked))
            found["lse"] = exact["lse"]
        return found

    def run(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        do: torch.Tensor,
        dlse: torch.Tensor,
        *,
        blocks: dict[str, Any] | None = None,
        extras: dict[str, Any],
        causal: bool = False,
        **asked: Any,
    ) -> Named:
        """o, lse and the gradients, each laid out as it must be."""
        options = {"causal": causal, **asked}
        options |= self.blocks[0] if blocks is None else blocks
        with torch.enable_grad():
            leaves = [x.detach().requires_grad_() for x in (q, k, v)]
            some = {key: extras[key].detach().requires_grad_() for key in self.trained}
            o, lse = self.function(*leaves, **extras | some, **options)
        wanted = (*leaves, *some.values())
        found = torch.autograd.grad((o, lse), wanted, (do, dlse))
        if v.shape[3] == q.shape[3]:
            assert strides(o) == strides(torch.empty_like(q, device="meta"))
        assert lse.is_contiguous()
        for x, dx in zip((q, k, v), found[:3], strict=True):
            assert strides(dx) == strides(torch.empty_like(x, device="meta"))
        return self.named((o.detach(), lse.detach(), *found))

    def check(self, *inputs: torch.Tensor, **options: Any) -> Named:
        """Hold the outputs against the rule, with ordinary extras if none are given."""
        options = {"extras": self.extras(*inputs[:2]), **options}
        return super().check(*inputs, **options)

    def example(self, device: str) -> Named:
        """q, k and v, and what else the variant takes."""
        q, k, v, *_ = self.inputs(3, 5, device, lead=(2, 4), kv_heads=2)
        return {"q": q, "k": k, "v": v, **self.extras(q, k)}

    # Refusals.

    def refusals(self) -> dict[str, Refusal]:
        """Of q, k and v, and of the tensor that is given beside them."""
        said = "k .*; it must"
        name, wrong = self.given
        wrong = wrong and {**wrong, f"a list for {name}": torch.Tensor.tolist}
        return {
            **{
                what: Refusal(f"{name} .*; it must", {name: change})
                for what, change in wrong.items()
            },
            **of_each("qkv", "one dimension less", lambda x: x[0], ".*; it must"),
            **of_each("kv", "the device", lambda x: x.to("meta"), ".*meta.*; it must"),
            **of_each("kv", "the dtype", lambda x: x.float(), ".*float32.*; it must"),
            **of_each("kv", "the batch", lambda x: x[:1], ".*; it must"),
            "head_dim of k": Refusal(said, {"k": lambda x: x[..., :15]}),
            "three heads of k": Refusal(
                f"{said}.*a divisor of 4",
                dict.fromkeys("kv", lambda x: resized(x, 1, 3)),
            ),
            "k of three dimensions": Refusal(
                f"{said}.*a divisor of 4.*seq_k", {"k": lambda x: x[0]}
            ),
            "the heads of v": Refusal("v .*; it must", {"v": lambda x: x[:, :1]}),
            "the seq of v": Refusal("v .*; it must", {"v": lambda x: x[:, :, :4]}),
            "no head_dim": Refusal(
                "q .*; it must", dict.fromkeys("qk", lambda x: x[..., :0])
            ),
            "a large head_dim": Refusal(
                "q .*257.*; it must", dict.fromkeys("qk", lambda x: resized(x, -1, 257))
            ),
            "too many heads": Refusal(
                "q .*65536.*; it must", {"q": lambda x: resized(x, 1, 65536)}
            ),
            "a tensor as scale": Refusal(
                "scale is tensor.*; it must", options={"scale": torch.tensor(0.3)}
            ),
            "float64": Refusal(
                "q is torch.float64.*; it must",
                dict.fromkeys("qkv", torch.Tensor.double),
            ),
        }

    # It is what has the gradients.
    test_refuses_to_lose_a_gradient = None

    def test_launches_on_the_device_of_its_inputs(self, device: str) -> None:
        q, k, v, *_ = self.inputs(3, 5, device)
        extras = self.extras(q, k)
        check_where_it_launches(self.function, q, k, v, **extras, **self.blocks[0])

    # Results.

    @pytest.mark.parametrize("lengths", LENGTHS, ids=str)
    def test_every_length(
        self, lengths: tuple[int, int], causal: bool, device: str
    ) -> None:
        inputs = [guarded(x) for x in self.inputs(*lengths, device)]
        extras = self.extras(*inputs[:2])
        extras = {
            key: guarded(x) if isinstance(x, torch.Tensor) else x
            for key, x in extras.items()
        }
        self.check(*inputs, causal=causal, extras=extras)

    def test_every_layout(self, layout: str, device: str) -> None:
        # Several layouts at once, so that no stride of one tensor fits another.
        views, first = list(self.layouts.values()), list(self.layouts).index(layout)
        inputs = self.inputs(5, 20, device, lead=(2, 4), kv_heads=2)
        q, k, v, do = (
            guarded(views[(first + step) % len(views)](x))
            for step, x in zip((0, 1, 3, 2), inputs[:4], strict=True)
        )
        before = [x.clone() for x in (q, k, v, do)]
        self.check(q, k, v, do, inputs[4].mT.contiguous().mT, causal=True)
        assert all(map(torch.equal, (q, k, v, do), before)), "an input was written to"

    def test_every_dtype(self, dtype: torch.dtype, causal: bool, device: str) -> None:
        inputs = self.inputs(19, 37, device, head_dim=24, dtype=dtype)
        self.check(*(guarded(x) for x in inputs), causal=causal)

    @pytest.mark.parametrize("head_dim", [1, 40, 128])
    def test_every_head_dim(self, head_dim: int, device: str) -> None:
        inputs = self.inputs(17, 20, device, head_dim=head_dim)
        self.check(*(guarded(x) for x in inputs), causal=True)

    @pytest.mark.parametrize("scale", [0.0, 0.7, -0.3])
    def test_every_scale(self, scale: float, device: str) -> None:
        self.check(*self.inputs(18, 40, device), scale=scale)

    @pytest.mark.parametrize("lengths", [(5, 20), (20, 18)], ids=str)
    def test_heads_that_share_keys(
        self, kv_heads: int, lengths: tuple[int, int], causal: bool, device: str
    ) -> None:
        inputs = self.inputs(*lengths, device, lead=(2, 4), kv_heads=kv_heads)
        self.check(*inputs, causal=causal)

    @pytest.mark.parametrize("kind", STRUCTURED)
    def test_structured_inputs(self, kind: str, causal: bool, device: str) -> None:
        q, k, v, do, dlse = self.inputs(20, 37, device)
        q, k, v, do = (STRUCTURED[kind](x) for x in (q, k, v, do))
        self.check(q, k, v, do / 8, dlse, causal=causal)

    @pytest.mark.parametrize("lengths", [(40, 9), (40, 24), (17, 2)], ids=str)
    def test_rows_that_see_nothing(self, lengths: tuple[int, int], device: str) -> None:
        if True not in self.causal:
            pytest.skip("there is no mask")
        found = self.check(*self.inputs(*lengths, device), causal=True)
        blind = slice(None, lengths[0] - lengths[1])
        assert (found["o"][..., blind, :] == 0).all()
        assert (found["dq"][..., blind, :] == 0).all()

    @pytest.mark.parametrize("lengths", [(0, 5), (5, 0), (0, 0)], ids=str)
    def test_empty(self, lengths: tuple[int, int], causal: bool, device: str) -> None:
        found = self.check(*self.inputs(*lengths, device), causal=causal)
        assert all((found[x] == 0).all() for x in ("o", "dq", "dk", "dv"))

    @pytest.mark.parametrize("lead", [(0, 2), (2, 0)], ids=str)
    def test_no_batch_or_no_heads(self, lead: tuple[int, int], device: str) -> None:
        found = self.check(*self.inputs(5, 6, device, lead=lead, kv_heads=lead[1]))
        assert found["dq"].shape == (*lead, 5, 16)

    @pytest.mark.parametrize("through", ["o", "lse"])
    def test_gradient_through(self, through: str, causal: bool, device: str) -> None:
        q, k, v, do, dlse = self.inputs(18, 37, device, lead=(2, 2))
        nothing = dlse if through == "o" else do
        nothing.zero_()
        self.check(q, k, v, do, dlse, causal=causal, scale=0.3)

    def test_expanded_gradients(self, causal: bool, device: str) -> None:
        # What o.sum() + lse.sum() passes on: one number each, and strides of 0.
        q, k, v, do, dlse = self.inputs(18, 20, device)
        do, dlse = (torch.ones_like(x.flatten()[0]).expand(x.shape) for x in (do, dlse))
        self.check(q, k, v, do, dlse, causal=causal)

    def test_large_scores(self, causal: bool, device: str) -> None:
        # Of magnitude 1e4, so coarse that few keys have all the weight.
        q, k, *rest = self.inputs(18, 50, device, head_dim=32)
        extras = self.extras(q, k)
        found = self.run(q * 50, k * 40, *rest, causal=causal, scale=1.0, extras=extras)
        assert all(x.isfinite().all() for x in found.values())

    def test_scores_far_below_zero(self, causal: bool, device: str) -> None:
        # A key that does not exist must not count, although 0 is a larger score.
        q, k, *rest = self.inputs(18, 20, device)
        self.check(q.abs() + 5, -k.abs() - 5, *rest, causal=causal, scale=1.0)

    @pytest.mark.parametrize(
        "keys", [slice(16, 40), slice(None, None, 2)], ids=["tiles", "every other"]
    )
    def test_scores_of_minus_inf(self, keys: slice, device: str) -> None:
        # The gradients of such keys are finite; in dq, 0 * -inf is NaN.
        q, k, *rest = self.inputs(17, 41, device)
        q[..., 0], k[..., keys, 0] = 1, -INF
        found = self.check(q, k, *rest)
        assert all(found[x].isfinite().all() for x in ("o", "dk", "dv"))

    def test_nan(self, device: str) -> None:
        # In one row of q or do, of k or v: no more rows of the results, and no less.
        for argument in range(4):
            inputs = self.inputs(18, 20, device)
            inputs[argument][..., 17, 3] = NAN
            self.check(*inputs)

    def test_every_block_size(self, causal: bool, device: str) -> None:
        inputs = self.inputs(50, 70, device, dtype=torch.float32)
        extras = self.extras(*inputs[:2])
        first, *others = (
            self.run(*inputs, causal=causal, blocks=blocks, extras=extras)
            for blocks in self.blocks
        )
        for found in others:
            for name, x in found.items():
                torch.testing.assert_close(x, first[name], rtol=1e-5, atol=1e-5)
        # Their tiles differ in how many rows they have, so one of them is held as well.
        halves = [x.half() for x in inputs[:4]]
        self.check(*halves, inputs[4], causal=causal, blocks={}, extras=extras)

    @pytest.mark.gpu  # The interpreter runs one program after the other.
    def test_the_same_bits_in_every_run(self, device: str) -> None:
        inputs = self.inputs(30, 40, device, lead=(2, 4), kv_heads=2)
        extras = self.extras(*inputs[:2])
        first = self.run(*inputs, causal=True, extras=extras)
        for _ in range(100):
            again = self.run(*inputs, causal=True, extras=extras)
            assert all(torch.equal(first[x], again[x]) for x in self.outputs)

    # What PyTorch knows of the operators.

    @pytest.fixture
    def plain(self, poisoned: Poison) -> Iterator[None]:
        """Fresh tensors are as torch makes them: a fake one has no memory to poison."""
        with poisoned.lifted():
            yield

    def test_there_is_no_second_gradient(self, device: str) -> None:
        inputs = self.inputs(3, 5, device)[:3]
        given = [x.requires_grad_() for x in inputs]
        o, _ = self.function(*given, **self.extras(*inputs[:2]), **self.blocks[0])
        dq, *_ = torch.autograd.grad(o.float().square().sum(), given, create_graph=True)
        with pytest.raises(RuntimeError, match="no autograd formula"):
            torch.autograd.grad(dq.float().sum(), given)

    def test_frozen_inputs_and_autocast(self, device: str) -> None:
        q, k, v, do, _ = self.inputs(18, 20, device, dtype=torch.float32)
        extras, leaf = self.extras(q, k), v.requires_grad_()
        with torch.autocast(device, torch.float16):
            o, lse = self.function(q, k, leaf, causal=True, **extras, **self.blocks[0])
        assert (o.dtype, lse.dtype) == (torch.float16, torch.float32)
        o.backward(do.half())
        assert q.grad is None
        assert leaf.grad.dtype == torch.float32
        halves = (x.detach().half() for x in (q, k, v, do))
        nothing = torch.zeros_like(lse)
        found = self.run(*halves, nothing, causal=True, extras=extras)
        assert torch.equal(leaf.grad, found["dv"].float())
        assert torch.equal(o, found["o"])

    def calls(self, *inputs: torch.Tensor) -> list[tuple[Any, tuple[Any, ...]]]:
        """Both operators, each with the arguments of a causal call."""
        q, k, v, *_ = inputs
        tensors, others = self.operands(self.extras(q, k))
        forward, backward = (
            getattr(torch.ops.flash, self.operator + end) for end in ("", "_backward")
        )
        options = (True in self.causal, 0.3, *others, 16)
        o, lse = forward(q, k, v, *tensors, *options)
        rest = o, lse, torch.ones_like(o), torch.ones_like(lse)
        return [
            (forward, (q, k, v, *tensors, *options)),
            (backward, (q, k, v, *tensors, *rest, *options)),
        ]

    def test_a_fake_result_is_like_the_real_one(
        self, layout: str, device: str, plain: None
    ) -> None:
        inputs = self.inputs(5, 7, device, lead=(2, 4), kv_heads=2)
        for operator, given in self.calls(*map(self.layouts[layout], inputs[:3])):
            with FakeTensorMode() as mode:
                faked = operator(
                    *(
                        mode.from_tensor(x) if isinstance(x, torch.Tensor) else x
                        for x in given
                    )
                )
            for x, y in zip(faked, operator(*given), strict=True):
                assert (x.shape, x.dtype, x.device) == (y.shape, y.dtype, y.device)
                assert x.stride() == y.stride()

    def test_opcheck(self, device: str, plain: None) -> None:
        inputs = self.inputs(3, 5, device)
        # That they can be compiled, too, test_compile says.
        some = "test_schema", "test_autograd_registration", "test_faketensor"
        for operator, given in self.calls(*inputs):
            found = opcheck(operator, given, test_utils=some)
            assert set(found.values()) == {"SUCCESS"}

    def test_compile(self, device: str, plain: None) -> None:
        x = normal((2, 21, 32), torch.float16, device)
        weight = normal((32, 96), torch.float16, device, seed=1) / 6
        q = x.unflatten(-1, (2, 16)).transpose(1, 2)
        extras = self.extras(q, q)

        def loss(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            q, k, v = (x @ weight).unflatten(-1, (3, 2, 16)).permute(2, 0, 3, 1, 4)
            v = v[..., : self.values(16)]
            o, lse = self.function(q, k, v, causal=True, **extras, **self.blocks[0])
            rows = o.transpose(1, 2).flatten(2)
            return (rows * x[..., : rows.shape[2]]).sum() + lse.square().mean()

        torch._dynamo.reset()
        results = []
        for each in (loss, torch.compile(loss, backend=BACKEND, fullgraph=True)):
            given = [y.detach().requires_grad_() for y in (x, weight)]
            value = each(*given)
            results.append((value.detach(), *torch.autograd.grad(value, given)))
        for y, z in zip(*results, strict=True):
            # Inductor fuses operations, and rounds to float16 less often.
            assert (y - z).abs().max() <= 1e-2 * y.abs().max()

    @pytest.mark.large
    def test_offsets_beyond_31_bits(self, device: str) -> None:
        def apart(x: Any, axis: int) -> Any:
            if not isinstance(x, torch.Tensor) or axis >= x.ndim:
                return x
            return far_apart(x.shape, axis, x.dtype, device).copy_(x)

        *given, dlse = self.inputs(3, 3, device, lead=(3, 3), kv_heads=3, head_dim=3)
        extras = self.extras(*given[:2])
        for axes in ((0, 0, 0, 0), (1, 1, 1, 1), (2, 3, 2, 3), (3, 2, 3, 2)):
            inputs = [apart(x, axis) for x, axis in zip(given, axes, strict=True)]
            far = {key: apart(x, axes[0]) for key, x in extras.items()}
            self.check(*inputs, dlse, extras=far)

    # FlashAttention's grid, with the tiles that a call has by itself.
    @pytest.mark.gpu
    @pytest.mark.parametrize("half", [0, 1])
    @pytest.mark.parametrize("head_dim", [64, 96, 128, 256])
    def test_grid(self, half: int, head_dim: int, causal: bool, device: str) -> None:
        pick = (64, 96, 128, 256).index(head_dim)
        for lengths in GRID[pick % 2 :: 2][half]:
            dtype = HALVES[pick // 2]
            inputs = self.inputs(*lengths, device, head_dim=head_dim, dtype=dtype)
            self.check(*inputs, causal=causal, blocks={})
