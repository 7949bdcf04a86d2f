"""Figures in prose."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.machinery.repository import Repository
from verified_docs.check import quotes
from verified_docs.pages import figures
from verified_docs.pages.figures import FigureError

TIMES = "\N{MULTIPLICATION SIGN}"
MEASUREMENTS: list[dict[str, Any]] = [
    {"kernel": "softmax/online.py", "dtype": "float32", "cols": 4096, "f": 0.973},
    {"kernel": "softmax/online.py", "dtype": "bfloat16", "cols": 4096, "f": 0.5},
    {"kernel": "torch.softmax", "dtype": "float32", "cols": 4096, "f": 0.044},
    {"kernel": "torch.softmax", "dtype": "float32", "cols": 128, "g": 1},
    {
        "kernel": "softmax/three_pass.py",
        "cols": 4096,
        "launches": [{"registers": 40}, {"registers": 62}],
    },
]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path)
    repository.measure(MEASUREMENTS)
    repository.verify("records/nvidia-h200", "NVIDIA H200", online={})
    return repository


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (0.973, "percent", "97 %"),
        (0.044, "percent", "4.4 %"),
        (0, "percent", "0 %"),
        (1.2345e-7, "sci", f"1.2 {TIMES} 10⁻⁷"),
        (0.0, "sci", "0"),
        (12345.0, "sci", f"1.2 {TIMES} 10⁴"),
        (4.25e12, "TB/s", "4.25 TB/s"),
        (9.996e12, "TB/s", "10.0 TB/s"),
        (4.25e12, "GB/s", "4,250 GB/s"),
        (6.9e14, "TFLOP/s", "690 TFLOP/s"),
        (512, "bytes", "512 bytes"),
        (133120, "bytes", "133 kB"),
        (2e6, "bytes", "2.00 MB"),
        (34359738368, "bytes", "34.4 GB"),
        (1.5e-3, "ms", "1.50 ms"),
        (1.5e-6, "us", "1.50 µs"),
        (1048576, "count", "1,048,576"),
        (1.707, "x", f"1.71{TIMES}"),
        (0.012345, "", "0.0123"),
        (7, "", "7"),
        ("3.6.0", "", "3.6.0"),
    ],
)
def test_formats(value: Any, form: str, shown: str) -> None:
    assert figures.render(value, form).replace("\u00a0", " ") == shown


def measured(repository: Repository, text: str) -> str:
    return figures.measured(repository.evidence(), text)


def test_a_figure_says_where_it_is_from(repository: Repository) -> None:
    query = "softmax f kernel=softmax/online.py cols=4096 dtype=float32"
    assert measured(repository, f"{query} | percent") == (
        '<data class="measured" value="0.973" '
        'data-source="records/nvidia-h200/softmax.json f '
        'kernel=softmax/online.py cols=4096 dtype=float32" '
        'title="Measured on NVIDIA H200">97\u00a0%</data>'
    )
    assert ">4.25\u00a0TB/s<" in measured(repository, "softmax /ceilings/copy | TB/s")
    path = "/snippets/softmax~1online.py/errors/float32/error"
    assert f">1.2\u00a0{TIMES}" in measured(repository, f"verification {path} | sci")


def test_a_path_leads_into_the_measurement(repository: Repository) -> None:
    query = "softmax launches/1/registers kernel=softmax/three_pass.py cols=4096"
    shown = measured(repository, f"{query} | count")
    assert ">62</data>" in shown
    source = "launches/1/registers kernel=softmax/three_pass.py cols=4096"
    assert f'softmax.json {source}"' in shown
    record = {"measurements": MEASUREMENTS}
    assert quotes.look_up(record, source) == 62
    for wrong in ("launches/2/registers", "launches/1/spills"):
        with pytest.raises(FigureError, match="the measurement has nothing at"):
            quotes.look_up(record, source.replace("launches/1/registers", wrong))


def test_a_figure_of_another_list_of_the_record(repository: Repository) -> None:
    path = repository.root / "records/nvidia-h200/softmax.json"
    record = json.loads(path.read_text())
    record["masked"] = [
        {"kernel": "softmax/online.py", "causal": causal, "f": f}
        for causal, f in ((False, 0.25), (True, 0.75))
    ]
    path.write_text(json.dumps(record))
    query = "softmax f part=masked kernel=softmax/online.py"
    shown = measured(repository, f"{query} causal=true | percent")
    assert ">75\u00a0%</data>" in shown
    source = "f part=masked kernel=softmax/online.py causal=true"
    assert f'softmax.json {source}"' in shown
    assert quotes.look_up(record, source) == 0.75
    with pytest.raises(FigureError, match="no measurement has 'cols'; they have: caus"):
        measured(repository, f"{query} cols=4096")
    assert measured(repository, "softmax f part=unmasked") == figures.unmeasured()
    with pytest.raises(FigureError, match="'manifest' is no list of measurements"):
        measured(repository, "softmax f part=manifest")


def test_a_figure_of_a_changed_file_is_stale(repository: Repository) -> None:
    path = repository.root / "snippets/softmax/online.py"
    path.write_bytes(path.read_bytes() + b"\n")
    for query in (
        "softmax f kernel=softmax/online.py dtype=float32",
        "verification /snippets/softmax~1online.py/cases",
    ):
        shown = measured(repository, query)
        assert 'class="measured stale"' in shown
        assert "(stale)</data>" in shown
    other = measured(repository, "softmax f kernel=torch.softmax cols=4096")
    assert "stale" not in other


@pytest.mark.parametrize(
    "query",
    [
        "softmax f kernel=softmax/tiles.py",
        "softmax g kernel=softmax/online.py",
        "softmax /ceilings/matmul | TFLOP/s",
        "attention f",
        "verification /snippets/softmax~1three_pass.py/cases",
    ],
)
def test_what_is_not_there_is_not_yet_measured(
    repository: Repository, query: str
) -> None:
    assert measured(repository, query) == figures.unmeasured()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("softmax f kernel=softmax/online.py", "2 measurements match; say more"),
        ("softmax speed", "no measurement has 'speed'; they have: cols, dtype, f"),
        ("softmax f kernle=x", "no measurement has 'kernle'"),
        ("softmax f online", "'online' is no filter; write key=value"),
        ("softmax /ceilings/copy | parsec", "'parsec' is no format; the formats are"),
        ("attention f | parsec", "'parsec' is no format"),
        ("softmax /environment/gpu | percent", "'NVIDIA H200' is no number"),
        ("softmax /environment", "/environment leads to several figures"),
        ("", "it names a record and what to take from it"),
        ("softmax launches cols=4096", "/launches leads to several figures"),
        ("softmax launches/2/registers", "nothing at 'launches/2/registers'"),
        ("softmax launches/0/regs", "nothing at 'launches/0/regs'"),
    ],
)
def test_faults(repository: Repository, query: str, reason: str) -> None:
    with pytest.raises(FigureError) as caught:
        measured(repository, query)
    assert reason in str(caught.value)


def test_a_stated_figure_names_its_source() -> None:
    assert figures.stated("4.8 TB/s | H200 <datasheet>") == (
        '<span class="stated" title="H200 &lt;datasheet&gt;">4.8 TB/s</span>'
    )
    assert "‖x‖ | y" in figures.stated("‖x‖ | y | somebody")
    for text in ("4.8 TB/s", "4.8 TB/s |", "| a source"):
        with pytest.raises(FigureError, match=r"figure \| source"):
            figures.stated(text)
