"""Diagrams: inlined with ids of their own, and refused where they would not fit."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.machinery.repository import ROOT
from tests.machinery.small_site import SVG
from verified_docs.pages.diagrams import render
from verified_docs.pages.errors import PageError

FOREIGN = (
    "<style>text { font-family: monospace }</style>",
    "<script>x()</script>",
    "<foreignObject/>",
    '<image href="x.png"/>',
    '<circle onload="x()"/>',
    '<circle fill="#ff0000"/>',
    '<text style="font-family: monospace">x = 1</text>',
    '<text font-size="12">x</text>',
    '<text class="highlight">x = 1</text>',
)
ASSETS = ROOT / "docs/assets"


def figure(tmp_path: Path, text: str = SVG) -> ET.Element:
    path = tmp_path / "a.svg"
    path.write_text(text, encoding="utf-8")
    return ET.fromstring(render(path, "p-"))


def test_a_diagram_is_named_and_its_ids_move_together(tmp_path):
    svg = figure(tmp_path).find(".//svg")
    assert svg.get("role") == "img"
    assert svg.get("aria-labelledby") == "p-title p-desc"
    assert svg.find("title[@id='p-title']").text == "Ω & π"
    ids = {element.get("id") for element in svg.iter() if element.get("id")}
    assert ids == {"p-a", "p-title", "p-desc"}
    assert svg.find("circle").get("fill") == "url(#p-a)"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("<title>Ω &amp; π</title>", "<title> </title>", "it needs a <title>"),
        ("<desc>A dot in the middle.</desc>", "", "it needs a <title>, a <desc>"),
        ('viewBox="0 0 10 10"', "", "and a viewBox"),
        *(
            ("</svg>", f"{part}</svg>", "nothing that a diagram may hold")
            for part in FOREIGN
        ),
    ],
)
def test_faults(tmp_path, old, new, reason):
    text = SVG.replace(old, new)
    assert text != SVG
    with pytest.raises(PageError) as caught:
        figure(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'a.svg'}: ")
    assert reason in str(caught.value)


def test_every_class_of_a_diagram_is_in_a_stylesheet():
    styles = "".join(p.read_text("utf-8") for p in ASSETS.glob("stylesheets/*.css"))
    known = set(re.findall(r"\.([a-z][\w-]*)", styles))
    for path in ASSETS.glob("diagrams/**/*.svg"):
        for element in ET.parse(path).iter():
            unknown = set(element.get("class", "").split()) - known
            assert not unknown, f"{path.name}: {unknown}"
