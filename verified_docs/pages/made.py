"""What the machinery made, as the check knows it.

The check builds the site once more, with a secret word as the option `mark`. In that
build, and in no other, whatever a fence, a directive or a formula became carries in
`data-made` the word and the text that it was made from. An author cannot type that.
"""

import json
import re
from html import escape

END = "<div data-end hidden></div>"


def marked(html: str, mark: str, *source: object) -> str:
    """The element with what it was made from, in a build with a mark."""
    if not mark:
        return html
    made = escape(json.dumps([mark, *source], ensure_ascii=False))
    return re.sub(r"<[\w-]+", lambda tag: f'{tag[0]} data-made="{made}"', html, count=1)


def unmarked(html: str, mark: str) -> str:
    """A page as it is in a build without a mark."""
    return re.sub(rf' data-made="\[&quot;{mark}&quot;[^"]*"', "", html)
