"""Programs in the structure of public tutorials; each runs unchanged under PyTorch, and prints the same."""
