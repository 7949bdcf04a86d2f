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
from typing import Any, NamedTuple

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
Filter = tuple[str, str, str]
Measurement = dict[str, Any]
Pair = tuple[Measurement, Measurement]
Find = Callable[[list[Filter]], Iterator[Measurement]]


class Query(NamedTuple):
    """A comparison as it is written."""

    record: str
    key: str
    ours: list[Filter]
    sign: str
    factor: float
    other: list[Filter]


class Judged(NamedTuple):
    """A comparison, and what a record says of it: the extent, or where it is false."""

    query: str
    told: str
    record: str
    mark: str

    def __str__(self) -> str:
        return f"{self.query} {self.told} ({self.record})"


Claims = dict[str, list[Judged]]


def read(evidence: Evidence, body: str) -> Claims:
    """The comparisons of a fence, by the words that rest on them.

    There are none for words of which a figure is still to be measured. Raises PageError
    and RecordError.
    """
    queries: dict[str, list[str]] = {}
    words = ""
    for line in filter(None, map(str.rstrip, body.split("\n"))):
        if not line.startswith(" "):
            words, _, line = line.partition(": ")
            if words in queries:
                raise PageError(f"{words!r} stands twice; number them: {words} | 2")
            queries[words] = []
        if not words:
            raise PageError(f"a line is written {WRITTEN}")
        queries[words].append(line.strip())
    claims: Claims = {}
    for words, each in queries.items():
        try:
            claims[words] = [judge(evidence, query) for query in each]
        except figures.NotYet:
            claims[words] = []
        except PageError as error:
            raise PageError(f"{words}: {error}") from error
    return claims


def holds(claims: Claims, text: str) -> str:
    """The HTML of {holds: text}. Raises PageError."""
    if text not in claims:
        raise PageError(f"no fence says what {text!r} rests on: ```claims, {WRITTEN}")
    words = escape(plain(text))
    if not (judged := claims[text]):
        return f'<span class="holds">{words} ({figures.unmeasured()})</span>'
    marks = "".join(dict.fromkeys(each.mark for each in judged))
    told = escape("; ".join(map(str, judged)))
    kind = "holds stale" if re.search(r"\((stale|false)\)", marks) else "holds"
    return f'<span class="{kind}" title="{told}">{words}{marks}</span>'


def listed(claims: Claims, base: str) -> str:
    """All comparisons of a page, for a reader who doubts them or cannot point."""
    items = (
        f"<li>{escape(plain(words))}: <code>{escape(each.query)}</code>, "
        f'<a href="{base}{each.record}">{escape(each.told)}</a>{each.mark}</li>'
        for words, judged in claims.items()
        for each in judged
    )
    return (
        '<details class="note" data-search-exclude>'
        "<summary>What the comparisons on this page rest on</summary>"
        f"<ul>{''.join(items)}</ul></details>"
    )


def plain(text: str) -> str:
    """The words, without their number."""
    return text.partition("|")[0].strip()


def judge(evidence: Evidence, text: str) -> Judged:
    """What a record says of a comparison. Raises PageError, RecordError and NotYet."""
    query = parse(text)
    named = ",".join(v for k, _, v in query.ours + query.other if k == "part")
    lists = LISTED.split(named or figures.LIST)
    with figures.record(evidence, query.record, lists[0]) as benchmark:
        find = partial(found, evidence, benchmark)
        pairs = [*paired(find, query.ours, query.other)]
        ratios, wrong = weighed(query, pairs)
    used = [each for pair in pairs for each in pair if each]
    stale = any(evidence.outdated(benchmark, part, used) for part in lists)
    mark = " (false)" * bool(wrong) + figures.mark(evidence, benchmark.gpu, stale)
    extent = " to ".join(dict.fromkeys(map(significant, (min(ratios), max(ratios)))))
    told = wrong or f"holds: {extent}{' times' if query.other else ''}"
    record = benchmark.path.relative_to(evidence.root).as_posix()
    return Judged(text, told, record, mark)


def parse(text: str) -> Query:
    """A comparison, read. Raises PageError."""
    words = shlex.split(text)
    at = next((i for i, word in enumerate(words) if word in SIGNS), 0)
    if at < 2 or at + 1 == len(words):
        raise PageError(f"nothing is compared in {text!r}; it is written {WRITTEN}")
    (record, key, *left), sign, right = words[:at], words[at], words[at + 1 :]
    factor = 1.0 if "=" in right[0] else float(Fraction(right.pop(0)))
    return Query(record, key, parsed(left), sign, factor, parsed(right))


def weighed(query: Query, pairs: list[Pair]) -> tuple[list[float], str]:
    """How large the left sides are, and why the comparison is false, if it is.

    Raises PageError: it is compared with itself, or lacks the key.
    """
    if all(mine is theirs for mine, theirs in pairs):
        raise PageError("it is compared with itself")
    ratios, wrong = [], ""
    for mine, theirs in pairs:
        value = measured(mine, query.key)
        base = measured(theirs, query.key) if theirs else 1
        ratios.append(value / base)
        if not wrong and not SIGNS[query.sign](value, query.factor * base):
            wrong = f"is false: {value:.4g} ({shown(mine)}) is not {query.sign} "
            wrong += f"{query.factor:g}"
            if theirs:
                ratio = significant(ratios[-1])
                wrong += f" times {base:.4g} ({shown(theirs)}), but {ratio} times"
    return ratios, wrong


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


def paired(find: Find, ours: list[Filter], other: list[Filter]) -> Iterator[Pair]:
    """Each measurement of ours with those of the other side that have its shape.

    The shape is what a record has in front of the first result, less what the other
    side's filters name. Without filters there is no other side. Raises Absent where a
    measurement has no partner.
    """
    if not other:
        yield from ((mine, {}) for mine in find(ours))
        return
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
