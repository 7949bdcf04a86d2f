"""The backward pass in a sliding window: both walks have a beginning and an end."""

import numpy as np
import torch

from snippets.backward.window_backward import dkdv_kernel, dq_kernel
from tests.replays import Replay, Run
from tests.replays.attention import tiles
from tests.replays.backward import causal_backward
from tests.replays.backward.causal_backward import number
from tests.replays.sentences import Moment, span

KERNELS = dq_kernel, dkdv_kernel
BLOCK = 2


def run(title: str, seq_q: int, window: int, seed: int) -> Run:
    """Some queries and 6 keys of one head."""
    found = causal_backward.inputs(1, seq_q, 6, seed, window)
    return Run(title, found | {"window": torch.tensor(window)})


def many(what: str, first: int, last: int) -> str:
    """Some queries or keys, by number."""
    return span(what, first, last).replace("querys", "queries")


def shift(at: Moment) -> int:
    """How many keys lie before that of query 0, in a kernel or in its `weights`."""
    local = at.line.caller.after if at.line.caller else at.line.after
    return int(local["diagonal"])


def keys_of(at: Moment, query: int) -> str:
    """The keys that a query sees."""
    last = query + shift(at)
    return many("key", max(last - number(at, "window") + 1, 0), last)


def queries_of(at: Moment, key: int, seq_q: int) -> str:
    """The queries that see a key."""
    first = key - shift(at)
    return many("query", max(first, 0), min(first + number(at, "window"), seq_q) - 1)


def block(at: Moment, name: str) -> tuple[int, int]:
    """The first and the last row of the block that a program owns."""
    start = number(at, name)
    return start, start + BLOCK - 1


def own_queries(at: Moment) -> str:
    """The first line of a program of the first kernel."""
    queries = many("query", *block(at, "start_m"))
    return (
        f"This program of the first kernel owns {queries}. Load their rows of Q: "
        "{bytes} bytes."
    )


def own_keys(at: Moment) -> str:
    """The first line of a program of the second kernel."""
    keys = many("key", *block(at, "start_n"))
    return (
        f"This program of the second kernel owns {keys}. Load their rows of K: "
        "{bytes} bytes."
    )


def newest(at: Moment) -> str:
    """Where the first walk ends."""
    (_, query), last = block(at, "start_m"), number(at, "last")
    text = f"Query {query}, the last of the block, sees {keys_of(at, query)}. "
    if last == number(at, "seq_k"):
        return text + "So the walk goes on to the last key."
    hidden = many("key", last, number(at, "seq_k") - 1)
    return (
        f"{text}So the walk ends before key {last}: no query of the block sees "
        f"{hidden}."
    )


def oldest(at: Moment) -> str:
    """Where the first walk begins."""
    (query, _), begin = block(at, "start_m"), number(at, "begin")
    text = f"Query {query}, the first of the block, sees {keys_of(at, query)}. "
    if not begin:
        return text + "So the walk begins with the tile of key 0."
    return (
        f"{text}No query after it sees an older key, so the walk begins with the tile "
        f"of key {begin}. {many('Key', 0, begin - 1)} are never loaded."
    )


def mask(at: Moment) -> str:
    """Whether an edge cuts the tile, and which."""
    assert at.line.caller
    tile, window = at.line.caller.after, number(at, "window")
    key, query = ([int(x) for x in tile[name]] for name in ("offs_n", "offs_m"))
    above, below = query[0] + shift(at), query[-1] + shift(at) - window + 1
    until = key[0] - shift(at) + window - 1
    if at.line.kernel == "dq_kernel":
        late = f"Query {query[0]}, the first of the tile, sees no key after {above}"
        early = f"Query {query[-1]}, the last of the tile, sees no key before {below}"
        ends = (
            f"Query {query[0]} sees {keys_of(at, query[0])}, and query {query[-1]} "
            f"{keys_of(at, query[-1])}"
        )
    else:
        late = (
            f"Key {key[-1]}, the last of the tile, is not seen before query "
            f"{key[-1] - shift(at)}"
        )
        early = f"Key {key[0]}, the first of the tile, is not seen " + (
            f"after query {until}" if until >= 0 else "at all"
        )
        first, last = (queries_of(at, k, int(tile["seq_q"])) for k in (key[0], key[-1]))
        ends = f"Key {key[0]} is seen by {first}, and key {key[-1]} by {last}"
    if key[-1] > above:
        return f"{late}: the upper edge cuts the tile, so it is masked."
    if key[0] < below:
        return f"{early}: the lower edge cuts the tile, so it is masked."
    return f"{ends}: all queries see all keys of this tile, and it needs no mask."


