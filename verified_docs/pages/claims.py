"""Comparisons in words, bound to the measurements that they rest on.

    {holds: WORDS}

A fence of the page, ```claims, says what they rest on. After a bar the words may have
a number, where the same ones stand on the page twice:

    WORDS: RECORD KEY FILTER ... SIGN FACTOR FILTER ...
        RECORD KEY ...
    WORDS | 2: RECORD KEY ...

Left of the sign stands what is compared. Right of it stand a factor, 1 if there is
none, and the filters that differ; without these, the factor is what to compare with.
"""

import math
import operator
import re
import shlex
from collections.abc import Callable, Container, Iterable, Iterator
from fractions import Fraction
from functools import partial
from html import escape
from itertools import product, takewhile
from typing import Any

from verified_docs.evidence.records import Benchmark
from verified_docs.evidence.status import Evidence
from verified_docs.pages import figures
from verified_docs.pages.errors import PageError
from verified_docs.pages.figures import Absent, significant

WRITTEN = "words: record key filter=value ... > factor filter=value ..."
SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "~": lambda value, other: abs(value - other) <= 0.05 * abs(other),
}
FILTER = re.compile(r"(\w+)(>=|<=|=)(.+)")
LISTED = re.compile(r",(?! )")  # In the name of a kernel, a space follows a comma.
# What stands in a measurement behind its shape, in every record.
RESULTS = {"flops", "bytes", "of", "version", "seconds"}
Claims = dict[str, list[str]]
Filter = tuple[str, str, str]
Measurement = dict[str, Any]
Find = Callable[[list[Filter]], Iterator[Measurement]]


def read(body: str) -> Claims:
    """The comparisons of a fence, by the words that rest on them. Raises PageError."""
    claims: Claims = {}
    queries: list[str] | None = None
    for line in filter(None, map(str.rstrip, body.split("\n"))):
        if not line.startswith(" "):
            words, _, line = line.partition(": ")
            if words in claims:
                raise PageError(f"{words!r} stands twice; number them: {words} | 2")
            queries = claims[words] = []
        if queries is None:
            raise PageError(f"a line is written {WRITTEN}")
        queries.append(line.strip())
    return claims


def holds(evidence: Evidence, claims: Claims, text: str) -> str:
    """The HTML of {holds: text}. Raises PageError and RecordError."""
    if text not in claims:
        raise PageError(f"no fence says what {text!r} rests on: ```claims, {WRITTEN}")
    words = text.partition("|")[0].strip()
    try:
        judged = [judge(evidence, query) for query in claims[text]]
    except figures.NotYet:
        return f'<span class="holds">{escape(words)} ({figures.unmeasured()})</span>'
    marks = "".join(dict.fromkeys(mark for _, mark in judged))
    told = escape("; ".join(told for told, _ in judged))
    kind = "holds stale" if re.search(r"\((stale|false)\)", marks) else "holds"
    return f'<span class="{kind}" title="{told}">{escape(words)}{marks}</span>'


def judge(evidence: Evidence, query: str) -> tuple[str, str]:
    """What a comparison rests on, or why it is false; its mark. Raises PageError."""
    words = shlex.split(query)
    at = next((i for i, word in enumerate(words) if word in SIGNS), 0)
    if at < 2 or at + 1 == len(words):
        raise PageError(f"nothing is compared in {query!r}; it is written {WRITTEN}")
    (name, key, *left), sign, right = words[:at], words[at], words[at + 1 :]
    factor = 1.0 if "=" in right[0] else float(Fraction(right.pop(0)))
    ours, other = parsed(left), parsed(right)
    named = ",".join(v for k, _, v in ours + other if k == "part")
    lists = LISTED.split(named or figures.LIST)
    ratios, wrong = [], ""
    with figures.record(evidence, name, lists[0]) as benchmark:
        find = partial(found, evidence, benchmark)
        pairs = [*paired(find, ours, other)] if other else [(m, {}) for m in find(ours)]
        if all(mine is theirs for mine, theirs in pairs):
            raise PageError("it is compared with itself")
        for mine, theirs in pairs:
            value = measured(mine, key)
            base = measured(theirs, key) if theirs else 1
            ratios.append(value / base)
            if not SIGNS[sign](value, factor * base):
                told = f"{value:.4g} ({shown(mine)}) is not {sign} {factor:g}"
                if theirs:
                    ratio = significant(ratios[-1])
                    told += f" times {base:.4g} ({shown(theirs)}), but {ratio} times"
                wrong = wrong or told
    used = [each for pair in pairs for each in pair if each]
    stale = any(evidence.outdated(benchmark, part, used) for part in lists)
    extent = " to ".join(dict.fromkeys(map(significant, (min(ratios), max(ratios)))))
    record = benchmark.path.relative_to(evidence.root).as_posix()
    told = f"holds in {record}: {extent}{' times' if other else ''}"
    mark = figures.mark(evidence, benchmark.gpu, stale)
    if wrong:
        told, mark = f"is false in {record}: {wrong}", f" (false){mark}"
    return f"{query} {told}", mark


