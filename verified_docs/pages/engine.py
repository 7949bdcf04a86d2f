"""JavaScript while the site is built, in an embedded engine."""

import atexit

from py_mini_racer import MiniRacer


def started(*scripts: str) -> MiniRacer:
    """An engine that has run these scripts."""
    engine = MiniRacer()
    # Freed when the interpreter is half gone, it waits for ever for its own thread.
    atexit.register(engine.close)
    for script in scripts:
        engine.eval(script)
    return engine
