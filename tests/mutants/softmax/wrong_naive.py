"""Bugs that the tests of snippets/softmax/wrong_naive.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "tl.exp(x.to(COMPUTE)).to(x.dtype).to(COMPUTE)",
        "tl.exp(x.to(COMPUTE))",
        "float32 hides the overflow of float16",
    ),
    Mutant(
        "tl.exp(x.to(COMPUTE))",
        "tl.exp(x.to(COMPUTE) - tl.max(x.to(COMPUTE), axis=0))",
        "right: the maximum is subtracted",
    ),
    Mutant("y = numerator / l_i", "y = numerator", "wrong in another way: no division"),
    Mutant(', other=float("-inf")', "", "wrong in another way: no other"),
    Mutant("return high", "return low", "the last finite value instead"),
    Mutant("0.0, 1000.0", "0.0, 80.0", "a search that ends too early"),
]
