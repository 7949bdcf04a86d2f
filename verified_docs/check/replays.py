"""Replays: recorded from the files of now, and shown."""

import json
from collections.abc import Iterator
from typing import Any

from verified_docs import layout
from verified_docs.check.site import Finding, Site
from verified_docs.evidence import records

ANEW = "run `pytest tests/replays`"


def check(site: Site) -> Iterator[Finding]:
    """Every described replay is recorded, fresh and on a page, and no other is."""
    known = {layout.replay_record(name): name for name in layout.replayed(site.root)}
    data = {
        site.relative(path): json.loads(path.read_text("utf-8"))
        for path in sorted((site.root / layout.REPLAYED).rglob("*.json"))
    }
    shown = on_pages(site, data)
    for path, name in known.items():
        if path not in data:
            reason = f"its replay is not recorded: {ANEW}"
            yield Finding(layout.replay_file(name), 1, reason)
    for path, record in data.items():
        changed = records.changed(site.root, record["manifest"])
        if path not in known:
            yield Finding(path, 1, "a replay that nothing in tests/replays describes")
        elif changed:
            reason = f"recorded before these changed: {', '.join(changed)}; {ANEW}"
            yield Finding(path, 1, reason)
        if path in known and known[path] not in shown:
            yield Finding(path, 1, "no page shows this replay")


def on_pages(site: Site, data: dict[str, dict[str, Any]]) -> set[str]:
    """The snippets whose replays are shown, alone or beside another one."""
    nodes = (node for page in site.pages for node in page.root.css("verified-replay"))
    shown = {node.attrs.sget("snippet") for node in nodes}
    compared = (each["compare"] for each in data.values() if "compare" in each)
    return shown | {each["snippet"] for each in compared}
