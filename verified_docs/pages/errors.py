"""The error that stops a build."""

from pymdownx.superfences import SuperFencesException

try:
    from mkdocs.exceptions import BuildError
except ImportError:  # Another builder, which reports exceptions in its own way.
    BuildError = Exception  # type: ignore[assignment, misc]


class PageError(SuperFencesException, BuildError):
    """A page that cannot be built, with the reason.

    Superfences swallows every exception but its own. MkDocs reports a BuildError with
    the name of the page and without a traceback.
    """
