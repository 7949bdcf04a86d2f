"""Colours of text and of lines have the contrast of WCAG AA on what they stand on."""

import re

import pytest
from mkdocs.config import load_config

from tests.machinery.repository import ROOT
from verified_docs.pages.drawing import MARKERS
from verified_docs.pages.hooks import EXTENSION

CSS = ROOT / "docs/assets/stylesheets/colours.css"
SCHEME = re.compile(r'\[data-md-color-scheme(?:="(\w+)")?\] \{(.*?)\n *\}', re.DOTALL)
COLOUR = re.compile(r"(--[\w-]+):\s*(#[0-9a-f]{6})\b")
SCHEMES = {
    name or "default": dict(COLOUR.findall(colours))
    for name, colours in SCHEME.findall(CSS.read_text())
}
PAGE = ["--md-default-bg-color", "--md-code-bg-color"]
LINES = ["--added", "--removed", "--marked"]
# Those that axe-core does not judge on the pages: what changes under a pointer, and
# lines of plots.
BACKGROUNDS = {
    r"--md-code-(fg|hl-\w+)-color|--t-\w+": PAGE + LINES,
    r"--md-typeset-a-color|--md-accent-fg-color": PAGE,
    r"--md-accent-bg-color": ["--md-accent-fg-color", "--md-typeset-a-color"],
    r"--series-\d+": PAGE[:1],
}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    r, g, b = (
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    )
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_both_schemes_have_the_same_colours():
    assert set(SCHEMES) == {"default", "slate"}
    assert SCHEMES["default"].keys() == SCHEMES["slate"].keys()


def test_each_kernel_has_a_colour_and_a_marker_that_there_are():
    plots = load_config(str(ROOT / "mkdocs.yml")).mdx_configs[EXTENSION]["plots"]
    for colour, marker in plots["kernels"].values():
        assert f"--series-{colour}" in SCHEMES["slate"]
        assert marker in MARKERS


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("pattern", BACKGROUNDS)
def test_contrast(scheme, pattern):
    colours = SCHEMES[scheme]
    texts = [name for name in colours if re.fullmatch(pattern, name)]
    assert texts
    poor = {
        (text, ground): round(ratio, 2)
        for text in texts
        for ground in BACKGROUNDS[pattern]
        if (ratio := contrast(colours[text], colours[ground])) < 4.5
    }
    assert poor == {}
