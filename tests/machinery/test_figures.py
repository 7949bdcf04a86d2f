"""Figures in prose."""

import re
from html import escape
from typing import Any

import pytest

from tests.machinery.repository import H200, ONLINE, Repository
from verified_docs.code.sections import SnippetError
from verified_docs.evidence import records
from verified_docs.pages import figures
from verified_docs.pages.errors import PageError

TIMES = "\N{MULTIPLICATION SIGN}"
LAUNCHES = [{"registers": 40}, {"registers": 62}]
MEASUREMENTS: list[dict[str, Any]] = [
    {"kernel": "softmax/online.py", "dtype": "float32", "cols": 4096, "f": 0.973},
    {"kernel": "softmax/online.py", "dtype": "bfloat16", "cols": 4096, "f": 0.5},
    {"kernel": "torch.softmax", "dtype": "float32", "cols": 4096, "f": 0.044},
    {"kernel": "torch.softmax", "dtype": "float32", "cols": 128, "g": 1},
    {"kernel": "liger", "fraction_of_copy": 0.5},
    {"kernel": "a b", "bytes_per_second": 3e12},
    {"kernel": "softmax/three_pass.py", "cols": 4096, "launches": LAUNCHES},
]
MASKS = [{"causal": False, "f": 0.25}, {"causal": True, "f": 0.75}]


@pytest.fixture(autouse=True)
def recorded(repository: Repository) -> None:
    repository.measure(MEASUREMENTS, masked=MASKS)
    repository.verify(H200, online={})


# Those that no quote below has.
@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (0.044, "percent", "4.4 %"),
        (0.0, "sci", "0"),
        (23.6, "sci", "24"),
        (6.9e14, "TFLOP/s", "690 TFLOP/s"),
        (512, "bytes", "512 bytes"),
        (133120, "bytes", "133 kB"),
        (34359738368, "bytes", "34.4 GB"),
        (1.5e-3, "ms", "1.50 ms"),
        (1.5e-6, "us", "1.50 µs"),
        (1048576, "count", "1,048,576"),
        (1.707, "x", f"1.71{TIMES}"),
        (0.012345, "", "0.0123"),
        ("3.6.0", "", "3.6.0"),
    ],
)
def test_formats(value, form, shown):
    assert figures.render(value, form).replace("\u00a0", " ") == shown


def measured(repository: Repository, text: str) -> str:
    return figures.measured(repository.evidence("nvidia-h200"), text)


QUOTES = {
    "softmax f kernel=softmax/online.py cols=4096 dtype=float32": "0.973",
    "softmax /ceilings/copy | TB/s": "4.25\u00a0TB/s",
    "softmax launches/1/registers kernel=softmax/three_pass.py | count": "62",
    'softmax g "kernel=torch.softmax" cols=128': "1",
    "softmax fraction_of_copy kernel=liger": "50\u00a0%",
    "softmax bytes_per_second 'kernel=a b' | GB/s": "3,000\u00a0GB/s",
    "softmax f part=masked causal=true": "0.750",
    "error softmax/online.py float32": f"1.2\u00a0{TIMES}\u00a010⁻⁷",
    "bound softmax/online.py float32 | sci": f"4.6\u00a0{TIMES}\u00a010⁻⁷",
    "run softmax/online.py torch": "1",
}


@pytest.mark.parametrize("query", QUOTES)
def test_a_quote(repository, query):
    shown = measured(repository, query)
    asked = escape(query.partition(" | ")[0])
    told = f'title="{asked}, measured on NVIDIA H200">{QUOTES[query]}</data>'
    assert told in shown
    assert 'class="measured"' in shown


ONE = "softmax f kernel=softmax/online.py dtype=float32"
OTHER = "softmax f kernel=torch.softmax cols=4096"
COPY = "softmax /ceilings/copy | TB/s"
MASKED = "softmax f part=masked causal=true"
ERROR = "error softmax/online.py float32"
FILE, PARTS = "snippets/softmax/online.py", "benchmarks/parts"
WAY = f"{PARTS}/softmax/masked.py"
# Files, and whose figures are stale when they change.
STALE = {
    "README.md": set(),
    FILE: {ONE, ERROR},
    "snippets/softmax/helper.py": {ONE, ERROR},
    "benchmarks/timing.py": {ONE, OTHER, COPY, MASKED},
    f"{PARTS}/softmax/__init__.py": {ONE, OTHER, COPY, MASKED},
    f"{PARTS}/softmax/measurements.py": {ONE, OTHER},
    WAY: {MASKED},
    f"{PARTS}/other/flops.py": {MASKED},
}


def stale(repository: Repository) -> set[str]:
    queries = ONE, OTHER, COPY, MASKED, ERROR
    shown = {query: measured(repository, query) for query in queries}
    marked = {query for query in queries if "(stale)</data>" in shown[query]}
    assert marked == {q for q in queries if 'class="measured stale"' in shown[q]}
    return marked


