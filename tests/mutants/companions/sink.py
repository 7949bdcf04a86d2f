"""Bugs that the tests of snippets/companions/sink.py must catch.

Those of the lines that differ from backward/autograd.py: it has the others.
"""

from tests.mutants import Mutant

SINK = "tl.load(sink[0] + at[1] * sink[1])"

MUTANTS = [
    # The forward pass.
    Mutant(
        f"m_i = tl.zeros((BLOCK, 1), tl.float32) + {SINK}",
        'm_i = tl.full((BLOCK, 1), float("-inf"), tl.float32)',
        "no sink in the sum",
    ),
    Mutant(
        "tl.full((BLOCK, 1), 1.0, tl", "tl.full((BLOCK, 1), 0.0, tl", "only a shift"
    ),
    Mutant("at[1] * sink[1]", "at[0] * sink[1]", "the sink of the batch entry"),
    Mutant("at[1] * sink[1]", "kv_at[1] * sink[1]", "the sink of the key head"),
    Mutant("at[1] * sink[1]", "at[1]", "the stride of the sinks"),
    Mutant(SINK, "tl.load(sink[0])", "the sink of the first head"),
    Mutant(f" + {SINK}", f" + {SINK} * scale", "the sink is scaled as a score is"),
    Mutant(
        "tl.store(ptrs, m_i + tl.log(l_i), mask=mask)",
        f"tl.store(ptrs, m_i + tl.log(l_i - tl.exp({SINK} - m_i)), mask=mask)",
        "lse without the sink",
    ),
    Mutant("at[1] * sink[1]", "at[1].to(tl.int32) * sink[1]", "its offset in 32 bits"),
    # Its gradient.
    Mutant("dsink = -(torch.exp", "dsink = (torch.exp", "the sign of dsink"),
    Mutant(
        "(torch.exp(sink[:, None] - lse) * delta)",
        "(torch.exp(sink[:, None] - lse) * (delta + dlse))",
        "dsink without the gradient of lse",
    ),
    Mutant(
        "(torch.exp(sink[:, None] - lse) * delta)",
        "(torch.exp(sink[:, None] - lse) * -dlse)",
        "dsink without the output's part",
    ),
    Mutant("torch.exp(sink[:, None] - lse)", "torch.exp(-lse)", "the weight of a 0"),
    Mutant("torch.exp(sink[:, None] - lse)", "torch.exp(sink[:, None])", "no lse"),
    Mutant(".sum(dim=(0, 2))", ".sum(dim=2)[0]", "one batch entry"),
    Mutant(".sum(dim=(0, 2))", ".mean(dim=(0, 2))", "the mean over rows"),
    Mutant(
        "dsink = -(torch.exp(sink[:, None] - lse) * delta)",
        "dsink = -(torch.exp(sink[:, None] - lse).half() * delta.half()).float()",
        "dsink in half precision",
    ),
    # What autograd is told.
    Mutant("return dq, dk, dv, dsink", "return dq, dk, dv, sink * 0", "no gradient"),
    Mutant(
        "*ctx.options), None, None, None", "*ctx.options), None, None", "a None too few"
    ),
    Mutant("for y in x[:4])", "for y in x[:3])", "a fake without dsink"),
    Mutant(
        "ctx.save_for_backward(*inputs[:4], *output)",
        "ctx.save_for_backward(*inputs[:3], inputs[3] * 0, *output)",
        "the sink is lost in backward",
    ),
    # Checks.
    Mutant(
        "((heads,), torch.float32)",
        "((k.shape[1],), torch.float32)",
        "one for each key head",
    ),
    Mutant(
        '("v", v, kv), ("sink", sink, own):',
        '("v", v, kv), ("v", v, kv):',
        "any sink accepted",
        may_not_compile=True,
    ),
    Mutant("known = isinstance(x, Tensor)", "known = True", "a list is no tensor"),
]
