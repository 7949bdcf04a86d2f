"""Runs files of Python in forks of a process that has imported torch and triton.

To import them takes two seconds, and what many snippets need besides another one; a
snippet's own part of a demo is often a tenth. A fork has what a new process has after
these imports, and no module of the tests.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["torch", "torch._dynamo", "triton"])
REPOSITORY = Path(__file__).parents[2]


def run(
    root: Path, arguments: list[str], seconds: int
) -> "subprocess.CompletedProcess[str]":
    """What `python file` or `python -m module` comes to in `root`; -9 if too slow."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = FORKS.Process(target=_become, args=(root, arguments, out, err))
        process.start()
        process.join(seconds)
        process.kill()
        process.join()
        said, errors = out.read_text("utf-8"), err.read_text("utf-8")
    status = process.exitcode or 0
    return subprocess.CompletedProcess(arguments, status, said, errors)


def _become(root: Path, arguments: list[str], out: Path, err: Path) -> None:
    """From here on, this process is Python with these arguments."""
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    os.chdir(root)
    sys.modules["torch"].seed()  # Each new process draws its own.
    *option, name = arguments
    first = root if option else Path(name).resolve().parent
    # What pytest has put there is not on the path of a new process.
    sys.path[:] = [str(first), *(p for p in sys.path[1:] if Path(p) != REPOSITORY)]
    sys.argv = [name]
    if option:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(name, run_name="__main__")
