"""The tile maps on the pages are those of the published kernels."""

import pytest

from tests.snippets.attention.tile_maps import DIAGRAMS, FOLDER, draw


@pytest.mark.parametrize("name", DIAGRAMS)
def test_the_diagram_is_what_the_kernel_does(name):
    assert (FOLDER / name).read_text(encoding="utf-8") == draw(*DIAGRAMS[name]), (
        "run TRITON_INTERPRET=1 python -m tests.snippets.attention.tile_maps"
    )
