"""What is published: files, their sections, how two differ."""
