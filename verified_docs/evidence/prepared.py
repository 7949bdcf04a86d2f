"""Runs files of Python in forks of a process that has imported torch and triton.

To import them takes two seconds, and a snippet's own part of a demo a tenth of one. A
fork has what a new process has after these imports, and nothing of the tests.

Run as a program, it is that process: each line of its input is [arguments, file of the
output, file of the errors, seconds], each line of its output how that ended.
"""

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path


@cache
def _process(root: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, __file__]  # No module of a package: a fork knows none.
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, text=True)


def run(
    root: Path, arguments: list[str], seconds: int
) -> "subprocess.CompletedProcess[str]":
    """What `python file` or `python -m module` comes to in `root`; -14 if too slow."""
    process = _process(root)
    assert process.stdin
    assert process.stdout
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        print(json.dumps([arguments, str(out), str(err), seconds]), file=process.stdin)
        process.stdin.flush()
        status = int(process.stdout.readline())
        said, errors = out.read_text("utf-8"), err.read_text("utf-8")
    command = [sys.executable, *arguments]
    return subprocess.CompletedProcess(command, status, said, errors)


def _serve() -> None:
    for name in ("torch", "triton"):
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(*json.loads(line))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, flush=True)


def _become(arguments: list[str], out: str, err: str, seconds: int) -> None:
    """From here on, this process is Python with these arguments."""
    signal.alarm(seconds)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    sys.modules["torch"].seed()  # Each new process draws its own.
    *option, name = arguments
    status = 0
    try:
        if option == ["-m"]:
            sys.path[0] = str(Path.cwd())
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            script = Path(name).resolve()
            sys.argv, sys.path[0] = [name], str(script.parent)
            runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # To take apart what was imported would need a second of the processor.
    os._exit(status)


if __name__ == "__main__":
    _serve()