def parsed(words: list[str]) -> list[Filter]:
    """The filters that stand on a side of the sign. Raises PageError."""
    filters = []
    for word in words:
        if not (match := FILTER.fullmatch(word)):
            raise PageError(f"{word!r} is no filter, such as cols=4096 or cols>=4096")
        filters.append((match[1], match[2], match[3]))
    if len({each[:2] for each in filters}) < len(filters):
        raise PageError("a filter stands twice; list its values: cols=1024,4096")
    return filters


def single(filters: list[Filter]) -> Iterator[tuple[Filter, ...]]:
    """The filters with each choice of one of the values that they list."""
    return product(*([(k, op, v) for v in LISTED.split(vs)] for k, op, vs in filters))


def found(
    evidence: Evidence, benchmark: Benchmark, filters: list[Filter]
) -> Iterator[Measurement]:
    """The measurements that the filters leave, at least one for each listed value."""
    for choice in single(filters):
        where = {k: value for k, op, value in choice if op == "="}
        part = where.pop("part", figures.LIST)
        limits = [(k, SIGNS[op], float(v)) for k, op, v in choice if op != "="]
        keys = (k for k, _, _ in limits)
        some = figures.select(evidence, benchmark, part, where, *keys)
        kept = [m for m in some if all(sign(m[k], v) for k, sign, v in limits)]
        if not kept:
            raise Absent(f"no measurement has {asked(choice)}")
        yield from kept


def measured(measurement: Measurement, key: str) -> float:
    """What a key, or the product of several, has in a measurement. Raises Absent."""
    try:
        values = [figures.pointer(measurement, f"/{each}") for each in key.split("*")]
    except Absent:
        raise Absent(f"{shown(measurement)} has no {key}") from None
    return float(math.prod(values))


def paired(
    find: Find, ours: list[Filter], other: list[Filter]
) -> Iterator[tuple[Measurement, Measurement]]:
    """Each measurement of ours with those of the other side that have its shape.

    The shape is what a record has in front of the first result, less what the other
    side's filters name. Raises Absent where a measurement has no partner.
    """
    named = {key for key, _, _ in other}
    kept = [each for each in ours if each[0] not in named]
    for choice in single(other):
        theirs = [*find([*kept, *choice])]
        for mine in find(ours):
            same = shape(mine, named)
            partners = [each for each in theirs if shape(each, named) == same]
            if not partners:
                raise Absent(f"{shown(mine)} has no partner with {asked(choice)}")
            yield from ((mine, each) for each in partners)


def asked(filters: Iterable[Filter]) -> str:
    """Filters in a message, as they are written."""
    return " ".join(map("".join, filters))


def shape(measurement: Measurement, but: Container[str] = ()) -> Measurement:
    """What tells a measurement from others, less some keys."""
    first = takewhile(lambda item: item[0] not in RESULTS, measurement.items())
    return {key: value for key, value in first if key not in but}


def shown(measurement: Measurement) -> str:
    """A measurement in a message."""
    return " ".join(f"{key}={value}" for key, value in shape(measurement).items())
