"""Compatibility with PyTorch: missing names, lazy imports, names in pickles, names of types."""
