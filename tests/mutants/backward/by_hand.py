"""Bugs that the tests of snippets/backward/by_hand.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    # The steps.
    Mutant("dv = p.mT @ do", "dv = s.softmax(dim=-2).mT @ do", "P over the queries"),
    Mutant("dv = p.mT @ do", "dv = p.mT @ (do - delta[..., None])", "delta in dv"),
    Mutant("dp = do @ v.mT", "dp = o @ v.mT", "dp from the output"),
    Mutant("dp = do @ v.mT", "dp = do @ k.mT", "dp from the keys"),
    Mutant("(do * o).sum(dim=-1)", "(dp * s).sum(dim=-1)", "delta from the scores"),
    Mutant("(do * o).sum(dim=-1)", "do.sum(dim=-1)", "delta without o"),
    Mutant("(do * o).sum(dim=-1)", "(do * o).mean(dim=-1)", "the mean, not the sum"),
    Mutant("delta = delta - dlse", "delta = delta + dlse", "the sign of dlse"),
    Mutant("delta = delta - dlse", "delta = delta - dlse * scale", "dlse scaled"),
    Mutant("if dlse is not None:", "if False:", "the gradient of lse is lost"),
    Mutant("ds = p * (dp - delta[..., None])", "ds = p * dp", "no delta"),
    Mutant("(dp - delta[..., None])", "dp - delta[..., None]", "delta not weighted"),
    Mutant("ds = p * (dp", "ds = s * (dp", "scores for weights"),
    Mutant("dp - delta[..., None]", "delta[..., None] - dp", "the sign of ds"),
    Mutant("delta[..., None])", "delta[..., None, :1])", "the first row's delta"),
    Mutant("dq = ds @ k * scale", "dq = ds @ k", "no scale in dq"),
    Mutant("dk = ds.mT @ q * scale", "dk = ds.mT @ q", "no scale in dk"),
    Mutant("dk = ds.mT @ q * scale", "dk = ds.mT @ q * scale**2", "twice in dk"),
    Mutant("dq = ds @ k", "dq = p @ k", "weights for their gradient in dq"),
    Mutant("dq = ds @ k", "dq = ds @ v", "values for keys in dq"),
    Mutant("dk = ds.mT @ q", "dk = p.mT @ q", "weights for their gradient in dk"),
    Mutant("dk = ds.mT @ q", "dk = ds.mT @ do", "dk from do"),
    Mutant("return dq.to(dtype), dk.to(dtype)", "return dk, dq", "the order"),
    Mutant("return dq.to(dtype)", "return dq", "dq in another dtype"),
    Mutant(
        "dtype, compute = q.dtype, torch.promote_types(q.dtype, torch.float32)",
        "dtype, compute = q.dtype, torch.float32",
        "float64 gradients in float32",
    ),
    # The weights, and who sees whom.
    Mutant("s = q @ k.mT * scale", "s = q @ k.mT", "no scale in the scores"),
    Mutant("if causal:", "if False:", "the causal mask is ignored"),
    Mutant(
        "s = scores(q, k, causal, scale)  #",
        "s = scores(q, k, False, scale)  #",
        "backward ignores the causal mask",
    ),
    Mutant("tril(cols - rows)", "tril()", "top left"),
    Mutant("tril(cols - rows)", "tril(cols - rows - 1)", "a token not seen by itself"),
    Mutant(
        'lse.masked_fill(lse == float("-inf"), 0.0)', "lse", "NaN where nothing is seen"
    ),
    Mutant("exp(s - shift", "exp2(s - shift", "base 2"),
    # The autograd function, and what it keeps.
    Mutant("dlse=dlse, causal=ctx.causal", "causal=ctx.causal", "lse without gradient"),
    Mutant("causal=ctx.causal", "causal=False", "backward forgets the mask"),
    Mutant("scale=ctx.scale", "scale=None", "backward forgets the scale"),
    Mutant(
        "ctx.save_for_backward(q, k, v, o, lse)",
        "ctx.save_for_backward(q, k, v, o, (q @ k.mT).logsumexp(dim=-1))",
        "another logsumexp is kept",
    ),
    Mutant(
        "    @torch.autograd.function.once_differentiable\n",
        "",
        "a second derivative that takes o for a constant",
    ),
    Mutant("memory[x.untyped_storage().data_ptr()]", "memory[id(x)]", "views twice"),
    Mutant("x.detach().requires_grad_()", "x.detach()", "nothing needs a gradient"),
    Mutant("dtype=torch.float32).to", ").to", "no softmax in float32"),
    Mutant("q.shape[-1] ** -0.5, dim=-1) @ v", "1.0, dim=-1) @ v", "naive: no scale"),
]
