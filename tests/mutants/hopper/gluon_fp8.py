"""Bugs that the tests of snippets/hopper/gluon_fp8.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    # The order of the keys.
    Mutant(
        "col % HALF // 2 * 4 + col // HALF * 2 + col % 2",
        "col",
        "the mask in the order of columns",
    ),
    Mutant("col // HALF * 2 + col % 2", "col % 2", "half of the keys masked twice"),
    Mutant("i % 2 * 2, i // 2", "0, i // 2", "the first two of each four, twice"),
    Mutant("i // 2 * 128]", "0]", "the first 128 columns of K, twice"),
    Mutant("start_n // 4,", "start_n,", "a tile of K four times too far"),
    Mutant("    if seq_k % 4:\n", "    if False:\n", "the last keys cut off"),
    Mutant("-seq_k % 4)", "seq_k % 4)", "as many more keys as there are too many"),
    # Softmax.
    Mutant("P_BITS = gl.constexpr(8)", "P_BITS = gl.constexpr(0)", "weights up to 1"),
    Mutant("P_BITS = gl.constexpr(8)", "P_BITS = gl.constexpr(9)", "weights of 512"),
    Mutant("(shift[:, None] - P_BITS)", "shift[:, None]", "lse 8 bits off"),
    Mutant("gl.log2(l_i) - P_BITS)", "gl.log2(l_i))", "lse 8 bits too large"),
    Mutant('gl.where(m_new == float("-inf"), 0.0, m_new)', "m_new", "(-inf) - (-inf)"),
    # The sums.
    Mutant("(acc[c] * alpha + waited,)", "(acc[c] + waited,)", "an old sum as it was"),
    Mutant(
        "(acc[c] * alpha + waited[0],)",
        "(acc[c] + waited[0],)",
        "an old sum of the last columns as it was",
    ),
    Mutant(
        "pv = warpgroup_mma(p, part, no_sums, use_acc=False, is_async=True)",
        "pv = warpgroup_mma(p, part, acc[c] * alpha, is_async=True) - acc[c] * alpha",
        "one sum for all tiles",
        may_not_compile=True,
    ),
    # Scales.
    Mutant("q_scale + batch * heads + head", "q_scale", "one factor of q"),
    Mutant("gl.load(k_scale + kv_head)", "gl.load(k_scale)", "one factor of K"),
    Mutant("gl.load(v_scale + kv_head)", "gl.load(v_scale)", "one factor of V"),
    Mutant(
        "kv_head = batch * kv_heads + head //",
        "kv_head = head //",
        "factors of batch 0",
    ),
    Mutant(
        "acc[c] / l_safe[:, None] * o_scale",
        "acc[c] * (o_scale / l_safe[:, None])",
        "a tiny factor of V loses digits",
    ),
    Mutant("gl.where(scale < 1.2e-38, 1.2e-38, scale)", "scale", "0 * -inf"),
    Mutant("[x.contiguous() for x in", "[x for x in", "every other factor"),
    # Which rows and keys.
    Mutant("gl.minimum(tiles, 1), seq_k", "0, seq_k", "no mask without causal"),
    Mutant("offs_m + 1 + seq_k - seq_q", "offs_m + 1", "aligned top left"),
    Mutant(
        "band = gl.maximum(tiles - whole // BLOCK_N, band)", "band = band", "no band"
    ),
    Mutant(
        "(block + 1 + seq_k - seq_q, 0)",
        "(block + 64 + seq_k - seq_q, 0)",
        "a thin band",
    ),
    Mutant("(end - 1 - i) * BLOCK_N", "(end - i) * BLOCK_N", "the mask a tile too far"),
    Mutant("block + 64 * W + gl.arange", "block + gl.arange", "one consumer's mask"),
    Mutant(
        "rows = [batch, head, block + 64 * W, 0]",
        "rows = [batch, head, block, 0]",
        "one consumer's rows for all",
    ),
    # Whose blocks.
    Mutant("blocks - 1 - at, at)", "at, at)", "the first half of the blocks, twice"),
    Mutant("2 * at + 1 < blocks", "True", "the block in the middle twice"),
    Mutant("2 * at + 1 < blocks", "2 * at + 2 < blocks", "a block lost"),
    Mutant("there = there & (pair < ", "there = there | (pair < ", "heads beyond all"),
    Mutant(
        "turns = triton.cdiv(items, programs)",
        "turns = items // programs",
        "the last turn left out",
    ),
    Mutant("block + BLOCK_M + seq_k", "block + seq_k", "the diagonal left out"),
    # Who waits for whom.
    Mutant(
        "                mbarrier.wait(q_empty.index(w), (blocks & 1) ^ 1)\n",
        "",
        "Q replaced while it is multiplied",
    ),
    Mutant(
        "            mbarrier.wait(q_full.index(W), blocks & 1)\n",
        "",
        "Q is not waited for",
    ),
    Mutant(
        "    mbarrier.wait(empty.index(n % PLACES), (n // PLACES & 1) ^ 1)\n",
        "",
        "K replaced while it is multiplied",
    ),
    Mutant(
        "PARTS * k_desc.block_type.nbytes",
        "k_desc.block_type.nbytes",
        "the first part of K is enough",
        may_hang=True,
    ),
    Mutant(
        "head // (q_desc.shape[1] // k_desc.shape[1])", "0", "one head of keys for all"
    ),
    Mutant("start_n -= BLOCK_N", "start_n -= 2 * BLOCK_N", "every other tile"),
    # The launch.
    Mutant("if o.numel() == 0 or seq_k == 0:", "if False:", "a launch of nothing"),
    Mutant("if not scale > 0:", "if not scale:", "a negative scale"),
    Mutant("    check(q, k, v, q_scale, k_scale, v_scale)\n", "", "nothing refused"),
    Mutant(
        "with torch.cuda.device_of(q):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
