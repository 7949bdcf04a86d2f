"""Bugs that the tests of snippets/companions/alibi.py must catch.

Those of the lines that differ from backward/autograd.py: it has the others.
"""

from tests.mutants import Mutant

DISTANCE = "slope * tl.abs(offs_m + seq_k - seq_q - offs_n)"

MUTANTS = [
    # The score.
    Mutant(f"s -= {DISTANCE}", "s -= 0.0", "no bias"),
    Mutant(f"s -= {DISTANCE}", f"s += {DISTANCE}", "the sign of the bias"),
    Mutant(
        "tl.abs(offs_m + seq_k - seq_q - offs_n)", "tl.abs(offs_m - offs_n)", "top left"
    ),
    Mutant(
        "tl.abs(offs_m + seq_k - seq_q - offs_n)",
        "tl.abs(offs_m + seq_q - seq_k - offs_n)",
        "the lengths exchanged",
    ),
    Mutant(
        "tl.abs(offs_m + seq_k - seq_q - offs_n)",
        "(offs_m + seq_k - seq_q - offs_n)",
        "keys after the query get a bonus",
    ),
    Mutant(
        "tl.abs(offs_m + seq_k - seq_q - offs_n)",
        "tl.abs(row + seq_k - seq_q - col)",
        "the distance is not transposed",
    ),
    Mutant(
        'input_precision="ieee") * scale\n    slope',
        'input_precision="ieee")\n    slope',
        "no scale",
    ),
    Mutant(
        f"    s -= {DISTANCE}\n",
        f"    s -= {DISTANCE} * scale\n",
        "the bias is scaled as well",
    ),
    # Whose slope.
    Mutant("at[1] * slopes[1]", "at[0] * slopes[1]", "the slope of the batch entry"),
    Mutant("at[1] * slopes[1]", "at[1]", "the stride of the slopes"),
    Mutant("at[1] * slopes[1]", "0", "the slope of the first head"),
    Mutant(
        "offs_n, slopes, at, scale", "offs_n, slopes, kv_at, scale", "of the key head"
    ),
    Mutant(
        "met, slopes, m_at, scale",
        "met, slopes, at, scale",
        "of the head that is owned",
    ),
    Mutant(
        "met, slopes, m_at, scale",
        "met, slopes, met_at, scale",
        "of the head that is met",
    ),
    Mutant(
        "at[1] * slopes[1]", "at[1].to(tl.int32) * slopes[1]", "its offset in 32 bits"
    ),
    # What autograd is told.
    Mutant("*4 * (None,)", "*3 * (None,)", "a gradient too few"),
    Mutant(
        "ctx.save_for_backward(*inputs[:4], *output)",
        "ctx.save_for_backward(*inputs[:3], inputs[3] * 0, *output)",
        "the slopes are lost in backward",
    ),
    # Checks.
    Mutant(
        "own = (of_keys, q.dtype), ((heads,)",
        "own = (of_keys, q.dtype), ((k.shape[1],)",
        "a slope for each key head",
    ),
    Mutant(
        "torch.is_grad_enabled() and slopes.requires_grad",
        "False",
        "a gradient is lost",
    ),
    Mutant(
        "torch.is_grad_enabled() and slopes.requires_grad",
        "slopes.requires_grad",
        "a parameter refused although nobody asks for its gradient",
    ),
    Mutant("known = isinstance(x, Tensor)", "known = True", "a list is no tensor"),
]
