"""Pooling over windows: max_pool, avg_pool, lp_pool, fractional and adaptive pooling, and max_unpool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ...core import dtypes
from ...core.devices import array_module_of, on_gpu
from ...core.dtypes import scalar_name, unsupported
from ...core.tensor import Tensor, wrap
from ...dispatch.declare import FUNCTIONS, op, public
from ...dispatch.form import FIRST
from ...dispatch.transform_tensor import innermost_batch, slicewise
from ...kernels import interpolation, pooling
from ...kernels.memory_format import in_memory_format_of
from ..elementwise.arithmetic import sign
from ..elementwise.elementary import relu
from ..reductions.sums import mean
from ..shape.views import squeeze, unsqueeze

_WORDS = {1: "one", 2: "two", 3: "three"}
_SPACE = {1: "dimension", 2: "2 dimensions", 3: "3 dimensions"}


def _per_dimension(
    name: str, what: str, value: Any, rank: int, default: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """Return ``value``, a parameter of a pooling function, as a tuple of ``rank`` ints, one per spatial dimension.

    A single int is repeated. If ``value`` is None or empty and ``default`` is not None, return ``default``. Otherwise
    RuntimeError is raised if ``value`` has neither one nor ``rank`` ints. ``name`` is the name of the function and
    ``what`` the name of the parameter in error messages.
    """
    if value.__class__ is int:
        return (value,) * rank
    given = () if value is None else tuple(value)
    if default is not None and not given:
        return default
    if len(given) == 1:
        return given * rank
    if len(given) != rank:
        either = {"stride": "either be omitted,", "dilation": "be either"}.get(what, "either be")
        raise RuntimeError(f"{name}: {what} must {either} a single int, or a tuple of {_WORDS[rank]} ints")
    return given


def _public(function: Any, name: str, doc: str, shown: bool = True) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return public(method=False, name=name)(function) if shown else function


# -- Max pooling -----------------------------------------------------------------------------------------------------


@op(function=False, method=False, linear=True, vmap="leading")
def spread_at(np: Any, self: Any, indices: Any, /, shape: Any, rank: int, once: bool) -> Any:
    """Return zeros of ``shape`` to which each element of ``self`` is added at its index in ``indices``.

    This is the gradient of max pooling. An index counts the elements of the last ``rank`` dimensions, which are the
    pooled ones, in row-major order. The other dimensions of ``self``, ``indices`` and ``shape`` are equal. If ``once``
    is true, no two elements are added at the same position.
    """
    return in_memory_format_of(np, pooling.add_flat(np, self, indices, shape, rank, once), self)


@op(function=False, method=False, linear=True, vmap="leading")
def collect_at(np: Any, self: Any, indices: Any, /, rank: int, once: bool) -> Any:
    """Return the elements of ``self`` at the positions ``indices``: the gradient of :func:`spread_at`.

    An index counts the elements of the last ``rank`` dimensions, which are the pooled ones, in row-major order. The
    other dimensions of ``self`` and ``indices`` are equal. ``once`` is used only for the gradient: if true, no position
    occurs twice.
    """
    return pooling.take_flat(np, self, indices, rank)


spread_at.derivative(self=lambda F, g, indices, rank, once: F.collect_at(g, indices, rank, once))
collect_at.derivative(
    self=lambda F, g, indices, self_shape, rank, once: F.spread_at(g, indices, self_shape, rank, once)
)


def _max_operation(name: str, backward: str) -> Any:
    """Return a new operation, which computes the maximum of each window and the index of the maximum.

    ``name`` is the name of the operation, and ``backward`` the name of its node in the autograd graph.
    """

    @op(
        name=name, backward=backward, outputs=("values", "indices"), differentiable=1, function=False, method=False,
        vmap="leading", connected="zero",
    )  # fmt: skip
    def largest(np: Any, self: Any, /, places: Any, once: bool) -> Any:
        """Return the maximum of each window of ``self``, and the index of the maximum.

        ``places`` has one entry for each pooled dimension: the indices of the elements of each window along this
        dimension. The index of a maximum counts the elements of the pooled dimensions in row-major order. ``once`` is
        used only for the gradient, and is true if the windows do not overlap.
        """
        return pooling.maxima(np, self, places, True)

    largest.derivative(
        self=lambda F, g, indices, self_shape, places, once: F.spread_at(g, indices, self_shape, len(places), once)
    )
    return largest


_max_pool = {rank: _max_operation(f"max_pool{rank}d_block", f"MaxPool{rank}DWithIndicesBackward0") for rank in (2, 3)}
_adaptive_max = {
    rank: _max_operation(f"adaptive_max_pool{rank}d_block", f"AdaptiveMaxPool{rank}DBackward0") for rank in (2, 3)
}
_fractional = {
    rank: _max_operation(f"fractional_max_pool{rank}d_block", f"FractionalMaxPool{rank}DBackward0") for rank in (2, 3)
}


def _check_padding(kernel: Any, padding: Any, dilation: Any) -> None:
    for k, p, d in zip(kernel, padding, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}"
            )


def _check_windows(
    shape: tuple[int, ...], kernel: Any, stride: Any, padding: Any, dilation: Any, out: Sequence[int]
) -> None:
    rank = len(kernel)
    _check_padding(kernel, padding, dilation)
    for what, values in (("kernel size", kernel), ("stride", stride), ("dilation", dilation)):
        if min(values) < 1:
            letter = {"kernel size": "k", "stride": "d", "dilation": "dilation"}[what]
            shown = " ".join(f"{letter}{axis}: {n}" for axis, n in zip("THW"[3 - rank :], values, strict=True))
            raise RuntimeError(f"{what} should be greater than zero, but got {shown}")
    if 0 in shape[1 if len(shape) == rank + 2 else 0 :]:
        raise RuntimeError(
            f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(shape)}"
        )
    if min(out) < 1:
        sizes = "x".join(map(str, shape[-rank - 1 :]))
        output = "x".join(map(str, (shape[-rank - 1], *out)))
        raise RuntimeError(f"Given input size: ({sizes}). Calculated output size: ({output}). Output size is too small")


def _max_pooled(
    input: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Tensor, Tensor]:
    given = [tuple(each) if each.__class__ is list else each for each in (kernel_size, stride, padding, dilation)]
    places = _cached_windows(rank, input._array.shape, *given, ceil_mode)
    if input._array.dtype.kind in "bc":
        raise unsupported(f"max_pool{rank}d", input._array.dtype)
    return _max_pool[rank](input, places, places.apart)


@lru_cache(maxsize=64, typed=True)
def _cached_windows(
    rank: int, shape: tuple[int, ...], kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> pooling.StridedWindows:
    """Return the windows of max pooling for an input of shape ``shape``: the indices of the elements of each window.

    The last ``rank`` dimensions of the input are pooled. The results are cached. The other parameters are the arguments
    of ``max_pool1d``, ``max_pool2d`` or ``max_pool3d``.
    """
    name = f"max_pool{rank}d"
    kernel = _per_dimension(name, "kernel_size", kernel_size, rank)
    steps = _per_dimension(name, "stride", stride, rank, kernel)
    pads = _per_dimension(name, "padding", padding, rank)
    return _windows(rank, shape, kernel, steps, pads, _per_dimension(name, "dilation", dilation, rank), ceil_mode)


def _windows(
    rank: int, shape: tuple[int, ...], kernel: Any, steps: Any, pads: Any, dilations: Any, ceil_mode: bool
) -> pooling.StridedWindows:
    """Return the windows of max pooling for an input of shape ``shape``: the indices of the elements of each window.

    The last ``rank`` dimensions of the input are pooled. ``kernel``, ``steps`` (the strides), ``pads`` and
    ``dilations`` have one int per pooled dimension. Raises RuntimeError for invalid sizes.
    """
    if len(shape) not in (rank + 1, rank + 2):
        raise RuntimeError(f"non-empty {rank + 1}D or {rank + 2}D (batch mode) tensor expected for input")
    if 0 in steps:
        raise RuntimeError("stride should not be zero")
    geometry = list(zip(shape[-rank:], kernel, steps, pads, dilations, strict=True))
    _check_windows(shape, kernel, steps, pads, dilations, [pooling.out_size(*each, ceil_mode) for each in geometry])
    return pooling.StridedWindows(geometry, ceil_mode)


def _max_pooled_1d(
    input: Tensor, values_only: bool, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Tensor, Tensor]:
    """Return the tuple (maxima, indices of the maxima) of the windows of the last dimension of ``input``.

    ``values_only`` is true if the indices are not used. As in PyTorch, an output size less than 1 is an error only in
    this case.
    """
    array = input._array
    if array.ndim not in (2, 3) or 0 in array.shape[array.ndim - 2 :]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(array.shape)}"
        )
    named = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
    numbers: list[int] = []
    for what, value in named.items():
        given = (value,) if isinstance(value, int) else tuple(value or ())
        if what == "stride" and not given:
            given = (numbers[0],)
        if len(given) != 1:
            raise RuntimeError(
                f"max_pool1d() {what} must be an int, list of ints or tuple of ints of size 1 but got size {len(given)}"
            )
        numbers.append(given[0])
    k, s, p, d = numbers
    for what, value in (("kernel_size", k), ("stride", s), ("dilation", d)):
        if value < 1:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {value}")
    if p < 0 and values_only:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {p}")
    if p > k // 2 and values_only:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}"
        )
    out = pooling.out_size(array.shape[-1], k, s, p, d, ceil_mode)
    if out < 1 and values_only:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {out}")
    if array.dtype.kind not in "fV":
        raise unsupported("max_pool1d_impl", array.dtype)
    wide = unsqueeze(input, -2)
    values, indices = _max_pooled(wide, 2, (1, k), (1, s), (0, p), (1, d), ceil_mode)
    return squeeze(values, -2), squeeze(indices, -2)


def _max_pool_of(rank: int) -> tuple[Any, Any, Any]:
    name = f"max_pool{rank}d"

    def pooled(input: Tensor, values_only: bool, *how: Any) -> tuple[Tensor, Tensor]:
        return _max_pooled_1d(input, values_only, *how) if rank == 1 else _max_pooled(input, rank, *how)

    def function(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        result = pooled(input, not return_indices, kernel_size, stride, padding, dilation, ceil_mode)
        return result if return_indices else result[0]

    def places(
        x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any
    ) -> pooling.StridedWindows | None:
        if x.dtype.kind in "bc" or list in (
            kernel_size.__class__,
            stride.__class__,
            padding.__class__,
            dilation.__class__,
        ):
            return None
        return _cached_windows(rank, x.shape, kernel_size, stride, padding, dilation, ceil_mode)

    def both(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        return pooled(input, False, kernel_size, stride, padding, dilation, ceil_mode)

    def short(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        return pooled(input, True, kernel_size, stride, padding, dilation, ceil_mode)[0]

    doc = (
        f"Return the maximum of each window of the last {_SPACE[rank]}.\n\n"
        "``input`` has shape (N, C, *space) or (C, *space). ``stride`` is the distance between windows (default\n"
        "``kernel_size``). If ``ceil_mode`` is true, windows that extend past the end are included. If indices are\n"
        "returned, the result is a pair: the maxima, and the index (int64) of each maximum, which counts the elements\n"
        "of the spatial dimensions in row-major order."
    )
    _public(short, name, doc)
    if rank > 1:
        public(
            function=False, method=False, fast_path=_max_pool[rank], when=lambda return_indices: return_indices is False,
            result_class=FIRST, places=places, once=lambda x, places: places.apart,
        )(function)  # fmt: skip
    return _public(function, name, doc, False), _public(both, f"{name}_with_indices", doc, rank == 1), short


max_pool1d, max_pool1d_with_indices, _ = _max_pool_of(1)
max_pool2d, max_pool2d_with_indices, _ = _max_pool_of(2)
max_pool3d, max_pool3d_with_indices, _ = _max_pool_of(3)


# -- Adaptive max pooling --------------------------------------------------------------------------------------------


def _output_sizes(name: str, input: Tensor, output_size: Any, rank: int) -> tuple[int, ...]:
    """Return ``output_size``, a parameter of the function ``name``, as a tuple of ``rank`` ints.

    A single int is repeated. None is replaced by the size of the corresponding dimension of ``input``.
    """
    if isinstance(output_size, bool):
        raise TypeError(f"{name}(): argument 'output_size' (position 2) must be tuple of ints, not bool")
    if isinstance(output_size, int) or output_size is None:
        output_size = (output_size,) * rank
    elif rank > 1 and input._array.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    shape = input._array.shape
    if len(shape) <= rank and len(output_size) == rank:
        return tuple(1 if each is None else each for each in output_size)
    return tuple(shape[i - len(output_size)] if each is None else each for i, each in enumerate(output_size))


def _check_adaptive(name: str, shape: tuple[int, ...], rank: int, colon: str) -> None:
    if len(shape) not in (rank + 1, rank + 2):
        raise RuntimeError(f"{name}(): Expected {rank + 1}D or {rank + 2}D tensor, but got{colon} {list(shape)}")
    for dim in range(-rank - (len(shape) == rank + 1), 0):
        if shape[dim] == 0 and not (len(shape) == rank + 1 and dim == -rank - 1):
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {len(shape) + dim} being empty"
            )


def _adaptive_maxima(input: Tensor, rank: int, output_size: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    name, shape = f"adaptive_max_pool{rank}d", input._array.shape
    if len(output_size) != rank:
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be {rank}")
    _check_adaptive(name, shape, rank, ":")
    if input._array.dtype.kind not in "fV":
        raise unsupported(name + "_cpu" * (rank == 3), input._array.dtype)
    if min(output_size) < 0:
        shape_of_result = [*shape[: len(shape) - rank], *output_size]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(output_size)}: {shape_of_result}")
    sizes = list(zip(shape[-rank:], output_size, strict=True))
    places = [pooling.adaptive_indices(n, o) for n, o in sizes]
    return _adaptive_max[rank](input, places, all(o and n % o == 0 for n, o in sizes))


def _one_int(name: str, value: Any) -> tuple[int]:
    given = (value,) if isinstance(value, int) else tuple(value)
    if len(given) != 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(given)})")
    return given


def _check_1d(name: str, input: Tensor) -> None:
    if input._array.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input._array.ndim}-dimensional tensor for argument #1 'self' (while "
            f"checking arguments for {name})"
        )


@public(method=False, name="adaptive_max_pool1d")
def _adaptive_max_pair(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """Return the maxima of ``output_size`` windows that evenly cover the last dimension of ``input``.

    Also return the indices of the maxima (int64). ``input`` has shape (N, C, L) or (C, L).
    """
    _check_1d("adaptive_max_pool1d", input)
    (out,) = _one_int("adaptive_max_pool1d", output_size)
    values, indices = _adaptive_maxima(unsqueeze(input, -2), 2, (1, out))
    return squeeze(values, -2), squeeze(indices, -2)


def _adaptive_max_of(rank: int) -> tuple[Any, Any]:
    name = f"adaptive_max_pool{rank}d"

    def both(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
        if rank == 1:
            return _adaptive_max_pair(input, output_size)
        return _adaptive_maxima(input, rank, _output_sizes(f"adaptive_max_pool{rank}d", input, output_size, rank))

    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        result = both(input, output_size)
        return result if return_indices else result[0]

    doc = (
        f"Return the maxima of windows that evenly cover the last {_SPACE[rank]}.\n\n"
        "``output_size`` is the number of windows, an int or one int per spatial dimension; None means the size of\n"
        "``input``. If indices are returned, the result is a pair: the maxima, and the index (int64) of each maximum,\n"
        "which counts the elements of the spatial dimensions in row-major order."
    )
    return _public(function, name, doc, False), _public(both, f"{name}_with_indices", doc, False)


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_of(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_of(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_of(3)


# -- Fractional max pooling ------------------------------------------------------------------------------------------


def _fractional_maxima(
    input: Tensor, rank: int, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None
) -> tuple[Tensor, Tensor]:
    name, array = f"fractional_max_pool{rank}d", input._array
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratios = (output_ratio,) * rank if isinstance(output_ratio, (int, float)) else tuple(output_ratio)
        output_size = tuple(int(n * r) for n, r in zip(array.shape[-rank:], ratios, strict=True))
    kernel = _per_dimension(name, "kernel_size", kernel_size, rank)
    out = _per_dimension(name, "output_size", output_size, rank)
    if array.ndim not in (rank + 1, rank + 2):
        if array.ndim < rank + 1:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{array.ndim}, {array.ndim - 1}], but got "
                f"{-rank - 1})"
            )
        raise RuntimeError(f"{name}(): Expected {rank + 1}D or {rank + 2}D tensor, but got: {list(array.shape)}")
    batch, channels = (array.shape[0] if array.ndim == rank + 2 else 1), array.shape[-rank - 1]
    if array.dtype.kind in "biu":
        raise unsupported("check_uniform_bounds", array.dtype)
    if array.dtype.kind == "c":
        raise unsupported(f"{name}_out_frame", array.dtype)
    if samples is None:
        samples = FUNCTIONS["rand"](batch, channels, rank, dtype=input.dtype, device=input.device)
    if (special := innermost_batch((samples,))) is not None:
        given = (input, rank, kernel_size, output_size, None, samples)
        return special.by_slices(_fractional_maxima, given, {})
    _check_samples(samples, batch, channels, rank)
    for axis, n, o, k in zip(("time", "height", "width")[3 - rank :], array.shape[-rank:], out, kernel, strict=True):
        if o + k - 1 >= n + (rank == 2):
            suffix = "_out" if rank == 3 else ""
            raise RuntimeError(f"{name}{suffix}(): pool {axis} {k} too large relative to input {axis} {n}")
    drawn = samples._array[:batch] if array.ndim == rank + 2 else samples._array[0]
    order = (1, 0) if rank == 2 else (0, 1, 2)  # in 2-d, the first random number is for the width
    places = [
        pooling.fractional_indices(array_module_of(array), drawn[..., which], n, o, k)
        for which, n, o, k in zip(order, array.shape[-rank:], out, kernel, strict=True)
    ]
    return _fractional[rank](input, places, False)


def _check_samples(samples: Tensor, batch: int, channels: int, rank: int) -> None:
    shape = samples._array.shape
    if len(shape) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(shape)}")
    if shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    for dim, wanted in ((1, channels), (2, rank)):
        if shape[dim] != wanted:
            what = "input channel size" if dim == 1 else str(rank)
            raise RuntimeError(f"Expect _random_samples.size({dim}) equals to {what}; got {shape[dim]}.")


def _fractional_of(rank: int) -> tuple[Any, Any]:
    name = f"fractional_max_pool{rank}d"

    def both(
        input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        return _fractional_maxima(input, rank, kernel_size, output_size, output_ratio, _random_samples)

    def function(
        input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> Any:  # fmt: skip
        result = both(input, kernel_size, output_size, output_ratio, False, _random_samples)
        return result if return_indices else result[0]

    doc = (
        f"Return the maxima of randomly placed windows of the last {_SPACE[rank]}.\n\n"
        "``output_size`` is the number of windows of each dimension. If ``output_size`` is None, ``output_ratio`` is\n"
        "this number divided by the size of ``input``. See Graham, Fractional Max-Pooling."
    )
    return _public(function, name, doc, False), _public(both, f"{name}_with_indices", doc, False)


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_of(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_of(3)


# -- Unpooling -------------------------------------------------------------------------------------------------------


def _unpool_operation(rank: int) -> Any:
    @op(
        name=f"max_unpool{rank}d_block",
        backward=f"MaxUnpool{rank}DBackward0",
        function=False,
        method=False,
        connected="zero",
    )
    def unpooled(np: Any, self: Any, indices: Any, /, size: tuple[int, ...]) -> Any:
        """Return zeros of spatial shape ``size``, with each element of ``self`` written at its index in ``indices``.

        An index counts the elements of the spatial dimensions in row-major order.
        """
        _check_unpooling(self, indices, size, rank)
        shape = (*self.shape[: self.ndim - rank], *size)
        return in_memory_format_of(np, pooling.add_flat(np, self, indices, shape, rank, True), self)

    unpooled.derivative(self=lambda F, g, indices, size: F.collect_at(g, indices, len(size), False))
    return unpooled


def _check_unpooling(x: Any, indices: Any, size: tuple[int, ...], rank: int) -> None:
    if str(indices.dtype) != "int64":
        raise RuntimeError(
            f"elements in indices should be type int64 but got: {scalar_name(dtypes.dtype_of(indices.dtype))}"
        )
    if x.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Input to max_unpooling{rank}d should be a {rank + 1}d or {rank + 2}d Tensor, but got a tensor with {x.ndim} "
            "dimensions."
        )
    if x.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(x.shape)}) but got indices tensor "
            f"with shape: {list(indices.shape)}"
        )
    if x.dtype.kind not in "fV":
        raise unsupported(f"max_unpool{rank}d", x.dtype)
    volume = math.prod(size)
    if indices.size and not on_gpu(indices) and (indices.min() < 0 or indices.max() >= volume):
        bad = int(indices[(indices < 0) | (indices >= volume)][-1])
        raise RuntimeError(f"Found an invalid max index: {bad} (output volumes are of size {'x'.join(map(str, size))})")


_unpool = {rank: _unpool_operation(rank) for rank in (2, 3)}


def _unpooled_size(shape: tuple[int, ...], kernel: Any, stride: Any, padding: Any, output_size: Any) -> tuple[int, ...]:
    rank = len(kernel)
    default = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(shape[-rank:], stride, kernel, padding, strict=True)]
    if output_size is None:
        return tuple(default)
    given = tuple(output_size)
    if len(given) == rank + 2:
        given = given[2:]
    if len(given) != rank:
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a length of "
            f"'{len(given)}'"
        )
    for dim, (have, n, s) in enumerate(zip(given, default, stride, strict=True)):
        if not n - s < have < n + s:
            raise ValueError(f'invalid output_size "{given}" (dim {dim} must be between {n - s} and {n + s})')
    return given


def _unpool_of(rank: int) -> Any:
    name = f"max_unpool{rank}d"

    def function(
        input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Tensor:
        kernel = _per_dimension(name, "kernel_size", kernel_size, rank)
        steps = _per_dimension(name, "stride", stride, rank, kernel)
        pads = _per_dimension(name, "padding", padding, rank)
        size = _unpooled_size(input._array.shape, kernel, steps, pads, output_size)
        if rank == 1:
            return squeeze(_unpool[2](unsqueeze(input, -1), unsqueeze(indices, -1), (*size, 1)), -1)
        return _unpool[rank](input, indices, size)

    doc = (
        f"Return zeros with ``input``, maxima from :func:`max_pool{rank}d`, written at their positions ``indices``.\n\n"
        "``output_size`` is the spatial size before pooling (default: the smallest size with as many windows)."
    )
    return _public(function, name, doc, False)


max_unpool1d, max_unpool2d, max_unpool3d = map(_unpool_of, (1, 2, 3))


# -- Average pooling -------------------------------------------------------------------------------------------------


def _average_operation(name: str, backward: str) -> Any:
    @op(name=name, backward=backward, function=False, method=False, linear=True, connected="zero", vmap="leading")
    def averaged(np: Any, self: Any, /, plan: Any, divisor: Any) -> Any:
        """Return the mean of each window of ``self``, or its sum divided by ``divisor`` if ``divisor`` is not None.

        Each item of ``plan`` describes one pooled dimension: it holds the indices and the weights of the elements of
        each window.
        """
        if divisor is None:
            return interpolation.apply_maps(np, self, plan)
        total = interpolation.apply_maps(np, self, plan)
        return (
            np.trunc(total / divisor).astype(self.dtype)
            if self.dtype.kind == "i"
            else total / total.dtype.type(divisor)
        )

    averaged.derivative(
        self=lambda F, g, plan, divisor: F.resample_back(g if divisor is None else g * (1.0 / divisor), plan)
    )
    return averaged


_averages = {rank: _average_operation(f"avg_pool{rank}d_block", f"AvgPool{rank}DBackward0") for rank in (2, 3)}
_adaptive_averages = {
    rank: _average_operation(f"adaptive_avg_pool{rank}d_block", f"AdaptiveAvgPool{rank}DBackward0") for rank in (2, 3)
}


def _averaged(
    input: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, include_pad: bool,
    divisor: int | None,
) -> Tensor:  # fmt: skip
    name, array = f"avg_pool{rank}d", input._array
    kernel = _per_dimension(name, "kernel_size", kernel_size, rank)
    steps = _per_dimension(name, "stride", stride, rank, kernel)
    pads = _per_dimension(name, "padding", padding, rank)
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    if array.ndim not in (rank + 1, rank + 2):
        if array.ndim < rank + 1 and rank == 2:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{array.ndim}, {array.ndim - 1}], but got -3)"
            )
        raise RuntimeError(f"non-empty {rank + 1}D or {rank + 2}D (batch mode) tensor expected for input")
    if 0 in steps:
        raise RuntimeError("stride should not be zero")
    sizes = array.shape[-rank:]
    geometry = list(zip(sizes, kernel, steps, pads, strict=True))
    out = [pooling.out_size(n, k, s, p, 1, ceil_mode) for n, k, s, p in geometry]
    _check_padding(kernel, pads, (1,) * rank)
    if rank == 3 and any(n < k for n, k in zip(sizes, kernel, strict=True)):
        shown = [" ".join(f"{a}: {n}" for a, n in zip(names, each, strict=True))
                 for names, each in (("THW", sizes), (("kT", "kH", "kW"), kernel))]  # fmt: skip
        raise RuntimeError(f"input image ({shown[0]}) smaller than kernel size ({shown[1]})")
    _check_windows(array.shape, kernel, steps, pads, (1,) * rank, out)
    _check_averaged(array, rank)
    integers = array.dtype.kind == "i"
    divide = divisor is None and not integers
    plan = tuple(
        interpolation.averages(n, o, k, s, p, include_pad, divide)
        for (n, k, s, p), o in zip(geometry, out, strict=True)
    )
    if integers and divisor is None:
        return _integer_means(input, plan, geometry, out, include_pad)
    return _averages[rank](input, plan, divisor)


def _check_averaged(array: Any, rank: int) -> None:
    kind = str(array.dtype)
    if kind in ("float32", "float64", "int64") or (rank == 2 and kind in ("float16", "bfloat16")):
        return
    raise unsupported("avg_pool2d" if rank == 2 else "avg_pool3d_out_frame", array.dtype)


@slicewise
def _integer_means(input: Tensor, plan: Any, geometry: Any, out: Any, include_pad: bool) -> Tensor:
    """Return the means of the windows of an integer ``input``, rounded towards zero, for the functions ``avg_pool…``.

    Each item of ``plan`` describes the windows of one pooled dimension. ``geometry`` holds a tuple (input size, kernel
    size, stride, padding) for each pooled dimension, and ``out`` the number of windows. If ``include_pad`` is true, the
    zeros of the padding count as elements.
    """
    np = array_module_of(input._array)
    total, divisor = interpolation.apply_maps(np, input._array, plan), 1
    for dim, ((n, k, s, p), o) in enumerate(zip(geometry, out, strict=True)):
        ones = interpolation.apply_maps(np, np.ones(n), (interpolation.averages(n, o, k, s, p, include_pad, True),))
        sums = interpolation.apply_maps(np, np.ones(n), (interpolation.averages(n, o, k, s, p, include_pad, False),))
        count = np.rint(sums / ones).astype(np.int64)
        divisor = divisor * count.reshape(-1, *(1,) * (len(geometry) - dim - 1))
    return wrap(np.trunc(total / divisor).astype(np.int64))


@public(method=False)
def avg_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """Return the mean of each window of the last dimension of ``input``, which is (N, C, L) or (C, L).

    ``stride`` is the distance between windows (default ``kernel_size``). If ``count_include_pad`` is true, the zeros of
    the padding count as elements. If ``ceil_mode`` is true, a last window that extends past the end is included.
    """
    _check_1d("avg_pool1d", input)
    numbers = []
    for what, value in (("kernel_size", kernel_size), ("stride", stride or kernel_size), ("padding", padding)):
        given = (value,) if isinstance(value, int) else tuple(value)
        if len(given) != 1:
            raise RuntimeError(f"avg_pool1d() argument '{what}' should contain one int (got {len(given)})")
        numbers.append(given[0])
    k, s, p = numbers
    if stride == 0 and isinstance(stride, int):
        s = 0
    wide = unsqueeze(input, -2)
    return squeeze(_averaged(wide, 2, (1, k), (1, s), (0, p), ceil_mode, count_include_pad, None), -2)


def _average_of(rank: int) -> Any:
    def function(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Tensor:  # fmt: skip
        return _averaged(input, rank, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    doc = (
        f"Return the mean of each window of the last {_SPACE[rank]} of ``input``.\n\n"
        "``input`` has shape (N, C, *space) or (C, *space). ``stride`` is the distance between windows (default\n"
        "``kernel_size``). If ``count_include_pad`` is true, the zeros of the padding count as elements. If\n"
        "``divisor_override`` is not None, the sum of each window is divided by it instead of the number of elements."
    )
    return _public(function, f"avg_pool{rank}d", doc, False)


avg_pool2d, avg_pool3d = map(_average_of, (2, 3))


def _adaptive_average(input: Tensor, rank: int, output_size: tuple[int, ...]) -> Tensor:
    name, shape = f"adaptive_avg_pool{rank}d", input._array.shape
    if len(output_size) != rank:
        raise RuntimeError(f"{name}: output_size must be {rank}")
    if min(output_size) < 0:
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{', '.join(map(str, output_size))}}}"
        )
    if all(each == 1 for each in output_size):
        return mean(input, tuple(range(-rank, 0)), True)
    _check_adaptive(name, shape, rank, "")
    if input._array.dtype.kind not in "fV":
        raise unsupported(name + "_cpu" * (rank == 3), input._array.dtype)
    plan = tuple(interpolation.adaptive(n, o) for n, o in zip(shape[-rank:], output_size, strict=True))
    return _adaptive_averages[rank](input, plan, None)


@public(method=False)
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of ``output_size`` windows that evenly cover the last dimension of ``input``.

    ``input`` has shape (N, C, L) or (C, L).
    """
    (out,) = _one_int("adaptive_avg_pool1d", output_size)
    _check_1d("adaptive_avg_pool1d", input)
    return squeeze(_adaptive_average(unsqueeze(input, -2), 2, (1, out)), -2)


