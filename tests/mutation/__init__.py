"""Mutation testing of the derivative rules, the backward engine and the views: ``python -m tests.mutation``."""
