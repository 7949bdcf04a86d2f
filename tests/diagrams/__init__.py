"""What the tests of the diagrams share: how a drawing is read."""

import xml.etree.ElementTree as ET

from tests.machinery.repository import ROOT


def drawing(name: str) -> ET.Element:
    """The root of a diagram."""
    return ET.parse(ROOT / "docs/assets/diagrams" / name).getroot()


def numbers(element: ET.Element, *names: str) -> list[float]:
    """These attributes of an element."""
    return [float(element.get(name)) for name in names]


def texts(root: ET.Element) -> list[tuple[float, float, str]]:
    """Where each text stands, x and y, and its words."""
    found = root.findall("{*}text")
    return [(*numbers(text, "x", "y"), "".join(text.itertext())) for text in found]


def rectangles(name: str) -> list[list[float]]:
    """Width and height of each, without those of patterns."""
    return [numbers(r, "width", "height") for r in drawing(name).findall("{*}rect")]
