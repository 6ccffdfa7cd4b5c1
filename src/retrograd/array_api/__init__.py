"""The Python array API standard, version 2025.12, on tensors: the namespace of ``Tensor.__array_namespace__()``.

Functions have the standard's names, signatures and results, and take and return ordinary tensors, so gradients pass
through. Where PyTorch is more lenient they follow the standard: mixed kinds of dtypes are refused, promotion does not
depend on the number of dimensions, and small integers are added as int64. See docs/array-api.md.

>>> import retrograd as torch
>>> x = torch.tensor([[1, 2], [3, 4]], dtype=torch.int8)
>>> xp = x.__array_namespace__()
>>> xp.sum(x, axis=0)
tensor([4, 6])
"""

# ruff: noqa: F401 - this module imports names to export them

from retrograd import e, inf, nan, newaxis, pi

from . import fft, linalg
from ._creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from ._dtypes import STANDARD as _STANDARD
from ._dtypes import astype, can_cast, finfo, iinfo, isdtype, result_type
from ._elementwise import FUNCTIONS as _FUNCTIONS
from ._elementwise import clip
from ._info import __array_namespace_info__
from ._manipulation import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    unstack,
)
from ._operators import standard_operators
from ._reductions import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from ._searching import (
    argsort,
    isin,
    nonzero,
    searchsorted,
    sort,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    where,
)
from .linalg import matmul, matrix_transpose, tensordot, vecdot

__array_api_version__ = "2025.12"

globals().update(_STANDARD)
globals().update(_FUNCTIONS)

__all__ = sorted(name for name in globals() if name[0] != "_")
__all__ += ["__array_api_version__", "__array_namespace_info__"]
