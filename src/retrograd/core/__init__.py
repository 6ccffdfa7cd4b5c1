"""Tensors, the graph of recorded operations and the backward engine. Knows no particular operation."""
