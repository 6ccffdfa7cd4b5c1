"""Indexing and assignment, gather and scatter."""
