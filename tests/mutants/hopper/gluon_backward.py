"""Bugs that the tests of snippets/hopper/gluon_backward.py must catch."""

from tests.mutants import Mutant

SUMS = [
    Mutant("q.new_zeros(", "q.new_empty(", "sums begin as they were"),
    Mutant(
        'gl.atomic_add(dq_sum + gl.arange(0, 64 * HALF, LINES), dq, sem="relaxed")',
        "gl.store(dq_sum + gl.arange(0, 64 * HALF, LINES), dq)",
        "stored: the last program wins",
    ),
    Mutant(
        "permute((3, 1, 0, 2, 5, 4, 6))",
        "permute((0, 1, 2, 3, 4, 5, 6))",
        "sums in another order than they are read in",
    ),
    Mutant(
        "permute(3, 2, 4, 0, 1, 6, 5, 7)",
        "permute(3, 2, 4, 0, 1, 5, 6, 7)",
        "columns in another order",
    ),
    Mutant("+ W * 64 * HALF, dq)", ", dq)", "both halves of the columns in one place"),
    Mutant(
        "(batch * heads + kv_head * GROUP).to(gl.int64) * blocks",
        "(batch * heads + kv_head * GROUP) * blocks",
        "offsets of heads of 32 bits",
    ),
    Mutant(
        "(batch * heads + kv_head * GROUP)",
        "(batch * heads + kv_head)",
        "dq of the heads of keys",
    ),
    Mutant(
        "            dq_sum += blocks.to(gl.int64) * 64 * BLOCK_D\n",
        "",
        "dq of a group in its first head",
    ),
    Mutant(
        "tl.program_id(0).to(tl.int64) * 64", "tl.program_id(0) * 64", "32 bits at last"
    ),
    Mutant("* BLOCK_D)) * scale", "* BLOCK_D))", "dq without the scale"),
    Mutant(
        "tl.load(dq_sum + tl.arange(0, 64 * BLOCK_D)) * scale",
        "tl.load(dq_sum + tl.arange(0, 64 * BLOCK_D)).to(dq_desc.dtype) * scale",
        "dq rounded before it is scaled",
    ),
]
WEIGHTS = [
    Mutant("offs_n < seq_k", "offs_n <= seq_k", "a key too many"),
    Mutant("(offs_m + seq_k - seq_q)[None, :]", "offs_m[None, :]", "aligned top left"),
    Mutant(
        "seen &= offs_n[:, None] <=", "seen &= offs_n[:, None] <", "not its own key"
    ),
    Mutant(
        "start_m + 1 + seq_k - seq_q",
        "start_m + 64 + seq_k - seq_q",
        "tiles on the diagonal that are not masked",
    ),
    Mutant("if start_n + 64 > seen_by_all:", "if start_n > seen_by_all:", "cut tiles"),
    Mutant(
        "mask(p, start_m, keys,", "mask(p, start_m, start_n,", "one consumer's keys"
    ),
    Mutant(
        "gl.maximum(start_n + seq_q - seq_k, 0)",
        "gl.maximum(start_n + 64 + seq_q - seq_k, 0)",
        "queries of the band left out",
    ),
    Mutant(
        "gl.maximum(start_n + seq_q - seq_k, 0)",
        "gl.maximum(start_n, 0)",
        "queries bounded top left",
    ),
    Mutant(
        "MASKED=causal or seq_k % 128 > 0",
        "MASKED=causal",
        "keys that do not exist have weights: infinity * 0 in dq",
    ),
    Mutant(
        "MASKED=causal or seq_k % 128 > 0",
        "MASKED=causal or seq_k % 64 > 0",
        "half a tile of keys that do not exist",
    ),
    Mutant("CAUSAL=causal", "CAUSAL=False", "causal ignored"),
    Mutant(
        "torch.where(lse == -math.inf, math.inf, lse * math.log2(math.e))",
        "lse * math.log2(math.e)",
        "rows that saw nothing have weights",
    ),
    Mutant("lse * math.log2(math.e))", "lse)", "a natural lse taken for one in base 2"),
    Mutant("dp - delta", "dp", "no row-dot"),
    Mutant("dp - delta", "dp + delta", "the row-dot added"),
    Mutant("None if dlse is None else dlse.contiguous()", "None", "dlse lost"),
    Mutant(
        "None if dlse is None else dlse.contiguous()",
        "dlse",
        "dlse read as if contiguous",
    ),
    Mutant(
        "head_dim**-0.5 if scale is None else scale",
        "head_dim**-0.5",
        "the caller's scale ignored",
    ),
]
PRODUCTS = [
    Mutant("(dk * scale)", "dk", "dk without the scale"),
    Mutant("gl.convert_layout(ds, LEFT), q", "p, q", "dk of the weights"),
    Mutant("warpgroup_mma(ds_other, k_other", "warpgroup_mma(ds_own, k_other", "ds"),
    Mutant("warpgroup_mma(ds_other, k_other", "warpgroup_mma(ds_other, k_own", "keys"),
    Mutant("k.slice(W * HALF,", "k.slice(0,", "one half of K's columns"),
    Mutant("start_n + 64 * W, first", "start_n, first", "one consumer's keys for both"),
    Mutant(
        "keys = [batch, kv_head, start_n + 64 * w, 0]",
        "keys = [batch, kv_head, start_n, 0]",
        "the same keys twice",
    ),
    Mutant("kv_head * GROUP + i // steps,", "kv_head * GROUP,", "one head of a group"),
    Mutant("first + i % steps * 64", "first + i * 64", "a group's first head goes on"),
    Mutant("[batch, head, 1, start_m]", "[batch, head, 0, start_m]", "lse for delta"),
    Mutant("triton.cdiv(seq_k, 128)", "seq_k // 128", "the last keys lost"),
    Mutant("gl.cdiv(seq_q - first, 64)", "(seq_q - first) // 64", "no last queries"),
    Mutant(
        "return dq, dk, dv\n\n\n# --8<-- [end:launch]",
        "return dq, dv, dk\n\n\n# --8<-- [end:launch]",
        "gradients in the wrong order",
    ),
    Mutant(
        "dq.zero_(), dk.zero_(), dv.zero_()",
        "dq, dk, dv",
        "empty keys leave dq unwritten",
    ),
    Mutant("if q.shape[3] > 128:", "if False:", "heads of more than 128 columns"),
    Mutant(
        "with torch.cuda.device_of(q):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
WAITS = [
    Mutant(
        "        mbarrier.wait(ds_full.index(other), i // 2 & 1)\n",
        "",
        "the other's dS is not waited for",
        may_hang=True,
    ),
    Mutant("i // 2 & 1)", "i & 1)", "the wrong phase of dS", may_hang=True),
    Mutant(
        "i % 2 * 2 + W, i % 2 * 2 + 1 - W", "W, 1 - W", "one place of dS", may_hang=True
    ),
    Mutant(
        "        fence_async_shared()\n        mbarrier.arrive(ds_full",
        "        mbarrier.arrive(ds_full",
        "dS is not shown to the tensor cores",
    ),
    Mutant(
        "    mbarrier.wait(read, 0)  # the other has read these keys, too\n",
        "",
        "dK where the other still reads K",
    ),
    Mutant(
        "        mbarrier.wait(rows_full.index(m % 4), m // 4 & 1)\n",
        "",
        "delta is not waited for",
        may_hang=True,
    ),
    Mutant(
        "        mbarrier.arrive(rows_empty.index(n % 4))\n",
        "",
        "nobody says that lse was read",
        may_hang=True,
    ),
    Mutant(
        "        dk = warpgroup_mma_wait(0, deps=[dk])\n"
        "        mbarrier.arrive(empty.index(n % PLACES))\n",
        "        mbarrier.arrive(empty.index(n % PLACES))\n"
        "        dk = warpgroup_mma_wait(0, deps=[dk])\n",
        "Q is let go before dK has read it",
    ),
    Mutant(
        "        mbarrier.arrive(empty.index(m % PLACES))\n",
        "",
        "nobody says that dO was read",
        may_hang=True,
    ),
    Mutant("    mbarrier.wait(kv_full, 0)\n", "", "K and V are not waited for"),
    Mutant("mbarrier.expect(kv_full, 4 *", "mbarrier.expect(kv_full, 2 *", "half"),
]
MUTANTS = [*SUMS, *WEIGHTS, *PRODUCTS, *WAITS]
