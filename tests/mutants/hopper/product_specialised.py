"""Bugs that the tests of snippets/hopper/product_specialised.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.late import SLEEP, late
from tests.mutants.hopper.shared import PRODUCT

GIVE = "        mbarrier.arrive(empty.index((i + STAGES - 1) % STAGES), pred=i > 0)\n"

MUTANTS = [
    *PRODUCT,
    Mutant("[start_n, i * block_k]", "[start_m, i * block_k]", "other rows of b"),
    Mutant("[start_m, i * block_k]", "[start_m, 0]", "the first tile of a only"),
    Mutant("a.index(stage), b_turned", "a.index(0), b_turned", "a of another stage"),
    Mutant(
        "        mbarrier.wait(full.index(stage), i // STAGES & 1)\n",
        "",
        "tiles are not waited for",
        may_hang=True,
    ),
    Mutant(
        "mbarrier.wait(full.index(stage), i // STAGES & 1)",
        "mbarrier.wait(full.index(stage), 0)",
        "one phase for all",
        may_hang=True,
    ),
    Mutant(
        "        mbarrier.wait(empty.index(stage), (i // STAGES & 1) ^ 1)\n",
        "",
        "the producer does not wait",
        may_hang=True,
    ),
    late(
        "product_specialised.py",
        "a stage is given back before it is multiplied",
        "        b_turned =",
        GIVE,
        (GIVE, ""),
        (
            "        b_turned =",
            "        mbarrier.arrive(empty.index(stage))\n"
            f"        {SLEEP}        b_turned =",
        ),
    ),
]
