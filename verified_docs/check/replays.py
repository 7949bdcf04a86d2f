"""Replays: recorded from the files of now, their description among them.

That each is on a page, with its formulas, is for tests/replays to see.
"""

import json
from collections.abc import Iterator

from verified_docs import layout
from verified_docs.check.site import Finding, Site
from verified_docs.evidence import records


def check(site: Site) -> Iterator[Finding]:
    """Replays whose files have changed."""
    for path in sorted((site.root / layout.REPLAYED).rglob("*.json")):
        record = json.loads(path.read_text("utf-8"))
        if changed := records.changed(site.root, record["manifest"]):
            reason = f"recorded before these changed: {', '.join(changed)}"
            reason += "; run `pytest tests/replays`"
            yield Finding(site.relative(path), 1, reason)
