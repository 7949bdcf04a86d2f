"""What demos printed on a GPU: the errors that they name are those of rounding."""

import re

import pytest

from tests.machinery.repository import ROOT
from verified_docs import layout
from verified_docs.evidence import records

ERRORS = re.compile(r"largest errors?:? ((?:\d\.\d+e[+-]\d\d ?)+)")
FP8 = 0.1  # what eight bits may leave; the demos of 16 and 32 leave less


@pytest.mark.parametrize("path", layout.verification_files(ROOT), ids=str)
def test_no_demo_names_an_error_that_is_not_of_rounding(path):
    """A demo that compares with something else makes a right kernel look wrong."""
    seen = [
        (name, float(error))
        for name, entries in records.load(path).snippets.items()
        for entry in entries.values()
        if not layout.is_wrong(name) and not entry.changed(ROOT, name)
        for found in ERRORS.findall(entry.output)
        for error in found.split()
    ]
    assert len(seen) > 20
    assert [each for each in seen if each[1] > FP8] == []
