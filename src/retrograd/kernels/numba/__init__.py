"""Loops compiled by Numba: functions that read arrays and write their results to arrays, one module for each topic.

The modules are imported only if Numba is installed (``kernels/numba_dispatch.py``).
"""
