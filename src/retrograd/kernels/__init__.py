"""Numerical kernels: functions that compute the results and gradients of operations on NumPy or CuPy arrays.

The kernels do not use tensors. Each module holds the kernels of related operations, such as convolution or sorting.
"""
