"""The page that sets a machine up: its commands run, in the order that it shows."""

import os
import re
import sys
import sysconfig

from tests.machinery.repository import ROOT, Repository
from verified_docs import layout
from verified_docs.evidence import manifest
from verified_docs.pages import archive

PAGE = (ROOT / "docs/start/setup.md").read_text(encoding="utf-8")
COMMANDS = (
    "python3 -m venv .venv",
    ". .venv/bin/activate",
    "pip install torch==2.13.0 triton==3.7.1 numpy==2.4.6",
    "python -m zipfile -e snippets.zip .",
    "TRITON_INTERPRET=1 python snippets/start/vector_add.py",
    'python -c "import torch; print(torch.version.cuda, torch.cuda.is_available())"',
)


def test_its_commands_run_one_after_the_other_in_a_fresh_folder(tmp_path):
    shown = re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)
    assert [c for c in dict.fromkeys(shown) if c in COMMANDS] == list(COMMANDS)
    archive.write(tmp_path, ROOT)
    # To unpack pip takes seconds. It downloads nothing: it finds what these tests run
    # with, if that is pinned.
    repository = Repository(tmp_path)
    repository.script("bin/python3", f'exec {sys.executable} "$@" --without-pip')
    path = (f"{tmp_path}/bin", sysconfig.get_path("scripts"), os.environ["PATH"])
    here = {
        "PATH": ":".join(path),
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "",
    }
    run = repository.run("sh", "-ec", "\n".join(COMMANDS), **os.environ | here)
    assert run.returncode == 0, run.stdout
    assert re.search(r"cpu: largest error \S+e-07\n\S+ (True|False)\n$", run.stdout)


def test_what_runs_without_triton():
    told = PAGE.partition("### macOS")[2].partition("\n#")[0]
    files = {
        name
        for name in layout.names(ROOT)
        if not any(
            "import triton" in (ROOT / file).read_text()
            for file in manifest.reached(ROOT, [layout.snippet_file(name)])
        )
    }
    wrong = set(filter(layout.is_wrong, files))
    assert set(re.findall(r"`(\w+/\w+\.py)`", told)) == files - wrong
