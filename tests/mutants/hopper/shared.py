"""Bugs that a matrix product may have whatever its schedule."""

from tests.mutants import Mutant

PRODUCT = [
    # Which tile.
    Mutant(
        "gl.minimum(blocks_m - 8 * group, 8)", "8", "the last group as high as others"
    ),
    Mutant("(8 * group + place % high)", "(place % high)", "the first group only"),
    Mutant("place // high * block_n", "place % high * block_n", "tiles of a diagonal"),
    # The launch.
    Mutant("triton.cdiv(n, 8) * 8", "n", "rows of c that begin anywhere"),
    Mutant("))[:, :n]", "))", "c with its padding"),
    Mutant("return c.zero_()", "return c", "what was never written"),
    Mutant(" or k == 0:", ":", "a descriptor of nothing"),
    Mutant(
        "with torch.cuda.device_of(a):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
    # What is refused.
    Mutant(
        "a.dtype not in (torch.float16, torch.bfloat16)", "False", "any dtype accepted"
    ),
    Mutant("if got != right:", "if False:", "b may be anything"),
    Mutant("and x.requires_grad", "and False", "a gradient lost without a word"),
    Mutant("b.shape[1] != a.shape[1]", "False", "another k"),
    Mutant("x.stride(1) != 1 or ", "", "any last stride"),
    Mutant("x.stride(0) % 8 or ", "", "any first stride"),
    Mutant(" or x.data_ptr() % 16", "", "any address"),
    Mutant("if odd and x.numel():", "if odd:", "empty tensors refused"),
]
