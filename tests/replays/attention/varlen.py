"""Packed sequences: a program finds its sequence, and stops where that one ends."""

from bisect import bisect
from collections.abc import Callable

import torch

from snippets.attention.varlen import attention_kernel
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.attention import tiles
from tests.replays.attention.tiles import BLOCK
from tests.replays.sentences import Moment, listed, span
from tests.snippets.attention.reference import visible

HEAD_DIM = 2
ENDS = [0, 2, 2, 7]
BATCH = len(ENDS) - 1
BLOCKS = ENDS[-1] // BLOCK + BATCH + 1  # as the launch of the snippet


def packed(causal: bool) -> Tensors:
    """Three sequences of 2, 0 and 5 tokens."""
    ends = {"cu_seqlens": torch.tensor(ENDS, dtype=torch.int32)}
    x = tiles.heads(ENDS[-1], ENDS[-1], HEAD_DIM, seed=738)
    return x | ends | {"causal": torch.tensor(causal)}


def call(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens: torch.Tensor,
    causal: torch.Tensor,
) -> Tensors:
    """One head, with tiles of 4 x 4."""
    o, lse = torch.empty_like(q), torch.empty(len(q))
    strides = 4 * (HEAD_DIM, 0, 1)
    attention_kernel[(BLOCKS, 1)](
        q, k, v, cu_seqlens, cu_seqlens, o, lse, HEAD_DIM**-0.5, *strides,
        BATCH, 1, len(q), len(k), CAUSAL=bool(causal), HEAD_DIM=HEAD_DIM,
        BLOCK_M=BLOCK, BLOCK_N=BLOCK, BLOCK_D=HEAD_DIM, INPUT_PRECISION="ieee",
    )  # fmt: skip
    return {"o": o, "lse": lse}


def expected(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens: torch.Tensor,
    causal: torch.Tensor,
) -> Tensors:
    """Each sequence alone."""
    lengths = cu_seqlens.int().diff().tolist()
    sequences = zip(*(x.split(lengths) for x in (q, k, v)), strict=True)
    alone = [tiles.expected(*each, causal=bool(causal)) for each in sequences]
    return {name: torch.cat([each[name] for each in alone]) for name in alone[0]}


def loaded(length: int, causal: bool) -> int:
    """The keys of a sequence in the tiles of which some query sees some key."""
    seen = visible(length, length, "cpu", causal=causal)
    strips = (strip for rows in seen.split(BLOCK) for strip in rows.split(BLOCK, dim=1))
    return sum(tile.shape[1] for tile in strips if tile.any())


def number(at: Moment, name: str) -> int:
    """A variable that is one number."""
    return int(at.array(name))


def ends(at: Moment) -> str:
    """Where the sequences begin and the last one ends."""
    *firsts, end = at.array("start")[: BATCH + 1]
    begin = f"the sequences begin at the rows {listed(firsts)}"
    if at["program"]:
        return (
            f"The program of block {{program}} loads cu_seqlens, too, {{bytes}} bytes: "
            f"{begin}, and the last one ends before row {end}."
        )
    return (
        "A program knows only the number of its block, here 0. To find its sequence, "
        f"it loads c = cu_seqlens, {{bytes}} bytes: {begin}, and the last one ends "
        f"before row {end}."
    )


