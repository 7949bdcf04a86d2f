"""Trees for tests to change: a small repository, and a small sound site."""

from pathlib import Path

import pytest

from tests.machinery import small_site
from tests.machinery.repository import ONLINE, THREE_PASS, Repository
from tests.machinery.small_site import SmallSite


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Two snippets of softmax, and no record."""
    repository = Repository(tmp_path)
    repository.snippet("softmax/online.py", ONLINE)
    repository.snippet("softmax/three_pass.py", THREE_PASS)
    return repository


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> SmallSite:
    """The sound site, built once; it is not to be changed."""
    return small_site.make(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def site(sound: SmallSite, tmp_path: Path) -> SmallSite:
    """A copy of it to plant a fault in."""
    return sound.copy(tmp_path / "copy")
