"""Plots and tables of measurements."""

import re
import xml.etree.ElementTree as ET

import pytest

from tests.machinery.repository import Repository
from verified_docs.pages import drawing, plots
from verified_docs.pages.figures import FigureError

PLOT = """\
record: softmax
title: Speed & <size>
x: cols
x_scale: log2
y: fraction_of_copy
y_label: fraction of the copy
series: kernel
where: {dtype: float32}
ceiling: {value: 1, label: copy}
"""
TABLE = """\
record: softmax
rows: kernel
columns: cols
value: fraction_of_copy
format: percent
where: {dtype: float32}
"""
BEST = TABLE + "best: kernel\nonly: [softmax/online.py, softmax/three_pass.py]\n"
KERNELS = {
    "softmax/online.py": {128: 0.5, 1024: 0.75, 1048576: 1.0},
    "torch.softmax": {128: 0.25, 1024: 0.5},
}
MEASUREMENTS = [
    {"kernel": kernel, "dtype": dtype, "cols": cols, "fraction_of_copy": fraction}
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


@pytest.fixture(autouse=True)
def recorded(repository: Repository) -> None:
    repository.measure(MEASUREMENTS)


def plot(repository: Repository, body: str = PLOT) -> ET.Element:
    """The figure as a tree: it is well-formed."""
    return ET.fromstring(plots.plot(repository.evidence(), body, "plot-1-"))


def table(repository: Repository, body: str = TABLE) -> list[list[str]]:
    """The texts of the cells, row by row."""
    figure = ET.fromstring(plots.table(repository.evidence(), body))
    return [["".join(cell.itertext()) for cell in row] for row in figure.iter("tr")]


def points(line: ET.Element) -> list[tuple[float, float]]:
    found = re.findall(r"([\d.]+),([\d.]+)", line.get("d", ""))
    return [(float(x), float(y)) for x, y in found]


def ticks(figure: ET.Element) -> list[str]:
    return [text.text for text in figure.findall(".//svg/text[@text-anchor='end']")]


def test_lines_are_where_the_numbers_are(repository):
    figure = plot(repository)
    first, second = map(points, figure.findall(".//svg/g/path[@class='plot-line']"))
    ((_, top),) = points(figure.find(".//path[@class='plot-ceiling']"))
    # 128, 1024 and 1048576 are 2 to the 7, 10 and 20: 3 and 10 steps apart.
    (x0, y0), (x1, y1), (x2, y2) = first
    assert (x2 - x0) / (x1 - x0) == pytest.approx(13 / 3, rel=1e-3)
    assert y2 == top
    up = (drawing.BOTTOM - y0) / (drawing.BOTTOM - top)
    assert up == pytest.approx(0.5, abs=1e-3)
    assert [x for x, _ in second] == [x0, x1]
    assert second[1][1] == y0
    assert y1 < y0


@pytest.mark.parametrize(
    ("fraction", "anchor"), [(lambda f: f, "start"), (lambda f: 1.25 - f, "end")]
)
def test_the_label_of_the_ceiling_is_where_the_lines_are_not(
    repository, fraction, anchor
):
    repository.measure(measured(fraction_of_copy=fraction))
    label = plot(repository).find(".//svg[@role='img']/text[.='copy']")
    assert label.get("text-anchor") == anchor


def test_a_plot_is_named_described_and_told_in_a_table(repository):
    figure = plot(repository)
    svg = figure.find(".//svg[@role='img']")
    named = [svg.find(f"*[@id='{n}']") for n in svg.get("aria-labelledby").split()]
    assert [each.tag for each in named] == ["title", "desc"]
    legend = ["".join(item.itertext()) for item in figure.findall("ul/li")]
    assert legend == list(KERNELS)
    cells = ["".join(cell.itertext()) for cell in figure.findall(".//details//td")]
    assert cells == [*PERCENT, "not measured"]
    assert "".join(figure.find("figcaption").itertext()) == "Speed & <size>"
    marks = figure.findall(".//ul//path[@class='plot-mark']")
    assert len({path.get("d") for path in marks}) == 2


def test_only_picks_and_orders(repository):
    body = PLOT + "only: [torch.softmax, softmax/online.py]\n"
    legend = plot(repository, body).findall("ul/li")
    assert ["".join(item.itertext()) for item in legend] == list(reversed(KERNELS))


def test_a_changed_file_makes_its_line_stale(repository):
    repository.edit("snippets/softmax/online.py", "Online", "On line")
    text = "".join(plot(repository).itertext())
    assert "softmax/online.py (stale)" in text
    assert "torch.softmax (stale)" not in text


def test_a_logarithmic_y_axis(repository):
    found = [
        {"kernel": "k", "dtype": "float32", "cols": cols, "bytes": size}
        for cols, size in ((128, 2e3), (1024, 2e5), (8192, 2e7))
    ]
    repository.measure(found)
    body = PLOT.replace("fraction_of_copy", "bytes").partition("ceiling")[0]
    figure = plot(repository, f"{body}y_scale: log10\nformat: bytes\n")
    (x0, y0), (x1, y1), (x2, y2) = points(figure.find(".//svg/g/path"))
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert [tick.replace("\u00a0", " ") for tick in ticks(figure)] == [
        f"{n} {unit}" for unit in ("kB", "MB") for n in ("1.00", "10.0", "100")
    ]
    # From 1 kB to 100 MB in five steps: 20 MB is 4.3 steps up.
    up = (drawing.BOTTOM - y2) / (drawing.BOTTOM - drawing.TOP)
    assert up == pytest.approx(4.301 / 5, abs=1e-3)


@pytest.mark.parametrize(
    ("scale", "values", "ticks"),
    [
        ("log10", [1.0], [1.0, 10.0]),
        ("log10", [0.5, 10.0], [0.1, 1.0, 10.0]),
        ("log10", [1.0, 1e12], [1e0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]),
        ("log2", [3.0, 9.0], [2.0, 4.0, 8.0, 16.0]),
    ],
)
def test_powers_enclose_the_values(scale, values, ticks):
    assert drawing._powers(scale, values) == ticks


def test_ticks_up_to_a_measured_ceiling_leave_out_the_unit_of_the_axis(repository):
    repository.measure(measured(bytes_per_second=lambda f: f))
    body = PLOT.replace("{value: 1,", "{value: /ceilings/copy,")
    body = body.replace("y: fraction_of_copy", "y: bytes_per_second")
    body = body.replace("y_label: fraction of the copy", "y_label: TB/s\nformat: TB/s")
    found = ticks(plot(repository, body))
    assert found == ["0", "1.00", "2.00", "3.00", "4.00", "5.00"]


def test_one_size_makes_a_plot(repository):
    repository.measure(MEASUREMENTS[:1])
    assert plot(repository).find(".//g/path[@class='plot-mark']") is not None


def test_a_table(repository):
    assert table(repository) == [
        ["kernel \\ cols", "128", "1,024", "1,048,576"],
        ["softmax/online.py", *PERCENT[:3]],
        ["torch.softmax", *PERCENT[3:], "not measured"],
    ]


def test_a_table_without_units(repository):
    rows = table(repository, TABLE + "bare: true\n")
    assert [row[1:] for row in rows[1:]] == [
        ["50", "75", "100"],
        ["25", "50", "not measured"],
    ]
    body = TABLE.replace("fraction_of_copy", "bytes").replace("percent", "bytes")
    with pytest.raises(FigureError, match="a unit of their own in each cell"):
        table(repository, body + "bare: true\n")


def test_the_best_of_several(repository):
    more = [
        MEASUREMENTS[0] | {"kernel": kernel, "fraction_of_copy": fraction}
        for kernel, fraction in (("softmax/three_pass.py", 0.6), ("elsewhere", 0.9))
    ]
    repository.measure(MEASUREMENTS + more)
    body = BEST.replace("rows: kernel", "rows: dtype")
    shown = ["float32", "three_pass 60\u00a0%", "online 75\u00a0%", "online 100\u00a0%"]
    assert table(repository, body)[1] == shown
    repository.edit("snippets/softmax/three_pass.py", "Three", "3")
    shown[1] = "three_pass (stale) 60\u00a0%"
    assert table(repository, body)[1] == shown


def test_a_record_may_have_further_lists_of_measurements(repository):
    repository.measure(MEASUREMENTS, backward=measured(fraction_of_copy=lambda _: 0.25))
    cells = [row[1:] for row in table(repository, TABLE + "part: backward\n")[1:]]
    assert cells == [PERCENT[3:4] * 3, [*PERCENT[3:4] * 2, "not measured"]]


def test_nothing_measured_is_said(repository):
    (repository.root / "records/nvidia-h200/softmax.json").unlink()
    evidence = repository.evidence()
    for shown in (plots.plot(evidence, PLOT, "p"), plots.table(evidence, TABLE)):
        assert '<span class="unmeasured">not yet measured</span>' in shown


@pytest.mark.parametrize(
    ("body", "old", "new", "reason"),
    [
        (PLOT, PLOT, "- softmax", "its body is a YAML mapping"),
        (PLOT, "title: Speed", "title: [Speed", "its body is not YAML"),
        (PLOT, "y_label:", "ylabel:", "there is no option 'ylabel'"),
        (PLOT, "x: cols\n", "", "it needs the option 'x'"),
        (PLOT, "x: cols", "x: clos", "no measurement has 'clos'"),
        (PLOT, "log2", "log3", "'log3' is no scale"),
        (PLOT, "y: frac", "y_scale: log3\ny: frac", "'log3' is no scale"),
        (PLOT, "where: {dtype: float32}\n", "", "several measurements"),
        (PLOT, "{value: 1, label: copy}", "1", "ceiling is written"),
        (PLOT, "{value: 1,", "{value: /ceilings/none,", "nothing at '/ceil"),
        (PLOT, "y_label", "format: parsec\ny_label", "'parsec' is no format"),
        (PLOT, "where: {dtype: float32}", "part: p", "'p' is no list of measurements"),
        (TABLE, "where", "best: kernel\nwhere", "with best it needs the option 'only'"),
        (BEST, "best: kernel", "best: kernle", "no measurement has 'kernle'"),
        (BEST, "softmax/online.py", "nobody", "there is no kernel 'nobody'"),
    ],
)
def test_faults(repository, body, old, new, reason):
    changed = body.replace(old, new, 1)
    assert changed != body
    with pytest.raises(FigureError, match=re.escape(reason)):
        (plot if body == PLOT else table)(repository, changed)


def test_what_has_no_place_in_a_plot(repository):
    repository.measure([item | {"cols": str(item["cols"])} for item in MEASUREMENTS])
    with pytest.raises(FigureError, match="holds '1024', which x_scale: log2 cannot"):
        plot(repository)
    repository.measure(measured(fraction_of_copy=lambda f: 0))
    assert plot(repository) is not None
    with pytest.raises(FigureError, match="y holds 0, which y_scale: log10 cannot"):
        plot(repository, PLOT + "y_scale: log10\n")
    repository.measure([MEASUREMENTS[0] | {"kernel": f"k{n}"} for n in range(9)])
    with pytest.raises(FigureError, match="9 series; at most 8: use only"):
        plot(repository)
