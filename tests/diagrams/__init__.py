"""What the tests of the diagrams share."""

import xml.etree.ElementTree as ET

from tests.machinery.repository import ROOT

DIAGRAMS = ROOT / "docs/assets/diagrams"


def rectangles(name: str) -> list[tuple[float, float]]:
    """Width and height of each, without those of patterns."""
    rects = ET.parse(DIAGRAMS / name).getroot().findall("{*}rect")
    return [(float(r.get("width")), float(r.get("height"))) for r in rects]
