"""A persistent kernel: each program goes on from one block of queries to the next."""

import math

import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from snippets.attention.flash2_persistent import attention_kernel
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.attention import tiles
from tests.replays.sentences import Moment, span

HEADS = 2
BLOCKS = 2  # of queries in each head
BLOCK = 2  # queries, and keys
HEAD_DIM = 4  # rows of 16 bytes, as descriptors ask for
LENGTH = BLOCKS * BLOCK


def inputs(programs: int) -> Tensors:
    """The same two heads for any number of programs."""
    x = tiles.heads(HEADS * LENGTH, HEADS * LENGTH, HEAD_DIM, seed=3)
    heads = {name: rows.view(HEADS, LENGTH, HEAD_DIM) for name, rows in x.items()}
    return heads | {"programs": torch.tensor(programs)}


def call(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, programs: torch.Tensor
) -> Tensors:
    """One launch, causal, with tiles of 2 x 2."""
    o, lse = torch.empty_like(q), torch.empty(HEADS * LENGTH)
    shape = [1, 1, BLOCK, HEAD_DIM]
    described = [TensorDescriptor.from_tensor(x[None], shape) for x in (q, k, v, o)]
    attention_kernel.fn[(int(programs),)](
        *described, lse, HEAD_DIM**-0.5 * math.log2(math.e), HEADS, HEADS, 1, LENGTH,
        LENGTH, LENGTH, BLOCK_D=HEAD_DIM, INPUT_PRECISION="ieee", CAUSAL=True,
        BLOCK_M=BLOCK, BLOCK_N=BLOCK,
    )  # fmt: skip
    return {"o": o, "lse": lse}


def expected(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, programs: torch.Tensor
) -> Tensors:
    """Each head alone."""
    heads = [tiles.expected(*each, causal=True) for each in zip(q, k, v, strict=True)]
    o, lse = (torch.stack([each[name] for each in heads]) for name in ("o", "lse"))
    return {"o": o, "lse": lse.flatten()}


def number(at: Moment, name: str) -> int:
    """A variable that is one number."""
    return int(at.array(name))


def walk(at: Moment) -> str:
    """Which number is next."""
    own, tile = at["program"], number(at, "tile")
    if tile == own > 0:
        return (
            "On a GPU, program {program} runs at the same time as program 0. It begins "
            f"with its own number, {tile}."
        )
    if tile == own:
        return (
            "The {blocks} blocks of queries in each of {batch_heads} heads are "
            f"numbered from 0 to {HEADS * BLOCKS - 1}. Program {{program}} begins with "
            f"its own number, {tile}."
        )
    return (
        "The program does not end here. It goes on by the number of programs, "
        f"{tile - own}, and takes number {own} + {tile - own} = {tile}."
    )


def order(at: Moment) -> str:
    """Which block that is, by the formula of the page."""
    i, block = number(at, "tile"), number(at, "block")
    return (
        f"Blocks that work longest go first. So number {i} is block {BLOCKS} - 1 - "
        f"⌊{i} / {HEADS}⌋ = {block} of head {i} mod {HEADS} = {{batch_head}}, which "
        f"has {block + 1} tile{'s' * (block > 0)} of keys to visit."
    )


def queries(at: Moment) -> str:
    """Which queries are loaded."""
    first, last = map(int, at.array("offs_m"))
    return (
        f"Load queries {first} and {last} of head {{head}}: {{bytes}} bytes. They stay "
        "on the chip for all keys of the block."
    )


def anew(at: Moment) -> str:
    """What a block begins with."""
    if number(at, "tile") == at["program"]:
        return tiles.START["acc = tl.zeros"].format_map(at)
    return (
        "The sums of the block before belong to other queries. So this one starts "
        "anew: each row with the maximum -∞, the sum 0 and the output 0."
    )


def whole(at: Moment) -> str:
    """What the loop without a mask will do."""
    full = number(at, "full")
    if not full:
        return "No tile is seen whole by both rows: the loop without a mask has none."
    return (
        f"Both rows see {span('key', 0, full - 1)}, a whole tile: the first loop takes "
        "it without a mask."
    )


