"""The classes of nested tensors and their functions."""
