"""Bugs that the tests of snippets/companions/softcap.py must catch.

Those of the lines that differ from backward/autograd.py: it has the others.
"""

from tests.mutants import Mutant

SLOPE = 'tl.where(s == float("-inf"), 0.0, 1 - (s / cap) * (s / cap))'
# With the score before the cap in place of s.
UNCAPPED = (
    'tl.where(s == float("-inf"), 0.0, 1 - (tl.dot(a, b.T) * (scale / cap)) '
    "* (tl.dot(a, b.T) * (scale / cap)))"
)

MUTANTS = [
    # The score.
    Mutant(
        'tl.where(seen, cap * tanh, float("-inf"))',
        'tl.where(seen, cap * x, float("-inf"))',
        "no cap at all",
    ),
    Mutant(
        'tl.where(seen, cap * tanh, float("-inf"))',
        "cap * tl.where(seen, tanh, -1.0)",
        "the mask before the cap",
    ),
    Mutant("cap * tanh, float", "tanh, float", "a tanh that is not multiplied"),
    Mutant("* (scale / cap)", "* scale", "a score that is not divided"),
    Mutant("* (scale / cap)", "/ cap", "no scale"),
    Mutant(
        "tl.where(tl.abs(x) < 0.75, near, 1 - 2 / (1 + tl.exp(2 * x)))",
        "1 - 2 / (1 + tl.exp(2 * x))",
        "the form with exp near 0",
    ),
    Mutant(
        "tl.where(tl.abs(x) < 0.75, near, 1 - 2 / (1 + tl.exp(2 * x)))",
        "near",
        "the fraction far from 0",
    ),
    Mutant("tl.abs(x) < 0.75", "x < 0.75", "the fraction for all that is negative"),
    Mutant("tl.abs(x) < 0.75", "tl.abs(x) < 3.0", "the fraction up to 3"),
    Mutant("(420 + 15 * x * x)", "(420 + 5 * x * x)", "a coefficient of the fraction"),
    Mutant("tl.exp(2 * x)", "tl.exp(x)", "tanh of half of x"),
    Mutant(
        "1 - 2 / (1 + tl.exp(2 * x))",
        "(tl.exp(x) - tl.exp(-x)) / (tl.exp(x) + tl.exp(-x))",
        "a quotient that overflows",
    ),
    # Its slope.
    Mutant(f"            ds *= {SLOPE}\n", "", "no derivative of the cap"),
    Mutant(SLOPE, "1 - (s / cap) * (s / cap)", "NaN where a key is masked"),
    Mutant("1 - (s / cap) * (s / cap)", "1 - (s / cap)", "the square is missing"),
    Mutant("1 - (s / cap) * (s / cap)", "1 - s * s", "the slope of a cap of 1"),
    Mutant(
        SLOPE,
        UNCAPPED,
        "the slope of the score before the cap",
    ),
    Mutant(f"ds *= {SLOPE}", f"p *= {SLOPE}", "the weights bent in place of ds"),
    # What autograd is told.
    Mutant("*4 * (None,)", "*3 * (None,)", "a gradient too few"),
    Mutant(
        "do, dlse, *ctx.options)",
        "do, dlse, *ctx.options[:2], 30.0, ctx.options[3])",
        "the cap is lost in backward",
    ),
    Mutant(
        "KEYS=True, cap=cap)",
        "KEYS=True, cap=1e4)",
        "dk and dv know nothing of the cap",
    ),
    # Checks.
    Mutant("if not 0 < cap <", "if not 0 < abs(cap) <", "a negative cap accepted"),
    Mutant('if not 0 < cap < float("inf")', "if not 0 < cap", "no cap is a cap of inf"),
    Mutant("if not 0 < cap <", "if cap <= 0 or cap ==", "a cap that is NaN accepted"),
]
