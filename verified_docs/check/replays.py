"""Replays: recorded from the files of now, their description among them.

That each is on a page, with its formulas, is for tests/replays to see.
"""

from collections.abc import Iterator

from verified_docs import layout
from verified_docs.check.site import Finding, Site
from verified_docs.evidence import records


def check(site: Site) -> Iterator[Finding]:
    """Replays whose files have changed, or that are of other files."""
    folder = site.root / layout.REPLAYED
    for path in sorted(folder.rglob("*.json")):
        name = path.relative_to(folder).with_suffix(".py").as_posix()
        own = dict.fromkeys((layout.snippet_file(name), layout.replay_file(name)), "")
        known = records.replay(path)["manifest"]
        if changed := records.changed(site.root, own | known):
            reason = f"recorded before these changed: {', '.join(changed)}"
            reason += "; run `pytest tests/replays`"
            yield Finding(site.relative(path), 1, reason)
