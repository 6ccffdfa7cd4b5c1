"""Linear algebra, as ``torch.linalg``."""

from .dispatch.declare import publish
from .operations.linalg.checks import LinAlgError
from .operations.linalg.eigen_svd import eig, eigh, eigvals, eigvalsh, svd, svdvals
from .operations.linalg.factorizations import (
    cholesky,
    cholesky_ex,
    householder_product,
    ldl_factor,
    ldl_factor_ex,
    ldl_solve,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    qr,
)
from .operations.linalg.matmul import cross, matmul, multi_dot
from .operations.linalg.norms import (
    cond,
    diagonal,
    matrix_exp,
    matrix_norm,
    matrix_power,
    matrix_rank,
    norm,
    vander,
    vecdot,
)
from .operations.linalg.solve import inv, inv_ex, lstsq, pinv, solve, solve_ex, solve_triangular, tensorinv, tensorsolve
from .operations.linalg.solve import linalg_det as det
from .operations.linalg.solve import linalg_slogdet as slogdet
from .operations.reductions.sums import vector_norm

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor",
    "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm",
    "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve",
    "vander", "vecdot", "vector_norm",
]  # fmt: skip
publish(globals(), "linalg")
