"""Loops that Numba compiles, a file for each topic. Imported only where there is Numba (see ``kernels/numba_dispatch.py``)."""
