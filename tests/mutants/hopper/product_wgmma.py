"""Bugs that the tests of snippets/hopper/product_wgmma.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.shared import PRODUCT

MUTANTS = [
    *PRODUCT,
    Mutant("[start_n, i * block_k]", "[start_m, i * block_k]", "other rows of b"),
    Mutant("[start_m, i * block_k]", "[start_m, 0]", "the first tile of a only"),
    Mutant("[start_m, start_n], c)", "[start_n, start_m], c)", "c turned"),
    Mutant(
        "        mbarrier.wait(full, i & 1)\n",
        "",
        "tiles are not waited for",
        may_hang=True,
    ),
    Mutant(
        "mbarrier.wait(full, i & 1)",
        "mbarrier.wait(full, 0)",
        "one phase for all",
        may_hang=True,
    ),
    Mutant("i & 1)", "(i + 1) & 1)", "the phase before", may_hang=True),
    Mutant(
        "        acc = warpgroup_mma_wait(0, deps=[acc])\n",
        "",
        "tiles replaced while they are multiplied",
        may_not_compile=True,
    ),
]
