"""`python -m verified_docs.pages.policy SITE`: what the built pages may load and run.

A Content-Security-Policy in each page: everything comes from the site's own host, and
of the scripts in the page those of the theme may run, by their hashes. The article is
an author's, so none of its scripts may. `make serve` builds without it, because its
live reload is a script of its own.
"""

import base64
import hashlib
import re
import sys
from pathlib import Path

# Firefox asks the default for the next page, which it fetches before it is wanted.
RULES = (
    "default-src 'self'; frame-src 'none'; media-src 'none'; object-src 'none'; "
    "manifest-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; script-src 'self'"
)
# What may stand before a policy: nothing that loads or runs.
START = re.compile(
    r'\s*<!doctype html>\s*<html[^>]*>\s*<head>\s*<meta charset="utf-8">', re.IGNORECASE
)
META = '<meta http-equiv="Content-Security-Policy" content="{}">'
INLINE = re.compile(r"<script(?![^>]*\s(?:src|type)=)[^>]*>(.*?)</script>", re.DOTALL)


def policy(page: str) -> str:
    """The policy of a page."""
    before, _, rest = page.partition("<article")
    scripts = INLINE.findall(before) + INLINE.findall(rest.rpartition("</article>")[2])
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = (f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return " ".join([RULES, *dict.fromkeys(hashes)])


def apply(site: Path) -> None:
    """Write its policy into every page of the site.

    Raises ValueError where that would not have the first word.
    """
    for path in sorted(site.rglob("*.html")):
        page = path.read_text(encoding="utf-8")
        if not (start := START.match(page)):
            raise ValueError(f"{path}: no page may begin like this")
        meta = META.format(policy(page))
        page = page[: start.end()] + meta + page[start.end() :]
        path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    apply(Path(sys.argv[1]))
