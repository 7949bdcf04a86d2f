"""A small repository of snippets and records, and its pages through the extension."""

import hashlib
import html
import json
import re
from pathlib import Path
from typing import Any

from markdown import Markdown

from verified_docs import layout
from verified_docs.evidence.status import Evidence
from verified_docs.pages.badges import kind, label

ROOT = Path(__file__).resolve().parents[2]
KATEX = ROOT / "node_modules" / "katex"

ONLINE = '''"""Online: ω ≤ Ω & <tags>."""

import math


# --8<-- [start:kernel]
def kernel(m_i, l_i):
    # --8<-- [line:rescale]
    l_i = l_i * math.exp(
        -m_i,
    )
    return "ω < Ω &amp; 'quoted'", l_i


# --8<-- [end:kernel]


# --8<-- [start:demo]
if __name__ == "__main__":

\tprint("<b>", kernel(1, 2))
# --8<-- [end:demo]
'''
THREE_PASS = ONLINE.replace("-m_i", "m_i").replace("Online", "Three passes")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Repository:
    """Files below `root`; every method writes some and returns what was written."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.snippet("softmax/online.py", ONLINE)
        self.snippet("softmax/three_pass.py", THREE_PASS)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def snippet(self, name: str, content: str | bytes) -> None:
        self.write(layout.snippet_file(name), content)
        self.write(layout.test_file(name), f"# tests of {name}\n")

    def entry(self, name: str, **changes: Any) -> dict[str, Any]:
        """A fresh entry; changes may be of the hashes in its manifest."""
        files = {
            "sha256": layout.snippet_file(name),
            "test_sha256": layout.test_file(name),
        }
        return {
            "run": "a run",
            "state": "passed",
            "failed": [],
            "manifest": {
                file: changes.pop(key, sha256(self.root / file))
                for key, file in files.items()
            },
            "cases": 12,
            "skipped": {},
            "no_accuracy": "",
            "errors": {
                "float32": {"error": 1.23e-7, "bound": 4.56e-7, "case": "test_a[<1>]"}
            },
            "output": "cuda: <1e-7>\n",
        } | changes

    def environment(self, gpu: str) -> dict[str, str]:
        keys = ("capability", "driver", "cuda", "torch", "triton", "python")
        facts = {"gpu": gpu, "date": "2026-11-21", "commit": "c0ffee"}
        return facts | {key: f"{key} 1" for key in keys}

    def verify(self, folder: str, gpu: str, **entries: dict[str, Any]) -> None:
        """Record each snippet softmax/<key>.py, with changes to its entry."""
        snippets = {
            name: {"torch 1, triton 1": self.entry(name, **changes)}
            for key, changes in entries.items()
            for name in (f"softmax/{key}.py",)
        }
        runs = {"a run": self.environment(gpu)}
        text = json.dumps({"format": 2, "runs": runs, "snippets": snippets})
        self.write(f"{folder}/verification.json", text)

    def interpret(self, **entries: dict[str, Any]) -> None:
        """Record what the interpreter showed."""
        self.verify("x", "", **entries)
        self.write(
            ".cache/interpreter.json", (self.root / "x/verification.json").read_bytes()
        )

    def measure(self, measurements: list[dict[str, Any]]) -> None:
        """Record a benchmark called softmax."""
        record = {
            "format": 2,
            "environment": self.environment("NVIDIA H200"),
            "manifest": {
                f"snippets/softmax/{name}.py": sha256(
                    self.root / f"snippets/softmax/{name}.py"
                )
                for name in ("online", "three_pass")
            },
            "ceilings": {"copy": 4.25e12},
            "measurements": measurements,
        }
        self.write("records/nvidia-h200/softmax.json", json.dumps(record))

    def evidence(self, gpu: str = "") -> Evidence:
        return Evidence(self.root, gpu)

    def badge(self, name: str = "softmax/online.py") -> tuple[str, str]:
        """The kind and the words of a snippet's badge."""
        status = self.evidence().status(name)
        return kind(status), label(status)

    def page(self, text: str, **options: Any) -> str:
        """The HTML of a page."""
        tensors = {
            "m": {"macro": r"\m", "tex": "m", "code": ["m_i"]},
            "l": {"macro": r"\l", "tex": r"\ell", "code": ["l_i"]},
        }
        md = Markdown(
            extensions=[
                "admonition",
                "attr_list",
                "md_in_html",
                "tables",
                "toc",
                "pymdownx.details",
                "pymdownx.tabbed",
                "pymdownx.arithmatex",
                "verified_docs.pages.markdown",
            ],
            extension_configs={
                "pymdownx.tabbed": {"alternate_style": True},
                "pymdownx.arithmatex": {"generic": True},
                "verified_docs.pages.markdown": {
                    "root": self.root,
                    "katex": str(KATEX),
                    "tensors": tensors,
                    **options,
                },
            },
        )
        return md.convert(text)


def blocks(page: str) -> list[str]:
    """The texts of the code blocks, as a browser has them."""
    codes = re.findall(r"<pre><code[^>]*>(.*?)</code></pre>", page, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]*>", "", code)) for code in codes]
