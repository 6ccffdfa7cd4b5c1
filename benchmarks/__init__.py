"""Benchmarks of retrograd beside another source tree of it and PyTorch. See ``python -m benchmarks --help``."""
