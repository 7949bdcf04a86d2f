"""What a weight costs: exp and exp2, in the machine code of a GPU."""

import math
import re
import subprocess
import tempfile
from collections import Counter

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


# --8<-- [start:base_e]
@triton.jit
def base_e_kernel(s_ptr, p_ptr, scale, m, size, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    s = tl.load(s_ptr + offs, mask=offs < size, other=0.0) * scale
    p = tl.exp(s - m)
    tl.store(p_ptr + offs, p, mask=offs < size)


# --8<-- [end:base_e]


# --8<-- [start:base_2]
@triton.jit
def base_2_kernel(s_ptr, p_ptr, scale_log2, m_log2, size, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    s = tl.load(s_ptr + offs, mask=offs < size, other=0.0)
    p = tl.exp2(s * scale_log2 - m_log2)
    tl.store(p_ptr + offs, p, mask=offs < size)


# --8<-- [end:base_2]


# --8<-- [start:launch]
def weights(s: torch.Tensor, m: float, *, scale: float, base: str) -> torch.Tensor:
    """exp(scale * s - m) of each score.

    Args:
        s: [size], float32, contiguous, on a GPU.
        m: what is subtracted: the maximum of scale * s, or more.
        scale: what the scores are multiplied by.
        base: "e", or "2": exp2 with log2(e) folded into scale and m.

    Returns:
        [size], float32, contiguous.

    Raises:
        ValueError: s or base is not one of the above, or s requires a gradient.
    """
    if s.ndim != 1 or s.dtype != torch.float32 or not s.is_contiguous():
        raise ValueError(
            f"s is {list(s.shape)}, {s.dtype}, strides {list(s.stride())}; "
            "it must be [size], torch.float32, contiguous"
        )
    if torch.is_grad_enabled() and s.requires_grad:
        lost = "requires a gradient, which this forward pass would lose"
        raise ValueError(f"s {lost}; use torch.no_grad() or detach it")
    if base not in ("e", "2"):
        raise ValueError(f"base is {base!r}; it must be 'e' or '2'")

    p = torch.empty_like(s)
    grid = (triton.cdiv(s.numel(), 1024),)
    log2_e = math.log2(math.e)
    with torch.cuda.device_of(s):
        if base == "e":
            base_e_kernel[grid](s, p, scale, m, s.numel(), BLOCK=1024)
        else:
            base_2_kernel[grid](s, p, scale * log2_e, m * log2_e, s.numel(), BLOCK=1024)
    return p


# --8<-- [end:launch]


# --8<-- [start:instructions]
def instructions(kernel: triton.JITFunction) -> dict[str, int]:
    """How often a program computes with floats for each score, by instruction.

    Compiles one of the kernels for a Hopper GPU, which need not be there.

    Returns:
        The names of NVIDIA's machine code: FADD, FMUL and FFMA add, multiply, or do
        both at once; FSETP compares; MUFU.EX2 is 2 ** x.
    """
    source = ASTSource(
        triton.JITFunction(kernel.fn),  # a kernel that no launch has changed
        signature={
            "s_ptr": "*fp32",
            "p_ptr": "*fp32",
            **dict.fromkeys(kernel.arg_names[2:4], "fp32"),
            "size": "i32",
            "BLOCK": "constexpr",
        },
        constexprs={"BLOCK": 1024},
    )
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    with tempfile.NamedTemporaryFile() as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        disassembler = [triton.knobs.nvidia.nvdisasm.path, file.name]
        code = subprocess.run(disassembler, check=True, capture_output=True, text=True)
    found = Counter(re.findall(r"\b(F[A-Z]+|MUFU\.EX2)\b", code.stdout))
    scores = found["MUFU.EX2"]  # of one thread: each has one exponential
    return {name: count // scores for name, count in sorted(found.items())}


# --8<-- [end:instructions]

# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    s = torch.randn(5000, device=device)
    expected = torch.exp(0.125 * s.double() - 1)
    for base, kernel in (("e", base_e_kernel), ("2", base_2_kernel)):
        error = (weights(s, 1.0, scale=0.125, base=base) - expected).abs().max().item()
        counts = ", ".join(f"{n} {name}" for name, n in instructions(kernel).items())
        print(f"{device}: base {base}, largest error {error:.1e}: {counts}")
# --8<-- [end:demo]
