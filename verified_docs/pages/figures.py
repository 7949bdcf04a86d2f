"""Figures in prose: quoted from a record, or stated by a source that is named.

The pages' small language is read here, and in claims.py, by Python's shlex:

    {measured: RECORD KEY FILTER=VALUE ... | FORMAT}    one measurement of a benchmark
    {measured: RECORD /JSON/POINTER | FORMAT}           any other value of its record
    {measured: error FILE DTYPE}, {measured: bound FILE DTYPE}
    {measured: run FILE FACT}                           where the tests of a file ran
    {stated: FIGURE | SOURCE}                           SOURCE names a cited work
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import PurePosixPath
from typing import Any

from verified_docs import layout
from verified_docs.evidence.records import Benchmark
from verified_docs.evidence.status import Evidence, short
from verified_docs.pages.errors import PageError

LIST = "measurements"  # of a record, where no other is named
BIBLIOGRAPHY = "reference/bibliography"
TIMES = "\N{MULTIPLICATION SIGN}"
# Where a name of a file or a test may be broken: behind its marks, between its words.
BREAKS = re.compile(r"(?<=[/_:[ -])(?=[\w(])|(?<=[a-z])(?=[A-Z])")
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Absent(PageError):
    """A figure that a record does not have."""


class NotYet(Exception):
    """A figure that is still to be measured."""


def breakable(name: str) -> str:
    """The HTML of a name which a narrow column breaks where a word of it ends."""
    return BREAKS.sub("<wbr/>", escape(name))


def significant(value: float) -> str:
    """The value with three significant digits, never in scientific notation."""
    if not value:
        return "0"
    rounded = float(f"{value:.2e}")
    places = max(0, 2 - int(f"{rounded:e}".split("e")[1]))
    return f"{rounded:,.{places}f}"


def number(value: Any) -> str:
    """A row length, or a name."""
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def scientific(value: float) -> str:
    """The value with a power of ten, as 1.2 x 10⁻⁷; from 1 to 1000 without."""
    if not value or 1 <= value < 1000:
        return f"{float(f'{value:.1e}'):g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    power = str(int(exponent)).translate(SUPERSCRIPTS)
    return f"{mantissa}\u00a0{TIMES}\u00a010{power}"


def size(value: float) -> str:
    """The value as bytes, in the largest unit of which there is one."""
    for unit, count in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= count:
            return f"{significant(value / count)}\u00a0{unit}"
    return f"{value:,.0f}\u00a0bytes"


def _scaled(unit: str, size: float) -> Callable[[float], str]:
    return lambda value: f"{significant(value / size)}\N{NO-BREAK SPACE}{unit}"


FORMATS: dict[str, Callable[[float], str]] = {
    "percent": lambda value: f"{100 * value:.{1 if 0 < value < 0.1 else 0}f}\u00a0%",
    "sci": scientific,
    "TB/s": _scaled("TB/s", 1e12),
    "GB/s": _scaled("GB/s", 1e9),
    "TFLOP/s": _scaled("TFLOP/s", 1e12),
    "bytes": size,
    "ms": _scaled("ms", 1e-3),
    "us": _scaled("µs", 1e-6),
    "count": lambda value: f"{value:,.0f}",
    "x": lambda value: f"{significant(value)}{TIMES}",
}
# Which formats fit a key, by how it is called; what no line fits has no unit.
FITTING = {
    r"fraction_of_\w+": ("percent",),
    r"times_\w+": ("x",),
    r"bytes_per_second|copy": ("TB/s", "GB/s"),
    r"flops_per_second|matmul": ("TFLOP/s",),
    r"(\w+_)?seconds": ("ms", "us"),
    r"(\w+_)?bytes": ("bytes", "count"),
    r"(\w+_)?(error|bound|difference)": ("sci",),
}


def render(value: Any, form: str = "") -> str:
    """The value in a format of FORMATS, or as it is. Raises PageError."""
    if not form:
        number = isinstance(value, float)
        return significant(value) if number else str(value)
    if form not in FORMATS:
        known = ", ".join(FORMATS)
        raise PageError(f"{form!r} is no format; the formats are: {known}")
    return FORMATS[form](value)


def beside(words: str, value: float, form: str) -> str:
    """The value in a format, without its unit if the words beside it name that."""
    shown = render(value, form)
    bare, _, unit = shown.partition("\u00a0")
    return bare if unit and unit in re.split("[ ,]+", words) else shown


def unit(path: str, form: str) -> str:
    """The format in which the key at the end of a path is shown: `form`, if it fits.

    A key that has one format only needs not name it. Raises PageError.
    """
    render(0, form)
    key = path.rpartition("/")[2]
    known = (forms for like, forms in FITTING.items() if re.fullmatch(like, key))
    fitting = next(known, ("count", ""))
    if form in fitting:
        return form
    if form or len(fitting) > 1:
        shown, wrong = " or ".join(filter(None, fitting)), form or "a bare number"
        raise PageError(f"{key} is shown as {shown}, not as {wrong}")
    return fitting[0]


def measured(evidence: Evidence, text: str) -> str:
    """The HTML of {measured: text}. Raises PageError and RecordError."""
    query, _, form = (part.strip() for part in text.partition("|"))
    words = shlex.split(query)
    tested = words[:1] in (["error"], ["bound"], ["run"])
    if len(words) < 2 or (tested and len(words) != 3):
        raise PageError("it names a record, or a file, and what to take from it")
    name, what, *filters = words
    form = unit(name if tested else what, form)
    try:
        if tested:
            value, gpu, stale = _verified(evidence, *words)
        else:
            value, gpu, stale = _quoted(evidence, name, what, filters)
    except NotYet:
        return unmeasured()
    told = escape(f"{query}, measured on {gpu}")
    return (
        f'<data class="measured{" stale" if stale else ""}" '
        f'value="{escape(str(value))}" title="{told}">'
        f"{escape(render(value, form))}{mark(evidence, gpu, stale)}</data>"
    )


def mark(evidence: Evidence, gpu: str, stale: bool) -> str:
    """What stands behind a figure that is not of the quoted GPU, or out of date."""
    here = layout.slug(gpu) == evidence.quoted
    return ("" if here else f" <small>(on {short(gpu)})</small>") + " (stale)" * stale


@dataclass(frozen=True)
class Source:
    """Where a picture or a table has its numbers: a list of the record of a GPU."""

    gpu: str
    record: str
    part: str
    stale: bool

    def caption(self, title: str, base: str) -> str:
        """The title, and the GPU, which leads to the record; whether it is stale."""
        link = f'<a href="{base}{self.record}">{escape(short(self.gpu))}</a>'
        link += ", stale" if self.stale else ""
        return f"{escape(title)} (on {link})" if title else f"Measured on {link}"

    def told(self, base: str) -> str:
        """The record in full, and the command that makes it again."""
        what = PurePosixPath(self.record).stem
        what += "" if self.part == LIST else f"/{self.part}"
        return (
            f'<p>Measured on {escape(self.gpu)}. Record: <a href="{base}{self.record}">'
            f"{breakable(self.record)}</a>, list <code>{escape(self.part)}</code>. "
            f"To repeat it: <code>make bench PARTS={escape(what)}</code></p>"
        )


def source(
    evidence: Evidence, benchmark: Benchmark, part: str, shown: list[dict[str, Any]]
) -> Source:
    """Where what is shown of a list of a record comes from."""
    record = benchmark.path.relative_to(evidence.root).as_posix()
    stale = bool(evidence.outdated(benchmark, part, shown))
    return Source(benchmark.gpu, record, part, stale)


def _quoted(
    evidence: Evidence, name: str, what: str, filters: list[str]
) -> tuple[Any, str, bool]:
    """What a benchmark's record has, on which GPU, and whether it is stale."""
    where = dict(each.partition("=")[::2] for each in filters)
    part = where.pop("part", LIST)
    with record(evidence, name, part) as benchmark:
        gpu = benchmark.gpu
        if what.startswith("/"):
            if where:
                raise PageError(f"{what} is one value: no filter, {[*where]}, applies")
            if isinstance(benchmark.data.get(what.split("/")[1]), list):
                raise PageError("one of a list is named by filters, not by its place")
            changed = evidence.outdated(benchmark, "", ())
            return pointer(benchmark.data, what), gpu, bool(changed)
        found = select(evidence, benchmark, part, where, what.partition("/")[0])
        if len(found) > 1:
            raise PageError(f"{len(found)} measurements match; say more")
        changed = evidence.outdated(benchmark, part, found)
        return pointer(found[0], f"/{what}"), gpu, bool(changed)


