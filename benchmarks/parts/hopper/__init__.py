"""What the lists of Hopper share: nothing yet."""
