"""Loops compiled by Numba: functions that read arrays and write their results to arrays, one module for each subject.

The files are imported only where Numba is installed (``kernels/numba_dispatch.py``).
"""
