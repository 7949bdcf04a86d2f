"""Runs files of Python in forks of a process that has imported torch and triton.

To import them takes two seconds, and a snippet's own part of a demo a tenth of one. A
fork has what a new process has after these imports, and nothing of the tests.

Run as a program, it is that process: each line of its input is [file, file of its
output, file of its errors, seconds], each line of its output how that ended.
"""

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path


@cache
def _process(root: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, __file__]  # No module of a package: a fork knows none.
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, text=True)


def run(root: Path, file: str, seconds: int) -> "subprocess.CompletedProcess[str]":
    """What `python file` would come to, in `root`; -14 if it takes longer."""
    process = _process(root)
    assert process.stdin
    assert process.stdout
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        print(json.dumps([file, str(out), str(err), seconds]), file=process.stdin)
        process.stdin.flush()
        status = int(process.stdout.readline())
        said, errors = out.read_text("utf-8"), err.read_text("utf-8")
    return subprocess.CompletedProcess([sys.executable, file], status, said, errors)


def _serve() -> None:
    for name in ("torch", "triton"):
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(*json.loads(line))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, flush=True)


def _become(file: str, out: str, err: str, seconds: int) -> None:
    """From here on, this process is `python file`."""
    signal.alarm(seconds)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    sys.modules["torch"].seed()  # Each new process draws its own.
    script = Path(file).resolve()
    sys.argv, sys.path[0] = [file], str(script.parent)
    runpy.run_path(str(script), run_name="__main__")
    sys.exit()


if __name__ == "__main__":
    _serve()
