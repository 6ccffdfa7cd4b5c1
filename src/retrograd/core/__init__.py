"""Tensors, the graph and the backward engine. Knows no operation."""
