"""Numerical kernels: functions from arrays to arrays that do not know Tensor, one module for each subject."""
