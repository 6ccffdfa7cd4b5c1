"""Loops compiled by Numba, one file for each subject.

The files are imported only where Numba is installed (``kernels/numba_dispatch.py``).
"""
