"""Bugs that the tests of snippets/hopper/gluon_backward.py must catch."""

from tests.mutants import Mutant

SUMS = [
    Mutant("rows.new_zeros(", "rows.new_empty(", "sums begin as they were"),
    Mutant(
        'gl.atomic_add(dq_sum + place, dq, sem="relaxed")',
        "gl.store(dq_sum + place, dq)",
        "stored: the last program wins",
    ),
    Mutant(
        "permute((3, 1, 0, 2, 5, 4, 6))",
        "permute((0, 1, 2, 3, 4, 5, 6))",
        "sums in another order than they are read in",
    ),
    Mutant("(2 * tile + W)", "(2 * tile)", "both halves of the columns in one place"),
    Mutant("+ kv_head).to(gl.int64) *", "+ kv_head) *", "offsets of heads of 32 bits"),
    Mutant("(batch * dk_desc.shape[1] + kv_head)", "kv_head", "dq of the first batch"),
    Mutant(".to(gl.int64) * group + i", ".to(gl.int64) + i", "dq of the heads of keys"),
    Mutant("* group + i // steps\n", "* group\n", "dq of a group in its first head"),
    Mutant("dq_sum, q, scale=scale)", "dq_sum, q)", "dq scaled as if by default"),
    Mutant(
        "gl.minimum(4, pairs - four)", "4", "the last heads are not four: some are lost"
    ),
]
WEIGHTS = [
    Mutant("[:, None] < ends", "[:, None] <= ends", "a key too many"),
    Mutant("start_m + 1 + seq_k - seq_q", "start_m + 1", "aligned top left"),
    Mutant("start_m + 1 + seq_k", "start_m + seq_k", "not its own key"),
    Mutant("+ 64 * W + 64 > seen_by_all:", "+ 64 * W > seen_by_all:", "cut tiles"),
    Mutant(
        "ends += gl.arange(0, 64, gl.SliceLayout(0, SCORES))[None, :]",
        "ends += 64",
        "all queries of a tile see what the last one does",
    ),
    Mutant(
        "offs_n = start_n + 64 * W + gl", "offs_n = start_n + gl", "one consumer's keys"
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
        "if start_n + 64 * W + 64 > seen_by_all:",
        "if CAUSAL and start_n + 64 * W + 64 > seen_by_all:",
        "keys that do not exist have weights: infinity * 0 in dq",
    ),
    Mutant("scale, causal, num", "scale, False, num", "causal ignored"),
    Mutant("(dp - take(lines, lines_full, m).load(SCORES))", "dp", "no row-dot"),
    Mutant("dp - take", "dp + take", "the row-dot added"),
    Mutant("preprocess(o, do, lse, dlse=dlse)", "preprocess(o, do, lse)", "dlse lost"),
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
    Mutant("start_n + 64 * W, 0]", "start_n, 0]", "one consumer's keys for both"),
    Mutant(
        "keys = [batch, kv_head, start_n + 64 * w, 0]",
        "keys = [batch, kv_head, start_n, 0]",
        "the same keys twice",
    ),
    Mutant("kv_head * group + i // steps,", "kv_head * group,", "one head of a group"),
    Mutant("i // steps, first + i % steps", "i // steps, first + i", "head after head"),
    Mutant("[batch, head, 1, start_m]", "[batch, head, 0, start_m]", "lse for delta"),
    Mutant("triton.cdiv(seq_k, 128)", "seq_k // 128", "the last keys lost"),
    Mutant("gl.cdiv(seq_q - first, 64)", "(seq_q - first) // 64", "no last queries"),
    Mutant(
        "scale=scale), dk, dv",
        "scale=scale), dv, dk",
        "gradients in the wrong order",
    ),
    Mutant(
        "torch.zeros_like(q), dk",
        "torch.empty_like(q), dk",
        "empty keys leave dq unwritten",
    ),
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
        "take(lines, lines_full, m)",
        "lines.index(m % 4).reshape([1, 64])",
        "delta is not waited for",
    ),
    Mutant(
        "take(lines, lines_full, n)",
        "lines.index(n % 4).reshape([1, 64])",
        "lse is not waited for",
    ),
    Mutant(
        "        dk = warpgroup_mma_wait(0, deps=[dk])\n"
        "        mbarrier.arrive(empty.index(n % 4))\n",
        "        mbarrier.arrive(empty.index(n % 4))\n"
        "        dk = warpgroup_mma_wait(0, deps=[dk])\n",
        "Q is let go before dK has read it",
    ),
    Mutant(
        "        mbarrier.arrive(empty.index(m % 4))\n",
        "",
        "nobody says that dO was read",
        may_hang=True,
    ),
    Mutant("    mbarrier.wait(kv_full, 0)\n", "", "K and V are not waited for"),
    Mutant("mbarrier.expect(kv_full, 4 *", "mbarrier.expect(kv_full, 2 *", "half"),
]
MUTANTS = [*SUMS, *WEIGHTS, *PRODUCTS, *WAITS]
