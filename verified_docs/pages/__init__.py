"""The Python-Markdown extension: what a page shows."""
