"""Bugs that the tests of snippets/attention/paged_kv.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import ANOTHER_DEVICE

MUTANTS = [
    ANOTHER_DEVICE,
    Mutant("range(split * BLOCK_N,", "range(0,", "every part begins at the first key"),
    Mutant("last, splits * BLOCK_N):", "last, BLOCK_N):", "parts that overlap"),
    Mutant("l_i * alpha[:, None] + l_new", "l_i + l_new", "the sum is not rescaled"),
    Mutant("causal and seq_q > 1", "causal and seq_q > 3", "no mask for three"),
    Mutant(
        "offs_n.to(tl.uint32) // PAGE_SIZE",
        "offs_n // BLOCK_N * BLOCK_N // PAGE_SIZE",
        "one page for a tile",
    ),
    Mutant("block_table_ptr += batch * max_pages", "pass", "one table for all"),
    Mutant("mask=offs_n < last, other=0", "mask=offs_n >= 0, other=0", "no end"),
    Mutant("tl.minimum(page, pages - 1)", "page", "pages that are not"),
    Mutant("tl.minimum(page, pages - 1)", "tl.minimum(page, pages)", "a page too many"),
    Mutant("other=0).to(tl.uint32)", "other=0)", "pages before the first"),
    Mutant("pages - 1).to(tl.int64)", "pages - 1)", "offsets of pages in 32 bits"),
    Mutant("slot = (offs_n.to(tl.uint32) % PAGE_SIZE)", "slot = offs_n", "other slots"),
    Mutant("page * stride_kp", "page * stride_vp", "K, V's stride"),
    Mutant("page * stride_vp", "page * stride_kp", "V, K's stride"),
    Mutant("slot * stride_kn", "slot * stride_vn", "K, V's rows"),
    Mutant("slot * stride_vn", "slot * stride_kn", "V, K's rows"),
    Mutant("kv_head * stride_kh", "kv_head * stride_vh", "K, V's heads"),
    Mutant("kv_head * stride_vh", "kv_head * stride_kh", "V, K's heads"),
    Mutant(
        "min(max_pages * page_size, 2**31 - 2**16)", "2**30", "lengths beyond the table"
    ),
    Mutant(
        "min(max_pages * page_size, 2**31 - 2**16)",
        "(max_pages * page_size + 2**31) % 2**32 - 2**31",
        "a table so wide that its keys overflow",
    ),
    Mutant("block_table.shape[1] if pages else 0", "block_table.shape[1]", "pages"),
    Mutant("if page_size == 0:", "if False:", "pages of no keys", 1, True),
    Mutant("kv_heads == 0 or heads % kv_heads", "False", "any heads of k"),
    Mutant("[batch, *block_table.shape[-1:]]", "[*x.shape]", "any table"),
    Mutant("block_table, [batch,", "block_table, [*x.shape[:1],", "fewer sequences"),
    Mutant(" or not x.is_contiguous()", "", "every other page"),
    Mutant(
        "if got != f", 'if f"{got}" != got and f', "tables of 64 bits, or elsewhere"
    ),
    Mutant(") != right:", ") != got:", "k and v of any kind", may_not_compile=True),
    Mutant(
        "{[len(k), page_size, kv_heads, head_dim]}", "{[*k.shape]}", "k of any shape"
    ),
]
