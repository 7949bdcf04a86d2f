"""Tile maps: what the kernels skip, mask and take whole."""

from types import ModuleType

import pytest

from tests.snippets.attention import tile_maps as attention
from tests.snippets.backward import tile_maps as backward


@pytest.mark.parametrize(
    ("maps", "name"),
    [(maps, name) for maps in (attention, backward) for name in maps.DIAGRAMS],
)
def test_a_tile_map_is_what_the_kernel_does(maps: ModuleType, name: str) -> None:
    drawn = maps.draw(*maps.DIAGRAMS[name])
    assert (maps.FOLDER / name).read_text(encoding="utf-8") == drawn, (
        f"run TRITON_INTERPRET=1 python -m {maps.__name__}"
    )
