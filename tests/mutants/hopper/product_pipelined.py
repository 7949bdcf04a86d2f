"""Bugs that the tests of snippets/hopper/product_pipelined.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.shared import PRODUCT

MUTANTS = [
    *PRODUCT,
    Mutant("[start_n, start_k]", "[start_m, start_k]", "other rows of b"),
    Mutant("i * a_desc.block_type.shape[1]", "0", "the first tiles only"),
    Mutant("a.index(stage), b_turned", "a.index(0), b_turned", "a of another stage"),
    Mutant(
        "        mbarrier.wait(full.index(stage), i // STAGES & 1)\n",
        "",
        "tiles are not waited for",
        may_hang=True,
    ),
    Mutant("i // STAGES & 1", "0", "one phase for all", may_hang=True),
    Mutant("i // STAGES & 1", "i & 1", "the phases of a single stage", may_hang=True),
]
