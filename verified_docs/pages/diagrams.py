"""SVG files as inline figures that follow the page's colours."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from verified_docs.pages.errors import PageError

SVG = "{http://www.w3.org/2000/svg}"


def render(path: Path, prefix: str) -> str:
    """The file as <figure class="diagram">, its ids starting with `prefix`.

    Raises PageError for a file that lacks <title>, <desc> or viewBox, or has its own
    colours, and what ET.parse raises. What else it may hold, the check says (prose.py).
    """
    root = ET.parse(path).getroot()
    width, labels = root.get("viewBox", "").split()[2:3], []
    for element in root.iter():
        element.tag = str(element.tag).removeprefix(SVG)
        if element.get("fill", "").startswith("#"):
            raise PageError(f"{path}: it has colours of its own: use the classes")
        for key, value in element.attrib.items():
            if key == "id":
                value = prefix + value
            value = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}\1)", value)
            element.set(key, value)
    for tag in ("title", "desc"):
        found = root.find(tag)
        if found is None or not (found.text or "").strip() or not width:
            raise PageError(f"{path}: it needs a <title>, a <desc> and a viewBox")
        found.set("id", f"{prefix}{tag}")
        labels.append(f"{prefix}{tag}")
    root.set("role", "img")
    root.set("aria-labelledby", " ".join(labels))
    root.set("style", f"max-width: {width[0]}px")
    svg = ET.tostring(root, encoding="unicode")
    scrolls = '<div class="scroll" data-search-exclude="">'
    return f'<figure class="diagram">{scrolls}{svg}</div></figure>'
