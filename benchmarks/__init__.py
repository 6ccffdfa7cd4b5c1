"""Programs measured on retrograd, on another tree of it and on PyTorch, in turn. See ``python -m benchmarks --help``."""
