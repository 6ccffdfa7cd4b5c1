"""Functions that overwrite or select elements: ``copy_``, ``fill_``, ``masked_fill``, ``masked_select``, …."""

from __future__ import annotations

import math
from operator import setitem
from typing import Any

import numpy

from ...core import devices, dtypes
from ...core.devices import array_module_of, on_gpu
from ...core.tensor import Tensor, element_strides, wrap
from ...core.views import bump_version, check_in_place, check_partial_overlap
from ...dispatch.declare import in_place_form, op, public, rule_function
from ...dispatch.generic_path import apply, is_directly_writable, modify
from ...dispatch.operand_promotion import NUMBERS, broadcast_mismatch, stores_like_pytorch
from ...dispatch.transform_tensor import innermost_batch
from ...kernels import elementwise
from ..creation.conversion import legacy_type_name, to_device
from ..engine_ops import expand

# -- Overwriting -----------------------------------------------------------------------------------------------------


@op(
    name="copy_block", backward="CopyBackwards", function=False, method=False, linear=True,
    write=(lambda self, other: other.ndim <= self.ndim, lambda self, other: setitem(self, ..., other)),
)  # fmt: skip
def copy_block(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``other`` broadcast to the shape of ``self`` and converted to the dtype of ``self``."""
    if other.dtype.kind == "W":
        other = other.astype(np.complex64)
    if other.dtype.kind == "c" and self.dtype.kind not in "bcW":
        other = other.real
    return np.broadcast_to(other if other.dtype is self.dtype else dtypes.cast(other, self.dtype), self.shape)


copy_block.derivative(self=lambda F, g: F.zeros_as(g), other=1)


@public(function=False, fast_path=copy_block, in_place=True)
def copy_(input: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Overwrite ``input`` with the elements of ``other`` and return ``input``.

    ``other`` is broadcast to the shape of ``input`` and converted to the dtype of ``input``. ``non_blocking`` has an
    effect only for a copy from pinned memory to a GPU, which goes on after the function has returned.

    >>> import retrograd as torch
    >>> torch.zeros(2, 3).copy_(torch.tensor([1, 2, 3]))
    tensor([[1., 2., 3.],
            [1., 2., 3.]])
    """
    if isinstance(other, (bool, int, float, complex)):
        other = wrap(numpy.asarray(other))
    if not isinstance(other, Tensor):
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
    if other._array.__class__ is not input._array.__class__ or (devices.several_gpus and other.device != input.device):
        other = apply(to_device.op, (other,), (input.device, non_blocking))
    if other._array.shape != input._array.shape:
        check_in_place(input, input.requires_grad or other.requires_grad)
        check_partial_overlap(input, (other,))
        _check_fits(input._array.shape, other._array.shape)
    return modify(copy_block.op, (input, other), ())


def _check_fits(target: tuple[int, ...], given: tuple[int, ...]) -> None:
    """Raise RuntimeError if an array of the shape ``given`` cannot be broadcast to the shape ``target``."""
    error = broadcast_mismatch(target, given)
    if error is not None:
        raise error
    shape = numpy.broadcast_shapes(target, given)
    if shape != target:
        raise RuntimeError(f"output with shape {list(target)} doesn't match the broadcast shape {list(shape)}")


@op(
    backward="FillBackward0", in_place_backward="FillBackward2", function=False, method=False,
    write=(lambda value, _d: stores_like_pytorch(value, _d), lambda self, value: self.fill(value)), vmap="leading",
)  # fmt: skip
def fill_block(np: Any, self: Any, /, value: Any) -> Any:
    """Return an array of the shape and dtype of ``self`` with the number ``value`` in every element."""
    return np.full(self.shape, dtypes.number_to_scalar(value, self.dtype))


fill_block.derivative(self=lambda F, g: F.zeros_as(g))


@op(
    backward="FillBackward1",
    in_place_backward="FillBackward3",
    function=False,
    method=False,
    linear=True,
    write=(lambda value: value.ndim == 0, lambda self, value: setitem(self, ..., value)),
    vmap=lambda F, self, value: F.copy_block(self, value),
)
def fill_tensor_block(np: Any, self: Any, value: Any, /) -> Any:
    """Return an array of the shape and dtype of ``self`` with the 0-d array ``value`` in every element."""
    return np.full(self.shape, value.astype(self.dtype))


fill_from_tensor_ = in_place_form(fill_tensor_block.op, "fill_")
fill_tensor_block.derivative(self=lambda F, g: F.zeros_as(g), value=lambda F, g: F.sum_all(g))


@public(fast_path=fill_block, in_place=True)
def fill_(input: Tensor, value: Any) -> Tensor:
    """Overwrite every element of ``input`` with ``value`` (a number or a 0-d tensor) and return ``input``."""
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions."
            )
        fill_from_tensor_(input, value)
        return input
    return modify(fill_block.op, (input,), (value,))


