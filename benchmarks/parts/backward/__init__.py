"""What is timed of the backward pass of attention."""
