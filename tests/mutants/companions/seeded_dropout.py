"""Bugs that the tests of snippets/companions/seeded_dropout.py must catch."""

from tests.mutants import Mutant
from tests.mutants.companions.shared import DRAW_MUTANTS

MUTANTS = [
    *DRAW_MUTANTS,
    Mutant("(counter >> 32)", "(counter * 0)", "counters of 32 bits"),
    Mutant("tl.philox(seed, low", "tl.philox(seed.to(tl.int32), low", "half a seed"),
    Mutant("tl.philox(seed, low", "tl.philox(seed | 1, low", "two seeds, one mask"),
    Mutant(
        "first = tl.program_id(0).to(tl.int64) * BLOCK",
        "first = tl.program_id(0) * BLOCK",
        "an index of 32 bits",
    ),
    Mutant(
        "first // 8 + tl.arange(0, BLOCK // 8)",
        "tl.arange(0, BLOCK // 8).to(tl.int64)",
        "elements counted from the tile",
    ),
    Mutant(
        "first // 8 + tl.arange(0, BLOCK // 8)",
        "first + tl.arange(0, BLOCK // 8)",
        "counters that depend on the tile",
    ),
    Mutant("x * scale, 0.0)", "x, 0.0)", "no 1 / (1 - p)"),
    Mutant(
        "65536 / (65536 - threshold).to(COMPUTE)",
        "(65536 - threshold).to(COMPUTE) / 65536",
        "scaled the wrong way round",
    ),
    Mutant(
        "tl.where(keep, x * scale, 0.0)",
        "keep.to(COMPUTE) * x * scale",
        "a product: what is dropped leaves its NaN, and p = 1 makes one",
    ),
    Mutant("rest % inner[axis] *", "rest *", "an index that runs on", 1),
    Mutant("        rest = rest // inner[axis]\n", "", "the same axis again"),
    Mutant("offs += rest * strides", "offs += index * strides", "the whole index"),
    Mutant("offs += rest * strides[len(inner)]", "offs = index", "strides ignored"),
    Mutant("y_ptr + index, y", "y_ptr + offs, y", "y written where x lies"),
    Mutant("index < size", "index <= size", "one element too many"),
    Mutant("y_ptr + index, y, mask", "y_ptr + index, y", "y without a mask"),
    Mutant("x_ptr + offs, mask, other=0.0", "x_ptr + offs", "x without a mask"),
    Mutant(
        "stride == found[-1][0] * found[-1][1]",
        "stride >= found[-1][0] * found[-1][1]",
        "gaps between rows forgotten",
    ),
    Mutant("(found[-1][0] * size, found", "(size, found", "half of an axis"),
    Mutant(
        "zip(reversed(x.shape), reversed(x.stride()), strict=True)",
        "zip(x.shape, x.stride(), strict=True)",
        "the outermost axis first",
    ),
    Mutant("found or [(1, 1)]", "found", "a single number has no axis"),
    Mutant("Dropout.apply(dy, threshold", "(dy, threshold", "nothing dropped in dx"),
    Mutant(
        "(dy, threshold, seed, block)", "(dy, threshold, seed + 1, block)", "seed + 1"
    ),
    Mutant(
        "(dy, threshold, seed, block)", "(dy, 0, seed, block)", "dx without dropout"
    ),
    Mutant(
        "x, y, seed, threshold",
        "x, y, int(seed), threshold",
        "the seed is read too early: a CUDA graph would keep it",
    ),
    Mutant(
        "ctx.rest = threshold, None if is_tensor else seed, block",
        "ctx.rest = threshold, seed, block",
        "a seed that has changed is used without a word",
    ),
    Mutant(
        "torch.empty(x.shape, dtype=x.dtype, device=x.device)",
        "torch.empty_like(x)",
        "y laid out as x",
    ),
    Mutant(
        "tl.float64 if x.dtype == torch.float64 else tl.float32",
        "tl.float32",
        "float64 in float32",
    ),
    Mutant("triton.cdiv(x.numel(), block)", "x.numel() // block", "the rest forgotten"),
    Mutant("x.dtype not in DTYPES", "False", "any dtype", may_not_compile=True),
    Mutant(
        "== (torch.int64, 1, x.device)",
        "== (seed.dtype, 1, x.device)",
        "a seed of another dtype",
    ),
    Mutant(
        "== (torch.int64, 1, x.device)",
        "== (torch.int64, seed.numel(), x.device)",
        "two seeds",
    ),
    Mutant(
        "== (torch.int64, 1, x.device)",
        "== (torch.int64, 1, seed.device)",
        "a seed on another device",
    ),
    Mutant("isinstance(seed, int) and 0 <=", "0 <=", "any number as a seed"),
    Mutant("0 <= seed < 2**63", "seed < 2**63", "a negative seed"),
    Mutant("0 <= seed < 2**63", "0 <= seed", "a seed of 64 bits"),
    Mutant(
        "with torch.cuda.device_of(x):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
