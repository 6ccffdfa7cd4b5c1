"""``pad`` and ``constant_pad_nd``: add elements before and after the elements of the last dimensions.

A negative number of elements in the padding removes elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ...core.dtypes import unsupported
from ...core.tensor import Tensor
from ...dispatch.declare import op, public
from ...kernels import interpolation
from ...kernels.memory_format import in_memory_format_of


@op(backward="ConstantPadNdBackward0", function=False, method=False, linear=True, vmap="leading")
def constant_pad_nd_block(np: Any, self: Any, /, pad: tuple[int, ...], value: Any) -> Any:
    """Return ``self`` with the number ``value`` added before and after the elements of the last dimensions.

    ``pad`` is ``(before, after)`` for the last dimension, followed by a pair for the dimension before it, and so on. A
    negative number removes elements.
    """
    shape, target, source = _pad_layout(self.shape, pad)
    out = np.full(shape, value, self.dtype) if value != 0 else np.zeros(shape, self.dtype)
    out[target] = self if source is None else self[source]
    return in_memory_format_of(np, out, self)


constant_pad_nd_block.derivative(self=lambda F, g, pad: F.constant_pad_nd_block(g, tuple(-each for each in pad), 0))


@lru_cache(maxsize=64)
def _pad_layout(shape: tuple[int, ...], pad: tuple[int, ...]) -> tuple[tuple[int, ...], Any, Any]:
    """Return the tuple (padded shape, target, source) for an array of shape ``shape`` that is padded by ``pad``.

    ``target`` and ``source`` are indices: the elements ``array[source]`` are copied to ``padded[target]``. ``source``
    is None if all elements of the array are copied. ``pad`` is ``(before, after)`` for the last dimension, followed by
    a pair for the dimension before it, and so on. A negative number removes elements.
    """
    pairs = _pairs(pad, len(shape))
    if any(n + min(before, 0) + min(after, 0) < 0 for n, (before, after) in zip(shape, pairs, strict=True)):
        raise RuntimeError("narrow(): length must be non-negative.")
    padded = tuple([n + before + after for n, (before, after) in zip(shape, pairs, strict=True)])
    target = tuple([slice(max(a, 0), size - max(b, 0)) for size, (a, b) in zip(padded, pairs, strict=True)])
    source = tuple([slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(shape, pairs, strict=True)])
    return padded, target, None if min(pad, default=0) >= 0 else source


def _pairs(pad: Sequence[int], ndim: int) -> list[tuple[int, int]]:
    """Return ``pad`` as a list with a pair (before, after) for each of ``ndim`` dimensions, in their order.

    ``pad`` is a flat sequence of pairs that starts with the last dimension and may omit the first dimensions. An
    omitted dimension gets the pair (0, 0).
    """
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) // 2 > ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)}while the input has {ndim}dimensions."
        )
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (ndim - len(pairs)) + pairs[::-1]


@public(method=False)
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """Return ``input`` with the number ``value`` added before and after the elements of the last dimensions.

    ``pad`` is ``(before, after)`` for the last dimension, followed by a pair for the dimension before it, and so on. A
    negative number removes elements.
    """
    return constant_pad_nd_block(input, tuple(pad), value)


# -- Padding with elements of the tensor itself ----------------------------------------------------------------------


def _border_op(name: str, backward: str) -> Any:
    """Return a new operation, which pads a tensor with copies of its own elements, for example by reflection.

    ``name`` is the name of the operation, and ``backward`` that of its autograd node, such as
    ``ReflectionPad1DBackward0``.
    """

    connected = "" if backward == "CopySlices" else "zero"

    @op(name=name, backward=backward, function=False, method=False, linear=True, connected=connected, vmap="leading")
    def border(np: Any, self: Any, /, plan: tuple[interpolation.Taps, ...]) -> Any:
        """Return ``self`` padded along its last dimensions with copies of its own elements.

        ``plan`` has one item for each padded dimension. The item holds, for each element of the result along the
        dimension, the index of the element of ``self`` to copy.
        """
        return interpolation.apply_maps(np, self, plan)

    border.derivative(self=lambda F, g, plan: F.resample_back(g, plan))
    return border


@op(name="resample", backward="ResampleBackward0", function=False, method=False, linear=True, vmap="leading")
def resampled(np: Any, self: Any, /, plan: tuple[interpolation.Taps, ...]) -> Any:
    """Return ``self`` resampled along its last dimensions: each element is a weighted sum of elements of ``self``.

    ``plan`` has one item for each of these dimensions. The item holds, for each element of the result along the
    dimension, the indices and the weights of the elements of ``self`` that are summed.
    """
    return interpolation.apply_maps(np, self, plan)


@op(function=False, method=False, linear=True, vmap="leading")
def resample_back(np: Any, self: Any, /, plan: tuple[interpolation.Taps, ...]) -> Any:
    """Return the gradient of ``resampled(x, plan)`` with respect to ``x``; ``self`` is the gradient of the result.

    Resampling along a dimension is a product with a matrix, whose nonzero elements and their indices are in ``plan``.
    The gradient is the product with the transposed matrix.
    """
    return interpolation.apply_maps(np, self, tuple(taps.turned for taps in plan))


resampled.derivative(self=lambda F, g, plan: F.resample_back(g, plan))
resample_back.derivative(self=lambda F, g, plan: F.resample(g, plan))

_BORDERS = {
    (mode, rank): _border_op(f"{title.lower()}_pad{rank}d", f"{title}Pad{rank}DBackward0")
    for mode, title in (("reflect", "Reflection"), ("replicate", "Replication"))
    for rank in (1, 2, 3)
}
_circular = _border_op("circular_pad", "CopySlices")


def _check_border(input: Tensor, pad: tuple[int, ...], mode: str) -> int:
    """Check the arguments of ``pad`` and return the number of dimensions to pad: 1, 2 or 3.

    Raises NotImplementedError if ``mode`` is not ``"reflect"``, ``"replicate"`` or ``"circular"``. Also raises
    NotImplementedError if ``pad`` is for more than three dimensions, or if ``input`` does not have one or two other
    dimensions.
    """
    array, rank = input._array, len(pad) // 2
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if rank not in (1, 2, 3) or array.ndim not in (rank + 1, rank + 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {array.ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    return rank


def _pad_from_input(input: Tensor, pad: tuple[int, ...], mode: str) -> Tensor:
    rank = _check_border(input, pad, mode)
    shape = input._array.shape
    if mode != "circular" and 0 in shape[len(shape) - rank - 1 :]:
        raise RuntimeError(
            f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    pairs = _pairs(pad, len(shape))[-rank:]
    padded = [*shape[:-rank], *(n + sum(pair) for n, pair in zip(shape[-rank:], pairs, strict=True))]
    for back in range(1, rank + 1):
        _check_reach(shape, padded, back, pairs[-back], mode)
    if mode != "circular" and min(padded) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(padded[-rank:])}: {padded}")
    if mode != "circular" and input._array.dtype.kind == "b":
        raise unsupported(f"{'reflection' if mode == 'reflect' else 'replication'}_pad{rank}d", input._array.dtype)
    plan = tuple(
        interpolation.pad_map(size, before, after, mode)
        for size, (before, after) in zip(shape[-rank:], pairs, strict=True)
    )
    return (_circular if mode == "circular" else _BORDERS[mode, rank])(input, plan)


def _check_reach(shape: tuple[int, ...], padded: list[int], back: int, pair: tuple[int, int], mode: str) -> None:
    """Raise RuntimeError if ``pair``, the padding (before, after) of dimension ``-back``, is invalid.

    ``shape`` is the shape before padding, and ``padded`` the shape after padding. A number in ``pair`` must not be
    greater than the size of the dimension for ``mode="circular"``, and must be less than the size for ``"reflect"``.
    Negative padding is invalid if it removes too many elements.
    """
    (before, after), size, result = pair, shape[-back], padded[-back]
    if mode == "circular":
        if before > size or after > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if result < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    elif mode == "reflect" and (before >= size or after >= size):
        raise RuntimeError(
            f"Argument #{2 + 2 * back}: Padding size should be less than the corresponding input dimension, but got: "
            f"padding ({before}, {after}) at dimension {len(shape) - back} of input {list(shape)}"
        )
    elif result < 1 and padded[:-1] == list(shape[:-1]) and len(shape) < 4 and back == 1:
        raise RuntimeError(f"input (W: {size}) is too small. Calculated output W: {result}")


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Return ``input`` with elements added before and after the elements of its last dimensions.

    ``pad`` is ``(before, after)`` for the last dimension, followed by a pair for the dimension before it, and so on. A
    negative number removes elements. ``mode`` selects the added elements: ``"constant"`` adds the number ``value``
    (default 0), ``"reflect"`` mirrors the input about its first and last element, ``"replicate"`` repeats the first or
    last element, and ``"circular"`` adds elements from the opposite end. All modes except ``"constant"`` pad the last
    1, 2 or 3 dimensions of an input that has one or two more dimensions.

    >>> import retrograd as torch
    >>> torch.nn.functional.pad(torch.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input._array.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input._array.ndim}"
        )
    if mode == "constant":
        return constant_pad_nd_block(input, tuple(pad), 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    return _pad_from_input(input, tuple(pad), mode)
