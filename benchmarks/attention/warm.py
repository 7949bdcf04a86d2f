"""Compile everything beforehand, in many processes: compiling takes longer than timing.

Triton and PyTorch keep what they compile on the disk, where the run finds it.
"""

import itertools
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any

import torch
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from benchmarks import timing
from benchmarks.attention import decode, forward, fp8, kernels, window

Task = Callable[[], object]


def without_launching() -> None:
    """In this process, kernels are compiled and not launched, and nothing is tuned."""
    original = JITFunction.run

    def run(self: JITFunction, *args: Any, **kwargs: Any) -> Any:
        return original(self, *args, **kwargs | {"warmup": True})

    def do_bench(self: Autotuner, call: Task, quantiles: object) -> list[float]:
        call()
        return [1.0, 1.0, 1.0]

    JITFunction.run = run
    Autotuner.do_bench = do_bench


def own(part: str, name: str, head_dim: int, causal: bool) -> None:
    """Compile a published kernel for one head_dim."""
    without_launching()
    # One head is another kernel: Triton makes a constant of an argument 1.
    heads = forward.WIDTH // head_dim if part == "forward" else 1
    qkv = forward.inputs(1, heads, 512, head_dim)
    kernels.published(part, 512, causal)[kernels.path(name)](*qkv)


def own_fp8(name: str, head_dim: int, causal: bool) -> None:
    """Compile a published kernel for fp8."""
    given = fp8.Quantised(forward.inputs(1, forward.WIDTH // head_dim, 512, head_dim))
    without_launching()
    given.own(causal)[kernels.path(name)](*given.qkv)


def own_window(name: str) -> None:
    """Compile a published kernel for a sliding window."""
    without_launching()
    heads = forward.WIDTH // window.HEAD_DIM
    qkv = forward.inputs(1, heads, 512, window.HEAD_DIM)
    window.own(window.WINDOWS[0])[kernels.path(name)](*qkv)


def flex_window(size: int) -> None:
    """Compile FlexAttention for a sliding window."""
    heads = forward.WIDTH // window.HEAD_DIM
    qkv = forward.inputs(1, heads, window.SEQ, window.HEAD_DIM)
    window.peers(size)["flex_attention"]()(*qkv)


def own_decode(name: str, batch: int, seq: int) -> None:
    """Compile a published kernel for one query and a cache."""
    q, caches = cache(batch, seq)
    call = decode.own(caches)[kernels.path(name)]
    without_launching()
    call(q, *caches[0])


def flex_forward(head_dim: int, causal: bool, seq: int) -> None:
    """Compile FlexAttention for one shape."""
    batch, heads = max(1, forward.TOKENS // seq), forward.WIDTH // head_dim
    kernels.flex(causal, seq)(*forward.inputs(batch, heads, seq, head_dim))


def flex_decode(batch: int, seq: int) -> None:
    """Compile FlexAttention for one query and a cache."""
    q, caches = cache(batch, seq)
    kernels.flex_decode(seq)(q, *caches[0])


def cache(batch: int, seq: int) -> tuple[torch.Tensor, torch.Tensor]:
    """q and one cache, whose v is k: here nobody looks at the values."""
    q = timing.inputs(batch * decode.HEADS, decode.HEAD_DIM, torch.bfloat16)
    k = q.new_zeros(1, 1, batch, decode.KV_HEADS, seq, decode.HEAD_DIM)
    shape = batch, decode.HEADS, 1, decode.HEAD_DIM
    return q.view(shape), k.expand(-1, 2, -1, -1, -1, -1)


def tasks(parts: tuple[str, ...]) -> Iterator[tuple[str, Task]]:
    """What there is to compile, the longest first."""
    masks = (False, True)
    if "forward" in parts:
        for head_dim in reversed(forward.HEAD_DIMS):
            for name, causal in itertools.product(kernels.NAMES["forward"], masks):
                if not (causal and name in kernels.NOT_CAUSAL):
                    yield name, partial(own, "forward", name, head_dim, causal)
    if "fp8" in parts:
        for head_dim in reversed(forward.HEAD_DIMS):
            for name, causal in itertools.product(kernels.NAMES["fp8"], masks):
                yield name, partial(own_fp8, name, head_dim, causal)
    few = {"head": forward.HEAD_DIMS_OF_ONE, "memory": (128,)}
    for part in set(few) & set(parts):
        for name, head_dim in itertools.product(kernels.NAMES[part], few[part]):
            if name not in ("flash2_fp8", "varlen"):  # they take other arguments
                yield name, partial(own, part, name, head_dim, False)
    if "window" in parts:
        for name in kernels.NAMES["window"]:
            yield name, partial(own_window, name)
        for size in window.WINDOWS:
            yield "flex_attention", partial(flex_window, size)
    if "decode" in parts:
        for batch, seq in itertools.product(decode.BATCHES, decode.SEQS):
            # Larger ones make nothing new of our kernels, and take much memory.
            for name in kernels.NAMES["decode"] if batch * seq <= 2**19 else ():
                yield name, partial(own_decode, name, batch, seq)
            yield "flex_attention", partial(flex_decode, batch, seq)
    if "forward" in parts:
        for head_dim in reversed(forward.HEAD_DIMS):
            for causal in masks:
                for seq in forward.SEQS:
                    task = partial(flex_forward, head_dim, causal, seq)
                    yield "flex_attention", task


def warm(parts: tuple[str, ...]) -> None:
    """Compile what the parts need. What fails here fails again, and is told, later."""
    start = time.perf_counter()
    workers = max(1, min(14, (os.cpu_count() or 1) - 1))
    context = multiprocessing.get_context("spawn")
    # As the run itself does, and so that it finds what was compiled.
    off = partial(torch.set_grad_enabled, False)
    with ProcessPoolExecutor(workers, context, off) as pool:
        pending = {pool.submit(task): name for name, task in tasks(parts)}
        for done in as_completed(pending):
            if error := done.exception():
                print(f"not compiled beforehand: {pending[done]}: {error!s:.200}")
    seconds = time.perf_counter() - start
    print(f"compiled {len(pending)} things in {seconds:.0f} s", flush=True)
