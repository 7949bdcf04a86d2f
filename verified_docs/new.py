"""`make new NAME=softmax/log_softmax FROM=one_row`: a rung that begins as a copy.

A rung is a small difference from another one of its part. So the snippet, its tests and
its mutants are copied with the name changed, and are green at once; a page shows the
copy and what differs, and the navigation gets its line. Nothing that exists is
overwritten.
"""

import re
import sys
from pathlib import Path

import yaml

USAGE = "make new NAME=softmax/log_softmax FROM=one_row"
NAME = re.compile(r"[a-z]\w*", re.ASCII)
FILES = (
    "snippets/{part}/{name}.py",
    "tests/snippets/{part}/test_{name}.py",
    "tests/mutants/{part}/{name}.py",
)
PAGE = """\
---
description: One sentence that search engines show, with the words people search for.
idea: a few words for the map
gives: what the reader will have
---

# {title}

The problem in two sentences: what is still wrong with the rung before, with its number.
{picture}
## The kernel

```python
--8<-- "{part}/{name}.py:kernel"
```

## What changed

Once the kernel differs, a fence shows how: diff, from "{part}/{origin}.py:kernel" to
"{part}/{name}.py:kernel".

??? note "Launch and demo"

    ```python
    --8<-- "{part}/{name}.py:launch"
    ```

    ```python
    --8<-- "{part}/{name}.py:demo"
    ```

## What you have now

What the kernel does, and what is still wrong with it.
"""


class NewError(ValueError):
    """A rung that cannot be laid out, with the reason."""


def lay_out(root: Path, rung: str, origin: str) -> list[str]:
    """Write the files of a new rung.

    Args:
        root: the repository.
        rung: the new snippet, as "softmax/log_softmax".
        origin: the name of the snippet of the same part that it begins as.

    Returns:
        The paths that were written or changed, relative to the root.

    Raises:
        NewError: a name is no name, a file is there already or missing, or the part
            has no place in the navigation.
    """
    part, _, name = rung.partition("/")
    for given in (part, name, origin):
        if not NAME.fullmatch(given):
            raise NewError(f"{given!r} is no name; write {USAGE}")
    texts = {}
    for file in FILES:
        path = root / file.format(part=part, name=origin)
        if not path.is_file():
            raise NewError(f"{path.relative_to(root)} is not there")
        text = path.read_text(encoding="utf-8")
        for old, new in ((origin, name), (_class(origin), _class(name))):
            text = re.sub(rf"\b{old}\b", new, text)
        texts[file.format(part=part, name=name)] = text
    title = name.replace("_", " ").capitalize()
    page = f"{part}/{name.replace('_', '-')}.md"
    texts[f"docs/{page}"] = PAGE.format(
        title=title,
        part=part,
        name=name,
        origin=origin,
        picture=picture(root, f"{part}/{origin}.py"),
    )
    if there := [file for file in texts if (root / file).exists()]:
        raise NewError(f"{there[0]} is there already")
    texts["mkdocs.yml"] = with_page(
        (root / "mkdocs.yml").read_text(), part, title, page
    )
    for file, text in texts.items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)


def _class(name: str) -> str:
    """The class that tests a snippet: `one_row` -> `TestOneRow`."""
    return f"Test{name.title().replace('_', '')}"


def picture(root: Path, snippet: str) -> str:
    """The first diagram of a page that shows the snippet: a page begins with one."""
    for page in sorted((root / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        found = re.search(r"^```svg\n.*?\n```\n", text, re.MULTILINE)
        if found and f'--8<-- "{snippet}:' in text:
            return f"\n{found[0]}"
    return ""


def with_page(config: str, part: str, title: str, page: str) -> str:
    """mkdocs.yml with a page after the last one of its part, comments and all kept."""
    lines = config.split("\n")
    of_part = re.compile(
        rf"^\s+- (?:[^:]+: )?['\"]?{re.escape(part)}/\S+\.(?:md|ipynb)"
    )
    found = [number for number, line in enumerate(lines) if of_part.match(line)]
    if not found:
        raise NewError(f"mkdocs.yml: nav has no page of {part}/ to stand after")
    last = found[-1]
    indent = lines[last][: len(lines[last]) - len(lines[last].lstrip())]
    shown = yaml.safe_dump(title).split("\n")[0]
    lines.insert(last + 1, f"{indent}- {shown}: {page}")
    return "\n".join(lines)


def main() -> int:
    """Lay the files out, and say which. 1 if that cannot be."""
    try:
        written = lay_out(Path(), *(sys.argv[1:] if len(sys.argv) == 3 else ("", "")))
    except NewError as error:
        print(f"make new: {error}", file=sys.stderr)
        return 1
    print(*written, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