def _adaptive_average_of(rank: int) -> Any:
    def function(input: Tensor, output_size: Any) -> Tensor:
        return _adaptive_average(input, rank, _output_sizes(f"adaptive_avg_pool{rank}d", input, output_size, rank))

    doc = (
        f"Return the means of windows that evenly cover the last {_SPACE[rank]}.\n\n"
        "``output_size`` is the number of windows, an int or one int per spatial dimension; None means the size of\n"
        "``input``."
    )
    return _public(function, f"adaptive_avg_pool{rank}d", doc, False)


adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_average_of, (2, 3))


# -- Power-average pooling -------------------------------------------------------------------------------------------


def _power_mean_of(rank: int) -> Any:
    average = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}[rank]
    name = f"lp_pool{rank}d"

    def function(
        input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        kernel = _per_dimension(name, "kernel_size", kernel_size, rank)
        powers = input.pow(norm_type)
        means = average(powers, kernel, kernel if stride is None else stride, 0, ceil_mode)
        return (sign(means) * relu(abs(means)) * math.prod(kernel)).pow(1.0 / norm_type)

    doc = f"Return ``sum(x ** norm_type) ** (1 / norm_type)`` for each window x of the last {_SPACE[rank]}."
    return _public(function, name, doc, False)


lp_pool1d, lp_pool2d, lp_pool3d = map(_power_mean_of, (1, 2, 3))


__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d",
    "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices",
    "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip
