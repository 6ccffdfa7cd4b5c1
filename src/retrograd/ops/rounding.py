"""Rounding, choosing the larger or smaller, clamping, and taking signs: what is piecewise linear."""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..core.tensor import Tensor
from .calls import check_cast, modify
from .rules import no_complex, no_slope, operand_kinds, real_only
from .table import op, pointwise, surface

# -- Rounding ----------------------------------------------------------------------------------------------------------


@pointwise(no_slope, check=no_complex("floor"), refuses=("floor_vml_cpu", "b"))
def floor(np: Any, self: Any, /) -> Any:
    """The largest whole number not above each element."""
    return np.floor(self) if self.dtype.kind == "f" else self.copy()


@pointwise(no_slope, check=no_complex("ceil"), refuses=("ceil_vml_cpu", "b"))
def ceil(np: Any, self: Any, /) -> Any:
    """The smallest whole number not below each element."""
    return np.ceil(self) if self.dtype.kind == "f" else self.copy()


@pointwise(no_slope, aliases=("fix",), check=no_complex("trunc"), refuses=("trunc_vml_cpu", "b"))
def trunc(np: Any, self: Any, /) -> Any:
    """Each element without its fraction."""
    return np.trunc(self) if self.dtype.kind == "f" else self.copy()


@pointwise(1, refuses=("frac_cpu", "bic"))
def frac(np: Any, self: Any, /) -> Any:
    """The fraction of each element, with its sign."""
    return self - np.trunc(self)


@pointwise(
    no_slope, name="round_whole", backward="RoundBackward0", function=False, method=False, in_place=False,
    check=no_complex("round"), refuses=("round_vml_cpu", "b"),
)  # fmt: skip
def round_whole(np: Any, self: Any, /) -> Any:
    """The nearest whole number, ties to even."""
    return np.rint(self) if self.dtype.kind == "f" else self.copy()


@pointwise(
    no_slope, name="round_decimals", backward="RoundBackward1", function=False, method=False, in_place=False,
    check=no_complex("round"), refuses=("round_cpu", "bi"),
)  # fmt: skip
def round_decimals(np: Any, self: Any, /, decimals: int) -> Any:
    """The nearest number with so many decimals."""
    scale = self.dtype.type(10.0 ** (decimals if decimals > 0 else -decimals))
    return np.rint(self * scale) / scale if decimals > 0 else np.rint(self / scale) * scale


@surface()
def round(input: Tensor, *, decimals: int | None = None, out: Tensor | None = None) -> Any:
    """The nearest whole number (ties to even), or the nearest with so many ``decimals``."""
    return round_whole(input, out=out) if decimals is None else round_decimals(input, decimals, out=out)


@surface()
def round_(input: Tensor, *, decimals: int | None = None) -> Tensor:
    """In-place version of :func:`round`."""
    return (
        modify(round_whole.op, (input,), ()) if decimals is None else modify(round_decimals.op, (input,), (decimals,))
    )


# -- Choosing ----------------------------------------------------------------------------------------------------------


@pointwise(
    lambda F, g, self, other: F.masked_fill_scalar(F.where_half(g, self, other), self < other, 0),
    lambda F, g, self, other: F.masked_fill_scalar(F.where_half(g, self, other), self > other, 0),
    in_place=False, check=real_only("maximum not implemented for complex tensors."), numbers=False,
)  # fmt: skip
def maximum(np: Any, self: Any, other: Any, /) -> Any:
    """The larger of two elements; nan if either is."""
    return np.maximum(self, other)


@pointwise(
    lambda F, g, self, other: F.masked_fill_scalar(F.where_half(g, self, other), self > other, 0),
    lambda F, g, self, other: F.masked_fill_scalar(F.where_half(g, self, other), self < other, 0),
    in_place=False, check=real_only("minimum not implemented for complex tensors."), numbers=False,
)  # fmt: skip
def minimum(np: Any, self: Any, other: Any, /) -> Any:
    """The smaller of two elements; nan if either is."""
    return np.minimum(self, other)


@op(function=False, method=False)
def where_half(np: Any, g: Any, self: Any, other: Any, /) -> Any:
    """``g``, halved where ``self`` and ``other`` are equal."""
    return np.where(self == other, g / 2, g)


where_half.derivative(g=lambda F, g, self, other: F.where_half(g, self, other))


@pointwise(
    lambda F, g, self, other: F.masked_fill_scalar(g, ~((self >= other) | (other != other)), 0),
    lambda F, g, self, other: F.masked_fill_scalar(g, (self >= other) | (other != other), 0),
    in_place=False, check=real_only("fmax not implemented for complex tensors."), numbers=False,
)  # fmt: skip
def fmax(np: Any, self: Any, other: Any, /) -> Any:
    """The larger of two elements; of a nan and a number the number."""
    return np.fmax(self, other)


