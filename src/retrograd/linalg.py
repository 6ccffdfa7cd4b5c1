"""Linear algebra, as ``torch.linalg``."""

from .core.absent import absent
from .ops.linalg import (
    LinAlgError,
    cross,
    det,
    inv,
    matmul,
    matrix_norm,
    matrix_power,
    multi_dot,
    norm,
    slogdet,
    solve,
    svdvals,
    vecdot,
)
from .ops.reduce import vector_norm
from .ops.shape import diagonal
from .ops.table import publish

__all__ = [
    "LinAlgError", "cross", "det", "diagonal", "inv", "matmul", "matrix_norm", "matrix_power", "multi_dot", "norm",
    "slogdet", "solve", "svdvals", "vecdot", "vector_norm",
]  # fmt: skip
publish(globals(), "linalg")
__getattr__ = absent(__name__)
