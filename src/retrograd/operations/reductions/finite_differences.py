"""Finite differences: ``diff``, and ``gradient``, which estimates derivatives by finite differences."""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...core.tensor import Tensor, normalize_dim
from ...dispatch.declare import TENSORS, public
from ..indexing.masked_fill import copy_
from ..shape.join import cat
from ..shape.slicing import slice_block

F: Any = TENSORS


def _from(x: Tensor, dim: int, start: int, end: int) -> Tensor:
    """Return the slice of ``x`` from index ``start`` to ``end`` (exclusive) along ``dim``.

    The slice is empty if ``end`` is less than ``start``.
    """
    return slice_block(x, dim, start, max(start, end), 1)


@public()
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the ``n``-th forward difference of ``input`` along ``dim``: for n = 1, ``input[i + 1] - input[i]``.

    ``prepend`` and ``append`` are first concatenated to the beginning and the end of ``input``. Raises RuntimeError for
    a 0-d tensor, for a negative ``n``, and if the shape of ``prepend`` or ``append`` differs from that of ``input`` in
    a dimension other than ``dim``.

    >>> import retrograd as torch
    >>> torch.diff(torch.tensor([1, 3, 2]))
    tensor([ 2, -1])
    """
    for end in (prepend, append):
        _check_end(input, dim, end)
    if not input._array.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    at = normalize_dim(dim, input._array.ndim)
    if n == 0:
        return copy_(input.new_zeros(input._array.shape), input)
    pieces = [each for each in (prepend, input, append) if each is not None]
    result = cat(pieces, at) if len(pieces) > 1 else input
    step = F.logical_xor if result.dtype is dtypes.bool_ else F.sub
    for _ in range(min(n, result._array.shape[at])):
        size = result._array.shape[at]
        result = step(_from(result, at, 1, size), _from(result, at, 0, size - 1))
    return result


def _check_end(input: Tensor, dim: int, end: Tensor | None) -> None:
    """Raise RuntimeError if the shapes of ``end`` and ``input`` differ in a dimension other than ``dim``.

    ``end`` is the argument ``prepend`` or ``append`` of ``diff``, or None.
    """
    if end is None:
        return
    if end._array.ndim != input._array.ndim:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    at = normalize_dim(dim, input._array.ndim)
    for axis, (have, want) in enumerate(zip(end._array.shape, input._array.shape, strict=True)):
        if axis != at and have != want:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; input.size({axis}) = {want}, but got tensor.size({axis}) = {have}"
            )


# -- Estimated derivatives -------------------------------------------------------------------------------------------


@public(method=False)
def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Return an estimate of the derivative of ``input`` along each dimension of ``dim``, as a tuple of tensors.

    The estimates are central differences of second order.

    Args:
        spacing: the distance between neighbouring elements, by default 1; or a sequence with a distance or a 1-d
            tensor of coordinates for each dimension.
        dim: an int or a sequence of ints; all dimensions by default.
        edge_order: the order (1 or 2) of the one-sided differences at both ends.

    See Fornberg, "Generation of Finite Difference Formulas on Arbitrarily Spaced Grids" (1988).

    >>> import retrograd as torch
    >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    ndim = input._array.ndim
    axes = _gradient_dims(dim, ndim)
    distances = _distances(input, spacing, dim, axes)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for axis in axes:
        if input._array.shape[axis] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(
        (_uneven if isinstance(distance, Tensor) else _even)(input, axis, distance, edge_order)
        for axis, distance in zip(axes, distances, strict=True)
    )


def _gradient_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return the argument ``dim`` of ``gradient`` as a tuple of non-negative ints; None means all ``ndim`` dimensions.

    Raises RuntimeError if a dimension is passed twice.
    """
    if dim is None:
        return tuple(range(ndim))
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    axes = tuple(normalize_dim(each, ndim) for each in given)
    for axis in axes:
        if axes.count(axis) > 1:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    return axes


