"""Bugs that the tests of snippets/companions/wrong_locks.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant("mask, other=0.0) + dy, mask)", "mask, other=0.0), mask)", "nothing added"),
    Mutant("tl.load(db_ptrs, mask, other=0.0) + dy", "dy", "only the last row"),
    Mutant("dy_ptr + row * cols", "dy_ptr + which", "other rows", may_not_compile=True),
    Mutant("return partial.sum(dim=0)", "return partial[0]", "the first sum alone"),
    Mutant("torch.zeros((locks, cols)", "torch.empty((locks, cols)", "sums of NaN"),
    Mutant("+ dy, mask)", "+ dy)", "a store without a mask"),
]
