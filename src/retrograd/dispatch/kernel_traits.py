"""Properties of kernels, found by trial calls: the ufunc that a kernel equals, and the dtypes that it preserves."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy

from ..core import dtypes
from .operand_promotion import F32, F64, OTHERS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from ..core.typing import ArrayDType
    from .op import Op
    from .typing import DTypes


class _Probe:
    """Replacement of the array module (NumPy) in a trial call of a kernel by :func:`ufunc_of`.

    Every attribute is a function, which returns the name of the attribute and the tuple of the arguments of the call.
    """

    def __getattr__(self, name: str) -> Callable[..., tuple[str, tuple[object, ...]]]:
        return lambda *given: (name, given)


def ufunc_of(op: Op) -> numpy.ufunc | None:
    """Return the NumPy ufunc that the kernel of ``op`` calls, if the kernel does nothing else; otherwise None.

    Generated functions call the ufunc instead of the kernel, because this reduces the time of a call by 60 of 1200 ns.
    """
    if op.kind != "pointwise" or len(op.defaults) < len(op.params):
        return None
    operands = [_Operand() for _ in op.tensors]
    try:
        name, given = op.kernel(_Probe(), *operands, **op.defaults)
    except Exception:  # the kernel looks at its operands: it is more than one ufunc
        return None
    found = getattr(numpy, name, None)
    same = len(given) == len(operands) and all(a is b for a, b in zip(given, operands, strict=True))
    return found if isinstance(found, numpy.ufunc) and same else None


class _Operand:
    """Operand in a trial call of a kernel by :func:`ufunc_of`; reading an attribute of it raises TypeError."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NoReturn:
        raise TypeError(
            "the kernel reads an attribute of its operand"
        )  # no AttributeError: getattr would return a default


def supported_dtypes(op: Op) -> DTypes:
    """Return the dtypes besides float32 and float64 for which the kernel of ``op`` needs no conversion of its operands.

    Generated functions pass arrays of these dtypes to the kernel unchanged. If ``op`` is elementwise, the kernel is
    called with an array of each dtype, and a dtype is supported if the result has the same dtype. float16 and bfloat16
    are supported only if the kernel is a ufunc of NumPy, because ufuncs compute these in float32. If ``op`` is not
    elementwise, all dtypes are supported, but not float16 and bfloat16 if it is declared with ``opmath=True``.
    """
    if op.kind != "pointwise":
        return frozenset({F32, F64} | OTHERS - dtypes.HALF_PRECISION if op.opmath else {F32, F64} | OTHERS)  # type: ignore[arg-type]  # classes of dtypes differ
    found: set[ArrayDType] = set()
    for dtype in OTHERS:
        short = dtype in dtypes.HALF_PRECISION
        kinds = "" if op.refuses is None else op.refuses[1]
        refused = "bif"[dtypes.dtype_of(dtype).category] in kinds or (short and "h" in kinds)
        if refused or (op.floats and not short) or (short and op.ufunc is None) or (op.check and dtype.kind == "b"):
            continue
        one = numpy.ones(1, dtype)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = op.kernel(numpy, *(one for _ in op.tensors), **op.defaults)
        except Exception:  # the kernel does not take this dtype, or has required parameters
            continue
        if isinstance(result, (numpy.ndarray, numpy.generic)) and result.dtype == (op.result or dtype):
            found.add(dtype)
    return frozenset(found)
