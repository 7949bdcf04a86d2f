"""Bugs that every file with a seeded mask could have."""

from tests.mutants import Mutant

DRAW_MUTANTS = [
    Mutant(
        "tl.interleave(r0, r2), tl.interleave(r1, r3)",
        "tl.interleave(r0, r1), tl.interleave(r2, r3)",
        "the words in another order",
    ),
    Mutant(
        "words & 0xFFFF, words >> 16", "words >> 16, words & 0xFFFF", "halves swapped"
    ),
    Mutant("words >> 16)", "words & 0xFFFF)", "each half twice"),
    Mutant("r0, r1, r2, r3 = tl.philox(", "r1, r0, r3, r2 = tl.philox(", "other words"),
    Mutant(">= threshold", "> threshold", "one number in 65536 too many is dropped"),
    Mutant(">= threshold", "< threshold", "the mask the wrong way round"),
    Mutant("round(p * 65536)", "int(p * 256) * 256", "p in eight bits"),
    Mutant("not 0 <= p <= 1", "not 0 <= p < 1", "a p of 1 refused"),
    Mutant("not 0 <= p <= 1", "p < 0 or p > 1", "a p of NaN"),
]

# Of files about attention: keys, rows and heads that are counted wrongly.
COUNTER_MUTANTS = [
    Mutant("(start_n // 8 + tl.arange", "(tl.arange", "keys counted from the tile"),
    Mutant("(start_n // 8 +", "(start_n +", "counters that depend on the tile"),
    Mutant(
        "row, head = offs_m.to(tl.uint32)",
        "row, head = (offs_m % 16).to(tl.uint32)",
        "rows counted from the tile",
    ),
    Mutant(", head.to(tl.uint32)", ", head.to(tl.uint32) * 0", "a mask for all heads"),
    Mutant(
        "tl.philox(seed, eight, row, head, head * 0)",
        "tl.philox(seed, row * 65536 + eight, head, head * 0, head * 0)",
        "row and key in one word of 32 bits",
    ),
    Mutant(
        "tl.philox(seed, eight, row, head, head * 0)",
        "tl.philox(seed, row, eight, head, head * 0)",
        "row and key mixed up",
    ),
    Mutant(
        "tl.philox(seed, eight, row, head, head * 0)",
        "tl.philox(seed, eight, row + head, head * 0, head * 0)",
        "a row of one head is another row of the next",
    ),
    Mutant(
        "tl.philox(seed, eight, row, head, head * 0)",
        "tl.philox(seed, eight, row, head, head * 0, 7)",
        "fewer rounds in one of the files",
    ),
]

REFUSAL_MUTANTS = [
    Mutant("q.ndim != 4 or ", "", "any dimensions", may_not_compile=True),
    Mutant("not 1 <= q.shape[3] <= 256 or ", "", "any head_dim"),
    Mutant(" or q.shape[0] * q.shape[1] > 65535", "", "any number of heads"),
    Mutant(
        "if q.dtype not in (torch.float16, torch.bfloat16, torch.float32):",
        "if False:",
        "any dtype",
        may_not_compile=True,
    ),
    Mutant(
        "(x.shape, x.dtype, x.device) != (shape, dtype, q.device)",
        "(x.dtype, x.device) != (dtype, q.device)",
        "any shape",
    ),
    Mutant(
        "(x.shape, x.dtype, x.device) != (shape, dtype, q.device)",
        "(x.shape, x.device) != (shape, q.device)",
        "any dtype of the others",
        may_not_compile=True,
    ),
    Mutant(
        "(x.shape, x.dtype, x.device) != (shape, dtype, q.device)",
        "(x.shape, x.dtype) != (shape, dtype)",
        "any device",
    ),
    Mutant("torch.is_grad_enabled() and x.requires_grad", "False", "a gradient lost"),
    Mutant(
        "torch.is_grad_enabled() and x.requires_grad",
        "x.requires_grad",
        "a gradient that nobody wants",
    ),
    Mutant("with torch.cuda.device_of(q):", "if True:", "on another device than q's"),
    Mutant("isinstance(seed, int) and 0 <= seed", "False and 0 <= seed", "no int"),
    Mutant("and 0 <= seed < 2**63", "and seed < 2**63", "a seed below 0"),
    Mutant("torch.full((), seed,", "torch.full((), seed % 2**32,", "half of an int"),
    Mutant(
        "    (batch, heads, seq_q, head_dim), seq_k = q.shape",
        "    seed = torch.full((), int(seed), device=q.device)\n"
        "    (batch, heads, seq_q, head_dim), seq_k = q.shape",
        "the seed is read too early: a CUDA graph would keep it",
    ),
    Mutant("(seed.dtype, seed.numel(),", "(seed.dtype, 1,", "any number of seeds"),
    Mutant("(seed.dtype, seed.numel(),", "(torch.int64, seed.numel(),", "any seed"),
    Mutant("seed.numel(), seed.device)", "seed.numel(), q.device)", "a seed elsewhere"),
]
