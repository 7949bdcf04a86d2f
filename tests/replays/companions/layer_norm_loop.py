"""Layer norm in tiles: what each lane keeps of its columns, and how they merge."""

import torch

from snippets.companions.layer_norm_loop import layer_norm_kernel
from tests.replays import Replay, Run, Show
from tests.replays.companions import layer_norm
from tests.replays.companions.layer_norm import LANES
from tests.replays.sentences import Moment, listed, spoken

# Lanes with whole means, and rows with a variance of 4 and of 100.
NEAR = torch.tensor([[2.0, 4, 7, 5, 4, 2, 5, 5, 0, 6]])
APART = torch.tensor([[2.0, 34, 31, 38, 34, 32, 35, 38, 36, 30]])
COLS = NEAR.shape[1]
VECTORS = {
    "weight": torch.tensor([1.0, 2, 1, 2, 1, 2, 1, 2, 1, 2]),
    "bias": torch.tensor([0.0, 0, 1, 1, 0, 0, 1, 1, 0, 0]),
}


def factor(value: float) -> str:
    """A number behind a sign."""
    return spoken(value) if value >= 0 else f"({spoken(value)})"


def far(at: Moment) -> bool:
    """Whether the numbers are still large after the shift."""
    return bool(at.array("x").max() > COLS)


def last(at: Moment) -> bool:
    """Whether lanes are past the end."""
    return not at.array("mask_c").all()


def loaded(at: Moment) -> str:
    """A tile of the first pass."""
    text = "Load tile {tile}: {count} numbers, {bytes} bytes. "
    if last(at):
        return text + "Lanes 2 and 3 are past the end of the row, and get 0."
    return text + "Each lane gets one."


def shifted(at: Moment) -> str:
    """What the first element is subtracted for."""
    if last(at):
        return (
            "Subtract the first element. Lanes 2 and 3 hold 0 - {first} now, but no "
            "number of the row: the mask will keep them out."
        )
    if at["tile"] > 1:
        return "Subtract the first element, {first}, here as well."
    text = "Subtract {first}, which changes no distance between two elements. "
    if far(at):
        return text + (
            "It is to make the numbers small, but the first element is unlike the "
            "others, so they stay near 30."
        )
    return text + "If the row were 1000 higher, the same numbers would be left."


def farthest(at: Moment) -> int:
    """The lane whose element is farthest from the mean."""
    return int(abs(at.array("delta")).argmax())


def distance(at: Moment) -> str:
    """How far the elements are from the means of their lanes."""
    if at["tile"] == 1:
        return (
            "delta is how far each element is from its lane's mean. That is still 0, "
            "so delta is the element itself."
        )
    lane = farthest(at)
    x, mean, delta = (at.array(n)[0, lane] for n in ("x", "lane_mean", "delta"))
    text = (
        f"How far is each element from its lane's mean so far? In lane {lane} it is "
        f"{spoken(x)} - {factor(mean)} = {spoken(delta)}."
    )
    if last(at):
        text += " Lanes 2 and 3 have no column here, so their delta is 0."
    return text


def moved(at: Moment) -> str:
    """Where the means are now."""
    if at["tile"] == 1:
        return (
            "Each mean moves by delta / n. Each lane has seen n = 1 number, which is "
            "its mean now."
        )
    lane = farthest(at)
    delta, now = (at.array(n)[0, lane] for n in ("delta", "lane_mean"))
    n, was = int(at.array("seen")), at.line.before["lane_mean"][0, lane]
    return (
        f"Each mean moves by delta / n, and n is {n}: in lane {lane} by {spoken(delta)}"
        f" / {n}, from {spoken(was)} to {spoken(now)}."
    )


def squares(at: Moment) -> str:
    """By what the squared deviations grow."""
    if at["tile"] == 1:
        return (
            "D grows by the distance from the old mean times that from the new mean. "
            "A lane's only number is its mean, so the second is 0, and D stays 0."
        )
    lane = farthest(at)
    delta, x, mean = (at.array(n)[0, lane] for n in ("delta", "x", "lane_mean"))
    was, now = at.line.before["lane_m2"][0, lane], at.array("lane_m2")[0, lane]
    text = (
        f"The old distance times the new one: D of lane {lane} grows by "
        f"{factor(delta)} · ({spoken(x)} - {factor(mean)}) = "
        f"{spoken(delta * (x - mean))}, from {spoken(was)} to {spoken(now)}."
    )
    if last(at) and far(at):
        seen = [int(APART[0, column] - APART[0, 0]) for column in range(1, COLS, LANES)]
        total, mean = sum(x * x for x in seen), sum(seen) // 3
        text += (
            f" Lane 1 is at {spoken(at.array('lane_m2')[0, 1])}. The squares of "
            f"{listed(seen)} add up to {total}, and 3 · {mean}² = {3 * mean**2} would "
            "have to be taken away."
        )
    return text


