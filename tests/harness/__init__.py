"""What the tests of the snippets lean on: accuracy, poison, guards, bounds."""