def search(at: Moment) -> str:
    """Which sequence it is, by the formula of the page."""
    blocks = (at.array("start") // BLOCK + at.array("offs_b"))[: BATCH + 1]
    count = int((blocks <= at["program"]).sum())
    some = ("one is", "two are", "three are", "all four are")[count - 1]
    text = (
        f"Of {listed([*blocks])}, where the blocks of the sequences begin and end, "
        f"{some} not above {{program}}, the number of this block."
        if at["program"]
        else f"Before sequence u lie c / {BLOCK} blocks, rounded down, and u to spare. "
        f"So sequences begin at block {listed([*blocks[:-1]])}, and end before "
        f"{blocks[-1]}. Of these, {some} not above 0, this block."
    )
    own = (
        "lies behind the last sequence" if count > BATCH else "belongs to sequence {u}"
    )
    return f"{text} As -1 + {count} = {count - 1}, it {own}."


def begins(at: Moment) -> str:
    """Where the queries begin."""
    if number(at, "u") == BATCH:
        return "What lies behind would begin at row {first_q} of Q: {bytes} bytes."
    return "Sequence {u} begins at row {first_q} of Q: {bytes} bytes."


def stops(at: Moment) -> str:
    """Where the queries end."""
    if number(at, "u") == BATCH:
        return "No number comes after that, so it is loaded again: {bytes} bytes."
    length = number(at, "last_q") - number(at, "first_q")
    has = f"has {length} queries" if length else "is empty"
    return f"It ends before row {{last_q}}, so it {has}: {{bytes}} bytes."


def begin_keys(at: Moment) -> str:
    """Where the keys begin."""
    if at["program"]:
        return "The keys begin at row {first_k} of K and V: {bytes} bytes."
    return (
        "Keys may begin and end elsewhere, but here they have the same numbers. They "
        "begin at row {first_k} of K and V: {bytes} bytes."
    )


def end_keys(at: Moment) -> str:
    """Where the keys end."""
    length = number(at, "last_k") - number(at, "first_k")
    many = f"there are {length}" if length else "there is none"
    return f"They end before row {{last_k}}, so {many}: {{bytes}} bytes."


def block(at: Moment) -> str:
    """Which rows of the sequence the block has."""
    start, end = number(at, "start_m"), number(at, "seq_q")
    if start >= end:
        return ""
    before = number(at, "first_q") // BLOCK + number(at, "u")
    return (
        f"Sequence {{u}} owns the blocks from {before} on, so block {{program}} begins "
        f"with row ({{program}} - {before}) · {BLOCK} = {start} of its {end} rows."
    )


def leaves(at: Moment) -> str:
    """Why a program ends at once."""
    if number(at, "u") == BATCH:
        return f"Q has {ENDS[-1]} rows, so none is left, and this program ends, too."
    return (
        "An empty sequence has no row for its block. The program ends, and has loaded "
        "no query and no key."
    )


def rows(at: Moment) -> list[int]:
    """The rows of the array that a line touches."""
    (access,) = (*at.line.reads, *at.line.writes)
    return sorted({int(i) // HEAD_DIM for i in access.index})


def fetched(what: str, array: str, start: str) -> Callable[[Moment], str]:
    """Which rows of an array are loaded, and what lies behind the last of them."""

    def sentence(at: Moment) -> str:
        inside, begin = rows(at), number(at, start)
        own = span(what, begin, begin + len(inside) - 1)
        text = (
            f"Load {own} of the sequence, {span('row', inside[0], inside[-1])} of "
            f"{array}: {{bytes}} bytes."
        )
        behind = inside[-1] + 1
        if len(inside) == BLOCK:
            return text
        if behind == ENDS[-1]:
            return f"{text} It is the last, and the rest of the tile is 0."
        return (
            f"{text} There is room for row {behind}, but it belongs to sequence "
            f"{bisect(ENDS, behind) - 1}: the mask puts 0 in its place."
        )

    return sentence


def unmasked(at: Moment) -> str:
    """What the first loop will do."""
    full = number(at, "full")
    if not full:
        return ""
    return (
        f"All rows of this block see {span('key', 0, full - 1)}, a whole tile: the "
        "first loop needs no mask."
    )


def masked(at: Moment) -> str:
    """What the second loop will do."""
    begin, end, length = (number(at, name) for name in ("full", "last", "seq_k"))
    cuts = [
        what
        for what, cut in (
            ("the diagonal", number(at, "CAUSAL") and number(at, "start_m") < end - 1),
            ("the end of the sequence", end == length),
        )
        if cut
    ]
    text = (
        f"{listed(cuts).capitalize()} cut{'s' * (len(cuts) == 1)} the tile of "
        f"{span('key', begin, end - 1)}, so the second loop, with a mask, takes it."
    )
    if end < length:
        beyond = span("key", end, length - 1)
        text += f" No row of this block sees {beyond}, so it is not loaded."
    return text


def hidden(at: Moment) -> str:
    """Which scores become -inf."""
    begin, end = number(at, "start_n"), number(at, "seq_k")
    why = []
    if begin + BLOCK > end:
        hold = "holds" if begin + BLOCK == end + 1 else "hold"
        places = span("place", end - begin, BLOCK - 1)
        why.append(f"{places} of the tile {hold} no key")
    if number(at, "CAUSAL") and at.array("offs_m")[0] < min(begin + BLOCK, end) - 1:
        why.append("no row sees a key behind its own")
    return (
        f"{', and '.join(why).capitalize()}: these scores become -∞, so they will "
        "weigh 0."
    )


REPLAY = Replay(
    call=call,
    expected=expected,
    runs={
        "all": Run("all keys of the sequence", packed(causal=False)),
        "causal": Run("causal", packed(causal=True)),
    },
    memory=[
        Show("cu_seqlens", "", "cu_seqlens, where sequences begin", "c", turned=True),
        *tiles.MEMORY,
    ],
    state=[
        Show("u", "", "the sequence of this program", kept=True),
        Show("first_q", "", "its first row", kept=True),
        Show("last_q", "", "the row behind its last", kept=True),
        *(show for show in tiles.STATE if show.name != "lse"),
    ],
    rows="offs_m",
    follow="m_i",
    lines={
        "u = -1": "",
        "start = tl.load": ends,
        "u += tl.sum": search,
        "first_q = ": begins,
        "last_q = ": stops,
        "first_k = ": begin_keys,
        "last_k = ": end_keys,
        "outer": block,
        "offsets: return": leaves,
        "base": (
            "The pointers move to row {first_q}, the first of sequence {u}. From here "
            "on rows and keys are counted from there, as if the sequence were alone."
        ),
        **tiles.START,
        "q = tl.load": fetched("row", "Q", "start_m"),
        "acc = tl.zeros": "",
        "seq_q, seq_k, 0, full": unmasked,
        "seq_q, seq_k, full, last": masked,
        **tiles.LOOP,
        "k = tl.load": fetched("key", "K", "start_n"),
        "s = tl.where(seen": hidden,
        "m_new = tl.maximum": "",
        "p = tl.exp": (
            "The largest score of row {row} so far is new m = {m_new}. Each score s "
            "becomes a weight exp(s - new m): {p}."
        ),
        "alpha = tl.exp": "",
        "l_i = l_i * alpha": "",
        "acc = acc * alpha": "",
        "acc = tl.dot": tiles.added,
        "m_i = m_new": "",
        **tiles.END,
        "lse = m_i +": "",
        "tl.store(lse_ptr": "Store their logsumexp, m + log(l): {bytes} bytes.",
    },
    frames="k = tl.load",
    program="block {0}",
    formulas={
        "read": "4 · P · (B + 5) + N · d · b + 2 · t · d · b",
        "written": "N · (d · b + 4)",
    },
    symbols=lambda q, k, v, cu_seqlens, causal: {
        "P": BLOCKS,
        "B": BATCH,
        "N": len(q),
        "d": HEAD_DIM,
        "b": q.element_size(),
        "t": sum(loaded(n, bool(causal)) for n in cu_seqlens.diff().tolist()),
    },
    gain="No program has loaded a key of a sequence that is not its own.",
    names={"attention_kernel.cu_seqlens_q_ptr": "cu_seqlens"},
)
