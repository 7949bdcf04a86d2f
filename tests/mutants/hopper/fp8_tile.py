"""Bugs that the tests of snippets/hopper/fp8_tile.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    # The order of the keys.
    Mutant(
        "col % 64 // 2 * 4 + col // 64 * 2 + col % 2",
        "col",
        "the mask in the order of columns",
    ),
    Mutant("col // 64 * 2 + col % 2", "col % 2", "half of the keys masked twice"),
    Mutant(".permute((0, 2, 1, 3))", ".permute((0, 2, 3, 1))", "pairs interleaved"),
    Mutant(
        ".unflatten(1, (-1, 2, 2)).transpose(1, 2)",
        ".unflatten(1, (2, -1, 2))",
        "keys in the order of columns",
    ),
    Mutant("    if seq_k % 4:\n", "    if False:\n", "the last keys cut off"),
    Mutant("-seq_k % 4)", "seq_k % 4)", "as many more keys as there are too many"),
    # Softmax.
    Mutant("P_BITS = gl.constexpr(8)", "P_BITS = gl.constexpr(0)", "weights up to 1"),
    Mutant("P_BITS = gl.constexpr(8)", "P_BITS = gl.constexpr(9)", "weights of 512"),
    Mutant("(shift[:, None] - P_BITS)", "shift[:, None]", "lse 8 bits off"),
    Mutant("gl.log2(l_i) - P_BITS", "gl.log2(l_i)", "lse 8 bits too large"),
    Mutant("mask(s, 0, seq_k)", "s", "keys beyond the last"),
    # The sums.
    Mutant("v.slice(c * COLS,", "v.slice(0,", "the first columns twice"),
    Mutant(
        ".permute((0, 2, 1)).reshape([64, 256])",
        ".reshape([64, 256])",
        "the columns of two parts by turns",
    ),
    # Scales.
    Mutant("gl.load(q_scale + pair)", "gl.load(q_scale)", "one factor of q"),
    Mutant("gl.load(k_scale + kv_pair)", "gl.load(k_scale)", "one factor of K"),
    Mutant("gl.load(v_scale + kv_pair)", "gl.load(v_scale)", "one factor of V"),
    Mutant("pair // (heads // kv_heads)", "pair % kv_heads", "keys of another head"),
    Mutant("kv_pair % kv_heads, 0, 0]", "0, 0, 0]", "one head of values for all"),
    Mutant(
        "gl.full_like(l_i, 1.0)[:, None], o * v_scale",
        "gl.full_like(l_i, 1.0)[:, None], o",
        "the factor of V left out",
    ),
    Mutant("gl.where(scale < 1.2e-38, 1.2e-38, scale)", "scale", "0 * -inf"),
    Mutant("[x.contiguous() for x in", "[x for x in", "every other factor"),
    # Who waits for whom.
    Mutant("    hopper.mbarrier.wait(bar, 0)\n", "", "nothing is waited for"),
    Mutant("(64 + 2 * 128) * BLOCK_D)", "64 * BLOCK_D)", "Q is enough", may_hang=True),
    # The launch.
    Mutant("if o.numel() == 0 or seq_k == 0:", "if False:", "a launch of nothing"),
    Mutant("not scale > 0:", "not scale:", "a negative scale"),
    Mutant("    check(q, k, v, *scales)\n", "", "nothing refused"),
    Mutant("if k.shape[2] > 128:", "if False:", "keys beyond the tile ignored"),
    Mutant(
        "with torch.cuda.device_of(q):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
