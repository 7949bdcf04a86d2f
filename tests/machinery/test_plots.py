"""Plots and tables of measurements."""

import re
import xml.etree.ElementTree as ET

import pytest

from tests.machinery.repository import H200, Repository
from verified_docs.pages import drawing, plots, timeline
from verified_docs.pages.errors import PageError
from verified_docs.pages.figures import unmeasured

PLOT = """\
record: softmax
title: Speed & <size>
x: cols
x_scale: log2
y: fraction_of_copy
series: kernel
where: {dtype: float32}
levels: {copy: 1, half: 1/2}
"""
TABLE = """\
record: softmax
rows: kernel
columns: cols
value: fraction_of_copy
format: percent
where: {dtype: float32}
"""
HEAT = """\
record: softmax
title: Ours & <theirs>
rows: cols
columns: batch
value: bytes_per_second
format: TB/s
where: {dtype: bfloat16}
only: [softmax/online.py, softmax/three_pass.py]
against: [torch.softmax, elsewhere]
"""
ONLINE, TORCH = "softmax/online.py", "torch.softmax"
STYLE = plots.Style(
    kernels={ONLINE: (2, "diamond"), TORCH: (6, "plus"), "elsewhere": (6, "bar")},
    axes={
        "cols": "columns of a row",
        "batch": "batch",
        "fraction_of_copy": "share of a copy",
        "bytes": "memory",
        "difference": "difference",
        "bytes_per_second": "TB/s of memory",
    },
    spans={"products": ("S & T", "t-s"), "waits": ("waits", "plot-idle")},
)
KERNELS = {ONLINE: {128: 0.5, 1024: 0.75, 1048576: 1.0}, TORCH: {128: 0.25, 1024: 0.5}}
LAUNCHED = {"launches": [{"warps": 4}]}
MEASUREMENTS = [
    {"kernel": kernel, "dtype": dtype, "cols": cols, "fraction_of_copy": fraction}
    | LAUNCHED
    for kernel, row in KERNELS.items()
    for cols, fraction in row.items()
    for dtype in ("float32", "bfloat16")
]
PERCENT = ["50\u00a0%", "75\u00a0%", "100\u00a0%", "25\u00a0%", "50\u00a0%"]


def measured(**changes):
    """The measurements, each with values made from its fraction of the copy."""
    return [
        item | {key: make(item["fraction_of_copy"]) for key, make in changes.items()}
        for item in MEASUREMENTS
    ]


SPEEDS = {  # of a shape of 128 and of 1024 columns, in TB/s
    ONLINE: (1.0, 1.8),
    "softmax/three_pass.py": (1.2, 0.5),
    TORCH: (1.6, 1.5),
    "elsewhere": (0.1, 0.2),
    "nobody": (9.0, 9.0),
}
SHAPES = [
    {"kernel": kernel, "dtype": "bfloat16", "batch": 4, "cols": cols}
    | {"bytes_per_second": speed * 1e12}
    for kernel, speeds in SPEEDS.items()
    for cols, speed in zip((128, 1024), speeds, strict=True)
]
LAUNCHES = {  # begin and end of each program, in microseconds
    "one at a time": [(0, 10), (10, 20), (21, 40)],
    "two at a time": [(0, 8), (0, 9), (8, 17), (9, 20)],
}
PROGRAMS = [
    {
        "kernel": kernel,
        "of": ONLINE,
        "seq": 64,
        "programs": [
            {"head": 3, "block": n, "begin_seconds": a / 1e6, "end_seconds": b / 1e6}
            for n, (a, b) in enumerate(times)
        ],
    }
    for kernel, times in LAUNCHES.items()
]


@pytest.fixture(autouse=True)
def recorded(repository: Repository) -> None:
    backward = measured(fraction_of_copy=lambda _: 0.25)
    repository.measure(MEASUREMENTS + SHAPES, backward=backward, timeline=PROGRAMS)


def elsewhere(repository: Repository, **quantity: dict[int, float]) -> None:
    """Record a quantity of one kernel, for rows of so many columns."""
    ((key, values),) = quantity.items()
    usual = {"kernel": "elsewhere", "dtype": "float32"}
    repository.measure([usual | {"cols": n, key: v} for n, v in values.items()])


def plot(repository: Repository, body: str = PLOT, layout: str = "wide") -> ET.Element:
    """The figure as a tree, with one of its two layouts: it is well-formed."""
    figure = ET.fromstring(plots.plot(repository.evidence(), STYLE, body))
    other = {"wide": "narrow", "narrow": "wide"}[layout]
    figure.remove(figure.find(f"svg[@class='plot-{other}']"))
    return figure


def table(repository: Repository, body: str = TABLE) -> list[list[str]]:
    """The texts of the cells, row by row."""
    figure = ET.fromstring(plots.table(repository.evidence(), STYLE, body))
    return [["".join(cell.itertext()) for cell in row] for row in figure.iter("tr")]


def points(line: ET.Element) -> list[tuple[float, float]]:
    found = re.findall(r"([\d.]+),([\d.]+)", line.get("d", ""))
    return [(float(x), float(y)) for x, y in found]


def ticks(figure: ET.Element) -> list[str]:
    """The numbers of the y axis, which stand left of it."""
    texts = figure.findall("svg/g[@aria-hidden]/text[@text-anchor='end']")
    return [text.text for text in texts if float(text.get("x")) < drawing.WIDE.left]


def labels(figure: ET.Element) -> dict[str, float]:
    """How high the label of each line stands."""
    layouts = {"plot-wide": drawing.WIDE, "plot-narrow": drawing.NARROW}
    x = str(layouts[figure.find("svg").get("class")].right + 34)
    texts = [t for t in figure.findall("svg/g[@aria-hidden]/text") if t.get("x") == x]
    # Below it, the value of a level may stand.
    return {t.text: float(t.get("y")) for t in texts if not t.text[0].isdigit()}


def columns(figure: ET.Element) -> list[ET.Element]:
    return figure.findall("svg/g[@class='plot-column']")


def test_lines_are_where_the_numbers_are(repository):
    figure = plot(repository)
    first, second = map(points, figure.findall(".//path[@class='plot-line']"))
    levels = map(points, figure.findall(".//path[@class='plot-level']"))
    ((_, top), *_), ((_, half), *_) = levels
    # 128, 1024 and 1048576 are 2 to the 7, 10 and 20: 3 and 10 steps apart.
    (x0, y0), (x1, y1), (x2, y2) = first
    assert (x2 - x0) / (x1 - x0) == pytest.approx(13 / 3, rel=1e-3)
    assert (y0, y1, y2) == (half, pytest.approx((half + top) / 2, abs=0.1), top)
    assert second == [(x0, pytest.approx(1.5 * half - top / 2, abs=0.1)), (x1, half)]


@pytest.mark.parametrize("layout", ["wide", "narrow"])
def test_a_line_ends_at_its_label_and_a_column_has_its_values_there(repository, layout):
    figure = plot(repository, layout=layout)
    found = labels(figure)
    assert list(found) == ["copy", "half", "online", "torch.softmax"]
    for line in figure.findall(".//path[@class='plot-line']/.."):
        # Where the leader leads stand the marker of the line and its name.
        leader = line.find("path[@class='plot-leader']").get("d")
        place = float(leader.rpartition(",")[2])
        marks = line.findall("path[@class='plot-mark']")
        assert marks[-1].get("transform").endswith(f",{place:.1f})")
        assert place + 4 in found.values()
    first, second, last = columns(figure)
    assert [each.get("aria-label") for each in (first, last)] == [
        "columns of a row 128: online 50\u00a0%, torch.softmax 25\u00a0%",
        "columns of a row 1,048,576: online 100\u00a0%",
    ]
    shown = {t.text: float(t.get("y")) for t in second.findall("text/tspan")}
    assert list(shown) == ["at 1,024", "75\u00a0%", "50\u00a0%"]
    below = drawing.NARROW.below if layout == "narrow" else 0
    assert shown["75\u00a0%"] == pytest.approx(found["online"] + below)
    assert shown["50\u00a0%"] == pytest.approx(found["torch.softmax"] + below)


def test_a_plot_is_named_and_told_in_a_table(repository):
    figure = plot(repository)
    words = "Speed & <size>: share of a copy by columns of a row"
    assert figure.find("svg").get("aria-label") == words
    cells = ["".join(cell.itertext()) for cell in figure.findall(".//details//td")]
    assert cells == [*PERCENT, "not measured"]
    assert "".join(figure.find("figcaption").itertext()) == "Speed & <size> (on H200)"
    told = "".join(figure.find("details/p").itertext())
    assert told.endswith("To repeat it: make bench PARTS=softmax")


def test_a_kernel_looks_alike_in_every_plot(repository):
    def looks(figure: ET.Element) -> set[tuple[str, str]]:
        return {
            (line.get("class"), mark.get("d"))
            for line in figure.findall(".//path[@class='plot-line']/..")
            for mark in line.findall("path[@class='plot-mark']")
        }

    ours = ("series-2", drawing.MARKERS["diamond"])
    both = {ours, ("series-6 library", drawing.MARKERS["plus"])}
    assert looks(plot(repository)) == both
    assert looks(plot(repository, PLOT + "only: [torch.softmax]\n")) < both


def test_lines_that_are_no_kernels_are_named_by_their_key(repository):
    body = PLOT.replace("series: kernel", "series: dtype")
    body = body.replace("{dtype: float32}", "{kernel: torch.softmax}")
    named = list(labels(plot(repository, body)))
    assert named[2:] == ["dtype float32", "dtype bfloat16"]


def test_what_a_changed_file_makes_stale(repository):
    repository.edit("snippets/softmax/online.py", "Online", "On line")
    for shown in (plot(repository), heatmap(repository), spans(repository)):
        assert "H200, stale)" in "".join(shown.itertext())
    only = plot(repository, f"{PLOT}only: [torch.softmax]\n")
    assert "stale" not in "".join(only.itertext())


def test_what_is_shown_names_its_gpu_and_links_its_record(repository):
    repository.measure(MEASUREMENTS, H200)
    repository.edit("snippets/softmax/online.py", "Online", "On line")
    repository.measure(MEASUREMENTS, "NVIDIA L4")
    evidence = repository.evidence("nvidia-h200")
    on = ' (on <a href="../records/nvidia-l4/softmax.json">L4</a>)'
    for draw, body, caption in (
        (plots.plot, PLOT, f"Speed &amp; &lt;size&gt;{on}"),
        (plots.table, TABLE, f"Measured{on[:1]}{on[2:-1]}"),
        (plots.table, f"{TABLE}title: Speed\n", f"Speed{on}"),
    ):
        shown = draw(evidence, STYLE, body, "../")
        assert f"caption>{caption}</" in shown
        assert "stale" not in shown


def test_a_logarithmic_y_axis(repository):
    elsewhere(repository, bytes={128: 2e3, 1024: 2e5, 8192: 2e7})
    body = PLOT.replace("fraction_of_copy", "bytes").partition("levels")[0]
    body += "y_scale: log10\n"
    figure = plot(repository, f"{body}format: bytes\n")
    (_, y0), (_, y1), (_, y2) = points(figure.find(".//path[@class='plot-line']"))
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert [tick.replace("\u00a0", " ") for tick in ticks(figure)] == [
        f"{n} {unit}" for unit in ("kB", "MB") for n in (1, 10, 100)
    ]
    # One value has a power on both sides, and many powers are every second one.
    for values, count in ({1: 1.0}, 2), ({1: 1.0, 2: 1e12}, 7):
        elsewhere(repository, difference=values)
        scaled = body.replace("bytes", "difference")
        assert len(ticks(plot(repository, scaled))) == count


def test_ticks_up_to_a_measured_level_leave_out_the_unit_of_the_axis(repository):
    repository.measure(measured(bytes_per_second=lambda f: f * 1e12))
    body = PLOT.replace("copy: 1,", "copy: /ceilings/copy,").replace("half: 1/2", "")
    body = body.replace("fraction_of_copy", "bytes_per_second") + "format: TB/s\n"
    figure = plot(repository, body)
    assert ticks(figure) == ["0", "1", "2", "3", "4", "5"]
    assert "online 0.500\u00a0TB/s" in columns(figure)[0].get("aria-label")


def test_a_measurement_may_be_a_curve(repository):
    halves = [{"cols": cols, "fraction_of_copy": cols / 256} for cols in (64, 128)]
    repository.measure(
        [
            {"kernel": ONLINE, "dtype": "float32", "curve": halves},
            {"kernel": TORCH, "dtype": "float32", "curve": halves[:1]},
            {"kernel": "elsewhere", "dtype": "float32"},
        ]
    )
    figure = plot(repository, f"{PLOT}each: curve\n")
    first, second = map(points, figure.findall(".//path[@class='plot-line']"))
    assert (len(first), len(second)) == (2, 1)
    assert first[0] == second[0] != first[1]
    with pytest.raises(PageError, match="measurements has a list 'points'"):
        plot(repository, f"{PLOT}each: points\n")


