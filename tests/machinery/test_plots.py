"""Plots and tables of measurements."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from statistics import linear_regression

import pytest
import yaml
from mkdocs.config import load_config

from tests.machinery.repository import ROOT, Repository
from verified_docs.evidence.status import Evidence
from verified_docs.pages import (
    drawing,
    figures,
    heatmap,
    measurements,
    plots,
    sources,
    timeline,
)
from verified_docs.pages.errors import PageError
from verified_docs.pages.figures import NotYet, unmeasured
from verified_docs.pages.hooks import EXTENSION
from verified_docs.pages.style import Style

PLOT = """\
record: softmax
title: Speed & <size>
x: cols
y: fraction_of_copy
where: {dtype: float32}
levels: {copy: 1, half: 1/2}
"""
TABLE = """\
record: softmax
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
ONLINE, TORCH, RATE = "softmax/online.py", "torch.softmax", "bytes_per_second"
STYLE = Style(
    kernels={ONLINE: (2, "diamond"), TORCH: (6, "plus"), "elsewhere": (6, "bar")},
    axes={
        "cols": "columns of a row",
        "batch": "batch",
        "fraction_of_copy": "share of a copy",
        "bytes": "memory",
        "bytes_per_second": "TB/s of <memory>",
    },
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


@pytest.fixture(autouse=True)
def recorded(repository: Repository) -> None:
    backward = [item | {"fraction_of_copy": 0.25} for item in MEASUREMENTS]
    repository.measure(MEASUREMENTS + SHAPES, backward=backward)


def plot(repository: Repository, body: str = PLOT) -> ET.Element:
    """The figure as a tree: it is well-formed."""
    return ET.fromstring(plots.plot(repository.evidence(), STYLE, body))


def table(repository: Repository, body: str = TABLE) -> list[list[str]]:
    """The texts of the cells, row by row."""
    figure = ET.fromstring(measurements.table(repository.evidence(), STYLE, body))
    return [["".join(cell.itertext()) for cell in row] for row in figure.iter("tr")]


def points(line: ET.Element) -> list[tuple[float, float]]:
    found = re.findall(r"([\d.]+),([\d.]+)", line.get("d", ""))
    return [(float(x), float(y)) for x, y in found]


def shown(kind: str) -> list[str]:
    """The fences of a kind on the pages of the site."""
    pages = (path.read_text("utf-8") for path in sorted(ROOT.glob("docs/**/*.md")))
    fence = re.compile(rf"^ *```{kind}\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
    return [body for page in pages for body in fence.findall(page)]


@pytest.fixture(scope="session")
def real() -> tuple[Evidence, Style]:
    """The records and the style of the site."""
    options = load_config(str(ROOT / "mkdocs.yml")).mdx_configs[EXTENSION]
    return Evidence(ROOT, options["gpu"]), Style(**options["plots"])


def lie_on_a_line(pairs: list[tuple[float, float]], scale: str = "linear") -> bool:
    """Whether places are a linear function of values, to the tenth of a pixel."""
    scaled = [(drawing.SCALES[scale](value), place) for value, place in pairs]
    slope, zero = linear_regression(*zip(*scaled, strict=True))
    return all(abs(zero + slope * x - place) < 0.11 for x, place in scaled)


@pytest.mark.parametrize("body", shown("plot"))
def test_a_plot_shows_its_numbers(real, body):
    told = sources.options(body, plots.PLOT)
    keys = (told[key] for key in ("series", "x", "y", "format"))
    found = measurements.grid(real[0], told, *keys)
    ours = plots._lines(real[1], found, told["series"])
    form = figures.unit(told["y"], told["format"])
    levels = plots._levels(real[0], told, form)
    figure = ET.fromstring(plots.plot(*real, body))
    for svg, layout in zip(figure.findall("svg"), drawing.LAYOUTS, strict=True):
        lines = svg.findall(".//path[@class='plot-line']/..")
        at, places = [], {}
        for line, own in zip(lines, ours, strict=True):
            at += zip(own.values.items(), points(line.find("path")), strict=True)
            # Its marks are its own, and the last is where the leader leads.
            assert line.get("class") == own.classes
            marks = line.findall("path[@class='plot-mark']")
            assert [mark.get("d") for mark in marks] == [own.marker] * (
                len(own.values) + 1
            )
            leader = line.find("path[@class='plot-leader']").get("d")
            places[own.name] = float(leader.rpartition(",")[2])
            assert marks[-1].get("transform").endswith(f",{places[own.name]:.1f})")
        assert lie_on_a_line([(x, px) for (x, _), (px, _) in at], told["x_scale"])
        lines = [
            points(each)[0] for each in svg.findall(".//path[@class='plot-level']")
        ]
        high = [(y, py) for (_, y), (_, py) in at]
        high += zip(levels.values(), (y for _, y in lines), strict=True)
        assert lie_on_a_line(high, told["y_scale"])
        texts = svg.findall("g[@aria-hidden]/text")
        names = {text.get("y") for text in texts}
        assert names >= {f"{place + 4:.1f}" for place in places.values()}
        # Of the columns that the page chose, a phone has room for the first.
        first = told["ticks"][: 1 if layout.below else None]
        wanted = {*map(figures.number, first)} | levels.keys()
        assert {text.text for text in texts} >= wanted
        columns = svg.findall("g[@class='plot-column']")
        for column, x in zip(columns, found.columns, strict=True):
            here = {own.name: own.values[x] for own in ours if x in own.values}
            values = {n: figures.render(value, form) for n, value in here.items()}
            name, _, said = column.get("aria-label").partition(": ")
            assert name.endswith(f" {figures.number(x)}")
            assert sorted(said.split(", ")) == sorted(map(" ".join, values.items()))
            # Each stands beside the name of its line, or below that.
            _, *spans = column.findall("text/tspan")
            for span, (name, value) in zip(spans, values.items(), strict=True):
                assert value.startswith(span.text)
                below = float(span.get("y")) - places[name] - 4 - layout.below
                assert (below + 1) % drawing.LEADING == pytest.approx(1, abs=0.11)


def test_what_a_changed_file_makes_stale_is_shown_of_another_gpu(repository):
    repository.edit("snippets/softmax/online.py", "Online", "On line")
    for shown in (plot(repository), compared(repository)):
        assert "H200, stale)" in "".join(shown.itertext())
    only = plot(repository, f"{PLOT}only: [torch.softmax]\n")
    assert "stale" not in "".join(only.itertext())
    # It names its GPU and links the record.
    repository.measure(MEASUREMENTS, "NVIDIA L4")
    evidence = repository.evidence("nvidia-h200")
    on = ' (on <a href="../records/nvidia-l4/softmax.json">L4</a>)'
    for draw, body, caption in (
        (plots.plot, PLOT, f"Speed &amp; &lt;size&gt;{on}"),
        (measurements.table, TABLE, f"Measured{on[:1]}{on[2:-1]}"),
        (measurements.table, f"{TABLE}title: Speed\n", f"Speed{on}"),
    ):
        shown = draw(evidence, STYLE, body, "../")
        assert f"caption>{caption}</" in shown
        assert "stale" not in shown


BYTES = PLOT.replace("fraction_of_copy", "bytes").partition("levels")[0]
LEVEL = PLOT.replace("1, half: 1/2", "/ceilings/copy").replace("fraction_of_copy", RATE)
# A plot, its values, and the numbers of its y axis.
TICKS = [
    (
        f"{BYTES}y_scale: log10\nformat: bytes\n",
        [2e3, 2e5, 2e7],
        ["1 kB", "10 kB", "100 kB", "1 MB", "10 MB", "100 MB"],
    ),
    # The unit of the axis is left out.
    (f"{LEVEL}format: TB/s\n", [1e12], ["0", "1", "2", "3", "4", "5"]),
]


@pytest.mark.parametrize(("body", "values", "wanted"), TICKS)
def test_the_numbers_of_the_y_axis(repository, body, values, wanted):
    key, usual = yaml.safe_load(body)["y"], {"kernel": "elsewhere", "dtype": "float32"}
    items = [usual | {"cols": n, key: value} for n, value in enumerate(values, 1)]
    repository.measure(items)
    texts = plot(repository, body).findall("svg[1]/g/text[@text-anchor='end'][@y]")
    found = [t.text for t in texts if float(t.get("x")) < drawing.WIDE.left]
    assert [tick.replace("\u00a0", " ") for tick in found] == wanted


def test_lines_that_are_no_kernels_are_named_by_their_key(repository):
    body = PLOT.replace("{dtype: float32}", "{kernel: torch.softmax}\nseries: dtype")
    column = plot(repository, body).find("svg/g[@class='plot-column']")
    named = re.findall("dtype [a-z0-9]+", column.get("aria-label"))
    assert sorted(named) == ["dtype bfloat16", "dtype float32"]


def test_the_lines_of_libraries_alone_are_dashed(repository):
    ours = {ONLINE: {}, "elsewhere": {"of": ONLINE}, TORCH: {}}
    same = {"dtype": "float32", "cols": 128, "fraction_of_copy": 1.0}
    repository.measure([same | {"kernel": name} | of for name, of in ours.items()])
    lines = plot(repository, PLOT).findall("svg[1]//path[@class='plot-line']/..")
    assert ["library" in line.get("class") for line in lines] == [False, False, True]


QUANTITIES = """\
record: softmax
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
    f"{TABLE}only: [{TORCH}, {ONLINE}]\n": [..., [TORCH, *PERCENT[3:], NONE], ...],
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


def test_what_shows_new_kernels_alone_waits_for_them(repository):
    repository.snippet("softmax/new.py", repository.read(f"snippets/{ONLINE}"))
    with pytest.raises(NotYet):
        plot(repository, f"{PLOT}only: [softmax/new.py]\n")
    with pytest.raises(NotYet):
        compared(repository, HEAT.replace("torch.softmax, elsewhere", "softmax/new.py"))


@pytest.mark.parametrize(
    ("body", "old", "new", "reason"),
    [
        (PLOT, PLOT, "- softmax", "its body is a YAML mapping"),
        (PLOT, "levels:", "level:", "there is no option 'level'"),
        (PLOT, "x: cols\n", "", "it needs the option 'x'"),
        (PLOT, "x:", "x_scale: log3\nx:", "'log3'"),
        (PLOT, "where: {dtype: float32}\n", "", "several measurements"),
        (PLOT, "{copy: 1, half: 1/2}", "1", "the option 'levels' is a dict, not 1"),
        (PLOT, "title:", "each: points\ntitle:", "measurements has a list 'points'"),
        (PLOT, "half: 1/2", "half: 6.7e14", "is neither a share nor a path"),
        (PLOT, "half: 1/2", "half: /ceilings/copy", "copy is shown as TB/s or GB/s"),
        (PLOT, "x: cols", "x: fresh", "'fresh' is not in mkdocs.yml"),
        (PLOT, "{dtype: float32}", "{dtype: new}", "'new' is not in mkdocs.yml"),
        (PLOT, "{dtype: float32}", "{dtype: twice}", "two of its series have one co"),
        (PLOT, "{dtype: float32}", "{dtype: many}", "9 series; at most 8: use only"),
        (HEAT, "[torch.softmax, elsewhere]", "[]", "'against' is a list, not []"),
        (HEAT, "[torch.softmax, e", "[nobody, e", "there is no kernel 'nobody'"),
        (QUANTITIES, "where:", "format: percent\nwhere:", "no option 'format'"),
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
    keys = {"bytes_per_second": 1.0, "batch": 1}
    found = [item | keys | {"fresh": item["cols"]} for item in MEASUREMENTS]
    repository.measure(found + more)
    changed = body.replace(old, new, 1)
    assert changed != body
    fences = {PLOT: plot, HEAT: compared}
    with pytest.raises((PageError, KeyError), match=re.escape(reason)):
        fences.get(body, table)(repository, changed)


def compared(repository: Repository, body: str = HEAT) -> ET.Element:
    return ET.fromstring(heatmap.heatmap(repository.evidence(), STYLE, body))


def test_a_heat_map_shows_who_is_ahead_and_by_how_much(repository):
    figure = compared(repository)
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


PROGRAM = r"\d+ at a time: \d+ programs in .* µs"
GROUP = r"[\d,]+ cycles, [\d,]+ a .*: S [1-9]\d? %, softmax [1-9]\d? %"


@pytest.mark.parametrize("body", shown("timeline"))
def test_a_bar_is_where_its_row_of_the_table_says(real, body):
    figure = ET.fromstring(timeline.render(*real, body))
    rows = [[*row.itertext()] for row in figure.findall(".//tbody/tr")]
    times = [[float(time.replace(",", "")) for time in row[-2:]] for row in rows]
    for svg in figure.findall("svg"):
        bars, pairs, taken = svg.findall("rect"), [], {}
        for bar, (begin, end) in zip(bars, times, strict=True):
            x, y, width = (float(bar.get(key)) for key in ("x", "y", "width"))
            pairs.append((begin, x))
            pairs += [(end, x + width + 1)] * (width > 1)  # as none is less
            taken.setdefault(y, []).append((x, x + width))
        assert lie_on_a_line(pairs)
        label = svg.get("aria-label").replace("\u00a0", " ")
        assert re.search(f"{PROGRAM}|{GROUP}", label)
        for row in map(sorted, taken.values()):  # None covers another.
            assert all(end <= begin + 1 for (_, end), (begin, _) in pairwise(row))
