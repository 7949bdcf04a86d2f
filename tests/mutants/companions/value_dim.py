"""Bugs that the tests of snippets/companions/value_dim.py must catch.

Those of the lines that differ from backward/autograd.py: it has the others.
"""

from collections.abc import Iterator

from tests.mutants import Mutant


def widths(view: str, where: str, what: str = "") -> Iterator[Mutant]:
    """A tile that is taken to be as wide as the keys, and one that is masked so."""
    old = f"tile({view}, {where}, HEAD_DIM_V, BLOCK_DV)"
    wide = old.replace("HEAD_DIM_V, BLOCK_DV", "HEAD_DIM, BLOCK_D")
    yield Mutant(old, wide, f"{view} as wide as the keys", may_not_compile=True)
    if what:
        masked = old.replace("HEAD_DIM_V", "HEAD_DIM")
        yield Mutant(old, masked, f"the mask of the keys on {what}")


MUTANTS = [
    # The widths, one by one.
    *widths("v_view", "kv_at, offs_n, seq_k", "the values"),
    *widths("o_view", "at, offs_m, seq_q", "the output"),
    *widths("c_view", "at, own, own_size", "do or v"),
    *widths("d_view", "met_at, met, size"),
    *widths("dc_view", "at, own, own_size", "dv"),
    Mutant(
        "acc = tl.zeros((BLOCK, BLOCK_DV), tl.float32)",
        "acc = tl.zeros((BLOCK, BLOCK_D), tl.float32)",
        "the accumulator as wide as the keys",
        may_not_compile=True,
    ),
    # The launch.
    Mutant(
        "*padded[0], *padded[1],", "*padded[1], *padded[0],", "the widths exchanged"
    ),
    Mutant("*padded[0], *padded[1],", "*padded[0], *padded[0],", "one width for both"),
    Mutant(
        "widths = (q.shape[3], v.shape[3])",
        "widths = (v.shape[3], q.shape[3])",
        "the widths in the wrong order",
    ),
    # Offsets, for all variants: their suite is one.
    Mutant("offs.to(tl.int64)", "offs", "rows in 32 bits"),
    Mutant("cols.to(tl.int64)", "cols", "columns in 32 bits"),
    Mutant(
        "row = tl.program_id(1).to(tl.int64)",
        "row = tl.program_id(1)",
        "forward, heads in 32 bits",
    ),
    Mutant(
        "row, start = tl.program_id(1).to(tl.int64)",
        "row, start = tl.program_id(1)",
        "backward, heads in 32 bits",
    ),
    # Outputs.
    Mutant(
        "*q.shape[:3], v.shape[3]))", "*q.shape[:3], q.shape[3]))", "o as wide as q"
    ),
    Mutant(
        "torch.empty_like(q[..., :1].expand(*q.shape[:3], v.shape[3]))",
        "q.new_empty((*q.shape[:3], v.shape[3]))",
        "o is contiguous whatever q is",
    ),
    Mutant(
        "lambda q, k, v, *_: outputs(q, v)",
        "lambda q, k, v, *_: outputs(q, k)",
        "the fake o is as wide as the keys",
    ),
    # Checks and defaults.
    Mutant("1 <= v.shape[3] <= 256", "1 <= v.shape[3]", "values of any width"),
    Mutant("1 <= v.shape[3] <= 256", "v.shape[3] <= 256", "values of no width"),
    Mutant(
        "head_dim**-0.5 if scale",
        "v.shape[3] ** -0.5 if scale",
        "the scale from the width of the values",
    ),
]
