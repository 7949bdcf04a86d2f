"""The lists of the Hopper part: products of matrices, and attention both ways."""
