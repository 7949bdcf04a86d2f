"""Every kind of fence a page may hold, and nothing else.

Each function gets the site, the body of the fence and its options, and returns HTML.
"""

from collections.abc import Callable, Mapping
from html import escape
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from verified_docs import layout
from verified_docs.code import snippets
from verified_docs.code.sections import Section
from verified_docs.code.snippets import Snippet
from verified_docs.evidence.status import Evidence, short
from verified_docs.pages import (
    archive,
    badges,
    claims,
    diagrams,
    figures,
    heatmap,
    highlight,
    ladder,
    measurements,
    notebook,
    plots,
    replays,
    sources,
    stills,
    timeline,
)
from verified_docs.pages.errors import PageError
from verified_docs.pages.site import Site
from verified_docs.pages.style import Style


def include(site: Site, body: str, options: Mapping[str, str]) -> str:
    """Code from a snippet: the body is the line --8<-- "softmax/online.py:kernel"."""
    match = layout.INCLUDE.fullmatch(body.strip())
    if not match:
        wanted = 'the body is --8<-- "part/name.py:section"'
        given = repr(body.strip()[:60])
        raise PageError(f"code comes from snippets: {wanted}, not {given}")
    snippet, section = site.evidence.resolve(match[1])
    lines = [*highlight.highlight(section.text, "python", site.identifiers)]
    for name, span in section.marks.items():
        lines[span.start] = f'<span data-line="{name}">{lines[span.start]}'
        lines[span[-1]] += "</span>"
    status = site.evidence.status(snippet.name)
    # Its facts once for each file on a page, then a link to them.
    badge = badges.again(status)
    if snippet.name not in site.badged:
        site.badged.add(snippet.name)
        badge = badges.render(status, site.base, site.published, anchor=True)
    about = f"{snippet.name}, {section.name}" if section.name else snippet.name
    file, count = _taken(site, snippet.name)
    alone = count == 1
    download = "Download" if alone else f"Download {count} files"
    actions = (
        _copy("block", "Copy", about),
        _copy("file", "Copy file", snippet.name) if alone else "",
        f'<a download class="snippet-wide" href="{file}" '
        f'aria-label="{download}: {escape(snippet.name)}">{download}</a>',
        f'<a class="snippet-widest" href="{site.base}LICENSE.txt" '
        'aria-label="MIT License">MIT</a>',
    )
    cut = f'<span class="snippet-wide">part of <code>{section.cut}</code></span>'
    return (
        f'<figure class="snippet" data-snippet="{escape(snippet.name)}" '
        f'data-section="{section.name}" '
        f'data-lines="{" ".join(map(str, section.numbers))}" '
        f"data-search-exclude><figcaption>"
        f"{_name(snippet, section)}{cut if section.cut else ''}"
        f"{badge}{_actions(*actions)}"
        f"</figcaption>{_code(lines, 'python')}</figure>"
    )


def taken(site: Site, text: str) -> str:
    """A file to download or copy; one that imports others is a module in a zip.

    After "| badge" it has one, which leads to that of the file's block on the page.
    """
    name, _, more = (part.strip() for part in text.partition("|"))
    if more not in ("", "badge"):
        raise PageError("it is written {file: part/name.py | badge}")
    status = site.evidence.status(name)
    if status.snippet.wrong:
        raise PageError("a file that is wrong on purpose is not for taking")
    file, count = _taken(site, name)
    if count > 1:
        module = f"<code>{figures.breakable(layout.module(name))}</code>"
        shown = f'{module} in <a download href="{file}">a zip of {count} files</a>'
    else:
        shown = (
            f'<a download href="{file}">{PurePosixPath(name).name}</a> '
            f"{_actions(_copy('file', 'Copy', name))}"
        )
    shown += f" {badges.again(status)}" if more else ""
    return f'<span class="file" data-file="{escape(name)}">{shown}</span>'


def _taken(site: Site, name: str) -> tuple[str, int]:
    """The address of a snippet with all that it imports, and how many files that is."""
    count = len(archive.together(site.evidence.root, name))
    file = layout.zip_file(name) if count > 1 else layout.snippet_file(name)
    return escape(site.base + file), count


