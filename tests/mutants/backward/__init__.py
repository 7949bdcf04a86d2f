"""Bugs of the backward part."""
