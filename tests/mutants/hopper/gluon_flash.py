"""Bugs that the tests of snippets/hopper/gluon_flash.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.attention import LAUNCH, NOT_CAUSAL, RESCALED

MUTANTS = [
    # Which tile, and what a mask leaves.
    Mutant("offs_n[None, :] < end", "offs_n[None, :] <= end", "a key too many"),
    Mutant("if i == 0:", "if i == 1:", "the tail is not masked"),
    Mutant("start_n = (tiles - 1 - i) * BLOCK_N", "start_n = i * BLOCK_N", "forwards"),
    Mutant(
        "head // (q_desc.shape[1] // k_desc.shape[1])",
        "head % k_desc.shape[1]",
        "heads of others",
    ),
    # The softmax.
    Mutant('m_new == float("-inf")', 'm_new == float("inf")', "NaN where all is -inf"),
    Mutant(
        "l_i *= gl.convert_layout(alpha, gl.SliceLayout(1, l_i.type.layout))[:, None]",
        "l_i *= 1.0",
        "an old denominator not rescaled",
    ),
    Mutant("gl.sum(l_i, axis=1)", "gl.max(l_i, axis=1)", "a part of the denominator"),
    RESCALED,
    # Waiting.
    Mutant("        mbarrier.wait(v_full, i & 1)\n", "", "V is not waited for"),
    Mutant("mbarrier.wait(k_full, i & 1)", "mbarrier.wait(k_full, 0)", "one phase"),
    # The end.
    Mutant("gl.where(l_i == 0.0, 1.0, l_i)", "l_i", "0 / 0 in rows that see nothing"),
    Mutant(") * LN_2", ")", "lse in base 2"),
    Mutant("(batch * o_desc.shape[1] + head)", "head", "one lse for all batches"),
    Mutant(", mask=offs_m < o_desc.shape[2]", "", "lse written beyond its rows"),
    Mutant("torch.empty_like(q)", "q.new_empty(q.shape)", "o is always contiguous"),
    Mutant("o.zero_(), lse.fill_(-math.inf)", "o, lse", "what was never written"),
    Mutant("if o.numel() == 0 or k.numel() == 0:", "if False:", "a tile of nothing"),
    *LAUNCH,
    # What is refused.
    NOT_CAUSAL,
    Mutant("not scale > 0:", "False:", "any scale"),
    Mutant(
        "isinstance(scale, torch.Tensor) or ",
        "",
        "a tensor as scale",
        may_not_compile=True,
    ),
    Mutant("q.dtype not in (torch.float16, torch.bfloat16)", "False", "any dtype"),
    Mutant("if got != right:", "if False:", "k and v may be anything"),
    Mutant("and x.requires_grad", "and False", "a gradient lost without a word"),
    Mutant(" or x.shape[3] % 8:", ":", "any head_dim"),
    Mutant(
        "<= x.shape[3] <= 256",
        "<= x.shape[3]",
        "head_dim without an end",
        may_not_compile=True,
    ),
    Mutant("k.shape[0] != batch or ", "", "any batch of k"),
    Mutant("if uneven or ", "if ", "any heads of k"),
    Mutant("if v.shape != k.shape:", "if False:", "any shape of v"),
    Mutant("x.stride(3) != 1 or ", "", "any last stride"),
    Mutant("any(n % 8 for n in x.stride()[:3]) or ", "", "any stride"),
    Mutant(" or x.data_ptr() % 16", "", "any address"),
]
