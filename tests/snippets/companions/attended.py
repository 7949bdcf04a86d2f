"""What the tests of both passes of attention with dropout share: inputs, reference."""

from collections.abc import Iterable
from typing import Any

import pytest
import torch

from tests.harness.inputs import HALVES, INF, INTERPRETED, NAN, pairs_around, qkv
from tests.harness.suite import Named, Refusal, Suite
from tests.snippets.attention.reference import visible
from tests.snippets.companions.dropped import Unread
from tests.snippets.companions.philox import kept_share, kept_weights

P, SEED = 0.2, 2**40 + 2026
LEAD = 2, 2  # batch and heads
LENGTHS = (*pairs_around(16, 16)[:-2], (9, 70), (70, 3))


def weights(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    p: float,
    seed: torch.Tensor,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) of attention with this dropout, in the dtype of the inputs."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = q @ k.mT * scale
    seen = visible(*s.shape[-2:], s.device, causal=causal)
    s = s.masked_fill(~seen, -INF)
    m_i = s.detach().amax(dim=-1, keepdim=True) if s.shape[-1] else s.new_zeros(())
    e = (s - torch.where(m_i == -INF, 0.0, m_i)).exp()
    l_i = e.sum(dim=-1, keepdim=True)
    lse = (torch.where(m_i == -INF, 0.0, m_i) + l_i.log()).squeeze(-1)
    keep = kept_weights(s.shape, p=p, seed=int(seed), device=s.device.type)
    z = keep.to(s.dtype) / kept_share(p) if kept_share(p) else s.new_zeros(())
    return (e / torch.where(l_i == 0, 1.0, l_i) * z) @ v, lse


class Dropped(Suite):
    """Inputs, options and refusals of both passes."""

    asked = ("p", "seed", "causal", "scale")
    blocks = (
        {"block_m": 16, "block_n": 16},
        {"block_m": 16, "block_n": 64},
        {"block_m": 32, "block_n": 16},
        {},
    )

    def seed(self, device: str, value: int = SEED) -> torch.Tensor:
        """A seed as the functions take it."""
        return torch.tensor(value, device=device)

    def inputs(
        self,
        seq_q: int,
        seq_k: int,
        device: str,
        *,
        head_dim: int = 16,
        dtype: torch.dtype = torch.float32,
        lead: tuple[int, int] = LEAD,
    ) -> tuple[torch.Tensor, ...]:
        """q, k and v."""
        return qkv(lead, lead, seq_q, seq_k, head_dim, dtype, device)

    def run(self, *inputs: torch.Tensor, **options: Any) -> Named:
        """The outputs, with a p and a seed if none is given."""
        seed = self.seed(inputs[0].device.type)
        return super().run(*inputs, **{"p": P, "seed": seed, **options})

    def check(self, *inputs: torch.Tensor, **options: Any) -> Named:
        """Hold them against the rule, with a p and a seed if none is given."""
        seed = self.seed(inputs[0].device.type)
        return super().check(*inputs, **{"p": P, "seed": seed, **options})

    def cases(self) -> dict[str, Iterable[Any]]:
        """Dtypes that can be tried here, causal or not, lengths."""
        halves = HALVES[:1] if INTERPRETED else HALVES
        return super().cases() | {
            "dtype": (*halves, torch.float32),
            "causal": (False, True),
            "lengths": LENGTHS,
        }

    @pytest.mark.parametrize("seed", [0, 7, 2**31, 2**63 - 1])
    def test_a_seed_of_every_form(self, seed: int, device: str) -> None:
        inputs = self.example(device).values()
        one = self.seed(device, seed)
        wanted = self.run(*inputs, seed=one)
        for each in (seed, one[None], one.view(1, 1)):
            found = self.run(*inputs, seed=each)
            assert all(torch.equal(x, wanted[name]) for name, x in found.items())

    def test_the_seed_is_read_when_the_kernel_runs(self, device: str) -> None:
        inputs, seed = self.example(device).values(), self.seed(device)
        with Unread():
            self.function(*inputs, seed=seed, **self.blocks[0])

    def refusals(self) -> dict[str, Refusal]:
        """Of q, k and v, of p and of the seed."""
        found = {
            "three dimensions": Refusal(
                r"q is \[2, 3, 16\]; it must", {"q": lambda x: x[0]}
            ),
            "no head_dim": Refusal(
                r"q is .* 0\]; it must", {"q": lambda x: x[..., :0]}
            ),
            "a large head_dim": Refusal(
                r"q is .* 257\]; it must",
                {"q": lambda x: x[..., :1].expand(2, 2, 3, 257)},
            ),
            "many heads": Refusal(
                r"q is \[2, 32768, .*; it must",
                {"q": lambda x: x[:, :1].expand(2, 32768, 3, 16)},
            ),
            "float64": Refusal(
                "q is torch.float64; it must",
                dict.fromkeys("qkv", lambda x: x.double()),
            ),
        }
        for tensor in "kv":
            for what, change, said in (
                ("the batch", lambda x: x[:1], r"\[1, 2, "),
                ("the heads", lambda x: x[:, :1], r"\[2, 1, "),
                ("the head_dim", lambda x: x[..., :15], ".* 15]"),
                ("the dtype", lambda x: x.half(), ".*float16"),
                ("the device", lambda x: x.to("meta"), ".*meta"),
                ("the dimensions", lambda x: x[0], r"\[2, 5, 16\]"),
            ):
                found[f"{what} of {tensor}"] = Refusal(
                    f"{tensor} is {said}.*; it must be ", {tensor: change}
                )
        found["the seq of v"] = Refusal(
            r"v is .* 4, 16\].*; it must be ", {"v": lambda x: x[..., :4, :]}
        )
        for p in (-0.1, 1.1, NAN):
            said = f"p is {p}; it must be from 0 to 1"
            found[f"p={p}"] = Refusal(said, options={"p": p})
        for what, seed in (
            ("int32", torch.zeros((), dtype=torch.int32)),
            ("two numbers", torch.zeros(2, dtype=torch.int64)),
            ("another device", torch.zeros((), dtype=torch.int64, device="meta")),
            ("below 0", -1),
            ("too large", 2**63),
            ("a list", [1]),
        ):
            said = "seed is .*; it must be an int .* or one int64 on"
            found[f"seed: {what}"] = Refusal(said, options={"seed": seed})
        return found
