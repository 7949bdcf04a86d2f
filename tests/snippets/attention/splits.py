"""What is tried on kernels that split the keys: caches of some lengths, and parts."""

from typing import Any, ClassVar

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.harness.inputs import qkv
from tests.harness.launches import pretend_gpu
from tests.harness.poison import guarded
from tests.snippets.attention.caches import with_lengths
from tests.snippets.attention.reference import for_heads_of, reference, scores
from tests.snippets.attention.suite import AttentionTests

NAN = float("nan")
INF = float("inf")
SMALL = {"splits": 3, "block_n": 16}


def in_parts(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) in PyTorch, as the kernel does it: of three parts of the keys, merged.

    A logsumexp of 5 is rounded to 2.4e-7, and so is the weight of its part.
    """
    k, v = (for_heads_of(q, x) for x in (k, v))
    s = scores(q.float(), k.float(), causal, q.shape[-1] ** -0.5, None)
    o, lse = [], []
    for s_part, v_part in zip(s.chunk(3, dim=-1), v.chunk(3, dim=-2), strict=True):
        lse.append(torch.logsumexp(s_part, dim=-1, keepdim=True))
        o.append(weights(s_part, lse[-1]).to(v.dtype) @ v_part)
    lse_parts = torch.stack(lse)
    whole = torch.logsumexp(lse_parts, dim=0)
    result = (weights(lse_parts, whole) * torch.stack(o)).sum(dim=0)
    return result.to(q.dtype), whole.squeeze(-1)


def weights(s: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """exp(s - lse), float32; 0 where there is no finite score."""
    return torch.exp(s - torch.where(lse == -INF, 0.0, lse))


class SplitTests(AttentionTests):
    """What holds of every kernel that splits the keys of a head."""

    most_rows = None
    layout_of_q = False
    blocks = (
        SMALL,
        {"splits": 1, "block_n": 32},
        {"splits": 8, "block_n": 64},
        {"splits": 40, "block_n": 16},
    )
    refused: ClassVar = {"splits": (0, -1, 257)}

    def check_lengths(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        lengths: list[int],
        **options: Any,
    ) -> None:
        """Hold all sequences at once against each by itself."""
        seq_lens = torch.tensor(lengths, dtype=torch.int32, device=q.device)
        result = self.function(q, k, v, seq_lens=seq_lens, **{**SMALL, **options})
        asked = {word: options[word] for word in ("causal",) if word in options}
        expected = with_lengths(reference, q, k, v, lengths, **asked)
        own = with_lengths(in_parts, q, k, v, lengths, **asked)
        self.compare(result, expected, own)

    def test_lengths_of_the_cache(self, causal: bool, device: str) -> None:
        # What lies behind a sequence was never written.
        lengths = [100, 0, 1, 47, 48, 49, 17]
        q, k, v = qkv((7, 4), (7, 2), 3, 100, 16, torch.float32, device)
        for i, length in enumerate(lengths):
            k[i, :, length:], v[i, :, length:] = NAN, NAN
        q, k, v = (guarded(x) for x in (q, k, v))
        self.check_lengths(q, k, v, lengths, causal=causal)

    def test_lengths_that_cannot_be(self, device: str) -> None:
        q, k, v = qkv((3, 4), (3, 2), 1, 40, 16, torch.float32, device)
        seq_lens = torch.tensor(
            [-(2**31), 2**31 - 1, 41], dtype=torch.int32, device=device
        )
        result = self.function(q, k, v, seq_lens=seq_lens, **SMALL)
        expected, own = (
            with_lengths(method, q, k, v, [0, 40, 40])
            for method in (reference, in_parts)
        )
        self.compare(result, expected, own)

    def test_refuses_other_lengths(self, device: str) -> None:
        q, k, v = qkv((3, 4), (3, 2), 1, 40, 16, torch.float32, device)
        right = torch.full((3,), 40, dtype=torch.int32, device=device)
        for wrong in (
            right[:2],
            right[:, None],
            right.long(),
            right.to("meta"),
        ):
            match = r"^seq_lens is torch.int.* on .*; it must be torch.int32 \[3\] on"
            with pytest.raises(ValueError, match=match):
                self.function(q, k, v, seq_lens=wrong, **SMALL)

    def test_lengths_with_gaps(self, device: str) -> None:
        q, k, v = qkv((3, 4), (3, 2), 1, 40, 16, torch.float32, device)
        wide = torch.tensor([40, 1, 7, 2, 33, 3], dtype=torch.int32, device=device)
        found, expected = (
            self.function(q, k, v, seq_lens=seq_lens, **SMALL)
            for seq_lens in (wide[::2], wide[::2].contiguous())
        )
        assert all(map(torch.equal, found, expected))

    @pytest.mark.parametrize("group", [1, 4, 5, 16, 40])
    def test_one_query_for_each_head(self, group: int, device: str) -> None:
        inputs = qkv((2, 2 * group), (2, 2), 1, 90, 16, torch.float32, device)
        q, k, v = (guarded(x) for x in inputs)
        self.check_lengths(q, k, v, [90, 33])

    @pytest.mark.parametrize("seq_q", [1, 2, 5])
    def test_few_queries_with_a_causal_mask(self, seq_q: int, device: str) -> None:
        q, k, v = qkv((2, 4), (2, 2), seq_q, 60, 16, torch.float32, device)
        self.check_lengths(q, k, v, [60, 3], causal=True)

    @pytest.mark.parametrize("splits", [1, 2, 6, 20])
    def test_a_part_of_minus_inf(self, splits: int, device: str) -> None:
        q, k, v = qkv((1, 2), (1, 1), 2, 90, 16, torch.float32, device)
        q = q.abs() + 0.1
        k[..., 16:70, 0] = -INF
        self.check_lengths(q, k, v, [90], splits=splits)

    @pytest.mark.parametrize("splits", [1, 2, 6])
    def test_a_nan_reaches_every_part(self, splits: int, device: str) -> None:
        q, k, v = qkv((1, 2), (1, 1), 2, 90, 16, torch.float32, device)
        k[..., 40, 0] = NAN
        o, lse = self.function(q, k, v, splits=splits, block_n=16)
        assert o.isnan().all()
        assert lse.isnan().all()

    def test_two_hundred_parts(self, device: str) -> None:
        q, k, v = qkv((1, 2), (1, 1), 1, 3200, 16, torch.float32, device)
        self.check_lengths(q, k, v, [3190], splits=200)

    def test_parts_far_apart(self, device: str) -> None:
        # Scores of one part are 1000 above those of another: without a shift, exp
        # overflows.
        q, k, v = qkv((1, 2), (1, 1), 2, 90, 16, torch.float32, device)
        q[..., 0], k[..., 0], k[..., 50, 0] = 100, 0, 40
        self.check_lengths(q, k, v, [90])
        k[..., 0] += 40
        self.check_lengths(q, k, v, [90])

    def test_tiles_and_parts_that_fill_the_gpu(
        self, device: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A tile of 128 keys, and a part for each of the tiles.
        pretend_gpu(
            monkeypatch,
            multi_processor_count=8,
            shared_memory_per_block_optin=2**16,
        )
        q, k, v = qkv((1, 2), (1, 1), 1, 500, 32, torch.float16, device)
        found = self.function(q, k, v)
        expected = self.function(q, k, v, splits=4, block_n=128)
        assert all(map(torch.equal, found, expected))

    def number_of_parts(self, programs: int, tiles: int, multiprocessors: int) -> int:
        """Into how many the keys are split. Nothing runs, so nothing is allocated."""
        grids = []

        def launch(*_: Any, grid: tuple[int, ...], **__: Any) -> None:
            grids.append(grid)

        with pytest.MonkeyPatch.context() as patch:
            pretend_gpu(
                patch,
                multi_processor_count=multiprocessors,
                shared_memory_per_block_optin=2**16,
            )
            for kernel in ("attention_kernel", "merge_kernel"):
                patch.setattr(self.function.__globals__[kernel], "run", launch)
            half = {"dtype": torch.float16, "device": "meta"}
            q = torch.empty(programs, 1, 1, 16, **half)
            k = torch.empty(programs, 1, 16 * tiles, 16, **half)
            self.function(q, k, k, block_n=16)
        assert grids[0] == (programs, grids[0][1])
        assert len(grids) == 1 + (grids[0][1] > 1)
        return grids[0][1]

    # As the page says: an H200 has 132 multiprocessors, each with room for a program.
    @pytest.mark.parametrize(
        ("programs", "tiles", "splits"),
        [
            (8, 128, 16),  # 8 tiles each, in 128 of 132 places
            (8, 9, 9),  # one tile each
            (160, 128, 4),  # 5 waves of 32 steps, where one part makes 2 of 128
            (118, 1000, 10),  # 9 waves of 100 and more, where one part makes 1 of 1000
            (132, 128, 1),
            (1024, 512, 1),  # 8 waves of 512
            (5000, 1, 1),
            (1, 10**6, 132),
        ],
    )
    def test_number_of_parts(self, programs: int, tiles: int, splits: int) -> None:
        assert self.number_of_parts(programs, tiles, 132) == splits

    def test_no_more_parts_than_the_merge_takes(self) -> None:
        assert self.number_of_parts(1, 3000, 700) == 256

    @settings(suppress_health_check=[HealthCheck.differing_executors])
    @given(
        programs=st.integers(1, 2000),
        tiles=st.integers(1, 3000),
        slots=st.integers(1, 700),
    )
    @example(programs=112, tiles=3, slots=24)
    def test_no_other_number_of_parts_ends_much_sooner(
        self, programs: int, tiles: int, slots: int
    ) -> None:
        def steps(splits: int) -> int:
            """Waves of programs, each as long as its tiles and one more."""
            return -(-programs * splits // slots) * (-(-tiles // splits) + 1)

        splits = self.number_of_parts(programs, tiles, slots)
        most = min(tiles, 256)
        assert 1 <= splits <= most
        assert steps(splits) <= 1.125 * min(map(steps, range(1, most + 1)))

    @pytest.mark.gpu
    def test_more_heads_than_fit_on_a_lower_axis_of_the_grid(self, device: str) -> None:
        inputs = qkv((35000, 2), (35000, 2), 1, 20, 16, torch.float16, device)
        self.check(*inputs)

    @pytest.mark.gpu
    @pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
    @pytest.mark.parametrize(("batch", "seq_k"), [(1, 131072), (4, 5000), (64, 1024)])
    @pytest.mark.parametrize(("heads", "kv_heads"), [(32, 8), (16, 16), (16, 1)])
    def test_decoding(
        self,
        half: torch.dtype,
        batch: int,
        seq_k: int,
        heads: int,
        kv_heads: int,
        device: str,
    ) -> None:
        # Made on the GPU: here the CPU would take most of the time.
        generator = torch.Generator(device).manual_seed(0)
        q, k, v = (
            torch.randn(shape, generator=generator, dtype=half, device=device)
            for shape in (
                (batch, heads, 1, 128),
                *2 * ((batch, kv_heads, seq_k, 128),),
            )
        )
        lengths = [max(0, seq_k - 97 * i) for i in range(batch)]
        self.check_lengths(q, k, v, lengths, splits=None, block_n=None)

    @pytest.mark.gpu
    def test_heads_of_q_far_apart(self, device: str) -> None:
        # From the first head to the third it is 2^31 elements.
        q = torch.zeros(2**31 + 64, dtype=torch.float16, device=device)
        q = q.as_strided((1, 3, 1, 16), (16, 2**30, 16, 1))
        q += torch.arange(1, 4, device=device)[:, None, None]
        _, k, v = qkv((1, 3), (1, 1), 1, 40, 16, torch.float16, device)
        found, expected = (self.function(x, k, v, **SMALL) for x in (q, q.clone()))
        assert all(map(torch.equal, found, expected))
