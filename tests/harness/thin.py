"""A few cases of each test, for compute-sanitizer, which is slow."""

from zlib import crc32

import pytest

CASES = 3


def thinned(items: list[pytest.Item]) -> list[pytest.Item]:
    """At most three cases of each test: they look random, and are always the same.

    Of those marked `large` one of each module, as the last of all: the sanitizer keeps
    the memory of a test until its process ends.
    """
    groups: dict[tuple[bool, str], list[pytest.Item]] = {}
    for item in sorted(items, key=lambda item: crc32(item.nodeid.encode())):
        large = item.get_closest_marker("large") is not None
        name = item.nodeid.split("::" if large else "[")[0]
        groups.setdefault((large, name), []).append(item)
    return [
        item
        for (large, _), group in sorted(groups.items())
        for item in group[: 1 if large else CASES]
    ]
