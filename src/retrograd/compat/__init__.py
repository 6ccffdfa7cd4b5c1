"""Compatibility with PyTorch: missing names, lazy imports, pickle names, type names. Knows names only."""
