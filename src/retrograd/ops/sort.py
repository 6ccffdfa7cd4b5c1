"""Sorting, selecting by order, counting: sort, topk, unique, histograms."""
