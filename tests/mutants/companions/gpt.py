"""Bugs that the tests of snippets/companions/gpt.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    # Attention, and the views around it.
    Mutant("k, v, causal=True)[0]", "k, v)[0]", "tokens see those that follow"),
    Mutant(
        "lambda q, k, v: attention(q, k, v, causal=True)",
        "lambda q, k, v: attention(q * q.shape[-1] ** -0.5, k, v, causal=True)",
        "scaled twice",
    ),
    Mutant(
        "(3, self.heads, -1))",
        "(self.heads, 3, -1)).transpose(2, 3)",
        "q, k and v lie between the heads",
    ),
    Mutant("permute(2, 0, 3, 1, 4)", "permute(2, 0, 1, 3, 4)", "heads for tokens"),
    Mutant("q, k, v = rows", "k, q, v = rows", "queries and keys exchanged"),
    Mutant(
        ".transpose(1, 2).flatten(2)",
        ".reshape(x.shape)",
        "heads and tokens mixed in the joined rows",
    ),
    Mutant(
        "self.attention(q, k, v).",
        "self.attention(q.contiguous(), k, v).",
        "a copy of q",
    ),
    Mutant("v).transpose(1, 2)", "v).contiguous().transpose(1, 2)", "a copy of o"),
    # The norm.
    Mutant(
        "return rms_norm_backward(dy, x, weight, rstd, programs=256)",
        "dx, dw = rms_norm_backward(dy, x, weight, rstd, programs=256)\n"
        "    return dx, torch.zeros_like(dw)",
        "the gradient of the norm's weight is lost",
    ),
    Mutant(
        "return rms_norm_backward(dy, x, weight, rstd, programs=256)",
        "dx, dw = rms_norm_backward(dy, x, weight, rstd, programs=256)\n"
        "    return dx * weight, dw",
        "dx has the weight twice",
    ),
    Mutant(
        "save_for_backward(*inputs, output[1])",
        "save_for_backward(output[0], inputs[1], output[1])",
        "y is kept in place of x",
    ),
    Mutant(
        "save_for_backward(*inputs, output[1])",
        "save_for_backward(inputs[0].clone(), inputs[1], output[1])",
        "a copy of x is kept",
    ),
    Mutant("x.flatten(0, -2), weight", "x.flatten(0, -2), weight * 0 + 1", "no weight"),
    Mutant("self.norm(x, self.second)", "self.norm(x, self.first)", "the other weight"),
    Mutant(
        "self.up(self.norm(x, self.second))", "self.up(x)", "layers without their norm"
    ),
    Mutant("self.norm(x, self.last)", "x", "no last norm"),
    # Dropout.
    Mutant(
        "(drop(dy, ctx.p, *ctx.saved_tensors), None, None)",
        "(drop(dy, ctx.p, ctx.saved_tensors[0] + 1), None, None)",
        "another mask in the backward pass",
    ),
    Mutant(
        "(drop(dy, ctx.p, *ctx.saved_tensors), None, None)",
        "(dy, None, None)",
        "nothing dropped in the backward pass",
    ),
    Mutant("len(self.blocks) + i)", "len(self.blocks))", "one seed for all layers"),
    Mutant("seed + place)", "seed)", "one seed for both places of a layer"),
    Mutant("2 * (step * len(self.blocks) + i)", "step + 2 * i", "steps share seeds"),
    Mutant(
        "2 * (step * len(self.blocks) + i)",
        "2 * (step * 0 + i)",
        "the same masks in every step",
    ),
    Mutant(
        "x = block(x, None if step is None else",
        "x = block(x, torch.zeros_like(tokens[0, 0]) if step is None else",
        "dropout without a step, as in evaluation",
    ),
    Mutant("run(tokens[:, :-1], number)", "run(tokens[:, :-1])", "never dropped"),
    Mutant(
        "range(masks * steps, (masks + 1) * steps,", "range(steps,", "masks are ignored"
    ),
    # The rest of the model.
    Mutant("x = x + self.dropped(self.out", "x = self.dropped(self.out", "x is lost"),
    Mutant("return x + self.dropped", "return self.dropped", "x is lost at the end"),
    Mutant(" + self.places.weight[: tokens.shape[1]]", "", "no places"),
    Mutant(
        "self.places.weight[: tokens.shape[1]]",
        "self.places.weight[-tokens.shape[1] :]",
        "places from the end",
    ),
    Mutant("F.gelu(", "F.relu(", "another activation"),
    Mutant(
        "self.last), self.tokens.weight)",
        "self.last), self.tokens.weight.detach())",
        "the embedding gets no gradient from what it predicts",
    ),
    Mutant(
        "        self.last = nn",
        "        self.head = nn.Linear(width, len(CHARACTERS), bias=False)\n"
        "        self.last = nn",
        "a head of its own beside the embedding",
    ),
    # Text and training.
    Mutant("numbers.sort(dim=-1).values", "numbers.flip(-1)", "reversed, not sorted"),
    Mutant("in (10, 11))", "in (11, 10))", "arrow and end exchanged"),
    Mutant("(2 * digits + 2))", "(2 * digits + 3))", "too few lines"),
    Mutant("tokens[:, 1:].flatten()", "tokens[:, :-1].flatten()", "no shift"),
    Mutant(
        "tokens[:, 1:].flatten()",
        "tokens.roll(-2, 1)[:, :-1].flatten()",
        "a shift of two",
    ),
    Mutant("        optimizer.zero_grad()\n", "", "gradients of all steps add up"),
    Mutant("        optimizer.step()\n", "", "nothing is learned"),
    Mutant("manual_seed(seed)", "manual_seed(0)", "the seed is ignored"),
    Mutant(
        "torch.Generator().manual_seed(seed)",
        "torch.Generator().manual_seed(torch.seed())",
        "another training each time",
    ),
    Mutant(
        "std=0.02, generator=generator",
        "std=0.02",
        "weights that the seed does not give",
    ),
    Mutant("run = wrap(model)", "run = model", "what should wrap the model does not"),
    # What torch.compile is told.
    Mutant("x.new_empty(x.shape[:1]).float()", "x.new_empty(x.shape[:1])", "fake rstd"),
    Mutant(
        "lambda dy, x, weight, rstd: (x.new_empty(x.shape),",
        "lambda dy, x, weight, rstd: (torch.empty_like(x),",
        "a fake dx in the layout of x",
    ),
    Mutant(
        "drop.register_fake(lambda x, p, seed: x.new_empty(x.shape))",
        "drop.register_fake(lambda x, p, seed: torch.empty_like(x))",
        "a fake result of dropout in the layout of x",
    ),
]
