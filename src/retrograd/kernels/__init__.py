"""Numerical kernels: functions of arrays that compute the results and gradients of operations, without tensors.

Each module holds the kernels of one group of operations.
"""
