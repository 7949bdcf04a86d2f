"""A small sound site, for tests that plant a fault in it."""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.machinery.repository import CONFIG, ONLINE, THREE_PASS, Repository
from verified_docs import check
from verified_docs.pages import archive

os.environ["NO_MKDOCS_2_WARNING"] = "1"

PAGE = "docs/part/page.md"
SNIPPET = "snippets/part/one.py"
RECORD = "records/test-gpu/verification.json"
BENCHMARK = "records/test-gpu/part.json"

TEST = '''\
"""Tests of the mirrored snippet."""

from snippets.part import one
from tests.snippets.part import suite


class TestOne(suite.Tests):
    def test_kernel(self):
        assert True
'''

TEXT = r"""---
description: A page with one of everything.
---

# Page

It doubles. The mathematics is $2x = x + x$, and

$$
\sum_{i=1}^{2} x = 2x .
$$

## The first rung

1. Take $x$.
2. Add it to itself.
{: data-line="rescale" }

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
at {stated: 4.8 TB/s | A datasheet, page 2}, so it is
{holds: twice as fast} as paper.

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

Arithmetic is no measurement: 4096 &times; 128 numbers of 4 bytes are 2 MiB, $2x$, and
`sleep(3 s)` is code. In the 1990s, 2 &times; 3 tiles and rows 1 and 2 s-shaped curves.
It stops after two passes, off by one; with `x = 1` it begins.
`--8<-- "in/code.py"` and `{: .x }` are code.

| call | meaning |
|:-----|--------:|
| `tl.load(x)` | reads |
| `8` | $16$ |
| `part/one.py` | $\texttt{BLOCK\_M}$ |

```claims
twice as fast: part seconds kernel=part/two.py n=4 < 2e-6
```
"""

SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">
<title>Ω &amp; π</title><desc>A dot in the middle.</desc>
<defs><pattern id="a"/></defs>
<circle class="accent" cx="5" cy="5" r="2" fill="url(#a)"/>
</svg>
"""

FILES = {
    "mkdocs.yml": CONFIG.replace("QUOTED", "test-gpu"),
    "README.md": "Run it:\n\n```console\n$ make site   # build it\n```\n",
    "LICENSE": "MIT License\n",
    "docs/index.md": "# Home\n\nStart at [the page](part/page.md#the-first-rung).\n",
    PAGE: TEXT,
    "docs/reference/bibliography.md": "# Bibliography\n\n### A datasheet\n",
    "docs/assets/dot.svg": SVG,
    "docs/assets/small.css": "body { margin: 0 }\n",
    "docs/assets/small.mjs": "export default 1;\n",
    "benchmarks/part.py": 'KERNELS = "one", "two"\n',
}


class SmallSite(Repository):
    """Its sources, its records and, in site/, what was built from them."""

    def copy(self, target: Path) -> "SmallSite":
        """A copy of all of it."""
        shutil.copytree(self.root, target, symlinks=True)
        return SmallSite(target, "part")

    def record(self, gpu: str = "Test GPU", *names: str) -> None:
        """Fresh records of a GPU: of all snippets or the named, and a benchmark."""
        changes = {"output": "twice 2 is 4\n"}
        self.verify(gpu, **dict.fromkeys(names or ("one", "two"), changes))
        self.measure([{"kernel": "part/two.py", "n": 4, "seconds": 1.5e-06}], gpu)

    def build(self) -> None:
        """What `make site` does. Raises Missing."""
        archive.write(self.root / "docs", self.root)
        check.site.build(self.root, self.root / "site", mark="")

    def found(self) -> list[str]:
        """What the check says of the pages that the sources make now."""
        with TemporaryDirectory() as folder:
            made = check.Site(self.root, Path(folder).resolve())
            return [f"{f} [{f.weight.name}]" for f in sorted({*check.rules(made)})]


def make(root: Path) -> SmallSite:
    """The sound site, built."""
    site = SmallSite(root, "part")
    site.write(FILES)
    site.snippet("part/one.py", ONLINE, TEST)
    site.snippet("part/two.py", THREE_PASS, TEST.replace("one", "two"))
    for name in ("snippets", "records"):
        (root / "docs" / name).symlink_to(f"../{name}")
    (root / "docs/LICENSE.txt").symlink_to("../LICENSE")
    site.record()
    site.build()
    return site
