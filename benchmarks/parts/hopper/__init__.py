"""The lists of the Hopper part: a product of matrices, and attention forward."""
