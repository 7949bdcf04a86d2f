"""Racecheck's report is read, and Triton's own accesses are told from others."""

import pytest

from tests.memcheck import racecheck

# Of demos on an H100.
NONE = """========= COMPUTE-SANITIZER
strips=False: equal is True
========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)
"""
TWO = """========= COMPUTE-SANITIZER
========= Error: Race reported between Read access at kernel+0x2c0 in a.py:115
=========     and Write access at kernel+0xc990 in a.py:115 [22 hazards]
=========     and Write access at kernel+0x17180 in a.py:148 [66 hazards]
========= 
========= Error: Race reported between Write access at kernel+0xc9a0 in a.py:115
=========     and Read access at kernel+0x910 in a.py:115 [4 hazards]
=========     and Read access at kernel+0xb590 in a.py:115 [4 hazards]
========= 
cuda: largest error 7.7e-04
========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)
"""  # noqa: W291
OWN = {("a.py", 115), ("a.py", 148)}
KERNEL = """
@gluon.jit
def attention_kernel(
    x, TWO: gl.constexpr
):
    if TWO:
        gl.warp_specialize([(f, ()), (g, ())], [4], [24])

@gluon.jit
def other_kernel(x):
    f(x)
"""


def test_those_of_triton():
    assert racecheck.races(NONE, set()) == racecheck.races(TWO, OWN) == []
    assert racecheck.races(TWO.replace("in a.py", "in /b/a.py"), OWN) == []
    assert len(racecheck.races(TWO, {("a.py", 115)})) == 1
    assert len(racecheck.races(TWO, {("b.py", 115), ("b.py", 148)})) == 2


def test_one_access_elsewhere_is_a_race():
    for new in (
        "0xb590 in a.py:97",
        "0xb590 in b.py:115",
        "0xb590",
        "0xc9a0 in a.py:97",
    ):
        old = f"{new[:6]} in a.py:115"
        (race,) = racecheck.races(TWO.replace(old, new), OWN)
        assert new in race


def test_a_report_that_is_not_understood():
    for told in ("", TWO[:-75], TWO.replace("2 haz", "3 haz")):
        with pytest.raises(ValueError, match="racecheck says"):
            racecheck.races(told, OWN)


def test_which_lines_are_tritons(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(KERNEL, encoding="utf-8")
    assert racecheck.dispatch(path) == {("a.py", 3), ("a.py", 6)}
