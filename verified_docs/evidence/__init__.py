"""What was seen: the machine, the records that tests write, what they say of a file."""
