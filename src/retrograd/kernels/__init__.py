"""Numerical kernels: functions that compute results from arrays and know nothing of tensors or gradients' graphs.

Each module holds the kernels of one group of operations.
"""