@pointwise(
    lambda F, g, self, other: F.masked_fill_scalar(g, ~((self <= other) | (other != other)), 0),
    lambda F, g, self, other: F.masked_fill_scalar(g, (self <= other) | (other != other), 0),
    in_place=False, check=real_only("fmin not implemented for complex tensors."), numbers=False,
)  # fmt: skip
def fmin(np: Any, self: Any, other: Any, /) -> Any:
    """The smaller of two elements; of a nan and a number the number."""
    return np.fmin(self, other)


def _in_bounds(x: Any, low: Any, high: Any) -> Any:
    if low is None:
        return x <= high
    return (x >= low) if high is None else (x >= low) & (x <= high)


@pointwise(
    lambda F, g, self, min, max: F.where_else(_in_bounds(self, min, max), g),
    name="clamp_scalar", backward="ClampBackward1", function=False, method=False, in_place=False,
)  # fmt: skip
def clamp_scalar(np: Any, self: Any, /, min: Any, max: Any) -> Any:
    """Each element, or the number ``min`` or ``max`` where it is beyond."""
    if min is not None:
        self = np.maximum(self, np.asarray(min).astype(self.dtype))
    return self if max is None else np.minimum(self, np.asarray(max).astype(self.dtype))


@pointwise(
    lambda F, g, self, min, max: F.where_else((self >= min) & (self <= max), g),
    lambda F, g, self, min, max: F.where_else((self < min) & (min < max), g),
    lambda F, g, self, min, max: F.where_else((self > max) | (max < min), g),
    name="clamp_tensor", backward="ClampBackward0", function=False, method=False, in_place=False,
)  # fmt: skip
def clamp_tensor(np: Any, self: Any, min: Any, max: Any, /) -> Any:
    """Each element, or that of ``min`` or ``max`` where it is beyond."""
    return np.minimum(np.maximum(self, min), max)


@pointwise(
    lambda F, g, self, min: F.where_else(self >= min, g),
    lambda F, g, self, min: F.where_else(self < min, g),
    name="clamp_min_tensor", backward="ClampBackward0", function=False, method=False, in_place=False,
)  # fmt: skip
def clamp_min_tensor(np: Any, self: Any, min: Any, /) -> Any:
    """Each element, or that of ``min`` where it is below."""
    return np.maximum(self, min)


@pointwise(
    lambda F, g, self, max: F.where_else(self <= max, g),
    lambda F, g, self, max: F.where_else(self > max, g),
    name="clamp_max_tensor", backward="ClampBackward0", function=False, method=False, in_place=False,
)  # fmt: skip
def clamp_max_tensor(np: Any, self: Any, max: Any, /) -> Any:
    """Each element, or that of ``max`` where it is above."""
    return np.minimum(self, max)


def _clamp_call(input: Tensor, low: Any, high: Any) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """The block, its tensors and its parameters for a call of ``clamp``."""
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        if low is None:
            return clamp_max_tensor, (input, high), ()
        if high is None:
            return clamp_min_tensor, (input, low), ()
        return clamp_tensor, (input, low, high), ()
    if input.is_complex():
        raise RuntimeError("clamp is not supported for complex types")
    return clamp_scalar, (input,), (low, high)


def _clamp_input(input: Tensor, low: Any, high: Any) -> Tensor:
    numbers = [dtypes.of_number(each) for each in (low, high) if isinstance(each, (int, float))]
    for each in numbers:
        target = dtypes.result_of(*operand_kinds(input), each)
        if target is not input.dtype:
            input = input.to(target)
    return input


@surface(aliases=("clip",))
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Each element, or the bound where it is below ``min`` or above ``max`` (numbers or tensors; None: no bound)."""
    call, tensors, params = _clamp_call(input, min, max)
    if params:
        return call(_clamp_input(input, min, max), *params, out=out)
    return call(*tensors, out=out)


@surface(aliases=("clip_",))
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place version of :func:`clamp`."""
    call, tensors, params = _clamp_call(input, min, max)
    if params:
        check_cast(_clamp_input(input, min, max).dtype, input.dtype)
    return modify(call.op, tensors, params)


@surface()
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """Each element, or ``min`` where it is below."""
    return clamp(input, min=min, out=out)


@surface()
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """Each element, or ``max`` where it is above."""
    return clamp(input, max=max, out=out)


@surface()
def clamp_min_(input: Tensor, min: Any) -> Tensor:
    """In-place version of :func:`clamp_min`."""
    return clamp_(input, min=min)


@surface()
def clamp_max_(input: Tensor, max: Any) -> Tensor:
    """In-place version of :func:`clamp_max`."""
    return clamp_(input, max=max)


# -- Signs -------------------------------------------------------------------------------------------------------------


@pointwise(lambda F, g, self, out: g * F.where_else(self != 0, out / self), no_slope, floats=True)
def copysign(np: Any, self: Any, other: Any, /) -> Any:
    """The size of ``self`` with the sign of ``other``."""
    return np.copysign(self, other)
