"""What "Choosing a kernel" says of AMD's GPUs is what Triton's compiler says."""

import json
import os
import subprocess
import sys

import pytest

from tests.machinery.repository import ROOT
from verified_docs import layout

ON_AMD = {
    "attention/flash2_causal.py": "v_mfma",
    # An ordinary load: an MI300 has no TMA.
    "attention/flash2_descriptors.py": "global_load",
}
REFUSED = {
    "attention/split_kv_overlapped.py": "launch_pdl",
    "attention/paged_kv.py": "launch_pdl",
    "softmax/long_rows.py": "maxnreg",
    "companions/layer_norm.py": "maxnreg",
}


@pytest.fixture(scope="module")
def compiled() -> dict[str, list[list[str]] | str]:
    """By file: its kernels and their machine code, or why it has none."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(ROOT / ".cache/triton")
    files = [layout.snippet_file(name) for name in (*ON_AMD, *REFUSED)]
    run = subprocess.run(
        [sys.executable, "-m", "tests.machinery.on_amd", *files],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    return dict(map(json.loads, run.stdout.splitlines()))


def test_what_compiles_for_an_mi300(compiled):
    for name, instruction in ON_AMD.items():
        for _, code in compiled[layout.snippet_file(name)]:
            assert "gfx942" in code
            assert instruction in code


def test_what_does_not(compiled):
    for name, option in REFUSED.items():
        assert f"{option} was specified" in compiled[layout.snippet_file(name)]
