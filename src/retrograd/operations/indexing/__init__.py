"""Indexing with ``[]`` and index tensors, masks, searching and sorting."""
