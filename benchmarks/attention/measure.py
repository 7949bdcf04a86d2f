"""One shape: every kernel is checked, then all of them take turns on the clock."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from benchmarks import timing
from benchmarks.attention.kernels import Attention
from benchmarks.attention.run import Run

Maker = Callable[[], Attention]


class Wrong(Exception):
    """A kernel's result is wrong: it must not be timed."""


def first(result: Any) -> torch.Tensor:
    """o, of a kernel that returns o or (o, lse)."""
    return result[0] if isinstance(result, tuple) else result


def measure(
    run: Run,
    part: str,
    shape: Mapping[str, Any],
    own: Mapping[str, Attention],
    peers: Mapping[str, Maker],
    inputs: Sequence[torch.Tensor],
    check: Callable[[torch.Tensor], None],
    timed: Callable[[Attention], Callable[[], object]] | None = None,
) -> list[dict[str, Any]]:
    """Check and time all kernels on one shape.

    Args:
        run: where failures are kept.
        part: the list of the record.
        shape: what describes the shape there.
        own: the published kernels by name.
        peers: how to make each peer; making one may fail too.
        inputs: q, k and v.
        check: raises Wrong if the result is.
        timed: what is timed of a kernel, if not one call on the inputs in a CUDA graph:
            without one, a short call would be Python's time.
    """
    timed = timed or (lambda call: timing.graph([partial(call, *inputs)]))
    calls: dict[str, Callable[[], object]] = {}
    launches: dict[str, Any] = {}
    makers = {name: partial(lambda call: call, call) for name, call in own.items()}
    for name, make in (makers | dict(peers)).items():
        with run.attempt(part, name, name in peers, **shape):
            call = make()
            check(first(call(*inputs)))
            if name in own:
                with timing.launches() as launches[name]:
                    call(*inputs)
            calls[name] = timed(call)
    times: dict[str, float] = {}
    with run.attempt(part, "timing", False, **shape):
        times = timing.medians(calls)
    return [
        {
            "kernel": name,
            "dtype": str(inputs[0].dtype).removeprefix("torch."),
            **shape,
            "seconds": seconds,
            **({"launches": launches[name]} if launches.get(name) else {}),
        }
        for name, seconds in times.items()
    ]


def check_rows(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool,
    o: torch.Tensor,
    window: int | None = None,
    tolerance: float = 0.02,
) -> None:
    """Is the result right at all? Some rows of the last head are computed in float64.

    Raises:
        Wrong: they differ by more than `tolerance` of their largest value.
    """
    seq_q, head_dim = q.shape[-2:]
    rows = torch.arange(0, seq_q, max(1, seq_q // 16), device=q.device) + seq_q - 1
    rows %= seq_q
    last_k, last_v = (x[-1, -1].double() for x in (k, v))
    s = q[-1, -1][rows].double() @ last_k.T * head_dim**-0.5
    if causal:
        back = rows[:, None] - torch.arange(k.shape[-2], device=q.device)
        s = s.where((back >= 0) & (back < (window or seq_q)), float("-inf"))
    expected = torch.softmax(s, dim=-1) @ last_v
    found = o.reshape(q.shape)[-1, -1][rows].double()
    error, largest = (found - expected).abs().max(), expected.abs().max()
    if not error <= tolerance * largest:
        raise Wrong(f"wrong by {error:.1e}; the largest value is {largest:.1e}")
