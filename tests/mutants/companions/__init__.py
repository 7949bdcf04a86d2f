"""Bugs of the companions part."""