def cut(at: Moment) -> str:
    """What the loop with a mask will do."""
    first, end = number(at, "full"), number(at, "last")
    text = (
        f"The diagonal cuts the tile of {span('key', first, end - 1)}: the second loop "
        "masks it."
    )
    if end < LENGTH:
        text += f" Keys {end} and {end + 1} are never loaded for these rows."
    return text


def keys(at: Moment) -> str:
    """Which keys are loaded."""
    first = number(at, "start_n")
    own = span("key", first, first + BLOCK - 1)
    return f"Load {own} of head {{kv_head}}: {{bytes}} bytes."


def weights(at: Moment) -> str:
    """The maximum, and the weights."""
    if not at.rises("m_i", "m_new"):
        return (
            "No score of row {row} is above its maximum so far, so m stays {m_new}. "
            "The weights are {p}."
        )
    text = (
        "The largest score of row {row}, times {scale_log2}, is new m = {m_new}. The "
        "weights are {p}."
    )
    if at["program"] or number(at, "start_n") or not at.array("offs_m")[0]:
        return text
    return (
        "Weights are powers of 2, so scores are multiplied by scale_log2, the scale "
        f"times log2(e). {text}"
    )


def visited(at: Moment) -> str:
    """How much the program has done: {tile} counts over all its blocks."""
    count = at["tile"]
    done = "both blocks" if number(at, "tile") > at["program"] else "this block"
    return (
        f"Store their logsumexps: {{bytes}} bytes. After {done}, program {{program}} "
        f"has visited {count} tile{'s' * (count > 1)} of keys."
    )


REPLAY = Replay(
    call=call,
    expected=expected,
    runs={
        "two": Run("2 programs", inputs(2)),
        "three": Run("3 programs", inputs(3)),
    },
    memory=[
        Show("q", "q", "queries, two heads of 4", "Q"),
        Show("k", "k", "keys", "K", turned=True),
        Show("v", "v", "values", "V"),
        Show("o", "o", "output", "O"),
        Show("lse", "lse", "logsumexp of each row", turned=True),
    ],
    state=[
        Show("tile", "", "the number that the program is at", "number", kept=True),
        Show("batch_head", "", "its head", "head", kept=True),
        Show("block", "", "its block of queries", kept=True),
        *(show for show in tiles.STATE if show.name not in ("o", "alpha")),
    ],
    rows="offs_m",
    follow="m_i to m_new",
    lines={
        "walk": walk,
        "order": "",
        "order_causal": order,
        "q = q_desc": queries,
        "m_i = tl.full": "",
        "l_i = tl.zeros": "",
        "acc = tl.zeros": anew,
        "seq_k, 0, full": whole,
        "seq_k, full, last": cut,
        "k = k_desc": keys,
        "v = v_desc": "Load the same rows of V: {bytes} bytes.",
        "s = tl.dot": "Queries times keys: one tile of scores, which is never stored.",
        "s = tl.where(seen": tiles.STEPS["s = tl.where(seen"],
        "m_new = ": "",
        "p = tl.exp2": weights,
        "alpha = ": "",
        "l_i = l_i": "",
        "acc = acc": "",
        "acc = tl.dot": tiles.added,
        "m_i = m_new": "",
        "o = acc": tiles.END["o = acc /"],
        "lse = (m_i": (
            "The logsumexp of a row is (m + log2(l)) · ln 2: {lse} in row {row}."
        ),
        "o_desc.store": "Store the output of this block: {bytes} bytes.",
        "tl.store(lse_ptr": visited,
    },
    frames="tl.store(lse_ptr",
    functions=["attention_kernel"],  # behind the autotuner
    program="program {0}",
    formulas={
        "read": "W · B_r · d · b + B · H · t · (t + 1) · B_c · d · b",
        "written": "W · B_r · (d · b + 4)",
    },
    symbols=lambda q, **_: {
        "W": HEADS * BLOCKS,
        "B_r": BLOCK,
        "B_c": BLOCK,
        "B": 1,
        "H": HEADS,
        "t": BLOCKS,
        "d": HEAD_DIM,
        "b": q.element_size(),
    },
    gain=(
        "All blocks are done, each of them once. The other number of programs gives "
        "the same output."
    ),
    names={f"attention_kernel.{x}_desc": x for x in "qkvo"},
)
