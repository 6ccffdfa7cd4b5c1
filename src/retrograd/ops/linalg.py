"""Linear algebra: products, norms of matrices, inverses, solves."""
