"""What "Choosing a kernel" says of AMD's GPUs is what Triton's compiler says."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import torch
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend

from tests.compile import compiler
from tests.machinery.repository import ROOT
from verified_docs import layout

Compiled = list[tuple[str, str]] | str

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


def on_amd(name: str) -> Compiled:
    """The kernels of a snippet and their machine code for an MI300, or why it has none.

    Nothing runs, and no such GPU need be there.
    """
    compiler.TARGET = GPUTarget("hip", "gfx942", 64)
    compiler.BACKEND = make_backend(compiler.TARGET)
    compiler.ASSEMBLY = "amdgcn"
    compiler.DTYPES = (torch.float16,)
    torch.cuda.get_device_capability = lambda device: (9, 4)
    torch.cuda.get_device_properties = lambda device: compiler.PROPERTIES
    (found,) = compiler.kernels_of(ROOT / layout.snippet_file(name)).values()
    return found


@pytest.fixture(scope="module")
def compiled() -> dict[str, Compiled]:
    """What became of each snippet in a process without the interpreter."""
    names = [*ON_AMD, *REFUSED]
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TRITON_INTERPRET", raising=False)
        patch.setenv("TRITON_CACHE_DIR", str(ROOT / ".cache/triton"))
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            return dict(zip(names, pool.map(on_amd, names, timeout=600), strict=True))


def test_what_compiles_for_an_mi300(compiled):
    for name, instruction in ON_AMD.items():
        for _, code in compiled[name]:
            assert "gfx942" in code
            assert instruction in code


def test_what_does_not(compiled):
    for name, option in REFUSED.items():
        assert f"{option} was specified" in compiled[name]
