"""Bugs that the tests of snippets/companions/attention_dropout.py must catch."""

from tests.mutants import Mutant
from tests.mutants.companions.shared import (
    COUNTER_MUTANTS,
    DRAW_MUTANTS,
    REFUSAL_MUTANTS,
)

# What is there twice: in the mask and in the kernel.
TWICE = {
    "p in eight bits": Mutant(
        "round(p * 65536)", "int(p * 256) * 256", "p in eight bits", 2
    ),
}

MUTANTS = [
    *(TWICE.get(mutant.why, mutant) for mutant in DRAW_MUTANTS),
    *COUNTER_MUTANTS,
    *REFUSAL_MUTANTS,
    Mutant(
        "tl.sum(p, axis=1)",
        "tl.sum(tl.where(draw_keep(seed, threshold, head, offs_m, start_n, BLOCK_N), "
        "p, 0.0), axis=1)",
        "the sum of what stays",
    ),
    Mutant("tl.where(keep, p, 0.0)", "p", "nothing is dropped"),
    Mutant("tl.where(keep, p, 0.0)", "tl.where(keep, p, p * 0.5)", "half is dropped"),
    Mutant("acc * keep_scale /", "acc /", "no 1 / (1 - p)"),
    Mutant("acc * keep_scale /", "acc / keep_scale /", "scaled the wrong way round"),
    Mutant(
        "65536 / (65536 - threshold) if threshold < 65536 else 0.0",
        "1 / (1 - p) if p < 1 else 0.0",
        "the scale of another p than the mask's",
    ),
    Mutant(
        "65536 / (65536 - threshold) if threshold < 65536 else 0.0",
        "65536 / (65536 - threshold)",
        "1 / 0 for p = 1",
    ),
    Mutant(
        "o = acc * keep_scale",
        "lse_ptr += 0\n    o = acc * keep_scale * scale",
        "scaled once more",
    ),
    Mutant("m_i + tl.log(l_i)", "m_i + tl.log(l_i * keep_scale)", "lse of what stays"),
    Mutant("tl.load(seed_ptr)", "tl.load(seed_ptr).to(tl.int32)", "half a seed", 2),
    Mutant("tl.load(seed_ptr)", "(tl.load(seed_ptr) | 1)", "two seeds, one mask", 2),
    Mutant(
        "[line:draw]\n        keep = draw_keep(seed, threshold, head,",
        "[line:draw]\n        keep = draw_keep(seed, threshold, head % heads,",
        "one mask for all batches",
    ),
    Mutant(
        "[line:draw]\n        keep = draw_keep(seed, threshold, head, offs_m, start_n,",
        "[line:draw]\n        keep = draw_keep(seed, threshold, head, offs_m, 0,",
        "the mask of the first keys",
    ),
    Mutant(
        "keep_ptr + rows + offs_n[None, :], keep, mask=inside",
        "keep_ptr + rows + offs_n[None, :], keep",
        "the mask is written beyond its end",
    ),
    Mutant("(offs_m[:, None] < seq_q) & (offs_n", "(offs_n", "rows beyond the mask"),
    Mutant("[:, None] * seq_k\n", "[:, None] * seq_q\n", "a mask of another width"),
    Mutant("with torch.cuda.device_of(keep):", "if True:", "the mask elsewhere"),
    # What comes with the loop.
    Mutant("k_strides[0] +", "q_strides[0] +", "K with Q's batch stride"),
    Mutant("head % heads * k_strides[1]", "head % heads * q_strides[1]", "K's head"),
    Mutant("head % heads * v_strides[1]", "head % heads * k_strides[1]", "V's head"),
    Mutant("v_strides[0] +", "k_strides[0] +", "V with K's batch stride"),
    Mutant("o_strides[0] +", "q_strides[0] +", "o with q's batch stride"),
    Mutant("* o_strides[1]", "* q_strides[1]", "o with q's head stride"),
    Mutant("* k_strides[2]", "* q_strides[2]", "K with Q's rows"),
    Mutant("* v_strides[2]", "* k_strides[2]", "V with K's rows"),
    Mutant("* o_strides[2]", "* q_strides[2]", "o with q's rows"),
    Mutant("* q_strides[3]", "", "q contiguous"),
    Mutant("* k_strides[3]", "* q_strides[3]", "K with Q's columns"),
    Mutant("* v_strides[3]", "* k_strides[3]", "V with K's columns"),
    Mutant("* o_strides[3]", "* q_strides[3]", "o with q's columns"),
    Mutant(
        "tl.int32 if max(spans) < 2**31 else tl.int64", "tl.int32", "32 bits in a head"
    ),
    Mutant(
        "# Which batch and head: int64, because their offsets may pass 2^31.\n"
        "    head, seed = tl.program_id(1).to(tl.int64)",
        "head, seed = tl.program_id(1)",
        "heads in 32 bits",
    ),
    Mutant("q_ptrs, mask=mask_m, other=0.0", "q_ptrs", "q without a mask"),
    Mutant("k_ptrs, mask=mask_n, other=0.0", "k_ptrs", "K without a mask"),
    Mutant("v_ptrs, mask=mask_n, other=0.0", "v_ptrs", "V without a mask"),
    Mutant("o_ptrs, o, mask=mask_m", "o_ptrs, o", "o without a mask"),
    Mutant(", lse, mask=offs_m < seq_q", ", lse", "lse without a mask"),
    Mutant("lse_ptr + head * seq_q", "lse_ptr", "one lse for all"),
    Mutant("seen = offs_n[None, :] < seq_k", "seen = offs_n[None, :] >= 0", "no end"),
    Mutant("<= offs_m[:, None] + seq_k - seq_q", "<= offs_m[:, None]", "top left"),
    Mutant("<= offs_m[:, None] +", "< offs_m[:, None] +", "not its own key"),
    Mutant("start_m + BLOCK_M + seq_k", "start_m + 1 + seq_k", "the band cut short"),
    Mutant(
        'tl.where(m_new == float("-inf"), 0.0, m_new)', "m_new", "no guard for -inf"
    ),
    Mutant("alpha = tl.exp(m_i - shift)", "alpha = 1.0", "nothing is rescaled"),
    Mutant("acc = acc * alpha[:, None]", "pass", "the output is not rescaled"),
    Mutant("        m_i = m_new\n", "", "the maximum is not kept"),
    Mutant("tl.where(l_i == 0.0, 1.0, l_i)", "l_i", "0 / 0"),
    Mutant("head_dim**-0.5 if", "head_dim**-1.0 if", "another scale"),
    Mutant(
        "o, threshold = torch.empty_like(q)",
        "o, threshold = torch.empty(q.shape, dtype=q.dtype, device=q.device)",
        "o contiguous",
    ),
    Mutant(
        "triton.cdiv(seq_q, block_m), batch * heads)](\n            q, k",
        "seq_q // block_m, batch * heads)](\n            q, k",
        "the last rows",
    ),
]
