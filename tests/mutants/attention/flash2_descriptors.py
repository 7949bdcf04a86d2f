"""Bugs that the tests of snippets/attention/flash2_descriptors.py must catch."""

from tests.mutants import Mutant

# What the rung changes; the rest is that of the rungs before, and so are its mutants.
MUTANTS = [
    Mutant("if q.dtype == torch.float32:", "if False:", "float32 is tuned"),
    Mutant(
        'named_args[f"BLOCK_{rows}"]',
        'named_args["BLOCK_M"]',
        "tiles of K as high as those of Q",
        may_not_compile=True,
    ),
    Mutant("kv_head = head // group", "kv_head = head", "no shared heads"),
    Mutant("kv_head = head // group", "kv_head = head % group", "the heads of others"),
    Mutant(
        "k_desc.load([batch, kv_head, start_n, 0])",
        "k_desc.load([0, kv_head, start_n, 0])",
        "one batch for all",
    ),
    Mutant(
        "v_desc.load([batch, kv_head, start_n, 0])",
        "v_desc.load([batch, kv_head, start_m, 0])",
        "V of other keys",
        may_not_compile=True,
    ),
    Mutant(
        "TensorDescriptor.from_tensor(x, [1] * 4)",
        "TensorDescriptor.from_tensor(x.contiguous(), [1] * 4)",
        "a copy in the place of the tensor",
    ),
    Mutant("batch * heads + head", "head", "one lse for all"),
    Mutant(", mask=offs_m < seq_q", "", "lse written beyond its rows"),
    Mutant("x.stride(3) != 1 or ", "", "any last stride"),
    Mutant("(x.data_ptr(), *outer)", "outer", "any address"),
    Mutant("(x.data_ptr(), *outer)", "[x.data_ptr()]", "any strides"),
    Mutant(" or head_dim * q.element_size() % 16", "", "any length of a row"),
    Mutant("torch.empty_like(q)", "q.new_empty(q.shape)", "o is always contiguous"),
    Mutant('"CAUSAL", "length"]', '"CAUSAL"]', "one choice for every length"),
    Mutant("o.numel() == 0 or seq_k == 0", "o.numel() == 0", "a descriptor of nothing"),
    Mutant(
        "return o.zero_(), lse.fill_(-math.inf)",
        "return o, lse",
        "what was never written",
    ),
]
