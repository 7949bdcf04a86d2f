"""Decoding from a paged cache: the table is looked up, then the keys are fetched."""

import torch

from snippets.attention.paged_kv import attention_kernel
from tests.replays import Replay, Run, Show, Tensors
from tests.replays.attention import tiles
from tests.replays.attention.tiles import BLOCK
from tests.replays.sentences import Moment, listed, span

GROUP = 2  # heads, which share their keys
HEAD_DIM = 2
PAGE_SIZE = 2
PAGES = 5
LENGTHS = [5, 3]
NAN = float("nan")


def cache(places: list[int]) -> Tensors:
    """Two sequences that begin with one page; the same keys in any four pages."""
    generator = torch.Generator().manual_seed(12)
    shape = {"q": (GROUP * len(LENGTHS), HEAD_DIM)}
    shape |= dict.fromkeys("kv", (len(places), PAGE_SIZE * HEAD_DIM))
    x = {
        name: torch.randn(size, generator=generator).round(decimals=1)
        for name, size in shape.items()
    }
    for name in "kv":
        x[name][2:, HEAD_DIM:] = NAN  # behind the last key of either sequence
        pages = torch.full((PAGES, PAGE_SIZE * HEAD_DIM), NAN)
        x[name] = pages.index_copy(0, torch.tensor(places), x[name])
    start, middle, end, other = places
    table = [[start, middle, end], [start, other, -1]]
    numbers = {"block_table": table, "seq_lens": LENGTHS}
    return x | {name: torch.tensor(n, dtype=torch.int32) for name, n in numbers.items()}


def call(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
) -> Tensors:
    """One launch, because the keys are in one part; a row of k and v is a page."""
    batch, max_pages = block_table.shape
    o, lse = torch.empty_like(q), torch.empty(len(q))
    strides = (PAGE_SIZE * HEAD_DIM, HEAD_DIM, 0, 1)
    attention_kernel[(batch, 1)](
        q, k, v, block_table, seq_lens, o, lse, HEAD_DIM**-0.5,
        GROUP * HEAD_DIM, HEAD_DIM, 0, 1, *strides, *strides, 1, batch, 1, 1,
        PAGES, max_pages, max_pages * PAGE_SIZE, PAGE_SIZE, GROUP, HEAD_DIM,
        BLOCK_M=GROUP, BLOCK_N=BLOCK, BLOCK_D=HEAD_DIM, INPUT_PRECISION="ieee",
        CAUSAL=False, OVERLAP=False,
    )  # fmt: skip
    return {"o": o, "lse": lse}


def expected(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
) -> Tensors:
    """Each sequence alone, its pages in a row."""
    k, v = (x[block_table.long()].reshape(len(seq_lens), -1, HEAD_DIM) for x in (k, v))
    alone = [
        tiles.expected(rows, keys[: int(n)], values[: int(n)])
        for rows, keys, values, n in zip(q.split(GROUP), k, v, seq_lens, strict=True)
    ]
    return {name: torch.cat([each[name] for each in alone]) for name in alone[0]}


def present(at: Moment, name: str) -> list[int]:
    """A variable of the tile, for the keys that the sequence has."""
    there = at.array("offs_n") < at.array("keys")
    return [int(each) for each in at.array(name)[there]]


def keys(at: Moment) -> str:
    """The keys of the tile."""
    found = present(at, "offs_n")
    return span("key", found[0], found[-1])


def by_page(at: Moment) -> dict[int, list[int]]:
    """The keys of the tile in each page."""
    found: dict[int, list[int]] = {}
    for key, page in zip(present(at, "offs_n"), present(at, "page"), strict=True):
        found.setdefault(page, []).append(key)
    return found


def tile(at: Moment) -> str:
    """Which keys a tile has."""
    first, end = (int(at.array(name)) for name in ("start_n", "keys"))
    which = "first" if at["tile"] == 1 else "next"
    room = f"room for {BLOCK} keys, but gets only " if end < first + BLOCK else ""
    found = span("key", first, min(first + BLOCK, end) - 1)
    return f"The {which} tile has {room}{found}."


