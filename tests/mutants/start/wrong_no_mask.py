"""Bugs that the tests of snippets/start/wrong_no_mask.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "triton.cdiv(x.numel(), block)",
        "x.numel() // block",
        "right inside, but the last block is dropped: it stays in its tensors",
    ),
    Mutant("x + y)", "x - y)", "wrong in another way: a sign"),
    Mutant("load(y_ptr", "load(x_ptr", "wrong in another way: x twice"),
    Mutant("program * BLOCK", "program", "wrong in another way: programs overlap"),
]
