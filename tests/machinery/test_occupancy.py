"""The benchmark and persistent.py count the same programs on a multiprocessor."""

from types import SimpleNamespace

import pytest
import torch

from benchmarks import timing
from snippets.softmax import persistent

H200 = SimpleNamespace(
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    shared_memory_per_multiprocessor=233472,
    multi_processor_count=132,
    warp_size=32,
)


@pytest.mark.parametrize("warps", [1, 4, 16, 32])
@pytest.mark.parametrize("shared", [0, 16, 12_288, 38_000, 196_608])
def test_the_counts_agree(warps, shared, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: H200)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    for registers in range(16, 65536 // (32 * warps) + 1):
        metadata = SimpleNamespace(num_warps=warps, shared=shared)
        kernel = SimpleNamespace(n_regs=registers, metadata=metadata)
        resident = persistent.resident_programs(kernel, torch.device("cuda", 0))
        assert resident == 132 * timing.occupancy(kernel)
        if (registers, warps, shared) == (44, 4, 12_288):  # as bf16 with 128 columns
            assert resident == 1320  # once 1452 were launched
