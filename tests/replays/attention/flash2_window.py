"""A sliding window: tiles are skipped on both sides, and cut by both edges."""

import torch

from snippets.attention.flash2_window import attention_kernel
from tests.replays import Replay, Run
from tests.replays.attention import tiles
from tests.replays.sentences import Moment

HEAD = tiles.heads(12, 12, 4, seed=7)


def begin(at: Moment) -> str:
    """Which tiles are too old for every row."""
    if float(at["begin"]) == 0:
        return (
            "The window of the first row reaches into the first tile, so none is "
            "skipped."
        )
    return (
        "The window of the first row begins in the tile of key {begin}. No row sees a "
        "key before that tile, so the tiles before are never loaded."
    )


def whole(at: Moment) -> str:
    """The middle stage."""
    if float(at["whole"]) >= float(at["full"]):
        return "No tile is seen whole by all rows, so the loop without a mask is empty."
    seen = tiles.of_keys(at, "whole", "full")
    return f"All rows see {seen} whole, so the first loop needs no mask."


def cut(at: Moment) -> str:
    """The stage of the diagonal."""
    cuts = tiles.of_keys(at, "full", "last")
    return f"The diagonal cuts {cuts}, so the second loop has a mask."


def older(at: Moment) -> str:
    """The last stage."""
    if float(at["begin"]) == float(at["whole"]):
        return "The beginning of the window cuts no tile, so the third loop is empty."
    cuts = tiles.of_keys(at, "begin", "whole")
    return (
        f"The beginning of the window cuts {cuts}, so the third loop has a mask, too. "
        "The order of tiles does not matter, so this may come last."
    )


REPLAY = Replay(
    call=lambda q, k, v, window: tiles.launch(attention_kernel, q, k, v, int(window)),
    expected=lambda q, k, v, window: tiles.expected(
        q, k, v, causal=True, window=int(window)
    ),
    runs={
        "narrow": Run("4 keys", HEAD | {"window": torch.tensor(4)}),
        "wide": Run("8 keys", HEAD | {"window": torch.tensor(8)}),
    },
    memory=tiles.MEMORY,
    maps=[tiles.scores()],
    state=tiles.STATE,
    rows="offs_m",
    follow="m_i",
    lines={
        **tiles.START,
        "begin": begin,
        "whole = tl.minimum": whole,
        "stages: seq_q, seq_k, window, full, last": cut,
        "stages: seq_q, seq_k, window, begin, whole": older,
        **tiles.LOOP,
        **tiles.STEPS,
        **tiles.END,
    },
    frames="acc = tl.dot",
    program="query block {0}",
    formulas=tiles.FORMULAS,
    symbols=lambda q, k, v, window: {
        **tiles.symbols(q, k),
        "t": tiles.visited(len(q), len(k), int(window)),
    },
    gain="No tile outside the band was loaded.",
)
