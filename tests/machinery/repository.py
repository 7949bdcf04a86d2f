"""A small repository of snippets and records, and its pages through the extension."""

import html
import json
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from markdown import Markdown
from mkdocs.config import load_config

from verified_docs import layout
from verified_docs.evidence import manifest, records
from verified_docs.evidence.records import Entry, Error
from verified_docs.evidence.status import Evidence, Status

ROOT = Path(__file__).resolve().parents[2]
H200, L4 = "NVIDIA H200", "NVIDIA L4"
KEY = "torch 1, triton 1"
FACTS = {
    "capability": "9.0",
    "torch": "1",
    "triton": "1",
    "date": "2026-01-01",
    "commit": "c0ffee",
}

# An entry with these changes is of another file than the one that is there.
STALE = {"manifest": {"snippets/softmax/online.py": "0" * 64}}
# QUOTED is the folder of the GPU that pages quote.
CONFIG = r"""site_name: A small site
site_url: !ENV [SITE_URL, "http://127.0.0.1:8000/"]
theme:
  name: material
  font: false
nav:
  - Home: index.md
  - Page: part/page.md
  - Bibliography: reference/bibliography.md
validation:
  nav: {omitted_files: ignore, not_found: ignore}
  links: {not_found: ignore, anchors: ignore, unrecognized_links: ignore,
          absolute_links: relative_to_docs}
plugins: [search]
exclude_docs: __pycache__/
markdown_extensions:
  - admonition
  - attr_list
  - def_list
  - tables
  - toc: {permalink: true}
  - pymdownx.details
  - pymdownx.tabbed: {alternate_style: true}
  - pymdownx.arithmatex: {generic: true}
  - verified_docs.pages.markdown:
      root: !relative $config_dir
      gpu: QUOTED
      tensors:
        m: {macro: '\m', tex: m, code: [m_i]}
        l: {macro: '\l', tex: '\ell', code: [l_i]}
extra_css: [assets/small.css]
extra_javascript:
  - path: assets/small.mjs
    type: module
"""

ONLINE = '''"""Online: ω ≤ Ω & <tags>."""

import math


# --8<-- [start:kernel]
def kernel(m_i, l_i):
    # --8<-- [line:rescale]
    l_i = l_i * math.exp(
        -m_i,
    )
    # --8<-- [start:rest]
    return "ω < Ω &amp; 'quoted'", l_i
    # --8<-- [end:rest]


# --8<-- [end:kernel]


# --8<-- [start:demo]
if __name__ == "__main__":

\tprint("<b>", kernel(1, 2))
# --8<-- [end:demo]
'''
THREE_PASS = ONLINE.replace("-m_i", "m_i").replace("Online", "Three passes")


class Repository:
    """Snippets of one part below `root`, with tests, and records of them."""

    def __init__(self, root: Path, part: str = "softmax") -> None:
        self.root = root
        self.part = part

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files, whole."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            data = content if isinstance(content, bytes) else content.encode()
            path.write_bytes(data)

    def script(self, name: str, text: str) -> str:
        """Write a program of the shell; its path."""
        self.write({name: f"#!/bin/sh\n{text}\n"})
        (self.root / name).chmod(0o755)
        return str(self.root / name)

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        """A command in the root; stdout has what it says, errors too."""
        pipe, both = subprocess.PIPE, subprocess.STDOUT
        return subprocess.run(
            command, cwd=self.root, env=env, stdout=pipe, stderr=both, text=True
        )

    def commit(self) -> None:
        """Make a history of one commit, which has all files as they are."""
        git = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@b"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "a"]):
            subprocess.run([*git, *command], check=True)

    def read(self, name: str) -> str:
        """The text of a file."""
        return (self.root / name).read_text("utf-8")

    def edit(self, name: str, old: str, new: str, count: int = 1) -> None:
        """Replace the first place of a text, which must be there; all, if -1."""
        assert old in self.read(name)
        self.write({name: self.read(name).replace(old, new, count)})

    def change(self, path: Path, change: Callable[[Any], object]) -> None:
        """Change what a record holds."""
        data = json.loads(path.read_text("utf-8"))
        change(data)
        path.write_text(json.dumps(data), "utf-8")

    def snippet(self, name: str, content: str | bytes, tests: str = "") -> None:
        """Write a snippet, named below snippets/, and its tests."""
        tests = tests or f"# tests of {name}\n"
        self.write({layout.snippet_file(name): content, layout.test_file(name): tests})

    def entry(self, name: str, **changes: Any) -> Entry:
        """A fresh entry, but for the changes; in the manifest, of the files named."""
        loaded = records.hashes(self.root, manifest.imported(self.root, name))
        loaded |= changes.pop("manifest", {})
        fresh = Entry(
            run="a run",
            state="passed",
            failed=[],
            cases=12,
            skipped={},
            errors={"float32": Error(1.23e-7, 4.56e-7, "test_a[<1>]")},
            no_accuracy="",
            output="cuda: <1e-7>\n",
            manifest=loaded,
        )
        return replace(fresh, **changes)

    def verify(self, gpu: str, **entries: dict[str, Any]) -> Path:
        """Record snippets, by their names without ".py", with changes to the entries.

        No GPU, "", is the interpreter.
        """
        file = layout.verification_file(gpu)
        names = {f"{self.part}/{key}.py": each for key, each in entries.items()}
        snippets = {n: {KEY: self.entry(n, **changes)} for n, changes in names.items()}
        facts = {"a run": FACTS | {"gpu": gpu}}
        records.save(records.Verification(self.root / file, facts, snippets))
        return self.root / file

    def measure(
        self, measurements: list[dict[str, Any]], gpu: str = H200, **lists: Any
    ) -> Path:
        """Record the benchmark of the part, which rests on all that there is of it."""
        files = [layout.snippet_file(name) for name in layout.names(self.root)]
        record = {
            "format": records.FORMAT,
            "environment": FACTS | {"gpu": gpu},
            "manifest": records.hashes(self.root, files),
            "ceilings": {"copy": 4.25e12},
            "measurements": measurements,
        }
        file = layout.benchmark_file(gpu, self.part)
        self.write({file: json.dumps(record | lists, indent=1)})
        return self.root / file

    def evidence(self, gpu: str = "") -> Evidence:
        """All of it, read anew."""
        return Evidence(self.root, gpu)

    def status(self, name: str = "softmax/online.py") -> Status:
        """What is known of a snippet."""
        return self.evidence().status(name)

    def page(self, text: str) -> str:
        """The HTML of a page. Raises PageError."""
        config = CONFIG.replace("QUOTED", "''")
        self.write({"mkdocs.yml": config, "docs/new.md": ""})
        options = load_config(str(self.root / "mkdocs.yml"))
        return Markdown(
            extensions=options.markdown_extensions,
            extension_configs=options.mdx_configs,
        ).convert(text)


def blocks(page: str) -> list[str]:
    """The texts of the code blocks, as a browser has them."""
    codes = re.findall(r"<pre><code[^>]*>(.*?)</code></pre>", page, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]*>", "", code)) for code in codes]
