"""Figures in prose: quoted from a record, or stated by a source that is named."""

import re
import shlex
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from verified_docs.evidence.status import Evidence

NOT_YET = "not yet measured"
TIMES = "\N{MULTIPLICATION SIGN}"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class FigureError(ValueError):
    """A figure that cannot be quoted as it is written, with the reason."""


def significant(value: float, digits: int = 3) -> str:
    """The value with that many significant digits, never in scientific notation."""
    if not value:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    places = max(0, digits - 1 - int(f"{rounded:e}".split("e")[1]))
    return f"{rounded:,.{places}f}"


def scientific(value: float) -> str:
    """The value with a power of ten, as 1.2 x 10⁻⁷ (0 as 0)."""
    if not value:
        return "0"
    mantissa, exponent = f"{value:.1e}".split("e")
    return (
        f"{mantissa}\u00a0{TIMES}\u00a010{str(int(exponent)).translate(SUPERSCRIPTS)}"
    )


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


def render(value: Any, form: str = "") -> str:
    """The value in a format of FORMATS, or as it is. Raises FigureError."""
    if not form:
        number = isinstance(value, float)
        return significant(value) if number else str(value)
    if form not in FORMATS:
        known = ", ".join(FORMATS)
        raise FigureError(f"{form!r} is no format; the formats are: {known}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FigureError(f"{value!r} is no number; it cannot be shown as {form}")
    return FORMATS[form](value)


def measured(evidence: Evidence, text: str) -> str:
    """The HTML of {measured: text}. Raises FigureError and RecordError."""
    query, _, form = (part.strip() for part in text.partition("|"))
    name, *rest = shlex.split(query) or [""]
    if not rest:
        raise FigureError("it names a record and what to take from it")
    what, *filters = rest
    if form:
        render(0, form)
    record = evidence.data(name)
    if record is None:
        return unmeasured()
    if what.startswith("/"):
        value, stale = pointer(record, what), _stale_pointer(evidence, name, what)
        key = what
    else:
        where = dict(_pair(item) for item in filters)
        found = select(record, where, what.partition("/")[0])
        if len(found) > 1:
            raise FigureError(f"{len(found)} measurements match; say more")
        value = field(found[0], what) if found else None
        stale = bool(found) and stale_measurement(
            evidence, name, str(found[0].get("kernel"))
        )
        key = f"{what} {' '.join(filters)}"
    if value is None:
        return unmeasured()
    shown = render(value, form)
    gpu = evidence.gpu_name(evidence.quoted)
    source = f"records/{evidence.quoted}/{name}.json {key}".strip()
    return (
        f'<data class="measured{" stale" if stale else ""}" '
        f'value="{escape(str(value))}" data-source="{escape(source)}" '
        f'title="Measured on {escape(gpu)}">{escape(shown)}'
        f"{' (stale)' if stale else ''}</data>"
    )


def stated(text: str) -> str:
    """The HTML of {stated: figure | source}. Raises FigureError."""
    figure, _, source = (part.strip() for part in text.rpartition("|"))
    if not figure or not source:
        raise FigureError("it is written {stated: figure | source}")
    return f'<span class="stated" title="{escape(source)}">{escape(figure)}</span>'


def unmeasured() -> str:
    """What stands where a record has no figure yet."""
    return f'<span class="unmeasured">{NOT_YET}</span>'


def pointer(record: Mapping[str, Any], path: str) -> Any:
    """What the JSON pointer leads to, or None where it leads nowhere."""
    found: Any = record
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, dict) and key in found:
            found = found[key]
        else:
            return None
    if isinstance(found, dict | list):
        raise FigureError(f"{path} leads to several figures, not to one")
    return found


def select(
    record: Mapping[str, Any], where: Mapping[str, Any], *keys: str
) -> list[dict[str, Any]]:
    """The measurements that match and have all keys.

    They lie in the record's list `measurements`, or in the one that `part` names. A
    list that is not there is not yet measured. Raises FigureError for a key that no
    measurement has.
    """
    where = dict(where)
    part = str(where.pop("part", "measurements"))
    measurements = record.get(part, [])
    if not isinstance(measurements, list):
        raise FigureError(f"{part!r} is no list of measurements")
    known = {key for measurement in measurements for key in measurement}
    for key in (*where, *keys):
        if measurements and key not in known:
            raise FigureError(
                f"no measurement has {key!r}; they have: {', '.join(sorted(known))}"
            )
    return [
        measurement
        for measurement in measurements
        if all(_text(measurement.get(key)) == _text(where[key]) for key in where)
        and all(measurement.get(key) is not None for key in keys)
    ]


def field(measurement: Mapping[str, Any], path: str) -> Any:
    """The figure of a measurement: "seconds", or further in "launches/0/registers".

    Raises FigureError where the measurement has none.
    """
    value = pointer(measurement, f"/{path}")
    if value is None:
        raise FigureError(f"the measurement has nothing at {path!r}")
    return value


def stale_measurement(evidence: Evidence, name: str, kernel: str) -> bool:
    """Whether the measured kernel is a file that has changed since."""
    benchmark = evidence.benchmark(name)
    return benchmark is not None and f"snippets/{kernel}" in benchmark.stale(
        evidence.root
    )


def _stale_pointer(evidence: Evidence, name: str, path: str) -> bool:
    match = re.match(r"/snippets/([^/]+)/", path)
    if name != "verification" or not match:
        return False
    snippet = match[1].replace("~1", "/").replace("~0", "~")
    run = evidence.quote(snippet)
    return run is not None and not run.fresh


def _text(value: Any) -> str:
    """A value as a filter has it: true and false as in JSON."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pair(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals:
        raise FigureError(f"{item!r} is no filter; write key=value")
    return key, value
