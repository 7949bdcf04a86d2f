"""Deliberate bugs, listed for each snippet: its tests must catch every one."""

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mutant:
    """One bug, planted in a snippet by replacing text.

    Attributes:
        old: text of the snippet; it occurs in it exactly `count` times.
        new: what takes its place, everywhere.
        why: the bug in words; no other of its snippet has the same.
        count: how often `old` occurs.
        may_not_compile: the bug may show as a kernel that does not compile. Otherwise
            that does not count as caught: it says nothing about the tests.
        may_hang: the bug may show as a kernel that never ends. Otherwise that does not
            count as caught: a slow test looks alike. It is no part of the key.
    """

    old: str
    new: str
    why: str
    count: int = 1
    may_not_compile: bool = False
    may_hang: bool = field(default=False, repr=False)

    @property
    def key(self) -> str:
        """What it is known by in the record: it changes with any of the above."""
        return f"{self.why} {hashlib.sha256(repr(self).encode()).hexdigest()[:16]}"

    def apply(self, text: str) -> str:
        """The text with the bug planted.

        Raises:
            ValueError: `old` does not occur `count` times, or the text stays the same.
        """
        if self.old == self.new:
            raise ValueError(f"{self.why!r}: old and new are the same text")
        found = text.count(self.old)
        if found != self.count:
            raise ValueError(
                f"{self.why!r}: {self.old!r} occurs {found} times, not {self.count}"
            )
        return text.replace(self.old, self.new)
