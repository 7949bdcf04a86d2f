"""JavaScript while the site is built, in an embedded engine."""

import atexit
import functools
import re
from pathlib import Path

from py_mini_racer import MiniRacer

LINKS = re.compile(r"^(import .*|export )", re.MULTILINE)


@functools.cache
def engine(*paths: Path) -> MiniRacer:
    """An engine that has run these scripts, each of which sees those before it."""
    engine = MiniRacer()
    # Freed when the interpreter is half gone, it waits for ever for its own thread.
    atexit.register(engine.close)
    for path in paths:
        engine.eval(LINKS.sub("", path.read_text("utf-8")))
    return engine