def _verified(
    evidence: Evidence, kind: str, file: str, what: str
) -> tuple[Any, str, bool]:
    """What the tests of a file showed, on which GPU, and whether it is stale."""
    run = evidence.quote(file)
    if run is None:
        raise NotYet
    if kind == "run":
        facts = run.facts
    else:
        facts = {key: getattr(e, kind) for key, e in run.entry.errors.items()}
    if what not in facts:
        known = ", ".join(facts) or "none"
        raise PageError(f"{file} has no {kind} of {what!r}; there are: {known}")
    return facts[what], run.gpu, not run.fresh


def stated(text: str, entries: Mapping[str, str], base: str) -> str:
    """The link of {stated: figure | source}. Raises PageError.

    `entries` are those of the bibliography: the anchor of each by its title, which the
    source has to contain. `base` is the way to the root of the site.
    """
    figure, _, source = (part.strip() for part in text.rpartition("|"))
    if not figure or not source:
        raise PageError("it is written {stated: figure | source}")
    entry = max((e for e in entries if e in source), key=len, default=None)
    if entry is None:
        raise PageError(f"{source!r} names no entry of {BIBLIOGRAPHY}.md")
    return (
        f'<a class="stated" href="{base}{BIBLIOGRAPHY}/#{entries[entry]}" '
        f'title="{escape(source)}">{escape(figure)}</a>'
    )


