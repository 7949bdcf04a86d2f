"""The diagrams of the first steps: areas to scale."""

import pytest

from tests.diagrams import rectangles


def test_the_memories_of_a_gpu_are_drawn_to_scale():
    drawn = [width * height for width, height in rectangles("start/scale.svg")]
    l2, registers, shared = 60 * 2**20, 132 * 256 * 2**10, 132 * 228 * 2**10
    larger = 15 * 15
    held = [141e9, 141e9, 2**30, l2, registers, shared, l2 * larger, l2 * larger]
    held += [m * larger / n for m in (registers, shared) for n in (1, 132)]
    scale = drawn[0] / held[0]
    assert drawn == pytest.approx([scale * size for size in held], rel=0.01)
