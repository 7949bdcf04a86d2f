"""Run copied files, each as on its own: `python -I alone.py`.

Every line of standard input names a folder that holds nothing but copied.py. It is run
there in a process of its own, with its output in output.txt beside the folder; the exit
code is the line on standard output. The processes are forked from this one, which has
imported torch and Triton and nothing else, so none of them spends seconds on that.
"""

import os
import runpy
import signal
import sys
from pathlib import Path

import torch  # noqa: F401
import triton.language  # noqa: F401

SECONDS = 120


def run(folder: Path) -> None:
    """In the forked process."""
    signal.alarm(SECONDS)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(folder.parent / "output.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(folder)
    runpy.run_path("copied.py", run_name="__main__")


for line in sys.stdin:
    if not os.fork():
        run(Path(line.rstrip("\n")))
        break
    _, status = os.wait()
    print(os.waitstatus_to_exitcode(status), flush=True)
