"""Bugs that the tests of snippets/attention/paged_kv.py must catch."""

from tests.mutants import Mutant
from tests.mutants.attention.shared import ANOTHER_DEVICE

MUTANTS = [
    ANOTHER_DEVICE,
    Mutant("range(split * BLOCK_N,", "range(0,", "every part begins at the first key"),
    Mutant("last, splits * BLOCK_N):", "last, BLOCK_N):", "parts that overlap"),
    Mutant("l_i * alpha[:, None] + (", "l_i + (", "the sum is not rescaled"),
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
    Mutant(" or k.numel() == 0", "", "no pages, or pages of no keys", 1, True),
    Mutant("kv_heads == 0 or heads % kv_heads", "False", "any heads of k"),
    Mutant(
        "batch, *block_table.shape[-1:]", "*block_table.shape", "a table of any shape"
    ),
    Mutant(
        'table", block_table, torch.int32, batch,',
        'table", block_table, torch.int32, *block_table.shape[:-1],',
        "fewer sequences",
    ),
    Mutant("block_table.contiguous()", "block_table", "every other page"),
    Mutant("seq_lens.contiguous()", "seq_lens", "every other length"),
    Mutant(
        '"block_table", block_table, torch.int32',
        '"block_table", block_table, block_table.dtype',
        "tables of 64 bits",
    ),
    Mutant(") != right:", ") != got:", "k and v of any kind", may_not_compile=True),
    Mutant("page_size, kv_heads, head_dim\n", "*k.shape[1:]\n", "any head_dim of k"),
]
