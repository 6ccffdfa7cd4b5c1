"""The same programs on retrograd and on PyTorch, in turn, and the table of their times. ``python -m benchmarks --help``."""
