"""Bugs that the tests of snippets/attention/flash2_window.py must catch."""

from tests.mutants import Mutant

BEGIN = "tl.maximum(start_m + 1 + seq_k - seq_q - window, 0)"

WHOLE_FROM = "tl.maximum(start_m + BLOCK_M + seq_k - seq_q - window, 0)"

EDGE = "> offs_m[:, None] + seq_k - seq_q - window"

MUTANTS = [
    Mutant(BEGIN, "0", "tiles before the window are visited"),
    Mutant(BEGIN, BEGIN.replace(", 0)", ", -128)"), "keys before the first"),
    Mutant(BEGIN, BEGIN.replace(" + 1", " + 2"), "the first key of a window lost"),
    Mutant(
        f"{BEGIN} // BLOCK_N",
        f"tl.cdiv({BEGIN}, BLOCK_N)",
        "the first tile of a window lost",
    ),
    Mutant(f"{BEGIN} // BLOCK_N * BLOCK_N", BEGIN, "tiles that are not aligned"),
    Mutant(WHOLE_FROM, BEGIN, "no mask on the window's edge"),
    Mutant(WHOLE_FROM, WHOLE_FROM.replace("BLOCK_M", "BLOCK_M - 1"), "one row less"),
    Mutant(
        "tl.cdiv(whole, BLOCK_N) * BLOCK_N",
        "whole // BLOCK_N * BLOCK_N",
        "a tile of the edge without a mask",
    ),
    Mutant(
        "tl.minimum(tl.cdiv(whole, BLOCK_N) * BLOCK_N, full)",
        "tl.cdiv(whole, BLOCK_N) * BLOCK_N",
        "tiles of the diagonal counted twice",
    ),
    Mutant(EDGE, EDGE.replace(">", ">="), "a window that is one too long"),
    Mutant(EDGE, EDGE.replace(" + seq_k - seq_q", ""), "a window aligned top left"),
    Mutant("window, begin, whole", "window, whole, whole", "no lower edge"),
    Mutant(
        "CAUSAL, ON_BAND=True,\n        )",
        "CAUSAL, ON_BAND=False,\n        )",
        "no mask on the lower edge",
    ),
    Mutant("min(window, k.shape[2])", "window", "a sum beyond 32 bits"),
    Mutant("window < 1", "window < 0", "a window of nothing"),
    Mutant("if not causal:", "if False:", "a window without causal"),
]
