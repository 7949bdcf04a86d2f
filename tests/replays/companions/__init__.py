"""Replays of the companions part."""
