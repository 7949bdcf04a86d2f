"""Tests of snippets/softmax/persistent.py."""

from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch

from snippets.softmax import persistent
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import normal
from tests.harness.poison import guarded
from tests.snippets.softmax.suite import SoftmaxTests, baseline, reference

# The interpreter compiles nothing that could be asked for its registers.
AS_MANY_AS_FIT = pytest.param(None, marks=pytest.mark.gpu)


class TestPersistent(SoftmaxTests):
    function = staticmethod(persistent.softmax)
    blocks = ({"programs": 2}, {"programs": 1}, {"programs": 3}, {"programs": 50})
    refused: ClassVar = {"programs": (0, -2)}

    @pytest.mark.parametrize("programs", [1, 2, 3, 7, AS_MANY_AS_FIT])
    @pytest.mark.parametrize("rows", [1, 7, 33])
    def test_every_row_is_some_programs(
        self,
        rows: int,
        programs: int | None,
        device: str,
    ) -> None:
        x = guarded(normal((rows, 512), torch.float32, device))  # 2 rows in a tile
        check_accuracy(self.function(x, programs=programs), reference(x), baseline(x))

    def test_the_longest_row(self, device: str) -> None:
        x = normal((3, 65536), torch.float32, device)
        self.check(x)

    def test_refuses_a_longer_row(self, device: str) -> None:
        with pytest.raises(ValueError, match=r"x has 65537 columns; .* 65536"):
            self.run(torch.zeros((1, 65537), device=device))


@pytest.mark.parametrize(
    ("registers", "warps", "shared", "programs"),
    [
        (16, 4, 0, 16),  # threads: 2048 / 128
        (16, 1, 0, 32),  # never more
        (64, 8, 0, 4),  # registers: 65536 / (64 * 256)
        (44, 4, 0, 10),  # registers of a warp: 44 * 32 = 1408, in 256s 1536
        (32, 4, 50_000, 4),  # shared memory: 233472 / 51024
        (32, 4, 38_000, 5),  # 233472 / 39024: without its 1 KiB there were 6
        (128, 16, 230_000, 1),
    ],
)
def test_programs_are_as_many_as_fit(
    registers: int,
    warps: int,
    shared: int,
    programs: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = SimpleNamespace(
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048,
        shared_memory_per_multiprocessor=233472,
        multi_processor_count=132,
        warp_size=32,
    )
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
    kernel = SimpleNamespace(
        n_regs=registers, metadata=SimpleNamespace(num_warps=warps, shared=shared)
    )
    device = torch.device("cuda", 0)
    assert persistent.resident_programs(kernel, device) == 132 * programs