def test_what_a_changed_file_makes_stale(repository):
    repository.write(dict.fromkeys(STALE, "FLOPS = 4\n"))
    imports = ONLINE.replace("import math", "from snippets.softmax import helper")
    repository.write({WAY: "from benchmarks.parts.other import flops\n", FILE: imports})
    repository.verify(H200, online={})
    path = repository.measure(MEASUREMENTS, masked=MASKS)
    timed = [file for file in STALE if file.startswith("benchmarks/")][:-1]
    hashes = records.hashes(repository.root, timed)
    repository.change(path, lambda data: data["manifest"].update(hashes))
    for file, queries in STALE.items():
        before = repository.read(file)
        repository.write({file: f"{before}MORE = 5\n"})
        assert stale(repository) == queries, file
        repository.write({file: before})
    # So is what has no hash.
    repository.change(path, lambda data: data["manifest"].pop(FILE))
    assert stale(repository) == {ONE}


def test_what_an_outdated_record_lacks_may_come(repository):
    repository.edit(FILE, "Online", "On line")
    assert measured(repository, "softmax newer") == figures.unmeasured()
    # Unless no file can ever bring it.
    for lost in ("part=maksed", "kernel=softmax/onlin.py"):
        with pytest.raises(PageError, match=r"no list of|there is no kernel"):
            measured(repository, f"softmax f {lost}")


def test_what_is_out_of_date_is_quoted_of_another_gpu(repository):
    only_there = "softmax f part=new"
    repository.edit(FILE, "Online", "On line")
    there, new = [MEASUREMENTS[0] | {"f": 0.5}], [{"kernel": "x", "f": 2}]
    repository.measure(there, "NVIDIA L4 24GB", new=new)
    repository.verify("NVIDIA L4 24GB", online={})
    for text in (ONE, ERROR):
        shown = measured(repository, text)
        assert 'measured on NVIDIA L4 24GB"' in shown
        assert "(on L4)</small></data>" in shown
    assert "0.500 <small>(on L4)" in measured(repository, ONE)
    assert "2 <small>(on L4)" in measured(repository, only_there)
    # What did not change is quoted as before, and so is what is stale everywhere.
    assert "0.250<" in measured(repository, "softmax f part=masked causal=false")
    repository.edit(FILE, "On line", "In line")
    assert "0.973 (stale)" in measured(repository, ONE)


def test_what_has_not_run_is_not_yet_measured(repository):
    repository.snippet("softmax/new.py", ONLINE)
    repository.snippet("attention/new.py", ONLINE)
    repository.write({"benchmarks/parts/softmax/new.py": "PART = None\n"})
    new = "softmax f kernel=softmax/new.py", "error softmax/new.py float32"
    for query in (*new, "attention f", "softmax f part=new"):
        assert measured(repository, query) == figures.unmeasured()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("softmax f kernel=softmax/online.py", "2 measurements match; say more"),
        ("softmax f kernel=softmax/onlin.py", "there is no kernel 'softmax/onlin.py'"),
        ("softmax f kernel=softmax/online.py cols=1", "no measurement with kernel="),
        ("softmax speed", "no measurement has 'speed'; they have: bytes_per_second"),
        ("softmax f kernle=x", "no measurement has 'kernle'"),
        ("softmax f part=maksed", "'maksed' is no list of measurements; there are: "),
        ("sofmax f", "there is no record 'sofmax'; there may be: softmax"),
        ("softmax /ceilings/copy | parsec", "'parsec' is no format; the formats are"),
        ("softmax /ceilings/copy | TFLOP/s", "copy is shown as TB/s or GB/s, not as"),
        ("softmax /ceilings/copy", "not as a bare number"),
        ("softmax /ceilings/matmul | TFLOP/s", "the record has nothing at '/ceilings"),
        ("softmax f cols=128 | percent", "f is shown as count, not as percent"),
        ("softmax /measurements/0/f", "one of a list is named by filters"),
        ("softmax /environment", "/environment leads to several figures"),
        ("", "it names a record, or a file, and what to take"),
        ("softmax launches cols=4096", "/launches leads to several figures"),
        ("softmax /ceilings/copy kernel=a | TB/s", "no filter, ['kernel'], applies"),
        ("softmax launches/2/registers", "nothing at '/launches/2/registers'"),
        ("error softmax/online.py float64", "no error of 'float64'; there are: float"),
        ("error softmax/onlin.py float32", "did you mean softmax/online.py?"),
        ("error softmax/online.py", "it names a record, or a file, and what to take"),
        ("run softmax/online.py colour", "has no run of 'colour'"),
    ],
)
def test_faults(repository, query, reason):
    with pytest.raises((PageError, SnippetError), match=re.escape(reason)):
        measured(repository, query)