def diff(site: Site, body: str, options: Mapping[str, str]) -> str:
    """The computed difference of two sections or files, `from` and `to`."""
    sides = [site.evidence.resolve(options[key]) for key in ("from", "to")]
    old, new = (section.text for _, section in sides)
    if old == new:
        raise PageError(f"{options['from']} and {options['to']} do not differ")
    before, after = (
        highlight.highlight(text, "python", site.identifiers) for text in (old, new)
    )
    shown = {"-": before, "+": after, " ": after}
    tags = {"-": "del", "+": "ins", " ": "span"}
    lines: list[str] = []
    count = {"-": 0, "+": 0, " ": 0}
    for hunk in snippets.hunks(old.split("\n")[:-1], new.split("\n")[:-1]):
        if lines:
            lines.append('<span class="diff-gap">@@\n</span>')
        for sign, _, n in hunk:
            lines.append(f"<{tags[sign]}>{sign}{shown[sign][n]}</{tags[sign]}>")
            count[sign] += 1
    names = " to ".join(f"{_name(*side)}" for side in sides)
    about = f"difference from {options['from']} to {options['to']}"
    return (
        f'<figure class="snippet diff" data-from="{escape(options["from"])}" '
        f'data-to="{escape(options["to"])}" data-search-exclude><figcaption>'
        f'<span class="snippet-name">From {names}</span>'
        f'<span class="snippet-count">{_lines(count["-"])} removed, '
        f"{_lines(count['+'])} added</span>"
        f"{_actions(_copy('block', 'Copy difference', about))}</figcaption>"
        f"{_code(lines, 'diff')}</figure>"
    )


def output(site: Site, body: str, options: Mapping[str, str]) -> str:
    """What the demo of the snippet `from` printed when its tests ran."""
    name = escape(options["from"])
    run = site.evidence.quote(options["from"])
    local = site.evidence.status(options["from"]).interpreter
    if local and local.fresh and not (run and run.fresh):
        run = local
    what = f"Output of <code>{name}</code>"
    if run is None:
        return f'<p class="no-record">{what}: not yet recorded</p>'
    where = short(run.gpu) or badges.INTERPRETER
    stale = "" if run.fresh else " (stale: the file has changed since)"
    text = run.entry.output.rstrip("\n") + "\n"
    made = f'data-output="{name}" data-record="{escape(run.folder)}"'
    return _printed(made, f"{what} on {escape(where)}{stale}", text)


def _printed(made: str, facts: str, text: str) -> str:
    return (
        f'<figure class="snippet output" {made}><figcaption>'
        f'<span class="snippet-name">{facts}</span></figcaption>'
        f"{_code([escape(text, quote=False)], 'text')}</figure>"
    )


def cell(site: Site, body: str, options: Mapping[str, str]) -> str:
    """What the cell `id` of a notebook printed when the notebook last ran."""
    name, cell = options["notebook"], options["id"]
    text, run = notebook.output(site.evidence.root / "docs" / name, cell)
    facts = escape(f"Output, with PyTorch {run['torch']} on a CPU, {run['date']}")
    made = f'data-notebook="{escape(name)}" data-cell="{escape(cell)}"'
    return _printed(made, facts, text)


def to_run(site: Site, body: str, options: Mapping[str, str]) -> str:
    """Where to get the notebook that the body names: here, from GitHub into Colab."""
    name = f"{layout.NOTEBOOKS}/{body.strip()}"
    links = [
        f'<a class="md-button" download href="{site.base}{escape(name)}">'
        "Download the notebook</a>"
    ]
    host, path = urlsplit(site.repository)[1:3]
    if host == "github.com":
        colab = f"https://colab.research.google.com/github{path}/blob/main/{name}"
        links.append(f'<a class="md-button" href="{escape(colab)}">Open in Colab</a>')
    return f"<p>{' '.join(links)}</p>"


def svg(site: Site, body: str, options: Mapping[str, str]) -> str:
    """The diagram in the file that the body names, relative to docs/assets."""
    name = body.strip()
    path = site.evidence.root / "docs" / "assets" / name
    return diagrams.render(path, name.removesuffix(".svg").replace("/", "-") + "-")


def roofline(site: Site, body: str, options: Mapping[str, str]) -> str:
    """The roofline of the named roofs, with a kernel that the reader moves on it."""
    record = site.evidence.benchmark(options["record"])
    ceilings = record.data["ceilings"] if record else {}
    measured = {key: ceilings.get(key) for key in ("copy", "matmul")}
    roofs = {key: options[key] for key in ("bandwidth", "fp32", "bf16")}
    data = {key: str(value) for key, value in {**roofs, **measured}.items() if value}
    gpu = record.gpu if record else site.evidence.quoted
    source = figures.stated(
        f"{options['source']} | {options['source']}", site.works, site.base
    )
    caption = (
        f"<figcaption>Roofs: {source}. Dashed: a copy and a product, measured "
        f"on {escape(gpu)}.</figcaption>"
    )
    return stills.slider("verified-roofline", data, caption)


def confirm(site: Site, body: str, options: Mapping[str, str]) -> str:
    """A form that hashes a snippet in the browser and compares it with the records."""
    names = layout.names(site.evidence.root)
    choices = "".join(f"<option>{escape(name)}</option>" for name in names)
    return (
        f'<form class="confirm" data-records="{" ".join(site.evidence.verification)}" '
        'data-search-exclude><label for="confirm-snippet">File</label> '
        f'<select id="confirm-snippet" name="snippet">{choices}</select> '
        '<button name="check" disabled>Check</button>'
        '<output for="confirm-snippet"></output></form>'
    )


