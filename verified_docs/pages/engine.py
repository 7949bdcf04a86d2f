"""JavaScript while the site is built, in an embedded engine."""

import atexit
import re
from pathlib import Path

from py_mini_racer import MiniRacer


def started(*scripts: str) -> MiniRacer:
    """An engine that has run these scripts."""
    engine = MiniRacer()
    # Freed when the interpreter is half gone, it waits for ever for its own thread.
    atexit.register(engine.close)
    for script in scripts:
        engine.eval(script)
    return engine


def modules(*paths: Path) -> MiniRacer:
    """An engine that has run these modules, each of which sees those before it."""
    linked = re.compile(r"^(import .*|export )", re.MULTILINE)
    return started(*(linked.sub("", path.read_text("utf-8")) for path in paths))