def unmeasured() -> str:
    """What stands where there is no record yet."""
    return '<span class="unmeasured">not yet measured</span>'


def facts(
    heads: Iterable[str],
    rows: Iterable[tuple[str, str]],
    caption: str = "",
    classes: str = "facts",
) -> str:
    """A table that scrolls where it is too wide, of the HTML of its parts.

    Each row has a name and cells, which begin and end with their tags.
    """
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    body = "".join(f'<tr><th scope="row">{name}</th>{row}</tr>' for name, row in rows)
    return (
        f'<div class="scroll" data-search-exclude=""><table class="{classes}">{caption}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def cells(shown: Iterable[str]) -> str:
    """Cells of such a row."""
    return "".join(f"<td>{each}</td>" for each in shown)


@contextmanager
def record(evidence: Evidence, name: str, part: str) -> Iterator[Benchmark]:
    """The record to quote a list of. Raises PageError, or NotYet if none is made.

    What it does not have is still to come, too, if its benchmark has changed.
    """
    if not (found := evidence.benchmark(name, part)):
        if name in (parts := layout.parts(evidence.root)):
            raise NotYet
        known = ", ".join(parts)
        raise PageError(f"there is no record {name!r}; there may be: {known}")
    try:
        yield found
    except Absent:
        if not evidence.stale(found):
            raise
        raise NotYet from None


def pointer(record: Mapping[str, Any], path: str) -> Any:
    """What the JSON pointer leads to; it escapes nothing. Raises PageError."""
    found: Any = record
    for key in path.split("/")[1:]:
        if isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, dict) and key in found:
            found = found[key]
        else:
            raise Absent(f"the record has nothing at {path!r}")
    if isinstance(found, dict | list):
        raise PageError(f"{path} leads to several figures, not to one")
    return found


def select(
    evidence: Evidence,
    benchmark: Benchmark,
    part: str,
    where: Mapping[str, Any],
    *keys: str,
    each: str = "",
) -> list[dict[str, Any]]:
    """The measurements of a list of a record that match and have all keys.

    With `each`, a measurement is one for each point of its list of that name. A list
    or a snippet that is newer than the benchmark's run has none: NotYet is raised.
    Whatever else is not there is misspelt: PageError.
    """
    data, name = benchmark.data, benchmark.path.stem
    measurements = data.get(part)
    if not isinstance(measurements, list):
        if (evidence.root / layout.benchmark_list(name, part)).is_file():
            raise NotYet
        lists = ", ".join(key for key, value in data.items() if type(value) is list)
        raise PageError(f"{part!r} is no list of measurements; there are: {lists}")
    if each:
        measurements = [
            measurement | point
            for measurement in measurements
            for point in measurement.get(each) or ()
        ]
        if not measurements:
            raise Absent(f"no measurement of {part} has a list {each!r}")
    known = {key for measurement in measurements for key in measurement}
    for key in (*where, *keys):
        if key not in known:
            they = ", ".join(sorted(known))
            raise Absent(f"no measurement has {key!r}; they have: {they}")
    wanted = {key: _text(value) for key, value in where.items()}
    found = [
        measurement
        for measurement in measurements
        if all(_text(measurement.get(key)) == text for key, text in wanted.items())
        and all(measurement.get(key) is not None for key in keys)
    ]
    if not found:
        kernel = str(where.get("kernel") or "")
        if kernel and not known_kernel(evidence, measurements, kernel):
            raise NotYet
        told = " ".join(f"{key}={value}" for key, value in where.items())
        raise Absent(f"{name} has no measurement with {told or keys}")
    return found


def known_kernel(
    evidence: Evidence, measurements: list[dict[str, Any]], kernel: str
) -> bool:
    """Whether a kernel is among the measurements; a new snippet is not yet.

    Raises PageError where it is neither.
    """
    timed = sorted({str(item.get("kernel")) for item in measurements})
    if kernel not in timed and kernel not in layout.names(evidence.root):
        what = PageError if kernel.endswith(".py") else Absent  # It never will be.
        raise what(f"there is no kernel {kernel!r}; timed are: {', '.join(timed)}")
    return kernel in timed


def _text(value: Any) -> str:
    """A value as a filter has it: true and false as in JSON."""
    return str(value).lower() if isinstance(value, bool) else str(value)
