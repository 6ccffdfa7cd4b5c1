"""All of linear algebra in one place, for those who need a bit of it: it is written in the files named here."""

from .checks import LinAlgError
from .eigen_svd import eig, eigh, eigvals, eigvalsh, lobpcg, pca_lowrank, svd, svd_lowrank, svdvals
from .einsum import einsum, inner, tensordot
from .factorizations import (
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
from .matmul import (
    addbmm,
    addmm,
    addmv,
    addr,
    baddbmm,
    bmm,
    chain_matmul,
    cross,
    dot,
    kron,
    matmul,
    mm,
    multi_dot,
    mv,
    outer,
    vdot,
)
from .norms import cond, diagonal, matrix_exp, matrix_norm, matrix_power, matrix_rank, norm, vander, vecdot
from .solve import (
    inv,
    inv_ex,
    linalg_det,
    linalg_slogdet,
    lstsq,
    pinv,
    solve,
    solve_ex,
    solve_triangular,
    tensorinv,
    tensorsolve,
)

__all__ = [
    "LinAlgError", "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "chain_matmul", "cholesky",
    "cholesky_ex", "cond", "cross", "diagonal", "dot", "eig", "eigh", "eigvals", "eigvalsh", "einsum",
    "householder_product", "inner", "inv", "inv_ex", "kron", "ldl_factor", "ldl_factor_ex", "ldl_solve", "linalg_det",
    "linalg_slogdet", "lobpcg", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp",
    "matrix_norm", "matrix_power", "matrix_rank", "mm", "multi_dot", "mv", "norm", "outer", "pca_lowrank", "pinv", "qr",
    "solve", "solve_ex", "solve_triangular", "svd", "svd_lowrank", "svdvals", "tensordot", "tensorinv", "tensorsolve",
    "vander", "vdot", "vecdot",
]  # fmt: skip
