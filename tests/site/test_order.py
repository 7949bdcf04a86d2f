"""A page of the course: its picture first, its kernel soon, and not too many words."""

import pytest

from tests.site.visit import DESKTOP, Visit

PARTS = ("start/", "softmax/", "attention/", "backward/", "companions/")
SCREEN = {"width": 1440, "height": 900}
PICTURE = 1200  # pixels from the top of the page
KERNEL = 2500
WORDS = 1800  # that are not folded; a formula counts as one, what stands apart as none

# Everything folded, as a reader finds it.
MEASURE = """() => {
    const APART = ".quiet, figure, verified-replay, .katex, script, style"
    const folded = [...document.querySelectorAll("article details")]
    folded.forEach(each => { each.open = false })
    const article = document.querySelector("article")
    const top = selector => {
        const found = [...article.querySelectorAll(selector)].find(
            each => each.checkVisibility())
        return found ? found.getBoundingClientRect().top + scrollY : null
    }
    const walk = document.createTreeWalker(article, NodeFilter.SHOW_TEXT)
    let words = article.querySelectorAll(".katex").length
    while (walk.nextNode()) {
        const parent = walk.currentNode.parentElement
        if (parent.closest(APART)) continue
        if (!parent.checkVisibility()) continue
        words += (walk.currentNode.data.match(/\\S+/g) ?? []).length
    }
    const measured = {
        picture: top("figure.diagram, figure.plot, verified-replay"),
        kernel: top("figure.snippet[data-snippet]"),
        words,
    }
    folded.forEach(each => { each.open = true })
    return measured
}"""


def test_picture_kernel_and_words(visit: Visit) -> None:
    if not visit.path.startswith(PARTS):
        pytest.skip("no page of the course")
    visit.page.set_viewport_size(SCREEN)
    measured = visit.page.evaluate(MEASURE)
    visit.page.set_viewport_size(DESKTOP)
    assert measured["picture"] is not None
    assert measured["picture"] <= PICTURE
    assert measured["kernel"] is None or measured["kernel"] <= KERNEL
    assert measured["words"] <= WORDS