def console(site: Site, body: str, options: Mapping[str, str]) -> str:
    """Commands to type: the one kind of fence that holds text of its own."""
    lines = highlight.highlight(body.rstrip("\n") + "\n", "console")
    return (
        '<figure class="snippet plain" data-language="console">'
        f"{_actions(_copy('plain', 'Copy', 'commands'))}"
        f"{_code(lines, 'console')}</figure>"
    )


def rest_on(site: Site, body: str, options: Mapping[str, str]) -> str:
    """What the page's words that compare rest on, in a fold."""
    site.claims |= claims.read(site.evidence, body)
    return claims.listed(site.claims, site.base)


Fence = Callable[[Site, str, Mapping[str, str]], str]


def recorded(shown: Callable[[Evidence, Style, str, str], str]) -> Fence:
    """A fence that shows a list of a benchmark's record, or that it is to come."""

    def fence(site: Site, body: str, options: Mapping[str, str]) -> str:
        try:
            return shown(site.evidence, site.style, body, site.base)
        except figures.NotYet:
            title = escape(sources.settings(body).get("title", "Measurements"))
            return f'<p class="no-record">{title}: {figures.unmeasured()}</p>'

    return fence


# The kinds: what makes the HTML, and the options.
FENCES: dict[str, tuple[Fence, tuple[str, ...]]] = {
    "python": (include, ()),
    "diff": (diff, ("from", "to")),
    "output": (output, ("from",)),
    "cell": (cell, ("notebook", "id")),
    "notebook": (to_run, ()),
    "svg": (svg, ()),
    # A recorded run of a kernel, which can be stepped through.
    "replay": (lambda site, body, _: replays.render(site, body), ()),
    # Softmax in four formats, with a shift that the reader moves.
    "shift": (lambda *_: stills.slider("verified-shift", {}), ()),
    "roofline": (roofline, ("record", "bandwidth", "fp32", "bf16", "source")),
    # Of a benchmark's record: lines, two groups of kernels shape by shape, what a clock
    # inside the kernels measured, a table.
    "plot": (recorded(plots.plot), ()),
    "heatmap": (recorded(heatmap.heatmap), ()),
    "timeline": (recorded(timeline.render), ()),
    "measurements": (recorded(measurements.table), ()),
    "claims": (rest_on, ()),
    # Every snippet, with what was and what was not tried on which GPU.
    "verification": (lambda s, *_: badges.table(s.statuses(), s.base, s.published), ()),
    "confirm": (confirm, ()),
    # The pages of the navigation that are rungs.
    "ladder": (lambda s, *_: ladder.render(s.navigation, s.base), ()),
    # What stands behind the site, in figures.
    "proof": (lambda s, *_: badges.proof(s.statuses(), s.evidence.caught), ()),
    "console": (console, ()),
}
# Those that have a body; of the others it is computed.
WRITTEN = {"python", "notebook", "svg", "replay", "console"}
WRITTEN |= {"plot", "heatmap", "timeline", "measurements", "claims"}


def render(site: Site, language: str, body: str, options: Mapping[str, str]) -> str:
    """The HTML of a fence. Raises PageError, or what its kind raises."""
    if language not in FENCES:
        what = f"a fence in {language!r}" if language else "a fence without a language"
        raise PageError(f"{what} is not published; the kinds are: {', '.join(FENCES)}")
    function, wanted = FENCES[language]
    if sorted(options) != sorted(wanted):
        given = " ".join(f'{key}="..."' for key in wanted) or "no options"
        raise PageError(f"a {language} fence takes {given}, not {', '.join(options)}")
    if body.strip() and language not in WRITTEN:
        raise PageError(f"its body is computed; it holds {body.strip()[:60]!r}")
    return function(site, body, options)


def _name(snippet: Snippet, section: Section) -> str:
    part = f' <span class="snippet-section snippet-wide">{section.name}</span>'
    folder, _, file = escape(snippet.name).rpartition("/")
    return (
        f'<span class="snippet-name"><code><span class="snippet-wide">{folder}/</span>'
        f"{file}</code>"
        f"{part if section.name else ''}</span>"
    )


def _actions(*actions: str) -> str:
    """What the reader can do with a block; the words are no matter for the search."""
    shown = "".join(actions)
    return f'<span class="snippet-actions" data-search-exclude>{shown}</span>'


def _copy(action: str, text: str, about: str) -> str:
    """A button; hidden until the script that makes it work is there."""
    return (
        f'<button type="button" data-copy="{action}" '
        f'aria-label="{escape(f"{text}: {about}")}" hidden>{text}</button>'
    )


def _lines(count: int) -> str:
    return f"{count} line{'s' * (count != 1)}"


def _code(lines: list[str], language: str) -> str:
    return (
        f'<div class="highlight"><pre><code class="language-{escape(language)}">'
        f"{''.join(lines)}</code></pre></div>"
    )