def _distances(input: Tensor, spacing: Any, dim: Any, axes: tuple[int, ...]) -> tuple[Any, ...]:
    """Return a tuple with the spacing along each dimension in ``axes``, for :func:`gradient`.

    A spacing is the distance between neighbouring elements, or a 1-d tensor of coordinates. ``spacing`` and ``dim`` are
    the arguments of :func:`gradient`. Raises RuntimeError if there is not one spacing for each dimension, or if a
    tensor of coordinates is not 1-d.
    """
    if isinstance(spacing, Tensor) and not spacing._array.ndim:
        spacing = spacing.item()
    if spacing is None or isinstance(spacing, (int, float, complex)):
        return (1 if spacing is None else spacing,) * len(axes)
    distances = tuple(spacing)
    if len(distances) != len(axes):
        if dim is None:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
                f"{input._array.ndim}', since dim argument was not given, but got a list of length {len(distances)}"
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same "
            f"length, but got a spacing argument of length {len(distances)} and a dim argument of length {len(axes)}."
        )
    for each in distances:
        if isinstance(each, Tensor) and each._array.ndim != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got an element with "
                f"{each._array.ndim} dimensions!"
            )
    return distances


def _even(x: Tensor, dim: int, step: Any, edge_order: int) -> Tensor:
    """Return the estimate of the derivative of ``x`` along ``dim``, for equally spaced coordinates.

    ``step`` is the distance between neighbouring coordinates. The elements of the result, except the two at the ends,
    are the central differences ``(x[i + 1] - x[i - 1]) / (2 * step)``. ``edge_order`` is the order (1 or 2) of the
    one-sided differences at both ends.
    """
    size = x._array.shape[dim]
    inner = (_from(x, dim, 2, size) - _from(x, dim, 0, size - 2)) / (2 * step if step else step)
    if edge_order == 1:
        first = (_from(x, dim, 1, 2) - _from(x, dim, 0, 1)) / step
        last = (_from(x, dim, size - 1, size) - _from(x, dim, size - 2, size - 1)) / step
    else:
        a, b, c = (_from(x, dim, i, i + 1) for i in range(3))
        first = (-1.5 * a + 2 * b - 0.5 * c) / step
        a, b, c = (_from(x, dim, size - i - 1, size - i) for i in range(3))
        last = (1.5 * a - 2 * b + 0.5 * c) / step
    return cat((first, inner, last), dim)


def _uneven(x: Tensor, dim: int, coordinates: Tensor, edge_order: int) -> Tensor:
    """Return the estimate of the derivative of ``x`` along ``dim``, for unequally spaced ``coordinates``.

    ``coordinates`` is a 1-d tensor with the coordinate of each element along ``dim``. Each element of the result,
    except the two at the ends, is a weighted sum of three neighbouring elements of ``x``. ``edge_order`` is the order
    (1 or 2) of the one-sided differences at both ends.
    """
    size = x._array.shape[dim]
    gaps = diff(coordinates)
    before, after = gaps[:-1], gaps[1:]
    shape = [1] * x._array.ndim
    shape[dim] = -1
    weights = (
        -after / (before * (before + after)),
        (after - before) / (before * after),
        before / (after * (before + after)),
    )
    left, middle, right = (each.reshape(shape) for each in weights)
    inner = left * _from(x, dim, 0, size - 2) + middle * _from(x, dim, 1, size - 1) + right * _from(x, dim, 2, size)
    if edge_order == 1:
        first = (_from(x, dim, 1, 2) - _from(x, dim, 0, 1)) / gaps[0]
        last = (_from(x, dim, size - 1, size) - _from(x, dim, size - 2, size - 1)) / gaps[-1]
    else:
        first = _edge(x, dim, (0, 1, 2), gaps[0], gaps[1])
        last = -_edge(x, dim, (size - 1, size - 2, size - 3), gaps[-1], gaps[-2])
    return cat((first, inner, last), dim)


def _edge(x: Tensor, dim: int, indices: tuple[int, ...], near: Tensor, far: Tensor) -> Tensor:
    """Return an estimate of the derivative of ``x`` at one end of the dimension ``dim``, a one-sided difference.

    ``indices`` holds the first three indices of the dimension, or the last three in descending order. The result is a
    weighted sum of the elements of ``x`` at these indices, of second order. For the last three indices, the result is
    the negative derivative, and the caller changes its sign.

    ``near`` is the distance between the coordinates at the first and the second index. ``far`` is the distance between
    the coordinates at the second and the third index.
    """
    a, b, c = (_from(x, dim, i, i + 1) for i in indices)
    both = near + far
    return -(both + near) / (near * both) * a + both / (near * far) * b - near / (both * far) * c