QUANTITIES = """\
record: softmax
rows: kernel
values:
  share: fraction_of_copy
  length: cols | count
  warps: launches/0/warps | count
where: {dtype: float32, cols: 128}
"""
NONE = "not measured"
TABLES = {
    TABLE: [
        ["kernel, by columns of a row", "128", "1,024", "1,048,576"],
        [ONLINE, *PERCENT[:3]],
        [TORCH, *PERCENT[3:], NONE],
    ],
    QUANTITIES: [
        ["kernel", "share", "length", "warps"],
        [ONLINE, PERCENT[0], "128", "4"],
        [TORCH, PERCENT[3], "128", "4"],
    ],
    f"{TABLE}title: Speed, %\n": [..., [ONLINE, "50", "75", "100"], ...],
    f"{TABLE}part: backward\n": [..., [ONLINE, *PERCENT[3:4] * 3], ...],
}


@pytest.mark.parametrize(("body", "rows"), TABLES.items())
def test_a_table(repository, body, rows):
    for shown, row in zip(table(repository, body), rows, strict=True):
        assert row in (..., shown)


def test_nothing_measured_is_said(repository):
    (repository.root / "records/nvidia-h200/softmax.json").unlink()
    fences = {
        "plot": PLOT,
        "measurements": TABLE,
        "heatmap": HEAT,
        "timeline": TIMELINE,
    }
    page = repository.page("\n\n".join(f"```{n}\n{b}```" for n, b in fences.items()))
    assert page.count(f": {unmeasured()}</p>") == len(fences)
    assert "Speed &amp; &lt;size&gt;: <" in page


@pytest.mark.parametrize(
    ("body", "old", "new", "reason"),
    [
        (PLOT, PLOT, "- softmax", "its body is a YAML mapping"),
        (PLOT, "levels:", "level:", "there is no option 'level'"),
        (PLOT, "x: cols\n", "", "it needs the option 'x'"),
        (PLOT, "x: cols", "x: clos", "no measurement has 'clos'"),
        (PLOT, "log2", "log3", "'log3'"),
        (PLOT, "where: {dtype: float32}\n", "", "several measurements"),
        (PLOT, "{copy: 1, half: 1/2}", "1", "the option 'levels' is a dict, not 1"),
        (PLOT, "half: 1/2", "half: 6.7e14", "is neither a share nor a path"),
        (PLOT, "half: 1/2", "half: /ceilings/copy", "copy is shown as TB/s or GB/s"),
        (PLOT, "x: cols", "x: fresh", "'fresh' is not in mkdocs.yml"),
        (PLOT, "{dtype: float32}", "{dtype: new}", "'new' is not in mkdocs.yml"),
        (PLOT, "{dtype: float32}", "{dtype: twice}", "two of its series have one co"),
        (PLOT, "{dtype: float32}", "{dtype: many}", "9 series; at most 8: use only"),
        (HEAT, "against:", "# against:", "it needs the option 'against'"),
        (HEAT, "[torch.softmax, e", "[nobody, e", "there is no kernel 'nobody'"),
        (QUANTITIES, "where:", "format: percent\nwhere:", "no option 'format'"),
        (QUANTITIES, "where:", "only: a\nwhere:", "'only' is a list, not 'a'"),
        (QUANTITIES, "cols | count", "cols | ms", "cols is shown as"),
    ],
)
def test_faults(repository, body, old, new, reason):
    pairs = [("new", "new"), (TORCH, "twice"), ("elsewhere", "twice")]
    pairs += [(f"k{n}", "many") for n in range(9)]
    more = [
        {"kernel": kernel, "dtype": dtype, "cols": 128, "fraction_of_copy": 1.0}
        for kernel, dtype in pairs
    ]
    found = measured(bytes_per_second=float, fresh=float, batch=lambda _: 1)
    repository.measure(found + more)
    changed = body.replace(old, new, 1)
    assert changed != body
    fences = {PLOT: plot, HEAT: heatmap}
    with pytest.raises((PageError, KeyError), match=re.escape(reason)):
        fences.get(body, table)(repository, changed)


def heatmap(repository: Repository, body: str = HEAT) -> ET.Element:
    return ET.fromstring(plots.heatmap(repository.evidence(), STYLE, body))


