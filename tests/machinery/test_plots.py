"""Plots and tables of measurements."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

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
KERNELS = {
    "softmax/online.py": {128: 0.5, 1024: 0.75, 1048576: 1.0},
    "torch.softmax": {128: 0.25, 1024: 0.5},
}


def measurements() -> list[dict[str, Any]]:
    return [
        {"kernel": kernel, "dtype": dtype, "cols": cols, "fraction_of_copy": fraction}
        for kernel, row in KERNELS.items()
        for cols, fraction in row.items()
        for dtype in ("float32", "bfloat16")
    ]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path)
    repository.measure(measurements())
    return repository


def plot(repository: Repository, body: str = PLOT) -> ET.Element:
    """The figure as a tree: it is well-formed."""
    return ET.fromstring(plots.plot(repository.evidence(), body, "plot-1-"))


def points(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+),([\d.]+)", line)]


def test_lines_are_where_the_numbers_are(repository: Repository) -> None:
    figure = plot(repository)
    svg = figure.find(".//svg[@role='img']")
    assert svg is not None
    first, second = (
        points(path.get("d", ""))
        for path in svg.findall(".//g/path[@class='plot-line']")
    )
    ceiling = svg.find("path[@class='plot-ceiling']")
    assert ceiling is not None
    ((_, top),) = points(ceiling.get("d", ""))
    # 128, 1024 and 1048576 are 2 to the 7, 10 and 20: 3 and 10 steps apart.
    (x0, y0), (x1, y1), (x2, y2) = first
    assert (x2 - x0) / (x1 - x0) == pytest.approx(13 / 3, rel=1e-3)
    assert y2 == top
    assert (drawing.BOTTOM - y0) / (drawing.BOTTOM - top) == pytest.approx(
        0.5, abs=1e-3
    )
    assert [x for x, _ in second] == [x0, x1]
    assert second[1][1] == y0
    assert y1 < y0


@pytest.mark.parametrize(("shape", "anchor"), [("rising", "start"), ("falling", "end")])
def test_the_label_of_the_ceiling_is_where_the_lines_are_not(
    repository: Repository, shape: str, anchor: str
) -> None:
    found = measurements()
    if shape == "falling":
        for entry in found:
            entry["fraction_of_copy"] = 1.25 - entry["fraction_of_copy"]
    repository.measure(found)
    label = plot(repository).find(".//svg[@role='img']/text[.='copy']")
    assert label is not None
    assert label.get("text-anchor") == anchor


def test_a_plot_is_named_described_and_told_in_a_table(repository: Repository) -> None:
    figure = plot(repository)
    svg = figure.find(".//svg[@role='img']")
    assert svg is not None
    named = svg.get("aria-labelledby", "").split()
    assert [svg.find(f"*[@id='{name}']").tag for name in named] == ["title", "desc"]  # type: ignore[union-attr]
    legend = ["".join(item.itertext()) for item in figure.findall("ul/li")]
    assert legend == list(KERNELS)
    cells = ["".join(cell.itertext()) for cell in figure.findall(".//details//td")]
    assert cells == [
        "50\u00a0%",
        "75\u00a0%",
        "100\u00a0%",
        "25\u00a0%",
        "50\u00a0%",
        "not measured",
    ]
    assert "".join(figure.find("figcaption").itertext()) == "Speed & <size>"  # type: ignore[union-attr]
    marks = {
        path.get("d") for path in figure.findall(".//ul//path[@class='plot-mark']")
    }
    assert len(marks) == 2


def test_only_picks_and_orders(repository: Repository) -> None:
    body = PLOT + "only: [torch.softmax, softmax/online.py]\n"
    legend = plot(repository, body).findall("ul/li")
    assert ["".join(item.itertext()) for item in legend] == list(reversed(KERNELS))


def test_a_changed_file_makes_its_line_stale(repository: Repository) -> None:
    path = repository.root / "snippets/softmax/online.py"
    path.write_bytes(path.read_bytes() + b"\n")
    text = "".join(plot(repository).itertext())
    assert "softmax/online.py (stale)" in text
    assert "torch.softmax (stale)" not in text


def test_a_ceiling_may_be_measured(repository: Repository) -> None:
    body = PLOT.replace("{value: 1,", "{value: /ceilings/copy,")
    svg = plot(repository, body).find(".//svg[@role='img']")
    assert svg is not None
    assert svg.find("path[@class='plot-ceiling']") is not None


def test_a_logarithmic_y_axis(repository: Repository) -> None:
    repository.measure(
        [
            {"kernel": "k", "dtype": "float32", "cols": cols, "bytes": size}
            for cols, size in ((128, 2e3), (1024, 2e5), (8192, 2e7))
        ]
    )
    body = PLOT.replace("fraction_of_copy", "bytes").partition("ceiling")[0]
    body += "y_scale: log10\nformat: bytes\n"
    svg = plot(repository, body).find(".//svg[@role='img']")
    assert svg is not None
    line = svg.find(".//g/path[@class='plot-line']")
    assert line is not None
    (x0, y0), (x1, y1), (x2, y2) = points(line.get("d", ""))
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    shown = [text.text for text in svg.findall("text[@text-anchor='end']")]
    assert shown == [
        f"{n}\u00a0{unit}"
        for n, unit in (
            ("1.00", "kB"),
            ("10.0", "kB"),
            ("100", "kB"),
            ("1.00", "MB"),
            ("10.0", "MB"),
            ("100", "MB"),
        )
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
def test_powers_enclose_the_values(
    scale: str, values: list[float], ticks: list[float]
) -> None:
    assert drawing._powers(scale, values) == ticks


def test_ticks_leave_out_the_unit_that_the_axis_names(repository: Repository) -> None:
    rate = "bytes_per_second"
    found = [item | {rate: item["fraction_of_copy"]} for item in measurements()]
    repository.measure(found)
    body = PLOT.replace("{value: 1,", "{value: /ceilings/copy,")
    body = body.replace("y: fraction_of_copy", f"y: {rate}")
    body = body.replace("y_label: fraction of the copy", "y_label: TB/s\nformat: TB/s")
    svg = plot(repository, body).find(".//svg[@role='img']")
    assert svg is not None
    shown = [text.text for text in svg.findall("text[@text-anchor='end']")]
    assert shown == ["0", "1.00", "2.00", "3.00", "4.00", "5.00"]


def test_one_size_makes_a_plot(repository: Repository) -> None:
    repository.measure(measurements()[:1])
    assert plot(repository).find(".//g/path[@class='plot-mark']") is not None


def test_a_table(repository: Repository) -> None:
    table = ET.fromstring(plots.table(repository.evidence(), TABLE))
    rows = [["".join(c.itertext()) for c in row] for row in table.iter("tr")]
    assert rows == [
        ["kernel \\ cols", "128", "1,024", "1,048,576"],
        ["softmax/online.py", "50\u00a0%", "75\u00a0%", "100\u00a0%"],
        ["torch.softmax", "25\u00a0%", "50\u00a0%", "not measured"],
    ]


def test_a_table_without_units(repository: Repository) -> None:
    table = plots.table(repository.evidence(), TABLE + "bare: true\n")
    cells = re.findall(r"<td>(.*?)</td>", table)
    assert cells == ["50", "75", "100", "25", "50", "not measured"]
    repository.measure([item | {"bytes": 1} for item in measurements()])
    body = TABLE.replace("fraction_of_copy", "bytes").replace("percent", "bytes")
    body += "bare: true\n"
    with pytest.raises(FigureError, match="a unit of their own in each cell"):
        plots.table(repository.evidence(), body)


BEST = TABLE + "best: kernel\nonly: [softmax/online.py, softmax/three_pass.py]\n"


def test_the_best_of_several(repository: Repository) -> None:
    found = measurements() + [
        {
            "kernel": kernel,
            "dtype": "float32",
            "cols": 128,
            "fraction_of_copy": fraction,
        }
        for kernel, fraction in (("softmax/three_pass.py", 0.6), ("elsewhere", 0.9))
    ]
    repository.measure(found)
    body = BEST.replace("rows: kernel", "rows: dtype")
    table = ET.fromstring(plots.table(repository.evidence(), body))
    rows = [["".join(c.itertext()) for c in row] for row in table.iter("tr")]
    assert rows == [
        ["dtype \\ cols", "128", "1,024", "1,048,576"],
        ["float32", "three_pass 60\u00a0%", "online 75\u00a0%", "online 100\u00a0%"],
    ]
    path = repository.root / "snippets/softmax/three_pass.py"
    path.write_bytes(path.read_bytes() + b"\n")
    text = plots.table(repository.evidence(), body)
    assert "<code>three_pass</code> (stale) 60" in text
    assert "<code>online</code>" in text


def test_the_best_is_of_some_that_are_named(repository: Repository) -> None:
    with pytest.raises(FigureError, match="with best it needs the option 'only'"):
        plots.table(repository.evidence(), TABLE + "best: kernel\n")
    with pytest.raises(FigureError, match="no measurement has 'kernle'"):
        plots.table(repository.evidence(), BEST.replace("best: k", "best: kernle #"))
    body = BEST.partition("only")[0] + "only: [nobody]\n"
    with pytest.raises(FigureError, match="there is no kernel 'nobody'"):
        plots.table(repository.evidence(), body)


def test_nothing_measured_is_said(tmp_path: Path) -> None:
    evidence = Repository(tmp_path).evidence()
    for shown in (plots.plot(evidence, PLOT, "p"), plots.table(evidence, TABLE)):
        assert '<span class="unmeasured">not yet measured</span>' in shown


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("record: softmax", "- softmax"), "its body is a YAML mapping"),
        (("title: Speed", "title: [Speed"), "its body is not YAML"),
        (("y_label:", "ylabel:"), "there is no option 'ylabel'"),
        (("x: cols\n", ""), "it needs the option 'x'"),
        (("x: cols", "x: clos"), "no measurement has 'clos'"),
        (("log2", "log3"), "'log3' is no scale"),
        (("y: frac", "y_scale: log3\ny: frac"), "'log3' is no scale"),
        (("where: {dtype: float32}\n", ""), "several measurements"),
        (("{value: 1, label: copy}", "1"), "ceiling is written"),
        (("{value: 1,", "{value: /ceilings/none,"), "nothing at '/ceil"),
        (("y_label", "format: parsec\ny_label"), "'parsec' is no format"),
    ],
)
def test_faults(repository: Repository, change: tuple[str, str], reason: str) -> None:
    body = PLOT.replace(*change, 1) if change[0] != "record: softmax" else "- softmax"
    assert body != PLOT
    with pytest.raises(FigureError) as caught:
        plots.plot(repository.evidence(), body, "p")
    assert reason in str(caught.value)


def test_sizes_that_are_no_numbers_have_no_place(repository: Repository) -> None:
    repository.measure([item | {"cols": str(item["cols"])} for item in measurements()])
    with pytest.raises(FigureError, match="holds '1024', which x_scale: log2 cannot"):
        plot(repository)


def test_zero_has_no_place_on_a_logarithmic_axis(repository: Repository) -> None:
    repository.measure([item | {"fraction_of_copy": 0} for item in measurements()])
    assert plot(repository) is not None
    with pytest.raises(FigureError, match="y holds 0, which y_scale: log10 cannot"):
        plot(repository, PLOT + "y_scale: log10\n")


def test_more_lines_than_markers_are_refused(repository: Repository) -> None:
    repository.measure(
        [
            {"kernel": f"k{n}", "dtype": "float32", "cols": 1, "fraction_of_copy": 1}
            for n in range(9)
        ]
    )
    with pytest.raises(FigureError, match="9 series; at most 8: use only"):
        plot(repository)


def test_a_record_may_have_further_lists_of_measurements(
    repository: Repository,
) -> None:
    path = repository.root / "records/nvidia-h200/softmax.json"
    record = json.loads(path.read_text())
    record["backward"] = [
        item | {"fraction_of_copy": 0.25} for item in record["measurements"]
    ]
    path.write_text(json.dumps(record))
    body = "record: softmax\nrows: kernel\ncolumns: cols\nvalue: fraction_of_copy\n"
    body += "format: percent\nwhere: {dtype: float32}\n"
    table = plots.table(repository.evidence(), body + "part: backward\n")
    assert set(re.findall(r"<td>(.*?)</td>", table)) <= {"25\u00a0%", "not measured"}
    assert table != plots.table(repository.evidence(), body)
    with pytest.raises(FigureError, match="'sideways' is no list of measurements"):
        plots.table(repository.evidence(), body + "part: sideways\n")
