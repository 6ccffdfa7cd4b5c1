"""Joining tensors, and building larger ones from smaller ones."""
