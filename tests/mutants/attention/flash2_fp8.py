"""Bugs that the tests of snippets/attention/flash2_fp8.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import ANOTHER_DEVICE

MUTANTS = [
    ANOTHER_DEVICE,
    Mutant("P_BITS = tl.constexpr(8)", "P_BITS = tl.constexpr(0)", "weights up to 1"),
    Mutant("P_BITS = tl.constexpr(8)", "P_BITS = tl.constexpr(9)", "weights of 512"),
    Mutant("(shift[:, None] - P_BITS)", "shift[:, None]", "lse 8 bits off"),
    Mutant("+ tl.log2(l_i) - P_BITS", "+ tl.log2(l_i)", "lse 8 bits too large"),
    Mutant(
        "acc * alpha[:, None] + tl.dot", "acc + tl.dot", "the output is not rescaled"
    ),
    Mutant("[:, None] * v_scale", "[:, None]", "V without its factor"),
    Mutant(
        "acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None] * v_scale",
        "acc * (v_scale / tl.where(l_i == 0.0, 1.0, l_i))[:, None]",
        "a tiny factor of V loses digits",
    ),
    Mutant("q_scale_ptr + batch * heads + head", "q_scale_ptr + 0", "one factor of q"),
    Mutant(
        "k_scale_ptr + batch * (heads // group) + kv_head",
        "k_scale_ptr",
        "one factor of K",
    ),
    Mutant(
        "v_scale_ptr + batch * (heads // group) + kv_head",
        "v_scale_ptr + kv_head",
        "factors of batch 0",
    ),
    Mutant(
        "k_scale_ptr + batch * (heads // group) + kv_head",
        "k_scale_ptr + batch * heads + kv_head",
        "factors of other heads",
    ),
    Mutant(
        "v_desc.load([batch, kv_head, 0, start_n])",
        "v_desc.load([batch, kv_head, start_n, 0])",
        "V as if it were not transposed",
    ),
    Mutant('("v", "DN")', '("v", "ND")', "tiles of V the wrong way round", 1, True),
    Mutant("(q.ndim, k.ndim) != (4, 4)", "min(q.ndim, k.ndim) < 4", "five dimensions"),
    Mutant('got = f"{x.dtype} {list', 'got = f"{dtype} {list', "other dtypes", 1, True),
    Mutant("{list(x.shape)} on", "{shape} on", "other shapes"),
    Mutant("on {x.device}", "on {q.device}", "k or v elsewhere"),
    Mutant("16 <= head_dim <= 256", "16 <= head_dim <= 512", "a large head_dim"),
    Mutant(" or head_dim % 16", "", "any head_dim"),
    Mutant('"k", k, batch,', '"k", k, k.shape[0],', "another batch"),
    Mutant("(kv_heads == 0 or heads % kv_heads)", "False", "any heads of k"),
    Mutant("seq_k, head_dim),", "seq_k, k.shape[3]),", "another head_dim of k"),
    Mutant("head_dim, seq_k),", "*v.shape[2:]),", "a v of another shape"),
    Mutant(
        "(x.stride(3) != 1 or any(n % 16 for n in outer))",
        "any(n % 16 for n in outer)",
        "any last stride",
    ),
    Mutant("x.data_ptr(), *x.stride()[:3]", "x.stride()[:3]", "any address"),
    Mutant("x.data_ptr(), *x.stride()[:3]", "(x.data_ptr(),)", "any strides"),
    Mutant("[x.contiguous() for x in", "[x for x in", "every other factor"),
    Mutant(
        "q_scale, batch, heads)", "q_scale, *q_scale.shape)", "factors of q as of k"
    ),
    Mutant("not scale > 0:", "not scale:", "a negative scale"),
    Mutant(".amax(dim=(2, 3)) / 448", ".amax() / 448", "one factor for all", 1, True),
    Mutant("/ 448", "/ 1000", "values beyond the format"),
    Mutant(".clamp(min=2**-126)", "", "0 / 0 of a head of zeros"),
    Mutant(
        "tl.where(scale_log2 < 1.2e-38, 1.2e-38, scale_log2)", "scale_log2", "0 * -inf"
    ),
]
