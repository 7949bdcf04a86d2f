"""Every kernel compiles to machine code, for each dtype, on a machine without a GPU.

The interpreter accepts what the compiler does not: a variable that changes its type in
a loop, for instance.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DTYPES = ["torch.float16", "torch.bfloat16", "torch.float32", "torch.float64"]
SNIPPETS = sorted(
    path.relative_to(ROOT / "snippets").as_posix()
    for path in (ROOT / "snippets").rglob("*.py")
    if "@triton.jit" in path.read_text(encoding="utf-8")
)

# Loads, stores and atomics of memory that other launches see too.
ACCESS = re.compile(r"\b(?:ld|st|atom|red)[.\w:]*\.global|\bcp\.async\.c[ag]\b")


def cross_compile(
    *paths: Path, cache: Path = ROOT / ".cache/triton"
) -> dict[str, dict[str, list[str] | str]]:
    """What cross_compile.py says of these files, in a process of its own.

    What the compiler makes, it leaves in `cache`.
    """
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(cache)
    program = Path(__file__).with_name("cross_compile.py")
    done = subprocess.run(
        [sys.executable, program, *paths],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def compiled() -> dict[str, dict[str, list[str] | str]]:
    """All snippets, in one go: most of the time goes into importing torch."""
    return cross_compile(*(ROOT / "snippets" / name for name in SNIPPETS))


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_compiles(snippet: str, compiled: dict) -> None:
    kernels = compiled[str(ROOT / "snippets" / snippet)]
    assert list(kernels) == (DTYPES[:3] if "attention" in snippet else DTYPES)
    for dtype, launched in kernels.items():
        assert isinstance(launched, list), f"{dtype}: {launched}"
        assert launched, f"{dtype}: no kernel was launched"


def test_an_error_of_the_compiler_is_seen(tmp_path: Path) -> None:
    text = (ROOT / "snippets/softmax/online.py").read_text(encoding="utf-8")
    old = 'm_i = tl.full((), float("-inf"), COMPUTE)'
    assert old in text
    path = tmp_path / "changes_type.py"
    path.write_text(text.replace(old, "m_i = -1000000"), encoding="utf-8")
    for launched in cross_compile(path)[str(path)].values():
        assert "m_i" in launched
        assert "type" in launched


@pytest.mark.parametrize("name", ["flash2_causal", "flash2_window", "varlen"])
def test_scores_are_rounded_before_the_maximum_is_subtracted(
    name: str, tmp_path: Path
) -> None:
    # A fused multiply-add would not: see "What the fused instruction rounds".
    cross_compile(ROOT / f"snippets/attention/{name}.py", cache=tmp_path)
    assembly = list(tmp_path.rglob("*.ptx"))
    assert len(assembly) >= 3  # one for each dtype
    for path in assembly:
        text = path.read_text(encoding="utf-8")
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


@pytest.mark.parametrize("name", ["split_kv", "paged_kv"])
def test_nothing_is_read_before_the_launch_before_has_ended(
    name: str, tmp_path: Path
) -> None:
    cross_compile(ROOT / f"snippets/attention/{name}.py", cache=tmp_path)
    assembly = list(tmp_path.rglob("*.ptx"))
    assert {path.stem for path in assembly} == {"attention_kernel", "merge_kernel"}
    for path in assembly:
        start, wait, rest = path.read_text(encoding="utf-8").partition(
            "griddepcontrol.wait"
        )
        assert wait
        assert ACCESS.search(rest)
        assert not ACCESS.search(start)
        # A prefetch is a hint: it shows nothing to the program.
        keys_are_known = (name, path.stem) == ("split_kv", "attention_kernel")
        _, release, ahead = start.partition("griddepcontrol.launch_dependents")
        assert release
        assert ("prefetch.global.L2" in ahead) == keys_are_known
