"""Bugs that the tests of snippets/hopper/gluon_fp8.py must catch."""

from tests.mutants import Mutant
from tests.mutants.hopper.late import SLEEP, late

GIVE_K = "        mbarrier.arrive(k_empty.index(i % PLACES))\n"
GIVE_V = "        mbarrier.arrive(v_empty.index(i % PLACES))\n"
TAKE_V = "        v = take(v_ring, v_full, i)\n"

MUTANTS = [
    # Which rows and keys.
    Mutant("0, start_n // 4, 0, 0]", "0, start_n, 0, 0]", "K four times too far"),
    Mutant("[batch * kv_heads + kv_head,", "[kv_head,", "keys of batch 0"),
    Mutant("kv_head = head // (heads // kv_heads)", "kv_head = 0", "one head of keys"),
    Mutant("kv_pair = pair //", "kv_pair = head //", "factors of batch 0"),
    Mutant("pair = batch * heads + head", "pair = head", "all factors of batch 0"),
    Mutant("band = end - whole // 128", "band = first", "no mask"),
    Mutant("offs_m + 1 + seq_k - seq_q", "offs_m + 1", "aligned top left"),
    Mutant(
        "(block + 1 + seq_k - seq_q, 0)",
        "(block + 64 + seq_k - seq_q, 0)",
        "a thin band",
    ),
    Mutant("(end - 1 - i) * 128", "(end - i) * 128", "the mask a tile too far"),
    Mutant(
        "(first + tiles - 1 - i) * 128",
        "(i - first) * 128",
        "the first tile first, and the mask with it",
    ),
    Mutant(
        "ends = block + 64 * W, first", "ends = block, first", "one consumer's rows"
    ),
    Mutant("block + 64 * w, 0]", "block, 0]", "one consumer's queries"),
    # The sums.
    Mutant(
        "tile.add(acc, alpha, p",
        "tile.add(acc, alpha * 0 + 1, p",
        "an old sum as it was",
    ),
    # Whose blocks.
    Mutant("blocks - 1 - at, at)", "at, at)", "the first half of the blocks, twice"),
    Mutant("2 * at + 1 < blocks", "2 * at + 2 < blocks", "a block lost"),
    Mutant("there = there & (pair < ", "there = there | (pair < ", "heads beyond all"),
    Mutant(
        "gl.program_id(0) + turn * gl.num_programs(0)",
        "gl.program_id(0)",
        "the first block in each turn",
    ),
    Mutant(
        "gl.program_id(0) + turn // 2 * gl.num_programs(0)",
        "gl.program_id(0) + turn * gl.num_programs(0)",
        "every other pair of blocks left out",
    ),
    Mutant(
        "turns = triton.cdiv(items, programs)",
        "turns = items // programs",
        "the last turn left out",
    ),
    Mutant("block + BLOCK_M + seq_k", "block + seq_k", "the diagonal left out"),
    Mutant(
        "gl.maximum(gl.cdiv(last, 128), 1)",
        "gl.cdiv(last, 128)",
        "blocks that see nothing have no queries",
        may_hang=True,
    ),
    # Who waits for whom.
    Mutant(
        "            mbarrier.wait(q_full.index(W), blocks & 1)\n",
        "",
        "Q is not waited for",
    ),
    Mutant(
        "        mbarrier.wait(k_full.index(i % PLACES), i // PLACES & 1)\n",
        "",
        "K is not waited for",
    ),
    Mutant(
        "k_full.index(i % PLACES), i // PLACES & 1",
        "k_full.index(i % PLACES), i & 1",
        "the wrong phase of K",
        may_hang=True,
    ),
    late(
        "gluon_fp8.py",
        "K's place is given back before K is multiplied",
        "        s = warpgroup_mma(q, k",
        GIVE_K,
        (GIVE_K, ""),
        ("        s =", f"{GIVE_K}        {SLEEP}        s ="),
    ),
    late(
        "gluon_fp8.py",
        "V's place is given back before V is multiplied",
        "        acc = tile.add(",
        GIVE_V,
        (GIVE_V, ""),
        ("take(v_ring, v_full, i)", "v"),
        ("        acc =", f"{TAKE_V}{GIVE_V}        {SLEEP}        acc ="),
    ),
    Mutant(
        "            mbarrier.arrive(q_empty.index(W))\n",
        "",
        "Q's place is never given back",
        may_hang=True,
    ),
    Mutant(
        "            first += tiles\n            blocks += 1\n",
        "            first += tiles\n",
        "the first Q's phase for all",
        may_hang=True,
    ),
    Mutant(
        "first, blocks = end, blocks + 1",
        "first, blocks = 0, blocks + 1",
        "each block walks the first places",
        may_hang=True,
    ),
    # The launch.
    Mutant("    if arguments:\n", "    if True:\n", "a launch of nothing"),
    Mutant(
        "with torch.cuda.device_of(q):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
