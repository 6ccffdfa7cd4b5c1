"""In place: the same tensor shown otherwise, with another size, or with the memory of another."""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...core.grad_mode import recording
from ...core.tensor import Tensor, memory_of
from ...core.views import bump_version, check_in_place
from ...dispatch.declare import public
from ...dispatch.generic_path import resized
from ...dispatch.transform_tensor import TransformTensor, batched
from .slicing import as_strided
from .views import renamed, spread, squeeze, swapaxes, t, transpose, unsqueeze

#: PyTorch's names for the nodes of the in-place forms.
_IN_PLACE = {
    "SqueezeBackward0": "SqueezeBackward3", "SqueezeBackward1": "SqueezeBackward4",
    "SqueezeBackward2": "SqueezeBackward5", "UnsqueezeBackward0": "UnsqueezeBackward1",
    "TransposeBackward0": "TransposeBackward1", "TBackward0": "TBackward1", "AsStridedBackward0": "AsStridedBackward1",
}  # fmt: skip


def _numbered(kind: type) -> type:
    """The node class of the in-place form of a view."""
    return renamed(kind, _IN_PLACE.get(kind.__name__, kind.__name__))


def _reshow(name: str, out_of_place: Any) -> None:
    """The in-place form of a view: the tensor itself takes the new shape and strides."""

    def in_place(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        node = input._grad_edge
        check_in_place(input, input.requires_grad, overlap=True)
        if name == "t" and input._array.ndim > 2:
            raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
        shown = out_of_place(input, *args, **kwargs)
        if isinstance(input, TransformTensor):
            input.become(shown)
            return input
        made = shown._grad_edge if recording() else None
        if made is not None and made is not node:
            made.__class__ = _numbered(type(made))
        input._array = shown._array
        bump_version(input)
        if made is not None and made is not node:
            if input._view is None:
                input._grad_edge = made
            else:
                input._grad_edge = made
                input._view_version = input._version_counter[0] if input._version_counter else 0
        else:
            input._renew_leaf()
        return input

    in_place.__name__ = in_place.__qualname__ = name + "_"
    in_place.__doc__ = f"In-place version of :func:`{name}`."
    public(function=name == "as_strided", name=name + "_")(in_place)


for _name, _function in (
    ("transpose", transpose), ("swapaxes", swapaxes), ("swapdims", transpose), ("t", t), ("squeeze", squeeze),
    ("unsqueeze", unsqueeze), ("as_strided", as_strided),
):  # fmt: skip
    _reshow(_name, _function)


@public(function=False)
def resize_(input: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Give the tensor another size in place: its memory is kept, and grows (with undefined elements) if need be."""
    if input.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    shape = spread("resize_", size)
    if min(shape, default=0) < 0:
        raise RuntimeError("numel: integer multiplication overflow")
    if (special := batched((input,))) is not None:
        raise special.dynamic("resize_")
    input._array = resized(input._array, shape)
    bump_version(input)
    return input


@public()
def resize_as_(input: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give the tensor the size of ``other`` in place."""
    return resize_(input, other._array.shape)


@public(function=False)
def set_(input: Tensor, source: Tensor | None = None, **rest: Any) -> Tensor:
    """Make the tensor share the memory, shape and strides of ``source``."""
    if source is not None and source.dtype is not input.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {dtypes.c_name(source.dtype)} to a tensor of type {dtypes.c_name(input.dtype)}"
        )
    if (special := batched((input, source))) is not None:
        raise special.dynamic("set_")
    recorded = input.requires_grad or (source is not None and source.requires_grad)
    check_in_place(input, recorded, overlap=True)
    if recorded and recording():
        raise RuntimeError("the derivative for 'set_' is not implemented")
    input._array = input._array[:0].reshape(0) if source is None else source._array
    bump_version(input)
    return input


@public(function=False)
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors show the same memory with the same shape and strides."""
    return (
        memory_of(input._array) is memory_of(tensor._array)
        and input.storage_offset() == tensor.storage_offset()
        and input._array.shape == tensor._array.shape
        and input.stride() == tensor.stride()
    )


@public()
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both tensors have the same shape."""
    return input._array.shape == other._array.shape


@public(function=False)
def dim_order(input: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost."""
    steps = input.stride()
    return tuple(sorted(range(len(steps)), key=lambda dim: -steps[dim]))


public(method=False, name="detach_")(Tensor.detach_)
