"""A small sound site, for tests that plant a fault in it."""

import functools
import json
import os
import shutil
from pathlib import Path

from markdown import Markdown
from mkdocs.commands.build import build as mkdocs_build
from mkdocs.config import load_config

from verified_docs import layout
from verified_docs.check import Finding, findings
from verified_docs.code import archive
from verified_docs.evidence import records
from verified_docs.pages import policy

ROOT = Path(__file__).resolve().parents[2]
GPU = "test-gpu"

CONFIG = f"""\
site_name: A small site
site_url: !ENV [SITE_URL, "http://127.0.0.1:8000/"]
theme:
  name: material
  font: false
nav:
  - Home: index.md
  - Page: part/page.md
  - Bibliography: reference/bibliography.md
validation:
  nav: {{omitted_files: ignore, not_found: ignore}}
  links: {{not_found: ignore, anchors: ignore, unrecognized_links: ignore,
          absolute_links: relative_to_docs}}
plugins: [search]
exclude_docs: __pycache__/
markdown_extensions:
  - admonition
  - attr_list
  - def_list
  - footnotes
  - md_in_html
  - tables
  - toc: {{permalink: true}}
  - pymdownx.details
  - pymdownx.tabbed: {{alternate_style: true}}
  - pymdownx.arithmatex: {{generic: true}}
  - verified_docs.pages.markdown:
      root: !relative $config_dir
      gpu: {GPU}
      katex: {ROOT}/node_modules/katex
extra_css: [assets/small.css]
extra_javascript:
  - path: assets/small.mjs
    type: module
"""

ONE = '''\
"""The first rung."""

import sys


# --8<-- [start:kernel]
def double(x: float) -> float:
    """Twice x: «zweimal» x."""
    # --8<-- [line:add]
    total = x + x
    return total


# --8<-- [end:kernel]


# --8<-- [start:demo]
if __name__ == "__main__":
    print("twice 2 is", double(2), file=sys.stdout)
# --8<-- [end:demo]
'''

TWO = '''\
"""The second rung."""


# --8<-- [start:kernel]
def double(x: float) -> float:
    """Twice x: «zweimal» x."""
    return 2 * x


# --8<-- [end:kernel]
'''

TEST = '''\
"""Tests of the mirrored snippet."""


def test_double():
    assert True
'''

INDEX = """\
---
description: The home of the small site.
---

# Home

Start at [the page](part/page.md#the-first-rung).
"""

PAGE = r"""---
description: A page with one of everything.
---

# Page

It doubles. The mathematics is $2x = x + x$, and

$$
\sum_{i=1}^{2} x = 2x .
$$

## The first rung

1. Take x.
2. Add it to itself.
{: data-line="add" }

```python
--8<-- "part/one.py:kernel"
```

=== "Demo"

    ```python
    --8<-- "part/one.py:demo"
    ```

=== "Output"

    ```output from="part/one.py"
    ```

Run it:

```console
$ python snippets/part/one.py
```

## The second rung

!!! note "The change"

    - Less code:

        ```diff from="part/one.py:kernel" to="part/two.py:kernel"

        ```

> In full:
>
> ```python
> --8<-- "part/two.py"
> ```

It takes {measured: part seconds kernel=part/two.py n=4 | us} on this machine,
at {stated: 4.8 TB/s | A datasheet, page 2}.

```measurements
record: part
rows: kernel
columns: n
value: seconds
format: us
```

```svg
dot.svg
```

Back [home](../index.md).
"""

BIBLIOGRAPHY = """\
---
description: What is cited.
---

# Bibliography

### A datasheet

Of a GPU.
"""

SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">
<title>A dot</title><desc>A dot in the middle.</desc>
<circle class="accent" cx="5" cy="5" r="2"/>
</svg>
"""

ENVIRONMENT = {
    "gpu": "Test GPU",
    "capability": "9.0",
    "driver": "1",
    "cuda": "1",
    "torch": "1",
    "triton": "1",
    "python": "3",
    "date": "2026-01-01",
}


def write(root: Path) -> None:
    """The sources of the site, and fresh records of one GPU."""
    files = {
        "mkdocs.yml": CONFIG,
        "README.md": "Run it:\n\n```console\n$ make site   # build it\n```\n",
        "docs/index.md": INDEX,
        "docs/part/page.md": PAGE,
        "docs/reference/bibliography.md": BIBLIOGRAPHY,
        "LICENSE": "MIT License\n",
        "docs/assets/dot.svg": SVG,
        "docs/assets/small.css": "body { margin: 0 }\n",
        "docs/assets/small.mjs": "export default 1;\n",
        "benchmarks/part.py": 'KERNELS = "one", "two"\n',
        "snippets/part/one.py": ONE,
        "snippets/part/two.py": TWO,
        "tests/snippets/part/test_one.py": TEST,
        "tests/snippets/part/test_two.py": TEST,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for name in ("snippets", "records"):
        (root / "docs" / name).symlink_to(f"../{name}")
    (root / "docs/LICENSE.txt").symlink_to("../LICENSE")
    record(root)


def record(root: Path, gpu: str = GPU, *names: str) -> None:
    """Fresh records of a GPU: of the named snippets, or of both, and a benchmark."""
    folder = root / "records" / gpu
    entries = {}
    for name in names or ("part/one.py", "part/two.py"):
        entry = records.Entry(
            run="a run",
            state="passed",
            failed=[],
            manifest=records.hashes(
                root, [layout.snippet_file(name), layout.test_file(name)]
            ),
            cases=3,
            skipped={},
            no_accuracy="",
            errors={"float32": records.Error(1e-7, 2e-7, "test_double")},
            output="twice 2 is 4\n",
        )
        entries[name] = {"torch 1, triton 1": entry}
    facts = ENVIRONMENT | ({} if gpu == GPU else {"gpu": gpu})
    verification = folder / "verification.json"
    records.save(records.Verification(verification, {"a run": facts}, entries))
    part = {
        "format": records.FORMAT,
        "environment": facts,
        "manifest": records.hashes(root, ["snippets/part/two.py"]),
        "measurements": [{"kernel": "part/two.py", "n": 4, "seconds": 1.5e-06}],
    }
    (folder / "part.json").write_text(json.dumps(part, indent=2))


def build(root: Path) -> None:
    """Build the site into root/site; raises what MkDocs raises."""
    os.environ["NO_MKDOCS_2_WARNING"] = "1"
    archive.write(root / "docs/snippets.zip", root)
    mkdocs_build(load_config(str(root / "mkdocs.yml"), strict=True))
    policy.apply(root / "site")


@functools.cache
def sound(folder: Path) -> Path:
    """The sound site, built once for each session."""
    write(folder)
    build(folder)
    return folder


def copy(original: Path, target: Path) -> Path:
    """A copy to plant a fault in."""
    return shutil.copytree(original, target, symlinks=True, dirs_exist_ok=True)


def found(root: Path) -> list[Finding]:
    """What the check says of the site."""
    return sorted(set(findings(root, root / "site")))


def line_of(path: Path, text: str) -> int:
    """The first line of a file with a text."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return next(n for n, line in enumerate(lines, 1) if text in line)


def edit(root: Path, name: str, old: str, new: str) -> None:
    """Replace the first place of a text, which must be there."""
    text = (root / name).read_text(encoding="utf-8")
    assert old in text
    (root / name).write_text(text.replace(old, new, 1), encoding="utf-8")


def convert(root: Path, text: str) -> str:
    """The HTML of a page's text. Raises PageError."""
    options = load_config(str(root / "mkdocs.yml"))
    return Markdown(
        extensions=options.markdown_extensions, extension_configs=options.mdx_configs
    ).convert(text)
