"""The lists of what stands around attention."""
