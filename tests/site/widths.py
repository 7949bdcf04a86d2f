"""A page in windows of three widths, and each only once, for all that is measured.

Its picture comes first, its kernel soon, and it has not too many words. On a phone
nothing is cut without a cue. The texts of pictures can be read.
"""

from itertools import combinations

from tests.site.visit import DESKTOP, PHONE, Visit

PARTS = ("start/", "softmax/", "attention/", "backward/", "companions/", "hopper/")
PICTURE = 1200  # pixels from the top of the page
KERNEL = 2500
REPLAY = 640  # pixels high
WORDS = 1800  # that are not folded; a formula counts as one, what stands apart as none
WIDTHS = (1440, 768, 360)
SMALLEST = 11  # pixels of a letter's size

# Everything folded, as a reader finds it.
ORDER = """() => {
    const CODE = "figure.snippet:is([data-snippet], .diff)"
    const APART = ".quiet, figure, verified-replay, math, script, style"
    const folded = [...document.querySelectorAll("article details")]
    folded.forEach(each => { each.open = false })
    const article = document.querySelector("article")
    const top = selector => {
        const found = [...article.querySelectorAll(selector)].find(
            each => each.checkVisibility())
        return found ? found.getBoundingClientRect().top + scrollY : null
    }
    const walk = document.createTreeWalker(article, NodeFilter.SHOW_TEXT)
    let words = article.querySelectorAll("math").length
    while (walk.nextNode()) {
        const parent = walk.currentNode.parentElement
        if (parent.closest(APART)) continue
        if (!parent.checkVisibility()) continue
        words += (walk.currentNode.data.match(/\\S+/g) ?? []).length
    }
    const replay = article.querySelector("verified-replay")?.getBoundingClientRect()
    const measured = {
        picture: top("figure.diagram, figure.plot, verified-replay"),
        // A page without code has no kernel to show.
        kernel: article.querySelector(CODE) ? top(CODE) : 0,
        words,
        replay: replay ? [replay.height, replay.bottom + scrollY] : [0, 0],
    }
    folded.forEach(each => { each.open = true })
    return measured
}"""
# What scrolls sideways without a shade. The code of a replay follows its line alone.
BOXES = "article *:not(verified-replay *)"
BARE = """boxes => [...document.querySelectorAll(boxes)].filter(
    box => {
        if (box.clientWidth <= 1 || box.scrollWidth <= box.clientWidth + 1) return false
        const { overflowX, backgroundImage } = getComputedStyle(box)
        return /auto|scroll/.test(overflowX) && !backgroundImage.includes("gradient")
    }
).map(box => box.outerHTML.slice(0, 200))"""
# The headers of more than one line; an open badge may have many.
TALL = """() => [...document.querySelectorAll(
    "figure.snippet > figcaption:not(:has(details))"
)].filter(header => {
    const line = parseFloat(getComputedStyle(header).lineHeight)
    return [...header.children].some(each => each.offsetHeight > 1.7 * line)
}).map(header => header.textContent)"""
# The blocks that hold part of a function and do not say so.
CUT = ".snippet-name + .snippet-wide"
SILENT = """parts => [...document.querySelectorAll(parts)].filter(
    part => !part.checkVisibility()).map(part => part.textContent)"""
# Of each picture, the text, the box and the letters' size of all that is read in it.
PICTURES = "figure.plot > svg, figure.heat"
DIAGRAMS = "article svg"
TEXTS = """pictures => [...document.querySelectorAll(pictures)].map(
    picture => [...picture.querySelectorAll(
        "text:not(:has(tspan[y])), tspan[y], th, li, td > *"
    )].filter(text => text.checkVisibility({ visibilityProperty: true })).map(text => {
        const { left, top, right, bottom } = text.getBoundingClientRect()
        const scale = text.ownerSVGElement?.getScreenCTM().a ?? 1
        const size = parseFloat(getComputedStyle(text).fontSize) * scale
        const frame = picture.getBoundingClientRect()
        const inside = left === right
            || (frame.left - 1 <= left && right <= frame.right + 1
            && frame.top - 1 <= top && bottom <= frame.bottom + 1)
        return { text: text.textContent, left, top, right, bottom, size, inside }
    }))"""


def overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    """Whether two texts do; boxes may by a few pixels, which no letter reaches."""
    left, top = (max(one[side], other[side]) for side in ("left", "top"))
    right, bottom = (min(one[side], other[side]) for side in ("right", "bottom"))
    return right - left > 1 and bottom - top > 5


def three_widths(visit: Visit) -> None:
    page, order = visit.page, {}
    tall, small, cut, over = faults = [], [], [], []
    for texts in page.evaluate(TEXTS, DIAGRAMS):
        cut += [each for each in texts if not each["inside"]]
    # Between the widest and the narrowest, only pictures are looked at.
    for width in WIDTHS if page.locator(PICTURES).count() else WIDTHS[::2]:
        page.set_viewport_size(DESKTOP | {"width": width})
        order = order or page.evaluate(ORDER)
        tall += page.evaluate(TALL)
        cut += page.evaluate(SILENT, CUT) if width > PHONE["width"] else []
        for texts in page.evaluate(TEXTS, PICTURES):
            small += [(width, each) for each in texts if each["size"] < SMALLEST]
            cut += [(width, each) for each in texts if not each["inside"]]
            pairs = combinations(texts, 2)
            over += [(width, *both) for both in pairs if overlap(*both)]
    assert page.evaluate("document.documentElement.scrollWidth") <= min(WIDTHS)
    assert page.evaluate(BARE, BOXES) == []
    assert faults == ([], [], [], [])
    if visit.path.startswith(PARTS):
        assert order["picture"] is not None
        assert order["picture"] <= PICTURE
        assert order["kernel"] is not None
        assert order["kernel"] <= KERNEL
        assert order["words"] <= WORDS
        # A replay is in sight as a whole, at once where it is the first picture.
        high, end = order["replay"]
        assert high <= REPLAY
        assert end <= PICTURE or end - high > order["picture"] + 1
