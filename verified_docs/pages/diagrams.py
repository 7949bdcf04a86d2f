"""SVG files as inline figures that follow the page's colours."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from verified_docs.pages.errors import PageError

SVG = "{http://www.w3.org/2000/svg}"
# What a diagram is made of: it brings neither a font nor a colour, script or document.
SHAPES = re.compile(
    "svg|title|desc|defs|pattern|g|rect|circle|line|path|polygon|text|tspan"
)
SHAPED = re.compile(
    r"(?:c[xy]|d|dy|(?:fill|stroke)-opacity|font-(?:style|weight)|height|id"
    r"|patternUnits|points|rx?|stroke-(?:dasharray|width)|text-anchor|transform"
    r"|viewBox|width|[xy][12]?)=.*"
    r"|class=(?:(?:accent|ink|line|soft|stroke|t-[a-z]+|warn)\s*)+"
    r"|fill=(?:none|url\(#[\w-]+\))"
    r"|font-size=(?:1[3-9]|[2-9]\d)",  # In units of a viewBox made for a phone.
    re.DOTALL,
)


def render(path: Path, prefix: str) -> str:
    """The file as <figure class="diagram">, its ids starting with `prefix`.

    Raises PageError for a file that lacks <title>, <desc> or viewBox, or has what no
    diagram may have, and what ET.parse raises.
    """
    root = ET.parse(path).getroot()
    width, labels = root.get("viewBox", "").split()[2:3], []
    for element in root.iter():
        element.tag = str(element.tag).removeprefix(SVG)
        held = [f"{name}={value}" for name, value in element.items()]
        if not (SHAPES.fullmatch(element.tag) and all(map(SHAPED.fullmatch, held))):
            told = " ".join([element.tag, *held])
            raise PageError(f"{path}: nothing that a diagram may hold: {told}")
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
