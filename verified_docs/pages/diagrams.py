"""SVG files as inline figures that follow the page's colours."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from verified_docs.pages.errors import PageError

SVG = "{http://www.w3.org/2000/svg}"
SMALLEST = 13  # font-size, in units of a viewBox made for a phone


def render(path: Path, prefix: str) -> str:
    """The file as <figure class="diagram">, its ids starting with `prefix`.

    Raises PageError for a file that is missing or no XML, that lacks <title>,
    <desc> or viewBox, or that brings its own size, colours or small print. What else
    it may hold, the check says (prose.py).
    """
    root = _parse(path)
    for element in root.iter():
        element.tag = str(element.tag).removeprefix(SVG)
        _check(path, element)
        for key, value in element.attrib.items():
            if key == "id":
                value = prefix + value
            value = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}\1)", value)
            element.set(key, value)
    labels = []
    for tag in ("title", "desc"):
        found = root.find(tag)
        if found is None or not (found.text or "").strip():
            raise PageError(f"{path}: it has no <{tag}>")
        found.set("id", f"{prefix}{tag}")
        labels.append(f"{prefix}{tag}")
    width = float(root.get("viewBox", "").split()[2])
    root.set("role", "img")
    root.set("aria-labelledby", " ".join(labels))
    root.set("style", f"max-width: {width:g}px")
    svg = ET.tostring(root, encoding="unicode")
    scrolls = '<div class="scroll" data-search-exclude="">'
    return f'<figure class="diagram">{scrolls}{svg}</div></figure>'


def _parse(path: Path) -> ET.Element:
    try:
        root = ET.fromstring(path.read_bytes())
    except OSError as error:
        raise PageError(f"{path}: {error.strerror}") from None
    except ET.ParseError as error:
        raise PageError(f"{path}: not XML: {error}") from None
    if root.tag != f"{SVG}svg":
        raise PageError(f"{path}: its root is not <svg> in the namespace of SVG")
    if len(root.get("viewBox", "").split()) != 4:
        raise PageError(f"{path}: it has no viewBox of four numbers")
    if "width" in root.attrib or "height" in root.attrib:
        raise PageError(f"{path}: its size is the page's affair: no width or height")
    return root


def _check(path: Path, element: ET.Element) -> None:
    for key in ("fill", "stroke", "style", "stop-color"):
        value = element.get(key, "")
        if re.search(r"#[0-9a-fA-F]{3,8}\b|rgb|hsl", value):
            raise PageError(f"{path}: {key}={value!r}: use the classes for colours")
    size = element.get("font-size", "")
    if size and float(re.sub(r"[^\d.]", "", size) or 0) < SMALLEST:
        raise PageError(f"{path}: font-size={size!r} is below {SMALLEST}")
