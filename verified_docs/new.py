"""`make new NAME=softmax/log_softmax FROM=one_row`: a rung that begins as a copy.

A rung is a small difference from another one, of its own part or, as in
FROM=attention/flash2, of another. So the snippet, its tests and its mutants are copied
with the name changed, and are green at once; a page shows the copy, and the navigation
gets its line. Nothing that exists is overwritten.
"""

import re
from pathlib import Path

from verified_docs import layout

USAGE = "make new NAME=softmax/log_softmax FROM=one_row"
NAME = re.compile(r"[a-z]\w*/[a-z]\w*", re.ASCII)
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

Take its sections in place of the file, each beside its explanation.

```python
--8<-- "{rung}.py"
```

## What changed

Once the kernel differs, a fence shows how: diff, from "{origin}.py" to "{rung}.py".

## What you have now

What the kernel does, and what is still wrong with it.
"""


class NewError(ValueError):
    """A rung that cannot be laid out, with the reason."""


def lay_out(root: Path, rung: str, origin: str) -> list[str]:
    """Write the files of a rung, such as softmax/log_softmax, that begins as another.

    Returns the paths that were written or changed. Raises NewError where a name is no
    name, or a file is there already or missing.
    """
    part, _, name = rung.partition("/")
    origin = origin if "/" in origin else f"{part}/{origin}"
    for given in (rung, origin):
        if not NAME.fullmatch(given):
            raise NewError(f"{given!r} is no name; write {USAGE}")
    texts = {}
    for file_of in (layout.snippet_file, layout.test_file, layout.mutants_file):
        path = root / file_of(f"{origin}.py")
        if not path.is_file():
            raise NewError(f"{path.relative_to(root)} is not there")
        texts[file_of(f"{rung}.py")] = renamed(path.read_text("utf-8"), origin, rung)
    title = name.replace("_", " ").capitalize()
    page = f"{part}/{name.replace('_', '-')}.md"
    texts[f"docs/{page}"] = PAGE.format(
        title=title, rung=rung, origin=origin, picture=picture(root, f"{origin}.py")
    )
    if there := [file for file in texts if (root / file).exists()]:
        raise NewError(f"{there[0]} is there already")
    config = (root / "mkdocs.yml").read_text()
    texts["mkdocs.yml"] = with_page(config, part, title, page)
    for file, text in texts.items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)


def renamed(text: str, origin: str, rung: str) -> str:
    """A file of one snippet as one of another: its module, its name, its class."""
    (old_part, old), (new_part, new) = origin.split("/"), rung.split("/")
    imported = rf"(?<!tests\.)snippets\.{old_part} import {old}"
    for was, now in (
        (f"snippets/{origin}", f"snippets/{rung}"),
        (imported, f"snippets.{new_part} import {new}"),
        (old, new),
        (f"Test{_camel(old)}", f"Test{_camel(new)}"),
    ):
        text = re.sub(rf"\b{was}\b", now, text)
    return text


def _camel(name: str) -> str:
    return name.title().replace("_", "")


def picture(root: Path, snippet: str) -> str:
    """The first diagram of a page that shows the snippet: a page begins with one."""
    for page in sorted((root / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        found = re.search(r"^```svg\n.*?\n```\n", text, re.MULTILINE)
        if found and f'--8<-- "{snippet}:' in text:
            return f"\n{found[0]}"
    return ""


def with_page(config: str, part: str, title: str, page: str) -> str:
    """mkdocs.yml with a page after the last one of its part, comments and all kept.

    The first page of a part comes after the last of all; its author moves it.
    """
    for folder in (part, r"[\w-]+"):
        line = rf"^( +)- (?:[^:\n]+: )?['\"]?{folder}/\S+\.(?:md|ipynb).*\n"
        if own := [*re.finditer(line, config, re.MULTILINE)]:
            at = own[-1].end()
            return f"{config[:at]}{own[-1][1]}- {title}: {page}\n{config[at:]}"
    raise NewError("the navigation in mkdocs.yml has no page of a part")
