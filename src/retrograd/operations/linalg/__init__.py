"""Linear algebra: matrix products, decompositions, linear systems, norms and ``einsum``."""
