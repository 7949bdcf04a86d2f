"""Bugs of the softmax part."""
