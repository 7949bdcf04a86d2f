"""Bugs that the tests of snippets/backward/autograd.py must catch."""

from tests.mutants import Mutant
from tests.mutants.backward.operators import OPERATORS

MUTANTS = [
    *OPERATORS,
    # What autograd is told.
    Mutant(
        "*ctx.options), None, None, None",
        "*ctx.options), None, None",
        "a gradient too few",
    ),
    Mutant(
        "    return dq, dk, dv\n", "    return dq, dv, dk\n", "the order of gradients"
    ),
    Mutant(
        "*inputs[:3], *output)",
        "*inputs[:3], output[0], torch.zeros_like(output[1]))",
        "lse is not kept",
    ),
    Mutant(
        "*inputs[:3], *output)",
        "*inputs[1::-1], inputs[2], *output)",
        "q and k are kept in the wrong order",
    ),
    Mutant(".sum(dim=-1) - dlse", ".sum(dim=-1)", "the gradient of lse is lost"),
    Mutant(".sum(dim=-1) - dlse", ".sum(dim=-1) + dlse", "the sign of dlse"),
    Mutant(
        "do, dlse, *ctx.options)",
        "do.contiguous() * 0 + 1, dlse, *ctx.options)",
        "do is taken to be 1",
    ),
    Mutant(
        "*ctx.options), None",
        "False, *ctx.options[1:]), None",
        "causal is lost in backward",
    ),
    Mutant(
        "*ctx.options), None",
        "ctx.options[0], 0.25, ctx.options[2]), None",
        "the scale is lost in backward",
    ),
    Mutant(
        "forward.register_autograd(gradients, setup_context=keep)\n",
        "forward.register_autograd(gradients, setup_context=keep)\n"
        "backward.register_autograd(lambda ctx, *x: 10 * (None,))\n",
        "a second gradient of 0",
    ),
    Mutant("if isinstance(scale, Tensor):", "if False:", "a scale's gradient is lost"),
    # Outputs.
    Mutant(
        "    o, lse = torch.empty_like(q), q.new_empty",
        "    o, lse = q.new_empty(q.shape), q.new_empty",
        "o is contiguous whatever q is",
    ),
    Mutant(
        "dq, dk, dv = (torch.empty_like(x) for",
        "dq, dk, dv = (x.new_empty(x.shape) for",
        "gradients are contiguous",
    ),
    Mutant(
        "dq, dk, dv = (torch.empty_like(x) for",
        "dq, dk, dv = (torch.zeros_like(q[:, : x.shape[1], : x.shape[2]]) for",
        "gradients are laid out as q",
    ),
    # Checks and defaults.
    Mutant("1 <= q.shape[3] <= 256", "1 <= q.shape[3]", "any head_dim accepted"),
    Mutant(
        "if scale is None else scale", "if not scale else scale", "a scale of 0 lost"
    ),
    Mutant(
        "(x.shape, x.dtype, x.device) != (of_keys, q.dtype, q.device)",
        "(x.shape, x.device) != (of_keys, q.device)",
        "any dtype of k and v",
        may_not_compile=True,
    ),
    Mutant("torch.cuda.device_of(q)", "torch.no_grad()", "launched on any device"),
    # The kernels.
    Mutant("x[0] + at[0] * x[1] +", "x[0] +", "the first batch of all"),
    Mutant("offs.to(tl.int64)[:, None]", "offs[:, None]", "rows in 32 bits"),
    Mutant("cols.to(tl.int64) * x[4]", "cols * x[4]", "columns in 32 bits"),
    Mutant("(rows < size) & (cols < COLS)", "(rows < size)", "padded columns are read"),
    Mutant("(rows < size) & (cols < COLS)", "(cols < COLS)", "rows beyond the end"),
    Mutant(
        "(offs_m < seq_q) & (offs_n < seq_k)",
        "(offs_m < seq_q)",
        "absent keys have weight",
    ),
    Mutant(
        "offs_n <= offs_m + seq_k - seq_q",
        "offs_n <= offs_m",
        "the mask aligned top left",
    ),
    Mutant(
        "(col, row) if KEYS else (row, col)", "(row, col)", "the mask not transposed"
    ),
    Mutant(
        "m_i + tl.log(l_i), mask",
        "(m_i + tl.log(l_i)) * 1.4426950408889634, mask",
        "lse in base 2",
    ),
    Mutant(
        'tl.where(s == float("-inf"), 0.0, tl.exp(s - (lse.T if KEYS else lse)))',
        "tl.exp(s - (lse.T if KEYS else lse))",
        "NaN in rows that see nothing",
    ),
    Mutant(
        "for i in range(group if KEYS else 1)",
        "for i in range(1)",
        "one head of a group",
    ),
    Mutant(
        "at[1] * group + i if KEYS", "at[1] if KEYS", "the query head of a key head"
    ),
    Mutant(
        "if KEYS else at[1] // group", "if KEYS else at[1] % group", "heads interleaved"
    ),
    Mutant("dp - (delta.T if KEYS else delta)", "dp", "no delta"),
    Mutant(
        "tl.store(ptrs, da * scale, mask=mask)",
        "tl.store(ptrs, da, mask=mask)",
        "no scale in dq and dk",
    ),
    Mutant(
        "tl.maximum(start - shift, 0)",
        "tl.maximum(start, 0)",
        "queries skipped that see a key",
    ),
    Mutant(
        "start + BLOCK + shift, size)",
        "start + shift, size)",
        "keys skipped that a query sees",
    ),
    Mutant("(o.float() * do)", "(o * do)", "delta in the dtype of o"),
    Mutant("acc * alpha, input", "acc, input", "the accumulator is not rescaled"),
    Mutant("l_i = l_i * alpha +", "l_i = l_i +", "the sum is not rescaled"),
]