def parts(at: Moment) -> list[tuple[int, float]]:
    """Of each lane, how many numbers it saw, and their mean."""
    counts, means = (at.array(n)[0] for n in ("count", "lane_mean"))
    return [(int(n), float(mean)) for n, mean in zip(counts, means, strict=True)]


def weighted(at: Moment) -> str:
    """The mean of the row."""
    products = " + ".join(f"{n} · {factor(mean)}" for n, mean in parts(at))
    return (
        "The mean of the row, less the first element, is that of the lanes' means, "
        f"weighted by their counts: ({products}) / {COLS} = {{mean}}."
    )


def merged(at: Moment) -> str:
    """The squared deviations of the row."""
    apart, within = at.array("apart")[0], at.array("lane_m2").sum()
    counts = at.array("count")[0]
    products = " + ".join(
        f"{int(n)} · {factor(x)}²" for n, x in zip(counts, apart, strict=True)
    )
    return (
        f"D within the lanes adds up to {spoken(within)}. That the lanes' means differ "
        f"adds {products} = {spoken((apart**2 * counts).sum())}. So the row has "
        "D = {m2}."
    )


def again(at: Moment) -> str:
    """A tile of the second pass."""
    if at["tile"] > 1:
        return "Load tile {tile} again: {bytes} bytes."
    return (
        "The second pass. Load the first tile again, {bytes} bytes. The first pass has "
        "asked the cache to keep it."
    )


def output(at: Moment) -> str:
    """One number of the output."""
    x, weight, bias, y = (at.array(n)[0, 0] for n in ("x", "weight", "bias", "y"))
    how = (
        "Subtract the first element and the mean, multiply by rstd and weight, add the "
        "bias. Column"
        if at["tile"] == 1
        else "In the same way, column"
    )
    return (
        f"{how} {int(at.array('offs_c')[0, 0])}: ({spoken(x)} - {{first}} - {{mean}}) "
        f"· {{rstd}} · {spoken(weight)} + {spoken(bias)} = {spoken(y)}."
    )


def stored(at: Moment) -> str:
    """What of the tile is stored."""
    text = "Store {count} numbers of the output: {bytes} bytes."
    return text + " The lanes past the end store nothing." if last(at) else text


REPLAY = Replay(
    call=lambda x, weight, bias: layer_norm.launch(
        layer_norm_kernel, 1, x, weight, bias
    ),
    expected=layer_norm.expected,
    runs={
        "near": Run("Numbers from 0 to 7", {"x": NEAR, **VECTORS}),
        "apart": Run("The first far from the others", {"x": APART, **VECTORS}),
    },
    memory=layer_norm.REPLAY.memory,
    state=[
        Show("first", "x", "the first element of the row", "first"),
        Show("x", "x", "a tile of the row"),
        Show("delta", "", "distance from the lane's mean"),
        Show("lane_mean", "", "mean of each lane", "means"),
        Show("lane_m2", "", "squared deviations, lane_m2", "D"),
        Show("count", "", "numbers of each lane", "n"),
        Show("apart", "", "lane's mean less that of the row"),
        Show("mean", "", "mean of the row, less the first element"),
        Show("m2", "", "squared deviations of the row", "D, row"),
        Show("rstd", "", "1 / sqrt(variance + eps)"),
        Show("weight", "", "of the columns"),
        Show("bias", "", "of the columns"),
        Show("y", "y", "the output"),
    ],
    lines={
        "first = tl.load": (
            "Load the first element of the row, {first}: {bytes} bytes. It will be "
            "subtracted from all."
        ),
        "lane_mean = tl.zeros": "",
        "lane_m2 = tl.zeros": (
            "Each lane keeps the mean of its columns, and D, the sum of their squared "
            "deviations from it (lane_m2). Both begin at 0."
        ),
        "keep": loaded,
        "x -= first": shifted,
        "delta": distance,
        "lane_mean += delta": moved,
        "m2": squares,
        "count = ": (
            "The first pass is over. Lanes 0 and 1 have seen 3 numbers each. Lanes 2 "
            "and 3 were past the end in the last tile, and have seen 2."
        ),
        "lanes": weighted,
        "apart = ": "The lanes' means differ from it by {apart}.",
        "merged": merged,
        "rstd": (
            f"The variance is {{m2}} / {COLS}. One over its root is rstd = {{rstd}}."
        ),
        "again": again,
        "weight = tl.load": "Load the weight of these columns: {bytes} bytes.",
        "bias = tl.load": "Load their bias: {bytes} bytes.",
        "output": output,
        "tl.store(y_ptr": stored,
        "tl.store(mean_ptr": (
            "Store the mean, with the first element added to it again: {bytes} bytes."
        ),
        "tl.store(rstd_ptr": "Store rstd: {bytes} bytes.",
    },
    frames="m2",
    program="row {0}",
    formulas={
        "read": "2 · R · C · b + R · b + 2 · R · C · b",
        "written": "R · C · b + 8 · R",
    },
    symbols=layer_norm.REPLAY.symbols,
    gain="One pass found mean and variance, and the second wrote.",
)