@public(method=False)
def fill(input: Tensor, value: Any) -> Tensor:
    """Return a tensor of the shape and dtype of ``input`` with ``value`` in every element.

    ``value`` is a number or a 0-d tensor.
    """
    return fill_tensor_block(input, value) if isinstance(value, Tensor) else fill_block(input, value)


@op(backward="ZeroBackward0", function=False, method=False, write=(None, lambda self: self.fill(0)), vmap="leading")
def zero_block(np: Any, self: Any, /) -> Any:
    """Return zeros of the shape and dtype of ``self``."""
    return np.zeros((), self.dtype) if self.ndim == 0 else np.zeros(self.shape, self.dtype)


zero_block.derivative(self=lambda F, g: F.zeros_as(g))


@public(fast_path=zero_block, in_place=True)
def zero_(input: Tensor) -> Tensor:
    """Overwrite every element of ``input`` with 0 and return ``input``.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> torch.zero_(x)
    tensor([0., 0.])
    >>> x
    tensor([0., 0.])
    """
    return modify(zero_block.op, (input,), ())


@public(function=False)
def fill_diagonal_(input: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Overwrite the main diagonal of ``input`` with the number ``fill_value`` and return ``input``.

    The main diagonal consists of the elements whose indices are all equal. If ``wrap`` is true and a matrix has more
    rows than columns, one row below the end of the diagonal is skipped, and then the diagonal starts again in the first
    column. Raises RuntimeError for fewer than 2 dimensions, and for more than 2 dimensions of different sizes.

    >>> import retrograd as torch
    >>> torch.zeros(2, 3).fill_diagonal_(5.0)
    tensor([[5., 0., 0.],
            [0., 5., 0.]])
    """
    array, shape = input._array, input._array.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if (
        not wrap
        and is_directly_writable(input)
        and array.flags.c_contiguous
        and stores_like_pytorch(fill_value, array.dtype)
    ):
        step = sum(element_strides(array))
        array.reshape(-1)[: (min(shape) - 1) * step + 1 : step] = fill_value
        bump_version(input)
        return input
    if not isinstance(fill_value, Tensor):
        dtypes.number_to_array(fill_value, input._array.dtype)
    steps, start = element_strides(input._array), input.storage_offset()
    fill_(input.as_strided((min(shape),), (sum(steps),), start), fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        step = steps[0] * (shape[1] + 1)
        rest = -(-(shape[0] - shape[1] - 1) * shape[1] // (shape[1] + 1))
        fill_(input.as_strided((rest,), (sum(steps),), start + step), fill_value)
    return input


def _each(name: str, others: int) -> None:
    """Define the method ``name``, such as ``map_``, which replaces each element by the result of a Python function.

    The Python function gets the element and, from each of ``others`` further tensors, the element at the same index.
    """

    def in_place(input: Tensor, *arguments: Any) -> Tensor:
        tensors, function = arguments[:others], arguments[others]
        if (special := innermost_batch((input, *tensors))) is not None:
            raise special.dynamic(name)
        if input.requires_grad or any(each.requires_grad for each in tensors):
            raise RuntimeError(
                f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
            )
        for position, each in enumerate(tensors):
            if each.dtype is not input.dtype:
                argument = "other" if others == 1 else "xy"[position]
                raise TypeError(
                    f"{name}: expected {legacy_type_name(input)} for '{argument}' (got {legacy_type_name(each)})"
                )
        array = input._array
        rows = [expand(each.detach(), array.shape)._array.ravel().tolist() for each in (input, *tensors)]
        results = [function(*values) for values in zip(*rows, strict=True)]
        array[...] = array_module_of(array).asarray(numpy.asarray(results, array.dtype).reshape(array.shape))
        return input

    in_place.__name__ = in_place.__qualname__ = name
    in_place.__doc__ = (
        "Overwrite each element by the result of a Python function, which autograd does not record; return ``input``."
    )
    public(function=False, name=name)(in_place)


for _name, _others in (("apply_", 0), ("map_", 1), ("map2_", 2)):
    _each(_name, _others)


# -- Masks -----------------------------------------------------------------------------------------------------------


def _broadcast_shape(mask: Any, x: Any) -> tuple[int, ...]:
    error = broadcast_mismatch(mask.shape, x.shape)
    if error is not None:
        raise error
    return numpy.broadcast_shapes(mask.shape, x.shape)


@op(
    backward="MaskedFillBackward0", function=False, method=False, linear=True, in_order=True,
    write=(
        lambda self, mask, value, _d: mask.dtype.kind == "b" and mask.shape == self.shape and stores_like_pytorch(value, _d),
        elementwise.FILL,
    ), vmap="elementwise",
)  # fmt: skip
def masked_fill_number(np: Any, self: Any, mask: Any, /, value: Any) -> Any:
    """Return a copy of ``self`` with the elements where ``mask`` is true replaced by the number ``value``."""
    if mask.dtype.kind != "b":
        raise TypeError("a mask is made of booleans")
    plain = np.__name__ != "cupy" and stores_like_pytorch(value, self.dtype)
    if plain and mask.shape == self.shape:
        return elementwise.fill_where_equal_shape(np, self, mask, value)
    if _broadcast_shape(mask, self) == self.shape and plain:
        return elementwise.fill_where(np, self, mask, value)
    return np.where(mask, dtypes.number_to_scalar(value, self.dtype), self)


masked_fill_number.derivative(self=lambda F, g, mask: F.masked_fill_number(g, mask, 0))


@op(
    backward="MaskedFillBackward1", function=False, method=False, linear=True, in_order=True,
    vmap=lambda F, self, mask, value: F.where_block(mask, F.to_dtype(value, self.dtype), self),
)  # fmt: skip
def masked_fill_tensor(np: Any, self: Any, mask: Any, value: Any, /) -> Any:
    """Return a copy of ``self`` with the elements where ``mask`` is true replaced by the 0-d array ``value``."""
    _broadcast_shape(mask, self)
    if value.dtype.kind == "c" and self.dtype.kind != "c":
        value = dtypes.number_to_array(value.item(), self.dtype)
    return np.where(mask, value.astype(self.dtype), self)


masked_fill_tensor.derivative(
    self=lambda F, g, mask: F.masked_fill_number(g, mask, 0),
    value=lambda F, g, mask: F.sum_all(F.where_else(mask, g)),
)


def _masked_fill(input: Tensor, mask: Tensor, value: Any) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {dtypes.cpp_name(mask.dtype)}"
        )
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value._array.ndim} dimension(s)."
            )
        return masked_fill_tensor, (input, mask, value), ()
    return masked_fill_number, (input, mask), (value,)


#: The condition for the fast paths of ``masked_fill``: the mask holds booleans.
_MASK: dict[str, Any] = {"if_arrays": lambda mask: mask.dtype.kind == "b"}


@public(fast_path=masked_fill_number, when=lambda value: value.__class__ in NUMBERS, **_MASK)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return a copy of ``input`` with the elements where ``mask`` is true replaced by ``value``.

    ``value`` is a number or a 0-d tensor.

    >>> import retrograd as torch
    >>> torch.masked_fill(torch.tensor([1, 2]), torch.tensor([True, False]), 9)
    tensor([9, 2])
    """
    call, tensors, params = _masked_fill(input, mask, value)
    return call(*tensors, *params)


@public(function=False, fast_path=masked_fill_number, in_place=True, **_MASK)
def masked_fill_(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Overwrite the elements of ``input`` where ``mask`` is true by ``value``, and return ``input``."""
    call, tensors, params = _masked_fill(input, mask, value)
    _check_fits(input._array.shape, mask._array.shape)
    return modify(call.op, tensors, params)


@op(backward="MaskedSelectBackward0", function=False, method=False, linear=True, vmap="dynamic")
def masked_select_block(np: Any, self: Any, mask: Any, /) -> Any:
    """Return the elements of ``self`` where ``mask`` is true, as a 1-d array; ``self`` and ``mask`` are broadcast."""
    shape = _broadcast_shape(mask, self)
    return np.broadcast_to(self, shape)[np.broadcast_to(mask, shape)]


masked_select_block.derivative(self=lambda F, g, self_shape, mask: F.masked_spread(g, mask, self_shape))


@op(function=False, method=False, linear=True, vmap="slices")
def masked_spread(np: Any, self: Any, mask: Any, /, shape: tuple[int, ...]) -> Any:
    """Return zeros of ``shape``, in which the elements of ``self`` are written where ``mask`` is true.

    ``self`` is 1-d, and its elements are written in C order.
    """
    whole = np.broadcast_shapes(shape, mask.shape)
    if on_gpu(self):
        if not self.size:
            return np.zeros(whole, self.dtype)
        where = np.broadcast_to(mask, whole)
        return np.where(where, self[_positions(np, where, self.size)], np.zeros((), self.dtype))
    out = np.zeros(whole, self.dtype)
    out[np.broadcast_to(mask, whole)] = self
    return out


def _positions(np: Any, where: Any, count: int) -> Any:
    """Return for each true element of ``where`` the number of true elements before it, at most ``count - 1``."""
    return np.clip(np.cumsum(where.reshape(-1)) - 1, 0, max(count - 1, 0)).reshape(where.shape)


masked_spread.derivative(self=lambda F, g, mask: F.masked_select_block(g, mask))


@public()
def masked_select(input: Tensor, mask: Tensor, *, out: Any = None) -> Tensor:
    """Return a 1-d tensor of the elements of ``input`` where ``mask`` is true.

    ``input`` and ``mask`` are broadcast together.

    >>> import retrograd as torch
    >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
    tensor([1, 3])
    """
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    return masked_select_block(input, mask)


@op(name="masked_scatter_block", backward="MaskedScatterBackward0", function=False, method=False, linear=True)
def masked_scatter_block(np: Any, self: Any, mask: Any, source: Any, /) -> Any:
    """Return a copy of ``self`` with the elements where ``mask`` is true replaced by elements of ``source``.

    The k-th replaced element, in C order, is the k-th element of ``source``.
    """
    out = np.array(np.broadcast_to(self, _broadcast_shape(mask, self)), order="C")
    where = np.broadcast_to(mask, out.shape)
    if on_gpu(out):
        return np.where(where, source.reshape(-1)[_positions(np, where, source.size)], out) if source.size else out
    count = int(where.sum())
    if source.size < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    out[where] = source.reshape(-1)[:count]
    return out


masked_scatter_block.derivative(
    self=lambda F, g, mask: F.masked_fill_number(g, mask, 0),
    source=lambda F, g, mask, source_shape: F.masked_gather(g, mask, source_shape),
)


@op(function=False, method=False, linear=True, vmap="slices")
def masked_gather(np: Any, self: Any, mask: Any, /, shape: tuple[int, ...]) -> Any:
    """Return the elements of ``self`` where ``mask`` is true, in C order, as an array of shape ``shape``.

    The remaining elements of the result are 0.
    """
    where = np.broadcast_to(mask, self.shape)
    if on_gpu(self):
        count = math.prod(shape)
        out = np.zeros(count + 1, self.dtype)
        out[np.where(where, _positions(np, where, count), count)] = self  # the other elements go behind the end
        return out[:count].reshape(shape)
    selected = self[where]
    out = np.zeros(math.prod(shape), self.dtype)
    out[: selected.size] = selected
    return out.reshape(shape)


masked_gather.derivative(
    self=lambda F, g, mask, self_shape: F.masked_spread(
        F.slice(F.reshape(g, (-1,)), 0, 0, F.true_count(mask, self_shape), 1), mask, self_shape
    )
)


def _true_count(mask: Any, shape: tuple[int, ...]) -> int:
    array = mask._array if isinstance(mask, Tensor) else mask
    if on_gpu(array):  # masked_spread ignores what is too much
        return math.prod(shape)
    return int(numpy.broadcast_to(array, shape).sum())


rule_function("true_count", _true_count, _true_count)


def _masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if source.dtype is not input.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{dtypes.scalar_name(input.dtype)} and {dtypes.scalar_name(source.dtype)}"
        )
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype " + dtypes.scalar_name(mask.dtype)
        )
    return input, mask, source


@public()
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy of ``input`` with the elements where ``mask`` is true replaced by elements of ``source``.

    The k-th replaced element, in C order, is the k-th element of ``source``.

    >>> import retrograd as torch
    >>> torch.masked_scatter(torch.zeros(3), torch.tensor([True, False, True]), torch.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    return masked_scatter_block(*_masked_scatter(input, mask, source))


@public(function=False)
def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Overwrite ``input`` with the result of :func:`masked_scatter` for the same arguments, and return ``input``."""
    tensors = _masked_scatter(input, mask, source)
    expand(mask, input._array.shape)  # raises RuntimeError for a mask that does not fit
    return modify(masked_scatter_block.op, tensors, ())
