"""The error that stops a build."""

from mkdocs.exceptions import BuildError
from pymdownx.superfences import SuperFencesException


class PageError(SuperFencesException, BuildError):
    """A page that cannot be built, with the reason.

    Superfences swallows every exception but its own. MkDocs reports a BuildError with
    the name of the page and without a traceback.
    """
