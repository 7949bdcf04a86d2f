"""Bugs of the attention part."""
