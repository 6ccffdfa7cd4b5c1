"""Tensors, the graph of recorded operations, and the backward engine; no operation is defined here."""
