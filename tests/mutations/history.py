"""Which tests of a mutant to try first: the order decides how long it takes.

It decides nothing else: a mutant is caught if any test catches it.
"""

from collections import Counter, defaultdict
from hashlib import sha256

import pytest

# Of a test that was not yet tried: what it costs, and how many bugs it catches.
SECONDS = 0.001
GUESS = 0.1


class History:
    """What the runs so far have shown: what each test costs, and what it catches."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._tried: Counter[str] = Counter()
        self._caught: Counter[str] = Counter()
        self._bugs: defaultdict[str, set[str]] = defaultdict(set)

    def learn(self, why: str, caught: str, seconds: dict[str, float]) -> None:
        """Keep what a run showed.

        Args:
            why: the name of the bug; "" for none.
            caught: the nodeid of the test that caught it; "" for none.
            seconds: what each of the other tests took, by nodeid.
        """
        for nodeid, taken in seconds.items():
            for name in _names(nodeid):
                self._seconds[name] = taken
        if why and caught:
            for nodeid in (*seconds, caught):
                self._tried.update(set(_names(nodeid)))
            self._caught.update(set(_names(caught)))
            self._bugs[why].add(_names(caught)[1])

    def sort(self, items: list[pytest.Item], why: str, first: str = "") -> None:
        """Put first what is likely to catch a bug, for the time that it takes.

        The test `first`, named relative to its module, goes before all. Then what
        caught the bug of this name in another snippet. Refusals
        launch nothing, so that no mutant hangs in them: they are next, those of the
        file before those that all files share. Properties take long and go last.
        """
        written = {item: place for place, item in enumerate(items)}
        # Neighbours are alike: mix the cases of which nothing is known yet.
        items.sort(key=lambda item: sha256(item.nodeid.encode()).digest())
        items.sort(key=self._cost)
        cases: Counter[str] = Counter()
        places: dict[pytest.Item, tuple[int, float]] = {}
        for item in items:
            _, case, function, test = _names(item.nodeid)
            places[item] = 3, self._cost(item) / self._hope(item, cases[function])
            cases[function] += 1
            if item.nodeid.partition("::")[2] == first:
                places[item] = -1, 0.0
            elif case in self._bugs[why]:
                places[item] = 0, self._cost(item)
            elif "refuses" in test:
                shared = item.function.__module__ != item.module.__name__
                places[item] = 1 + shared, written[item]
            elif hasattr(getattr(item, "obj", None), "hypothesis"):
                places[item] = 4, self._cost(item)
        items.sort(key=places.__getitem__)

    def _cost(self, item: pytest.Item) -> float:
        """The seconds that a test took before, or one like it did."""
        known = (self._seconds.get(name) for name in _names(item.nodeid))
        return next((s for s in known if s is not None), SECONDS)

    def _hope(self, item: pytest.Item, before: int) -> float:
        """Says which of two tests is the likelier to catch what others did not.

        The same case may catch as many in other files, other cases as many in this.

        Args:
            item: one case of the test.
            before: how many of its other cases come first, and may see the same.
        """
        _, case, function, _ = _names(item.nodeid)
        return self._rate(case) * self._rate(function) / 2**before

    def _rate(self, name: str) -> float:
        """Bugs caught of those met."""
        return (self._caught[name] + GUESS) / (self._tried[name] + 1)


def _names(nodeid: str) -> tuple[str, str, str, str]:
    """Of a case and of the test that it is one of: in its module, and in all modules.

    ("m.py::TestX::test_y[z]", "test_y[z]", "m.py::TestX::test_y", "test_y")
    """
    function, bracket, case = nodeid.partition("[")
    test = function.rpartition("::")[2]
    return nodeid, test + bracket + case, function, test
