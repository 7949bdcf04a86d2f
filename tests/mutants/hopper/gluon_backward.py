"""Bugs that the tests of snippets/hopper/gluon_backward.py must catch."""

from functools import partial

from tests.mutants import Mutant
from tests.mutants.hopper.late import SLEEP
from tests.mutants.hopper.late import late as late_in

late = partial(late_in, "gluon_backward.py")
LSE = (
    "        load(rows_desc, [batch, head, 0, start_m], "
    "lines, lines_full, empty, 2 * i)\n"
)

SUMS = [
    Mutant("rows.new_zeros(", "rows.new_empty(", "sums begin as they were"),
    Mutant(
        'gl.atomic_add(half + gl.arange(0, 64 * HALF, FOURS), dq, sem="relaxed")',
        "gl.store(half + gl.arange(0, 64 * HALF, FOURS), dq)",
        "stored: the last program wins",
    ),
    Mutant(
        "permute((3, 1, 0, 2, 5, 4, 6))",
        "permute((0, 1, 2, 3, 4, 5, 6))",
        "sums in another order than they are read in",
    ),
    Mutant(" + W * 64 * HALF", "", "both halves of the columns in one place"),
    Mutant("gl.cdiv(seq_q, 64).to(gl.int64)", "gl.cdiv(seq_q, 64)", "heads of 32 bits"),
    Mutant("(batch * dk_desc.shape[1] + kv_head)", "kv_head", "dq of the first batch"),
    Mutant("kv_head) * GROUP * a_head", "kv_head) * a_head", "dq of the heads of keys"),
    Mutant("            dq_sum += a_head\n", "", "dq of a group in its first head"),
    Mutant("            start_m = first\n", "", "the next head goes on at the end"),
    Mutant("if start_m >= seq_q:", "if start_m > seq_q:", "the next head is late"),
    Mutant("dq_sum, q, scale=scale)", "dq_sum, q)", "dq scaled as if by default"),
    Mutant(
        "gl.minimum(4, pairs - four)", "4", "the last heads are not four: some are lost"
    ),
]
WEIGHTS = [
    Mutant("[:, None] < ends", "[:, None] <= ends", "a key too many"),
    Mutant("offs_m + 1 + seq_k - seq_q", "offs_m + 1", "aligned top left"),
    Mutant("start_m + 1 + seq_k - seq_q", "start_m + 1", "so where tiles are cut"),
    Mutant("offs_m + 1 + seq_k", "offs_m + seq_k", "not its own key"),
    Mutant("+ 64 * W + 64 > seen:", "+ 64 * W > seen:", "cut tiles"),
    Mutant(
        "gl.minimum(offs_m + 1 + seq_k",
        "gl.minimum(0 * offs_m + start_m + 64 + seq_k",
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
        "causal or seq_k % 128 > 0",
        "causal",
        "keys that do not exist have weights: infinity * 0 in dq",
    ),
    Mutant("causal or seq_k % 128", "causal or seq_k % 64", "half a tile of such keys"),
    Mutant("            causal, causal", "            False, causal", "causal ignored"),
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
    Mutant("kv_head * GROUP + i // steps,", "kv_head * GROUP,", "one head of a group"),
    Mutant("scale, heads // kv_heads,", "scale, 1,", "the first head of each group"),
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
        "        hopper.fence_async_shared()\n        mbarrier.arrive(ds_full",
        "        mbarrier.arrive(ds_full",
        "dS is not shown to the tensor cores",
    ),
    late(
        "dK where the other still reads K",
        "        mbarrier.wait(ds_full.index(other)",
        "    mbarrier.wait(read, 0)  # the other has read these keys, too\n",
        ("i // 2 & 1)\n", f"i // 2 & 1)\n        if W == 1:\n            {SLEEP}"),
        ("    mbarrier.wait(read, 0)  # the other has read these keys, too\n", ""),
    ),
    late(
        "delta is not waited for",
        "        load(rows_desc, [batch, head, 1, start_m]",
        "take(lines, lines_full, m)",
        ("        load(rows_desc, [", f"        {SLEEP}        load(rows_desc, ["),
        ("take(lines, lines_full, m)", "lines.index(m % 4).reshape([1, 64])"),
        may_hang=True,  # its place is given back before it was asked for
    ),
    late(
        "lse is not waited for",
        LSE,
        "take(lines, lines_full, n)",
        (LSE, ""),
        # It comes behind dO, for which the consumers wait.
        (
            "lines, lines_full, empty, 2 * i + 1)\n",
            f"lines, lines_full, empty, 2 * i + 1)\n        {SLEEP}{LSE}",
        ),
        ("take(lines, lines_full, n)", "lines.index(n % 4).reshape([1, 64])"),
        may_hang=True,  # its place is given back before it was asked for
    ),
    late(
        "Q is let go before dK has read it",
        "        dk = warpgroup_mma(",
        "        mbarrier.arrive(empty.index(n % 4))\n",
        ("        mbarrier.arrive(empty.index(n % 4))\n", ""),
        (
            "        dk = warpgroup_mma(",
            f"        mbarrier.arrive(empty.index(n % 4))\n        {SLEEP}"
            "        dk = warpgroup_mma(",
        ),
    ),
    Mutant(
        "        mbarrier.arrive(empty.index(m % 4))\n",
        "",
        "nobody says that dO was read",
        may_hang=True,
    ),
    Mutant("    mbarrier.wait(kv_full, 0)\n", "", "K and V are not waited for"),
    late(
        "half of K and V is not waited for",
        "    mbarrier.expect(kv_full, 4 *",
        "lines, lines_full, empty, 2 * i + 1)\n",
        ("kv_full, 4 *", "kv_full, 2 *"),
        ("static_range(2)", "static_range(1)"),
        (
            "lines, lines_full, empty, 2 * i + 1)\n",
            f"""lines, lines_full, empty, 2 * i + 1)
        if i == 0:
            {SLEEP}
            keys = [batch, kv_head, start_n + 64, 0]
            hopper.tma.async_copy_global_to_shared(k_desc, keys, kv_full, kv.index(1))
            hopper.tma.async_copy_global_to_shared(v_desc, keys, kv_full, kv.index(3))
""",
        ),
    ),
]
MUTANTS = [*SUMS, *WEIGHTS, *PRODUCTS, *WAITS]
