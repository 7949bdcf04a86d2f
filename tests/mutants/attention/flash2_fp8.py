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
    Mutant("k_scale_ptr + row_kv", "k_scale_ptr", "one factor of K"),
    Mutant("v_scale_ptr + row_kv", "v_scale_ptr + kv_head", "factors of batch 0"),
    Mutant(
        "row_kv = batch * (heads // group) + kv_head",
        "row_kv = batch * heads + kv_head",
        "factors of other heads",
    ),
    Mutant(
        "v_desc.load([batch, kv_head, 0, start_n])",
        "v_desc.load([batch, kv_head, start_n, 0])",
        "V as if it were not transposed",
    ),
    Mutant('("v", "DN")', '("v", "ND")', "tiles of V the wrong way round", 1, True),
    Mutant("x.ndim != 4", "x.ndim < 4", "five dimensions"),
    Mutant(
        "if x.dtype != torch.float8_e4m3fn:", "if x.element_size() != 1:", "float8_e5m2"
    ),
    Mutant("if x.device != q.device:", "if False:", "k or v elsewhere"),
    Mutant("16 <= head_dim <= 256", "16 <= head_dim <= 512", "a large head_dim"),
    Mutant(" or head_dim % 16", "", "any head_dim"),
    Mutant("if k.shape[0] != batch:", "if False:", "another batch"),
    Mutant("(k.shape[1] == 0 or heads % k.shape[1])", "False", "any heads of k"),
    Mutant("if k.shape[3] != head_dim:", "if False:", "another head_dim of k"),
    Mutant("if v.shape != k.mT.shape:", "if False:", "a v of another shape"),
    Mutant("x.stride(3) != 1 or ", "", "any last stride"),
    Mutant("(x.data_ptr(), *x.stride()[:3])", "x.stride()[:3]", "any address"),
    Mutant("(x.data_ptr(), *x.stride()[:3])", "[x.data_ptr()]", "any strides"),
    Mutant("if got != right or", "if", "any factors"),
    Mutant(" or not x.is_contiguous()", "", "every other factor"),
    Mutant("(q if name", "(k if name", "factors of q as of k"),
    Mutant("if not scale > 0:", "if not scale:", "a negative scale"),
    Mutant(".amax(dim=(2, 3)) / 448", ".amax() / 448", "one factor for all", 1, True),
    Mutant("/ 448", "/ 1000", "values beyond the format"),
    Mutant(".clamp(min=torch.finfo(torch.float32).tiny)", "", "0 / 0 of an empty head"),
    Mutant("if x.numel() == 0:", "if False:", "the largest of no values"),
    Mutant(
        "tl.where(scale_log2 < 1.2e-38, 1.2e-38, scale_log2)", "scale_log2", "0 * -inf"
    ),
]
