"""Nested tensors, batches of tensors of different sizes: the counterpart of ``torch.nested``; see ``docs/nested.md``.

``_internal`` has the classes of the layouts ``torch.strided`` and ``torch.jagged`` and their functions. The package is
loaded on demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..core import dtypes
from ..core.tensor import Tensor, strided, wrap
from ..dispatch.declare import FUNCTIONS as _F
from ..operations.tensor_methods import add_method
from . import _internal as _internal
from ._internal import ops as _ops
from ._internal.nested_tensor import Nested as _Nested
from ._internal.nested_tensor import NestedTensor as _NestedTensor  # noqa: F401 - torch.nested._NestedTensor
from ._internal.nested_tensor import _rebuild_njt as _rebuild_njt
from ._internal.nested_tensor import jagged as _jagged
from ._internal.nested_tensor import jagged_from_list as _from_list
from ._internal.nested_tensor import jagged_from_tensor_and_lengths as _from_lengths
from ._internal.nested_tensor import jagged_of as _jagged_of
from ._internal.nested_tensor import nested_view_from_values_offsets_lengths as _view
from ._internal.nested_tensor import offsets_of as _offsets_of
from ._internal.nested_tensor import strided_from as _strided_from
from ._internal.nested_tensor import strided_of as _strided_of
from ._internal.nested_tensor import unsupported as _unsupported


def _layout(layout: Any) -> Any:
    if layout is None or layout is strided:
        return strided
    if layout is not _jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout


def nested_tensor(
    tensor_list: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Return a nested tensor with copies of the tensors or nested lists of numbers in ``tensor_list``, a leaf.

    Args:
        tensor_list: components of one number of dimensions.
        dtype: data type; by default that of the first component.
        layout: ``torch.strided`` (the default) or ``torch.jagged``, for components that differ in one dimension.
        device: device of the memory.
        requires_grad: whether the nested tensor requires gradients.
        pin_memory: without effect.

    Raises TypeError if ``tensor_list`` is no list, RuntimeError if the components do not fit together.

    >>> import retrograd as torch
    >>> torch.nested.nested_tensor([torch.arange(3), torch.arange(2)])
    nested_tensor([
      tensor([0, 1, 2]),
      tensor([0, 1])
    ])
    """
    layout = _layout(layout)
    if not isinstance(tensor_list, list) and (layout is strided or not isinstance(tensor_list, tuple)):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    parts = [
        each.detach() if isinstance(each, Tensor) else _F["tensor"](each, dtype=dtype)
        for each in tensor_list
    ]  # fmt: skip
    made = _made(parts, dtype, device, layout)
    if requires_grad and not (made.dtype.is_floating_point or made.dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return made.requires_grad_() if requires_grad else made


def _made(parts: Sequence[Any], dtype: Any, device: Any, layout: Any) -> Any:
    if layout is _jagged:
        return _from_list(parts, None, dtype, device)[0]
    if dtype is not None or device is not None:
        parts = [each.to(dtype=dtype or each.dtype, device=device or each.device) for each in parts]
    made = _strided_from(parts)
    return made.to(dtype) if dtype is not None and not parts else made


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Any:
    """Return a nested tensor of the tensors in ``ts``, through which gradients flow to them.

    ``ts`` is a list of tensors, or a tensor of shape (batch, …), whose memory is shared in the layout ``torch.jagged``.

    >>> import retrograd as torch
    >>> a, b = torch.ones(2, requires_grad=True), torch.ones(3)
    >>> torch.nested.as_nested_tensor([a, b], layout=torch.jagged).sum().backward()
    >>> a.grad
    tensor([1., 1.])
    """
    listed = isinstance(ts, (list, tuple)) and all(isinstance(each, Tensor) for each in ts)
    if not isinstance(ts, Tensor) and not listed:
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if isinstance(ts, tuple):
        ts = list(ts)
    if isinstance(ts, Tensor) and not isinstance(ts, _Nested) and ts.dim() < 1:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if isinstance(ts, _Nested):
        if layout is not (ts.layout if ts.layout is _jagged else layout) or ts.layout is not layout:
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        return ts.to(dtype=dtype or ts.dtype)
    layout = _layout(layout)
    if isinstance(ts, Tensor) and layout is _jagged:
        values = ts.contiguous().flatten(0, 1).to(dtype=dtype or ts.dtype)
        return _view(values, _offsets_of([ts.shape[1]] * ts.shape[0]), None)
    return _made(list(ts.unbind()) if isinstance(ts, Tensor) else ts, dtype, device, layout)


def to_padded_tensor(input: Any, padding: float, output_size: Any = None) -> Tensor:
    """Return an ordinary tensor of shape (batch, …) with ``padding`` after the elements of each component.

    The sizes are the largest ones of the components, or ``output_size``.

    >>> import retrograd as torch
    >>> torch.nested.to_padded_tensor(torch.nested.nested_tensor([torch.arange(3), torch.arange(2)]), -1)
    tensor([[ 0,  1,  2],
            [ 0,  1, -1]])
    """
    return _ops.to_padded_tensor(input, padding, output_size)


def nested_tensor_from_jagged(
    values: Any, offsets: Any = None, lengths: Any = None, jagged_dim: int | None = None, min_seqlen: Any = None,
    max_seqlen: Any = None,
) -> Any:  # fmt: skip
    """Return a nested tensor of the layout ``torch.jagged`` that shares the memory of ``values``.

    Component k is from ``offsets[k]`` to ``offsets[k + 1]`` along dimension ``jagged_dim - 1`` of ``values``; or has
    ``lengths[k]`` rows, which follow each other if there are no offsets.

    >>> import retrograd as torch
    >>> x = torch.nested.nested_tensor_from_jagged(torch.arange(5), lengths=torch.tensor([2, 3]))
    >>> x.unbind()
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = wrap(numpy.append(0, lengths._array.cumsum()).astype(lengths._array.dtype)), None
    if not isinstance(values, Tensor):
        raise TypeError(
            f"_nested_view_from_jagged(): argument 'input' (position 1) must be Tensor, not {type(values).__name__}"
        )
    return _view(values, offsets, lengths, 1 if jagged_dim is None else jagged_dim, min_seqlen, max_seqlen)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = strided) -> Any:
    """Return a nested tensor of the rows of ``tensor`` from ``start``, ``length`` of each, without copying.

    ``start`` and ``length`` are ints or, for the layout ``torch.jagged`` and ``dim=1``, tensors with one int for each
    component.

    >>> x = torch.arange(8).reshape(2, 4)
    >>> start, length = torch.tensor([0, 1]), torch.tensor([2, 3])
    >>> torch.nested.narrow(x, 1, start, length, layout=torch.jagged).unbind()
    (tensor([0, 1]), tensor([5, 6, 7]))
    """
    if _layout(layout) is strided:
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return _strided_from(list(_F["narrow"](as_nested_tensor(tensor), dim, start, length).unbind()))
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    return _from_lengths(tensor, start, length)[0]


def masked_select(tensor: Tensor, mask: Tensor) -> Any:
    """Return the elements of each row of ``tensor`` at which ``mask`` is true, as a nested tensor of the layout jagged.

    >>> import retrograd as torch
    >>> torch.nested.masked_select(torch.arange(4).reshape(2, 2), torch.tensor([[True, True], [False, True]])).unbind()
    (tensor([0, 1]), tensor([3]))
    """
    if tensor.layout is not strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    if mask.layout is not strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided mask, given: {mask.layout}")
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    mask = mask.expand(tensor.shape) if mask.shape != tensor.shape else mask
    counts = mask.flatten(1).sum(1) if mask.dim() > 1 else mask.sum().reshape(1)
    return _jagged_of(tensor.masked_select(mask), _offsets_of(counts.tolist()))


# -- Functions that PyTorch's modules and packages call ----------------------------------------------------------------


def _left_aligned(mask: Tensor) -> bool:
    array = mask._array
    return bool((array[:, :-1] >= array[:, 1:]).all())


def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Return whether every row of ``mask``, of shape (batch, length), is True up to some column and False after it."""
    return _left_aligned(mask)


def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> Any:
    """Return the nested tensor of the rows of ``t``, of shape (batch, length, features), at which ``mask`` is true."""
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError("Expected mask to be of ScalarType Bool, but got " + str(mask.dtype) + " instead.")
    if mask.dim() != 2 or t.dim() != 3:
        raise RuntimeError(f"Padding mask should be 2D and the input 3D, but got {mask.dim()}D and {t.dim()}D")
    if tuple(mask.shape) != tuple(t.shape[:2]):
        raise RuntimeError("Mask size should match input size")
    if mask_check and not _left_aligned(mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    counts = mask.sum(1).tolist()
    return _strided_from([each[:count] for each, count in zip(t.unbind(), counts, strict=True)])


def _nested_from_padded(padded: Tensor, cpu_nested_shape_example: Tensor, fuse_transform_0213: bool = False) -> Any:
    """Return the nested tensor of the first elements of ``padded``, for a tensor with a row of sizes for each component."""
    if fuse_transform_0213:
        padded = padded.transpose(1, 2).flatten(2)
    sizes = cpu_nested_shape_example.tolist()
    parts = [each[tuple(map(slice, size))] for each, size in zip(padded.unbind(), sizes, strict=True)]
    return _strided_from(parts)


def _nested_tensor_from_tensor_list(
    list: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Any:
    """Return the nested tensor of the layout strided of a list of tensors, as part of the graph."""
    return _made(list, dtype, device, strided)


def _nested_view_from_buffer(
    self: Tensor, nested_size: Tensor, nested_strides: Tensor, offsets: Tensor
) -> Any:  # fmt: skip
    """Return the nested tensor with the elements of the vector ``self`` and the given sizes."""
    made = _strided_of(self, nested_size._array)
    if not _F["equal"](made._nested_tensor_strides(), nested_strides):
        raise _unsupported("_nested_view_from_buffer with other strides", strided)
    return made


def _nested_view_from_jagged(
    input: Tensor, offsets: Tensor, dummy: Any = None, lengths: Any = None, ragged_idx: int = 1, min_seqlen: Any = None,
    max_seqlen: Any = None,
) -> Any:  # fmt: skip
    """Return the nested tensor of the layout jagged with these elements."""
    return _view(input, offsets, lengths, ragged_idx)


def _nested_get_values(x: Any) -> Tensor:
    """Return the elements of a nested tensor."""
    return x.values()


def _nested_get_offsets(x: Any) -> Tensor:
    """Return the offsets of a nested tensor."""
    return x._offsets


def _nested_get_lengths(x: Any) -> Any:
    """Return the lengths of a nested tensor, or None."""
    return x._lengths


def _nested_get_ragged_idx(x: Any) -> int:
    """Return the ragged dimension of a nested tensor."""
    return x._ragged_idx


add_method("to_padded_tensor", _ops.to_padded_tensor)
jagged = _jagged
__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor",
]  # fmt: skip
