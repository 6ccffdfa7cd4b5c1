"""In-place functions for shapes (``transpose_``, ``resize_``, ``set_``, …) and functions that compare memory layouts.

The memory layout of a tensor consists of its storage, storage offset, shape and strides.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...core import dtypes
from ...core.grad_mode import in_inference, recording
from ...core.graph import AccumulateGrad, hooks_of, note_other_shape
from ...core.tensor import Tensor, contiguous_strides, memory_owner
from ...core.views import bump_version, check_in_place
from ...dispatch.declare import public
from ...dispatch.generic_path import resized
from ...dispatch.transform_tensor import TransformTensor, innermost_batch
from .slicing import as_strided
from .views import parse_int_arguments, renamed_node_class, squeeze, swapaxes, t, transpose, unsqueeze

#: PyTorch's names for the nodes of the in-place forms.
_IN_PLACE = {
    "SqueezeBackward0": "SqueezeBackward3", "SqueezeBackward1": "SqueezeBackward4",
    "SqueezeBackward2": "SqueezeBackward5", "UnsqueezeBackward0": "UnsqueezeBackward1",
    "TransposeBackward0": "TransposeBackward1", "TBackward0": "TBackward1", "AsStridedBackward0": "AsStridedBackward1",
}  # fmt: skip


def _in_place_node_class(kind: type) -> type:
    """Return the class of the autograd node for the in-place version of a view function.

    ``kind`` is the class for the view function itself. Some in-place versions have a node of another name in PyTorch:
    if ``kind`` is ``TransposeBackward0``, the class for ``transpose``, the result is ``TransposeBackward1``, the class
    for ``transpose_``. For all other view functions, the result is ``kind``.
    """
    return renamed_node_class(kind, _IN_PLACE.get(kind.__name__, kind.__name__))


def _define_in_place_view(name: str, out_of_place: Any) -> None:
    """Define the in-place version of the view function ``name``, such as ``transpose_``, as a method of Tensor.

    ``out_of_place`` is the view function itself. The method calls it, and then the tensor takes over the shape, the
    strides and the ``grad_fn`` of the view. If gradients are disabled or the tensor requires none, the tensor remains a
    leaf of the autograd graph.
    """

    def in_place(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_in_place(input, input.requires_grad, overlap=True)
        if name == "t" and input._array.ndim > 2:
            raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
        viewed = out_of_place(input, *args, **kwargs)
        if isinstance(input, TransformTensor):
            input.become(viewed)
            return input
        edge = viewed._grad_edge if recording() else None
        if edge is None or edge is input._grad_edge:  # not recorded: the edge keeps the shape of before
            if input._grad_edge.__class__ is not AccumulateGrad and viewed._array.shape != input._array.shape:
                note_other_shape()
            input._array = viewed._array
            bump_version(input)
            input._renew_leaf()
            return input
        edge.__class__ = _in_place_node_class(type(edge))
        input._array = viewed._array
        bump_version(input)
        old = input._grad_edge
        input._grad_edge = edge
        if input._view is not None:
            input._view_version = input._version_counter[0] if input._version_counter else 0
        if old is not None and old.hooks is not None:
            hooks = hooks_of(edge)
            hooks.retaining = old.hooks.retaining  # the gradient of the old shape is retained
            if len(old.hooks.tensor) > (hooks.retaining is not None):
                hooks.earlier = old.hooks.earlier or old.hooks
        return input

    in_place.__name__ = in_place.__qualname__ = name + "_"
    in_place.__doc__ = (
        f"Change the shape and strides of ``input`` in place as :func:`{name}` does, and return ``input``."
    )
    public(function=name == "as_strided", name=name + "_")(in_place)


for _name, _function in (
    ("transpose", transpose), ("swapaxes", swapaxes), ("swapdims", transpose), ("t", t), ("squeeze", squeeze),
    ("unsqueeze", unsqueeze), ("as_strided", as_strided),
):  # fmt: skip
    _define_in_place_view(_name, _function)


@public(function=False)
def resize_(input: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Resize ``input`` in place to the shape ``size`` (ints or one sequence of ints) and return ``input``.

    The elements keep their order in the storage. If the storage is too small, it is reallocated, and the new elements
    are undefined. Raises RuntimeError if ``input`` requires gradients, except in inference mode.

    >>> import retrograd as torch
    >>> torch.arange(6).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    if input.requires_grad and not in_inference():
        raise RuntimeError("cannot resize variables that require grad")
    shape = parse_int_arguments("resize_", size)
    if min(shape, default=0) < 0:
        raise RuntimeError("numel: integer multiplication overflow")
    if (special := innermost_batch((input,))) is not None:
        raise special.dynamic("resize_")
    if shape != input._array.shape:
        check_in_place(input, False, overlap=True)
        input._array = resized(input._array, shape)
        bump_version(input)
        input._renew_leaf()
    return input


@public()
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Resize ``input`` in place to the shape of ``the_template`` and return ``input``.

    >>> import retrograd as torch
    >>> torch.resize_as_(torch.arange(4), torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return resize_(input, the_template._array.shape)


def _part_of_storage(input: Tensor, source: Any, offset: int, size: Any, stride: Any) -> Any:
    """Return elements of the memory of ``source``, a tensor or a storage, as an array of the dtype of ``input``.

    ``offset``, ``size`` and ``stride`` have the same meaning as for :func:`set_`. If ``size`` is None, the array has all
    elements. Raise RuntimeError if the memory does not hold the elements.
    """
    storage = source.untyped_storage() if hasattr(source, "untyped_storage") else source
    if not hasattr(storage, "_bytes"):
        raise TypeError(f"set_(): argument 'source' must be Tensor or UntypedStorage, not {type(source).__name__}")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    whole, kind = storage._bytes, input._array.dtype
    whole = whole[: whole.size // kind.itemsize * kind.itemsize].view(kind)
    if size is None:
        return whole[offset:]
    shape = tuple(size)
    steps = contiguous_strides(shape) if stride is None else tuple(stride)
    needed = offset + 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if any(each < 0 for each in (*shape, *steps)):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(steps)}")
    if 0 not in shape and needed > whole.size:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset}, and itemsize {kind.itemsize} "
            f"requiring a storage size of {needed * kind.itemsize} are out of bounds for storage of size {storage.nbytes()}"
        )
    return numpy.lib.stride_tricks.as_strided(whole[offset:], shape, [step * kind.itemsize for step in steps])


@public(function=False)
def set_(
    input: Tensor, source: Any = None, storage_offset: int | None = None, size: Any = None, stride: Any = None
) -> Tensor:
    """Make ``input`` share the memory of ``source``, a tensor or a storage, and return ``input``.

    ``input`` gets the shape and strides of a tensor ``source``, and all elements of a storage. With ``storage_offset``,
    ``size`` and ``stride``, which count elements, it gets this part of the memory; the default of ``stride`` is that of
    a contiguous tensor. Without ``source``, ``input`` becomes a tensor without elements.

    Raises RuntimeError if ``input`` and ``source`` have different dtypes. Also raises RuntimeError if gradients are
    enabled and ``input`` or ``source`` requires gradients.

    >>> import retrograd as torch
    >>> x = torch.arange(4)
    >>> torch.empty(0, dtype=torch.int64).set_(x)
    tensor([0, 1, 2, 3])
    """
    place = None
    if source is not None and (storage_offset is not None or not isinstance(source, Tensor)):
        first = source.storage_offset() if isinstance(source, Tensor) else 0
        place = _part_of_storage(input, source, first + (storage_offset or 0), size, stride)
        source = source if isinstance(source, Tensor) else None
    if source is not None and source.dtype is not input.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {dtypes.cpp_name(source.dtype)} to a tensor of type {dtypes.cpp_name(input.dtype)}"
        )
    if (special := innermost_batch((input, source))) is not None:
        raise special.dynamic("set_")
    recorded = input.requires_grad or (source is not None and source.requires_grad)
    check_in_place(input, recorded, overlap=True)
    if recorded and recording():
        raise RuntimeError("the derivative for 'set_' is not implemented")
    input._array = place if place is not None else input._array[:0].reshape(0) if source is None else source._array
    bump_version(input)
    input._renew_leaf(anew=True)
    return input


@public(function=False)
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Whether ``input`` and ``tensor`` have the same storage, storage offset, shape and strides.

    >>> import retrograd as torch
    >>> x = torch.zeros(2)
    >>> x.is_set_to(x.detach())
    True
    """
    return (
        memory_owner(input._array) is memory_owner(tensor._array)
        and input.storage_offset() == tensor.storage_offset()
        and input._array.shape == tensor._array.shape
        and input.stride() == tensor.stride()
    )


@public()
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether ``input`` and ``other`` have the same shape.

    >>> import retrograd as torch
    >>> torch.is_same_size(torch.zeros(2, 3), torch.ones(2, 3))
    True
    """
    return input._array.shape == other._array.shape


@public(function=False)
def dim_order(input: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """Return the dimensions of ``input`` as a tuple, ordered by decreasing stride.

    The first item is the dimension whose neighbouring elements are farthest apart in memory. ``ambiguity_check`` has no
    effect.

    >>> import retrograd as torch
    >>> torch.zeros(1, 2, 3, 4).to(memory_format=torch.channels_last).dim_order()
    (0, 2, 3, 1)
    """
    steps = input.stride()
    return tuple(sorted(range(len(steps)), key=lambda dim: -steps[dim]))


public(method=False, name="detach_")(Tensor.detach_)
