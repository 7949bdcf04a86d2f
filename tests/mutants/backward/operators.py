"""Bugs of attention behind operators, in Triton and on Hopper."""

from tests.mutants import Mutant

KEPT = "*inputs[:3], *output)"
GIVEN = "*ctx.saved_tensors, do, dlse, *ctx.options)"
# Of every operator.
OPERATORS = [
    Mutant(KEPT, "*(x.clone() for x in inputs[:3]), *output)", "copies are kept"),
    Mutant(
        "forward.register_autograd(gradients, setup_context=keep)\n", "", "no gradient"
    ),
    Mutant(
        "(torch.empty_like(q), q.new_empty(",
        "(q.new_empty(q.shape), q.new_empty(",
        "the fake o is contiguous",
    ),
    Mutant(
        "q.shape[:3], dtype=torch.float32))",
        "q.shape[:3]))",
        "the fake lse has the dtype of q",
    ),
    Mutant(
        "torch.empty_like(y) for y in x[:3]",
        "y.new_empty(y.shape) for y in x[:3]",
        "fake gradients are contiguous",
    ),
    Mutant(
        "torch.empty_like(y) for y in x[:3]",
        "torch.empty_like(y, dtype=torch.float32) for y in x[:3]",
        "fake gradients are float32",
    ),
    Mutant(
        "if torch.is_autocast_enabled(q.device.type):",
        "if False:",
        "autocast is ignored",
    ),
    Mutant(
        "(x.to(low) if x.dtype == torch.float32 else x for x in (q, k, v))",
        "(x.detach().to(low).requires_grad_() for x in (q, k, v))",
        "autocast cuts the graph",
    ),
    Mutant(
        "low = torch.get_autocast_dtype(q.device.type)",
        "low = torch.bfloat16",
        "autocast to bfloat16 whatever was asked",
    ),
    Mutant(
        "(x.shape, x.dtype, x.device) != (of_keys, q.dtype, q.device)",
        "(x.shape, x.dtype) != (of_keys, q.dtype)",
        "any device of k and v",
    ),
    Mutant("divides = heads %", "divides = True or heads %", "any number of kv heads"),
    Mutant('f"a divisor of {heads}"', "heads", "a number of kv heads that is made up"),
    Mutant('(0, "seq_k")', "(0, *k.shape[2:3])", "a seq_k that is made up"),
]
# Of those that call kernels of other files.
BEHIND_OPERATORS = [
    *OPERATORS,
    # What the kernels are given.
    Mutant(
        "attention_forward(*taken, causal=causal, scale",
        "attention_forward(*taken, scale",
        "causal is lost in forward",
    ),
    Mutant(
        "attention_forward(*taken, causal=causal, scale=scale",
        "attention_forward(*taken, causal=causal",
        "the scale is lost in forward",
    ),
    Mutant("dlse=dlse, causal", "causal", "the gradient of lse is lost"),
    Mutant("dlse=dlse, causal", "dlse=-dlse, causal", "the sign of dlse"),
    Mutant(
        "dlse=dlse, causal=causal, scale", "dlse=dlse, scale", "causal lost in backward"
    ),
    Mutant(
        "dlse=dlse, causal=causal, scale=scale",
        "dlse=dlse, causal=causal",
        "the scale is lost in backward",
    ),
    Mutant(
        "taken = [aligned(x) for x in (q, k, v)]",
        "taken = [q, k, v]",
        "forward is given what descriptors cannot take",
    ),
    Mutant(
        "taken = [aligned(x) for x in given]",
        "taken = given",
        "gradients are laid out as copies are",
    ),
    # What autograd is told.
    Mutant("*ctx.options), None, None", "*ctx.options), None", "a gradient too few"),
    Mutant("return dq, dk, dv", "return dq, dv, dk", "the order of gradients"),
    Mutant(KEPT, "*inputs[:3], output[0], output[1] * 0)", "lse is not kept"),
    Mutant(KEPT, "*inputs[:3], output[0], output[1] * 1.4427)", "lse kept in base 2"),
    Mutant(KEPT, "*inputs[1::-1], inputs[2], *output)", "q and k in the wrong order"),
    Mutant(
        GIVEN,
        "*ctx.saved_tensors, torch.ones_like(do), dlse, *ctx.options)",
        "do is taken to be 1",
    ),
    Mutant(
        GIVEN,
        "*ctx.saved_tensors, do.contiguous().view_as(do.mT).mT, dlse, *ctx.options)",
        "do is read by the wrong strides",
    ),
    Mutant(
        "forward.register_autograd(gradients, setup_context=keep)\n",
        "forward.register_autograd(gradients, setup_context=keep)\n"
        "backward.register_autograd(lambda ctx, *x: 9 * (None,))\n",
        "a second gradient of 0",
    ),
    # Layouts, and what fakes say of them.
    Mutant(
        "found if taken is x else torch.empty_like(x).copy_(found)",
        "found",
        "results are laid out as copies are",
    ),
    Mutant(
        "found if taken is x else torch.empty_like(x).copy_(found)",
        "found.contiguous()",
        "results are contiguous whatever a model has",
    ),
    # Checks and defaults.
    Mutant("8 <= q.shape[3]", "0 <= q.shape[3]", "a head_dim of 0"),
    Mutant(" and q.shape[3] % 8 == 0", "", "any head_dim"),
    Mutant(
        "q.dtype not in (torch.float16, torch.bfloat16)", "False", "any dtype accepted"
    ),
    Mutant("if scale is None else scale\n", "\n", "the caller's scale ignored"),
    Mutant("not scale > 0:", "scale < 0:", "a scale of 0 accepted"),
    Mutant("isinstance(scale, Tensor) or ", "", "a scale's gradient is lost"),
    Mutant(
        "(x.shape, x.dtype, x.device) != (of_keys, q.dtype, q.device)",
        "(x.shape, x.device) != (of_keys, q.device)",
        "any dtype of k and v",
    ),
]
