"""Operations on CuPy arrays by CUDA kernels that are generated from the NumPy kernels.

One launch takes the place of those that CuPy's functions would take. ``elements`` calls a NumPy kernel with symbolic
elements in place of the arrays, ``source`` writes the resulting expressions as CUDA C++, and ``launch`` compiles and
caches the kernels and calls them. A NumPy kernel for which this fails is computed by CuPy's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..scalar_code import BOOL
from .launch import computed
from .many import update_calls
from .windows import HALF


def compute(op: Any, arrays: Sequence[Any], params: Sequence[Any], target: Any = None) -> Any:
    """Return the result of the operation ``op`` for CuPy arrays by one CUDA kernel, or None.

    ``arrays`` are the operands, of which some may be numbers or None, and ``params`` the parameters. ``target`` is the
    dtype in which the operands of an elementwise operation are computed. The result is None if there is no kernel for
    the arguments.
    """
    if target is not None and any(getattr(each, "dtype", target) not in (target, BOOL) for each in arrays):
        return None
    named = dict(zip(op.params[op.positional :], params[op.positional :], strict=True))
    # CuPy's functions need conversions before and after for these.
    single = op.kind == "pointwise" and any(
        each.__class__ in (int, float) or (each is not None and each.dtype.char in HALF) for each in arrays
    )
    return computed(op.kernel, op.name, [*arrays, *params[: op.positional]], named, 1 if single else 2)


def kernel_for_rules(op: Any, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of ``op`` as derivative rules call it: by one CUDA kernel where possible, else ``otherwise``."""

    def kernel(*args: Any, **named: Any) -> Any:
        found = computed(op.kernel, op.name, args, named)
        return otherwise(*args, **named) if found is None else found

    return kernel


__all__ = ["compute", "kernel_for_rules", "update_calls"]
