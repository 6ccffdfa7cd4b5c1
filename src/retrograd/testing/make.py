"""``make_tensor``: a tensor of random elements of any dtype."""

from __future__ import annotations

import math
from typing import Any

from ..core import dtypes
from ..core.dtypes import dtype as Dtype
from ..core.dtypes import finfo, iinfo
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..operations.creation.factory import empty, full
from ..operations.creation.random import randint
from ..operations.elementwise.complex import view_as_real
from ..runtime.user_frame import warn


def make_tensor(
    *shape: Any,
    dtype: Dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a tensor of random elements, uniformly distributed between ``low`` (included) and ``high`` (excluded).

    The default limits are -9 and 9 for floating-point and complex dtypes, -9 and 10 for signed integers, and 0 and 10
    for unsigned integers. Bool elements are False or True. If ``noncontiguous`` is true, the result is a view of every
    second element of a larger tensor. If ``exclude_zero`` is true, zeros are replaced by 1, or for a floating-point or
    complex dtype by its smallest positive normal number.

    >>> import retrograd as torch
    >>> torch.testing.make_tensor(2, 3, dtype=torch.int64, device="cpu").shape
    torch.Size([2, 3])
    """
    size = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous!r} and memory_format={memory_format!r}"
        )
    whole = not (dtype.is_floating_point or dtype.is_complex)
    if requires_grad and whole:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    made = _integers(size, dtype, device, low, high) if whole else _floats(size, dtype, device, low, high)
    if noncontiguous and made.numel() > 1:
        made = made.repeat_interleave(2, -1)[..., ::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made.eq(0)] = finfo(dtype).tiny if not whole else 1
    return made.requires_grad_() if requires_grad else made


def _limits(
    low: float | None, high: float | None, default: tuple[Any, Any], lowest: Any, highest: Any
) -> tuple[Any, Any]:
    """Return the pair of ``low`` and ``high``, each clamped to the range from ``lowest`` to ``highest``.

    A limit that is None is replaced by its item in ``default``. Raises ValueError if a limit is nan or if ``low`` is
    greater than ``high``.
    """
    low, high = default[0] if low is None else low, default[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    if low > high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    return max(lowest, min(low, highest)), max(lowest, min(high, highest))


def _integers(size: Any, dtype: Dtype, device: Any, low: Any, high: Any) -> Tensor:
    if dtype is dtypes.bool_:
        default, lowest, highest = (0, 2), 0, 2
    else:
        default = (-9, 10) if iinfo(dtype).min < 0 else (0, 10)
        lowest, highest = iinfo(dtype).min, min(iinfo(dtype).max + 1, 2**63 - 1)
    first, end = _limits(low, high, default, lowest, highest)
    first, end = math.ceil(first), math.ceil(end)
    if first == end:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    found: Tensor = randint(first, end, size, device=device, dtype=dtype)
    return found


def _floats(size: Any, dtype: Dtype, device: Any, low: Any, high: Any) -> Tensor:
    real = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}.get(dtype, dtype)
    first, end = _limits(low, high, (-9, 9), finfo(real).min, finfo(real).max)
    if first == end:
        warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and "
            "will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
        )
        return full(size, first, device=device, dtype=dtype)
    made = empty(size, device=device, dtype=dtype)
    with no_grad():
        (view_as_real(made) if dtype.is_complex else made).uniform_(first, end)
    return made
