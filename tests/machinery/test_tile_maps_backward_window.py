"""The tile map of the backward pass in a window is that of its published kernels."""

from tests.snippets.backward.window_tile_maps import FILE, draw


def test_the_diagram_is_what_the_kernels_do():
    assert FILE.read_text(encoding="utf-8") == draw(), (
        "run TRITON_INTERPRET=1 python -m tests.snippets.backward.window_tile_maps"
    )
