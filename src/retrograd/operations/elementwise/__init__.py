"""Elementwise operations: arithmetic, comparisons, rounding, elementary and special functions."""
