"""What the interpreter accepts, the compiler accepts too."""
