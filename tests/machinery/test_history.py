"""The order in which the tests of a mutant are tried."""

from types import SimpleNamespace

from tests.mutations.history import History


class Item:
    """What the order looks at in a test."""

    def __init__(self, name: str, shared: bool = False) -> None:
        self.nodeid = f"test_m.py::{name}"
        self.module = SimpleNamespace(__name__="test_m")
        self.function = SimpleNamespace(__module__="cases" if shared else "test_m")
        self.obj = None


def order(history: History, items: list[Item], why: str = "bug") -> list[str]:
    history.sort(items, why)
    return [item.nodeid.partition("::")[2] for item in items]


def test_cheap_tests_go_first() -> None:
    history = History()
    history.learn("", "", {"test_m.py::test_dear": 2.0, "test_m.py::test_cheap": 1.0})
    items = [Item("test_dear"), Item("test_cheap")]
    assert order(history, items) == ["test_cheap", "test_dear"]


def test_what_a_test_costs_elsewhere_is_a_guess() -> None:
    history = History()
    history.learn("", "", {"test_n.py::test_dear[a]": 2.0, "test_m.py::test_a": 1.0})
    items = [Item("test_dear[b]"), Item("test_a")]
    assert order(history, items) == ["test_a", "test_dear[b]"]


def test_what_catches_goes_before_what_is_cheap() -> None:
    history = History()
    cheap = {"test_m.py::test_cheap": 1.0}
    history.learn("", "", cheap | {"test_m.py::test_sharp": 2.0})
    for n in range(5):
        history.learn(f"another bug {n}", "test_m.py::test_sharp", cheap)
    items = [Item("test_cheap"), Item("test_sharp")]
    assert order(history, items) == ["test_sharp", "test_cheap"]


def test_what_caught_the_same_bug_elsewhere_goes_first() -> None:
    history = History()
    history.learn("", "", {"test_m.py::test_dear[a]": 9.0})
    history.learn("bug", "test_n.py::TestOther::test_dear[a]", {})
    items = [Item("test_refuses"), Item("test_cheap"), Item("test_dear[a]")]
    assert order(history, items)[0] == "test_dear[a]"
    assert order(history, items, "another")[0] == "test_refuses"


def test_one_case_of_each_test_then_another() -> None:
    items = [Item(f"test_{test}[{case}]") for test in "ab" for case in range(3)]
    tests = [name.partition("[")[0] for name in order(History(), items)]
    assert [set(tests[place : place + 2]) for place in (0, 2, 4)] == [
        {"test_a", "test_b"}
    ] * 3


def test_refusals_go_first_and_properties_last() -> None:
    drawn = Item("test_any")
    drawn.obj = SimpleNamespace(hypothesis=None)
    items = [
        drawn,
        Item("test_value"),
        Item("test_refuses_shapes", shared=True),
        Item("test_refuses_more"),
    ]
    assert order(History(), items) == [
        "test_refuses_more",
        "test_refuses_shapes",
        "test_value",
        "test_any",
    ]


def test_a_test_that_catches_nothing_here_waits() -> None:
    history = History()
    for n in range(5):
        history.learn(f"bug {n}", "test_n.py::test_a", {})
    items = [Item("test_a"), Item("test_b")]
    assert order(history, items) == ["test_a", "test_b"]
    for n in range(9):
        history.learn(f"bug {n}", "test_m.py::test_c", {"test_m.py::test_a": 0.001})
    assert order(history, items) == ["test_b", "test_a"]


def test_the_test_that_is_asked_for_goes_before_all() -> None:
    history = History()
    history.learn("bug", "test_n.py::test_known", {})
    items = [Item("test_refuses"), Item("test_known"), Item("TestX::test_dear[a]")]
    history.sort(items, "bug", first="TestX::test_dear[a]")
    assert [item.nodeid for item in items[:2]] == [
        "test_m.py::TestX::test_dear[a]",
        "test_m.py::test_known",
    ]
