"""Tests: of the snippets, of the machinery that publishes them, of the built site."""