def unseen(at: Moment) -> str:
    """What the mask does."""
    count = int(np.isinf(at.array("s")).sum())
    return (
        f"In {count} of {BLOCK * BLOCK} places the query does not see the key. These "
        "scores become -∞."
    )


def earliest(at: Moment) -> str:
    """Where the second walk begins."""
    (key, _), first = block(at, "start_n"), number(at, "first")
    query, seq_q = key - shift(at), number(at, "seq_q")
    text = f"Turned round: key {key}, the first of the block, "
    if query < 0:
        return f"{text}lies before all windows. A walk cannot begin before query 0."
    text += (
        f"is seen by {queries_of(at, key, seq_q)}. So the walk begins with query "
        f"{query}"
    )
    if not first:
        return f"{text}."
    return f"{text}: {many('query', 0, first - 1)} see no key of the block."


def latest(at: Moment) -> str:
    """Where the second walk ends."""
    _, key = block(at, "start_n")
    stop, seq_q = number(at, "whole") + number(at, "window"), number(at, "seq_q")
    if stop <= 0:
        return (
            f"Nor does a query see key {key}, the last: query 0 sees "
            f"{keys_of(at, 0)}. The walk has no tile at all."
        )
    text = (
        f"Key {key}, the last of the block, is seen by {queries_of(at, key, seq_q)}. "
    )
    if stop >= seq_q:
        return text + "So the walk goes on to the last query."
    text += f"So the walk ends before query {stop}"
    skipped = -(-stop // BLOCK) * BLOCK
    if skipped >= seq_q:
        return f"{text}."
    return f"{text}, and the tile of {many('query', skipped, seq_q - 1)} is skipped."


def stored(at: Moment) -> str:
    """The end of a program of the second kernel."""
    if number(at, "whole") + number(at, "window") <= 0:
        return (
            "No query was met, so dK of these keys is 0. The zeros have to be stored, "
            "because the memory may hold anything: {bytes} bytes."
        )
    return (
        "No query is left. dK of these keys is multiplied by the scale and stored: "
        "{bytes} bytes."
    )


CAUSAL = causal_backward.REPLAY
BOUNDS = ("full", "last", "first", "whole")
REPLAY = Replay(
    call=lambda window, **x: causal_backward.launch(
        KERNELS, BLOCK, 1, x, window=int(window)
    ),
    expected=lambda window, **x: causal_backward.expected(1, x, int(window)),
    runs={
        "narrow": run("Window of 2", 6, window=2, seed=11),
        "wide": run("Window of 4", 6, window=4, seed=11),
        "chunk": run("The last 2 queries", 2, window=2, seed=13),
    },
    memory=CAUSAL.memory,
    maps=CAUSAL.maps,
    state=CAUSAL.state,
    sizes=tiles.SIZES,
    rows="offs_m",
    lines={
        **{line: say for line, say in CAUSAL.lines.items() if line not in BOUNDS},
        "dq: q = tl.load": own_queries,
        "dq: k = tl.load": lambda at: (
            f"Load {many('key', *block(at, 'start_n'))}: {{bytes}} bytes."
        ),
        "dkdv: k = tl.load": own_keys,
        "dkdv: q = tl.load": lambda at: (
            f"Load {many('query', *block(at, 'start_m'))}: {{bytes}} bytes."
        ),
        "last = tl.minimum": newest,
        "begin": oldest,
        "if on_band": mask,
        "s = tl.where": unseen,
        "first = tl.maximum": earliest,
        "whole = tl.minimum": latest,
        "tl.store(ptrs, dk": stored,
    },
    frames="return p, p *",
    program=CAUSAL.program,
    formulas={
        "read": "(3 · N_q + 2 · N_k) · d · b + 4 · N_q + t · B · (4 · d · b + 8)",
        "written": "N_q · (d · b + 4) + 2 · N_k · d · b",
    },
    symbols=lambda q, k, window, **_: {
        **tiles.symbols(q, k),
        "B": BLOCK,
        "t": tiles.visited(len(q), len(k), int(window), BLOCK),
    },
    gain="Neither kernel visited a tile outside the band.",
    names=CAUSAL.names,
)
