"""Bugs of the start part."""