def test_a_heat_map_shows_who_is_ahead_and_by_how_much(repository):
    figure = heatmap(repository)
    cells = figure.findall(".//tbody/tr/td")
    assert [["".join(part.itertext()) for part in cell] for cell in cells] == [
        ["75\u00a0%", "three_pass 1.20", "torch.softmax 1.60"],
        ["120\u00a0%", "online 1.80", "torch.softmax 1.50"],
    ]
    shades = [cell.get("class") for cell in cells]
    key = {item.get("class"): item.text for item in figure.findall("ul/li")}
    assert [key[shade] for shade in shades] == ["70 to 80", "faster"]
    heads = ["".join(head.itertext()) for head in figure.iter("th")]
    assert heads == ["batch", "columns of a row", "4", "128", "1,024"]
    caption = figure.find("table/caption")
    assert "".join(caption.itertext()) == "Ours & <theirs> (on H200)"


TIMELINE = """\
record: softmax
title: One & two
where: {seq: 64}
"""


def spans(repository: Repository, body: str = TIMELINE) -> ET.Element:
    return ET.fromstring(timeline.render(repository.evidence(), STYLE, body))


def places(svg: ET.Element) -> list[list[float]]:
    """Where each bar begins, how high it stands, and how wide it is."""
    bars = svg.findall("rect")
    return [[float(bar.get(key)) for key in ("x", "y", "width")] for bar in bars]


def test_a_time_line_has_a_bar_for_each_program(repository):
    figure = spans(repository)
    for svg in figure.findall("svg"):
        bars = places(svg)
        x0 = bars[0][0]
        unit = (bars[2][0] - x0) / 21  # the third program began after 21 microseconds
        times = [time for launch in LAUNCHES.values() for time in launch]
        for (x, _, width), (begin, end) in zip(bars, times, strict=True):
            assert x == pytest.approx(x0 + begin * unit, abs=0.2)
            assert width == pytest.approx((end - begin) * unit - 1, abs=0.2)
        one, *lanes = [y for _, y, _ in bars[2:]]
        assert one < lanes[0] == lanes[2] < lanes[1] == lanes[3]
    words = "one at a time: 1 at a time: 3 programs in 40.0 µs, each took 13.0 µs"
    label = figure.find("svg").get("aria-label")
    assert words in label.replace("\u00a0", " ")
    rows = figure.findall(".//tbody/tr")
    assert ["".join(cell.itertext()) for cell in rows[-1]] == [
        "two at a time", "3", "3", "9.0", "20.0",
    ]  # fmt: skip


GROUPS = {  # what each group did, of which tile, and from when to when, in cycles
    "consumer": [("waits", 7, 0, 10), ("products", 7, 10, 1600)],
    "producer": [("products", 8, 2000, 2001), ("waits", 9, 2001, 2010)],
}
CLOCKED = {
    "kernel": "a + clock",
    "of": ONLINE,
    "seq": 64,
    "cycles": 2010,
    "cycles_per_tile": 502.5,
    "groups": [
        {
            "name": name,
            "spans": [
                {"what": what, "tile": tile, "begin_cycles": begin, "end_cycles": end}
                for what, tile, begin, end in spans
            ],
        }
        for name, spans in GROUPS.items()
    ],
}


def test_a_time_line_of_warp_groups(repository):
    repository.measure([], timeline=[CLOCKED, {"kernel": ONLINE, "seq": 128}])
    figure = spans(repository)
    assert figure.find("svg").get("aria-label") == (
        "One & two. a + clock: 2,010 cycles, 502 a tile. "
        "consumer: S & T 79\u00a0%, waits 0.5\u00a0%. "
        "producer: S & T 0.0\u00a0%, waits 0.4\u00a0%"
    )
    for svg in figure.findall("svg"):
        texts = [text.text for text in svg.findall("text")]
        # The rows are in the style's order; a box has its tile where there is room.
        rows = ["S & T", "waits"]
        assert texts[-7:] == ["consumer", *rows, "7", "producer", *rows]
        kinds = [bar.get("class").split()[-1] for bar in svg.findall("rect")]
        assert kinds == ["plot-idle", "t-s", "t-s", "plot-idle"]
        wait, product, point, end = (y for _, y, _ in places(svg))
        assert product < wait < point < end


def test_a_page_chooses_what_the_axis_says_first(repository):
    near = {128: 1.0, 8192: 1.0, 16384: 1.0, 1048576: 1.0}
    elsewhere(repository, fraction_of_copy=near)
    body = PLOT.replace("{copy: 1, half: 1/2}", "{copy: 1}")
    for ticks, shown in (("", "8,192"), ("ticks: [16384]\n", "16,384")):
        figure = plot(repository, body + ticks, "narrow")
        texts = figure.findall("svg/g[@aria-hidden]/text[@text-anchor='middle']")
        assert {text.text for text in texts} == {"128", shown}
