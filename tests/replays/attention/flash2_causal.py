"""Causal attention: of four tiles one is whole, two are masked and one is skipped."""

from snippets.attention.flash2_causal import attention_kernel
from tests.replays import Replay, Run
from tests.replays.attention import tiles
from tests.replays.sentences import Moment


def whole(at: Moment) -> str:
    """What the first stage will do."""
    if float(at["full"]) == 0:
        return (
            "No tile is seen whole by all rows of this block, so the loop without a "
            "mask has nothing to do."
        )
    return (
        "All rows of this block see the first {full} keys: their tiles are whole, and "
        "the first loop needs no mask."
    )


def cut(at: Moment) -> str:
    """What the second stage will do, and what nobody does."""
    cuts = tiles.of_keys(at, "full", "last")
    text = f"The second loop masks: the diagonal cuts {cuts}."
    if float(at["last"]) < float(at["seq_k"]):
        text += (
            " From key {last} on no row sees anything, so that tile is never loaded."
        )
    return text


REPLAY = Replay(
    call=lambda q, k, v: tiles.launch(attention_kernel, q, k, v),
    expected=lambda q, k, v: tiles.expected(q, k, v, causal=True),
    runs={
        "square": Run("8 queries, 8 keys", tiles.heads(8, 8, 4, seed=3)),
        "last": Run("The last 4 queries", tiles.heads(4, 8, 4, seed=4)),
    },
    memory=tiles.MEMORY,
    maps=[tiles.scores()],
    state=tiles.STATE,
    sizes=tiles.SIZES,
    rows="offs_m",
    follow="m_i",
    lines={
        **tiles.START,
        "off_band": whole,
        "on_band": cut,
        **tiles.LOOP,
        **tiles.STEPS,
        **tiles.END,
    },
    frames="acc = tl.dot",
    program="query block {0}",
    formulas=tiles.FORMULAS,
    symbols=lambda q, k, v: {
        **tiles.symbols(q, k),
        "t": tiles.visited(len(q), len(k)),
    },
    gain="No tile above the diagonal was loaded.",
)
