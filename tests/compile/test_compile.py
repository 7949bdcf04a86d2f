"""Every kernel compiles to machine code, for each dtype, on a machine without a GPU.

The interpreter accepts what the compiler does not: a variable that changes its type in
a loop, for instance. With --due, what is known to compile is not compiled again.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.compile import compiled
from verified_docs import layout

ROOT = Path(__file__).parents[2]
DTYPES = ["torch.float16", "torch.bfloat16", "torch.float32", "torch.float64"]
KERNEL = re.compile(r"^@(?:triton|gluon)\.jit", re.MULTILINE)
SNIPPETS = [
    name
    for name in layout.names(ROOT)
    if KERNEL.search((ROOT / layout.snippet_file(name)).read_text(encoding="utf-8"))
]

# Loads, stores and atomics of memory that other launches see too.
ACCESS = re.compile(r"\b(?:ld|st|atom|red)[.\w:]*\.global|\bcp\.async\.c[ag]\b")

Kernels = dict[str, list[tuple[str, str]] | str]
Compiler = Callable[[Path], Kernels]


@pytest.fixture(scope="session")
def compiler() -> Iterator[Compiler]:
    """compiler.py in a process of its own, which compiles each file once."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = str(ROOT)
    environment["TRITON_CACHE_DIR"] = str(ROOT / ".cache/triton")
    with subprocess.Popen(
        [sys.executable, Path(__file__).with_name("compiler.py")],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        @cache
        def answer(path: Path) -> Kernels:
            print(path, file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())

        yield answer
        process.stdin.close()


def assembly(compiler: Compiler, name: str) -> list[tuple[str, str]]:
    """The kernels of a snippet, of all dtypes, with their assembly."""
    found = compiler(ROOT / layout.snippet_file(name)).values()
    return [kernel for launched in found for kernel in launched]


@pytest.mark.parametrize("name", SNIPPETS)
def test_compiles(
    name: str, compiler: Compiler, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("due") and compiled.known(ROOT, name):
        pytest.skip("it is known to compile")
    kernels = compiler(ROOT / layout.snippet_file(name))
    assert {*DTYPES[:2]} <= kernels.keys() <= {*DTYPES}
    for dtype, launched in kernels.items():
        assert isinstance(launched, list), f"{dtype}: {launched}"
        assert launched, f"{dtype}: no kernel was launched"
    compiled.note(ROOT, name)


def test_an_error_of_the_compiler_is_seen(compiler: Compiler, tmp_path: Path) -> None:
    text = (ROOT / "snippets/softmax/online.py").read_text(encoding="utf-8")
    old = 'm_i = tl.full((), float("-inf"), COMPUTE)'
    assert old in text
    path = tmp_path / "softmax/online.py"
    path.parent.mkdir()
    path.write_text(text.replace(old, "m_i = -1000000"), encoding="utf-8")
    for launched in compiler(path).values():
        assert "m_i" in launched
        assert "type" in launched


@pytest.mark.parametrize("name", ["flash2_causal", "flash2_window", "varlen"])
def test_scores_are_rounded_before_the_maximum_is_subtracted(
    name: str, compiler: Compiler
) -> None:
    # A fused multiply-add would not: see "What the fused instruction rounds".
    kernels = assembly(compiler, f"attention/{name}.py")
    assert len(kernels) >= 3  # one for each dtype
    for _, text in kernels:
        made = {
            result: (operation, first)
            for operation, result, first in re.findall(
                r"^\s*([a-z][\w.]*) +\t?(%\w+), (%\w+)", text, re.MULTILINE
            )
        }
        powers = [first for operation, first in made.values() if "ex2." in operation]
        assert powers
        for power in powers:
            operation, first = made[power]
            assert operation.startswith("mul.")  # by log2(e)
            assert made[first][0].startswith("sub.")


@pytest.mark.parametrize("name", ["split_kv_overlapped", "paged_kv"])
def test_nothing_is_read_before_the_launch_before_has_ended(
    name: str, compiler: Compiler
) -> None:
    kernels = assembly(compiler, f"attention/{name}.py")
    assert {kernel for kernel, _ in kernels} == {"attention_kernel", "merge_kernel"}
    for kernel, text in kernels:
        start, wait, rest = text.partition("griddepcontrol.wait")
        assert wait
        assert ACCESS.search(rest)
        assert not ACCESS.search(start)
        # A prefetch is a hint: it shows nothing to the program.
        keys_are_known = (name, kernel) == ("split_kv_overlapped", "attention_kernel")
        _, release, ahead = start.partition("griddepcontrol.launch_dependents")
        assert release
        assert ("prefetch.global.L2" in ahead) == keys_are_known


def test_who_adds_to_the_sum_of_dq(compiler: Compiler) -> None:
    ways = {"threads": 0, "the TMA unit": 0}
    for kernel, text in assembly(compiler, "backward/one_kernel.py"):
        by_threads = set(re.findall(r"\b(?:atom|red)\.global\.[\w.]+", text))
        by_tma = re.findall(r"\bcp\.reduce\.async\.bulk\.tensor[\w.:]+\.add\b", text)
        if kernel == "backward_kernel":
            assert bool(by_threads) != bool(by_tma)
            ways["threads" if by_threads else "the TMA unit"] += 1
        # Four neighbours at a time, and no order for other memory.
        assert by_threads <= {"atom.global.gpu.relaxed.add.v4.f32"}
    assert all(ways.values())


def test_no_product_is_under_way_while_softmax_is_computed(compiler: Compiler) -> None:
    # What the page on Hopper says of the kernel, and FlashAttention-3 does not do.
    event = re.compile(r"wgmma\.(mma_async)|wgmma\.wait_group\S* (\d+)|(ex2\.approx)")
    kernels = assembly(compiler, "attention/flash2_descriptors.py")
    halves = [text for _, text in kernels if "wgmma.mma_async" in text]  # not fp32
    assert len(halves) >= 2
    for text in halves:
        pending, powers = False, 0
        for product, left, power in event.findall(text):
            powers += bool(power)
            assert not (power and pending)
            pending = bool(product) or (pending and left != "0")
        assert powers