def entries(at: Moment) -> str:
    """Which entries of the table are looked up, by the formula of the page."""
    found = [key // PAGE_SIZE for key in present(at, "offs_n")]
    return (
        f"A page has {PAGE_SIZE} keys, so the page of key j is entry j / {PAGE_SIZE}, "
        f"rounded down, of row {{batch}} of the table. For {keys(at)}: "
        f"{'entries' if len(found) > 1 else 'entry'} {listed(found)}."
    )


def looked_up(at: Moment) -> str:
    """What the table says of them."""
    pages = by_page(at)
    told = [f"entry {own[0] // PAGE_SIZE} says page {n}" for n, own in pages.items()]
    text = f"{listed(told).capitalize()}: {4 * len(pages)} bytes."
    if at["tile"] > 1:
        return f"{text} Places of the tile without a key get 0 without asking."
    if at["program"] == 0:
        return f"{text} Keys of one page ask for the same entry, which counts once."
    return (
        f"{text} Sequence 0 has page {next(iter(pages))} too: both begin with its keys."
    )


def held(at: Moment) -> str:
    """The bound, told once."""
    if (at["program"], at["tile"]) != (0, 1):
        return ""
    return (
        f"The cache has pages 0 to {PAGES - 1}, so these stay as they are. A wrong "
        f"entry, -1 too, would become {PAGES - 1}: no access leaves the cache."
    )


def slots(at: Moment) -> str:
    """Where each key is in its page."""
    key, page, slot = (present(at, name)[-1] for name in ("offs_n", "page", "slot"))
    return (
        f"In its page, key j has the slot j mod {PAGE_SIZE}. So key {key} of sequence "
        f"{{batch}} is in page {page}, slot {slot}."
    )


def addresses(at: Moment) -> str:
    """Where the numbers of each key begin."""
    starts = present(at, "k_rows")
    return (
        "A page of K is {stride_kp} numbers and a key is {stride_kn}, so "
        f"{keys(at)} begin{'s' * (len(starts) == 1)} at page · {{stride_kp}} + slot · "
        f"{{stride_kn}} = {listed(starts)}."
    )


def fetched(at: Moment) -> str:
    """Which keys are loaded from which page."""
    told = [
        f"{span('key', own[0], own[-1])} from page {page}"
        for page, own in by_page(at).items()
    ]
    text = f"Fetch {listed(told)}: {{bytes}} bytes."
    if len(present(at, "offs_n")) % PAGE_SIZE:
        text += " The next slot there holds no key (NaN here) and is not read."
    return text


def missing(at: Moment) -> str:
    """Places of the tile that have no key."""
    count = len(present(at, "offs_n"))
    if count == BLOCK:
        return ""
    has, its = ("has", "its") if count == BLOCK - 1 else ("have", "their")
    return (
        f"{span('Place', count, BLOCK - 1)} of the tile {has} no key: {its} scores "
        "become -∞ and will weigh 0."
    )


REPLAY = Replay(
    call=call,
    expected=expected,
    runs={
        "scattered": Run("pages anywhere", cache([3, 1, 4, 2])),
        "ordered": Run("the same keys, pages in order", cache([1, 2, 3, 4])),
    },
    memory=[
        Show("q", "q", "a query of 2 heads of each sequence", "Q"),
        Show("block_table", "", "of pages, by sequence", "table"),
        Show("seq_lens", "", "of each sequence", "keys", turned=True),
        Show("k", "k", "a page in each row, of 2 keys", "K"),
        Show("v", "v", "values in the same places", "V"),
        Show("o", "o", "outputs", "O"),
        Show("lse", "lse", "logsumexp", turned=True),
    ],
    state=[
        Show("page", "", "of each key"),
        Show("slot", "", "of each key"),
        *(show for show in tiles.STATE if show.name != "lse"),
    ],
    rows="offs_h",
    follow="m_i",
    lines={
        "q = tl.load": (
            "Each sequence has a program. This one loads the queries of sequence "
            "{batch}, a row for each of the two heads that share its keys: {bytes} "
            "bytes."
        ),
        "m_i = tl.full": "",
        "l_i = tl.zeros": "",
        "acc = tl.zeros": tiles.START["acc = tl.zeros"],
        "keys = tl.minimum": (
            "Sequence {batch} has {keys} keys. The program loads their number, which "
            "the launch does not know: {bytes} bytes."
        ),
        "for start_n in": tile,
        "page": entries,
        "page = tl.load": looked_up,
        "page = tl.minimum": held,
        "slot = ": slots,
        "k_rows = ": addresses,
        **tiles.LOOP,
        "k = tl.load": fetched,
        "v = tl.load": "Fetch the values from the same pages and slots: {bytes} bytes.",
        "s = tl.dot": (
            "On the chip the keys stand side by side, wherever they came from. Queries "
            "times keys, scaled by {scale}, are the scores."
        ),
        "s = tl.where(offs_n": missing,
        "acc = acc * alpha": tiles.shrink,
        "acc = tl.dot": tiles.ADDED,
        "o = acc /": tiles.END["o = acc /"],
        "kernel: tl.store(o_ptr": (
            "Store the output of sequence {batch}: {bytes} bytes. All its keys were in "
            "one part, so there is nothing to merge."
        ),
        "kernel: tl.store(lse_ptr": "Store its logsumexps: {bytes} bytes.",
    },
    frames="k = tl.load",
    program="sequence {0}",
    formulas={
        "read": "B · (g · d · b + 4) + 4 · P + 2 · N · d · b",
        "written": "B · g · (d · b + 4)",
    },
    symbols=lambda q, k, v, block_table, seq_lens: {
        "B": len(seq_lens),
        "g": GROUP,
        "d": HEAD_DIM,
        "b": q.element_size(),
        "P": int((block_table >= 0).sum()),
        "N": int(seq_lens.sum()),
    },
    gain=(
        "Both sequences have read their first page, which the cache holds once. The "
        "other input has the same keys in other pages, and gives the same output."
    ),
    names={"attention_kernel.q_now": "q"},
)
