"""Functions that join or repeat tensors: ``cat``, ``stack``, ``repeat``, ``meshgrid``, ``block_diag``; also ``where``.

``cat``, ``stack`` and ``block_diag`` take any number of tensors. The classes of their autograd nodes are therefore
written in this file, whereas the classes for other operations are created by a code generator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from sys import _getframe
from typing import Any

import numpy

from ...core import anomaly_mode, devices, dtypes
from ...core.devices import array_module_of, on_gpu
from ...core.grad_mode import in_inference, recording
from ...core.graph import Node, next_number
from ...core.rule_namespace import rule_namespace_of
from ...core.tensor import Tensor, contiguous_format, new, normalize_dim, wrap
from ...core.views import current_edge
from ...dispatch.declare import op, public, rule_function
from ...dispatch.device_errors import wrapped_check
from ...dispatch.intercept import GO_ON, HANDLERS, intercept_locals
from ...dispatch.operand_promotion import NUMBERS, PLAIN, broadcast_mismatch, common_dtype, stores_like_pytorch
from ...dispatch.transform_tensor import innermost
from ...kernels import elementwise, rearrangement
from ...runtime import user_frame
from ...runtime.user_frame import warn
from .views import parse_int_arguments, reshape, unsqueeze, view


def _dim_of(node: Any) -> int:
    """Return the dimension along which ``cat`` or ``stack`` has joined tensors."""
    dim: int = node.dim
    return dim


class CatBackward(Node):
    """Backward node of ``cat``: the gradient of each input tensor is its slice of the output gradient along ``dim``."""

    __slots__ = ("dim", "sizes")
    __module__ = "builtins"
    dim: int
    sizes: Sequence[int]

    def vjp(self, grad: Any, edges: tuple[Any, ...], keep: bool) -> Any:
        level, at, grads = rule_namespace_of(grad), 0, []
        for edge, size in zip(edges, self.sizes, strict=True):
            # Size -1 marks a legacy empty tensor of shape (0,), which PyTorch joins with any shape.
            grads.append(None if edge is None or size < 0 else level.slice(grad, self.dim, at, at + size, 1))
            at += max(size, 0)
        return grads[0] if len(edges) == 1 else tuple(grads)

    vjp_recorded = vjp
    _saved_dim = property(_dim_of)


class StackBackward(Node):
    """Backward node of ``stack``: the gradient of input ``i`` is slice ``i`` of the output gradient along ``dim``."""

    __slots__ = ("dim",)
    __module__ = "builtins"
    dim: int

    def vjp(self, grad: Any, edges: tuple[Any, ...], keep: bool) -> Any:
        level = rule_namespace_of(grad)
        grads = [None if edge is None else level.select(grad, self.dim, i) for i, edge in enumerate(edges)]
        return grads[0] if len(edges) == 1 else tuple(grads)

    vjp_recorded = vjp
    _saved_dim = property(_dim_of)


for _kind in (CatBackward, StackBackward):
    _kind.__name__ = _kind.__qualname__ = _kind.__name__ + "0"


def _tensor_of(kind: Any, edges: Sequence[Any], array: Any) -> tuple[Tensor, Any]:
    """Return ``array``, the result of ``cat``, ``stack`` or ``block_diag``, as the tuple (tensor, autograd node).

    ``kind`` is the class of the node. ``edges`` holds the gradient edge (node and output index) of each operand, or
    None for an operand that requires no gradient. The node is None if no operand requires a gradient, if the dtype is
    not floating or complex, or if gradients are disabled. The node stores the line of user code that called the
    function, for error messages of the backward pass.
    """
    result: Tensor = new(Tensor)
    result._array = array
    result._view = result._grad = result._grad_edge = result._counter = None
    if not recording():
        if in_inference():
            result._counter = ()
        return result, None
    if edges.count(None) == len(edges) or array.dtype.kind not in "fcVW":
        return result, None
    result._grad_edge = node = kind()
    _complete(node, edges, array, _getframe(2))
    return result, node


def _complete(node: Any, edges: Sequence[Any], array: Any, frame: Any) -> None:
    """Set the fields that all nodes have; ``array`` is the result and ``frame`` a frame of the call or its caller."""
    node.edges, node.number, node.hooks = tuple(edges), next_number(), None
    node.shape, node.dtype = array.shape, array.dtype
    while frame is not None and user_frame.MARK in frame.f_globals:
        frame = frame.f_back
    node.code, node.instruction = (None, -1) if frame is None else (frame.f_code, frame.f_lasti)
    if anomaly_mode.setting.enabled:
        anomaly_mode.note(node)


def _gradient_edges(tensors: Sequence[Tensor]) -> list[Any]:
    return [each._grad_edge if each._view is None else current_edge(each) for each in tensors]


def _join(node_class: Any, kernel: Any, tensors: Any, dim: Any) -> Any:
    """Return the result of ``cat`` or ``stack`` if NumPy joins the arrays exactly as PyTorch does, else None.

    This is the case if ``tensors`` is a list or tuple of tensors of one dtype on the CPU, without subclasses of Tensor.
    ``node_class`` is the class of the node, and ``kernel`` the function that joins arrays.
    """
    if (tensors.__class__ is not list and tensors.__class__ is not tuple) or dim.__class__ is not int:
        return None
    dtype: Any = None
    recorded: Any = False
    arrays: list[Any] = []
    edges: list[Any] = []
    for each in tensors:
        kind: Any = each.__class__
        if kind is not Tensor and kind not in PLAIN:
            return None
        array = each._array
        if array.dtype is not dtype or array.__class__ is not numpy.ndarray:
            if dtype is not None or array.__class__ is not numpy.ndarray:
                return None
            dtype = array.dtype
        arrays.append(array)
        edge = each._grad_edge if each._view is None else current_edge(each)
        if edge is not None:
            recorded = True
        edges.append(edge)
    mode = recording()
    recorded = recorded and mode and dtype.kind in "fcVW"
    try:
        joined = kernel(numpy, arrays, dim)
        sizes = [each.shape[dim] for each in arrays] if recorded and node_class is CatBackward else None
    except Exception:
        return None  # the generic path raises PyTorch's error
    if not joined.flags.c_contiguous:
        joined = joined.copy()
    result = new(Tensor)
    result._array = joined
    result._view = result._grad = result._grad_edge = result._counter = None
    if recorded:
        node = node_class()
        if sizes is not None:
            if 0 in sizes:  # the generic path also joins arrays of shape (0,) with arrays of any shape
                return None
            node.sizes = sizes
        node.dim = dim if dim >= 0 else dim + joined.ndim
        result._grad_edge = node
        try:
            frame = _getframe(2)
        except ValueError:  # a thread runs just this function
            frame = None
        _complete(node, edges, joined, frame)
    elif not mode and in_inference():
        result._counter = ()
    return result


def _tensors(name: str, tensors: Any) -> tuple[Tensor, ...]:
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    found = tuple(tensors)
    return _all_tensors(found)


def _all_tensors(tensors: tuple[Any, ...]) -> tuple[Tensor, ...]:
    for position, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {type(each).__name__}")
    return tensors


def _check_devices(tensors: Sequence[Tensor]) -> None:
    """Raise PyTorch's error if ``tensors`` are on several devices."""
    for each in tensors:
        if each.device != tensors[0].device and not (each.is_meta or tensors[0].is_meta):
            raise wrapped_check("cat", "tensors", each.device, tensors[0].device)


def _common(tensors: Sequence[Tensor]) -> list[Any]:
    """Return the arrays of ``tensors`` as a list, converted to the dtype to which PyTorch promotes them."""
    if len({each._array.__class__ for each in tensors}) > 1 or devices.several_gpus:
        _check_devices(tensors)
    first = tensors[0]._array.dtype
    if all(each._array.dtype is first for each in tensors):
        return [each._array for each in tensors]
    target = common_dtype(tensors).numpy
    return [each._array.astype(target, copy=False) for each in tensors]


_fast_cat = partial(_join, CatBackward, rearrangement.concatenate_arrays)
_fast_stack = partial(_join, StackBackward, rearrangement.stack_arrays)


@public(method=False, aliases=("concat", "concatenate"), fast_function=_fast_cat)
def cat(tensors: Any, dim: int = 0, *, out: Tensor | None = None, **kwargs: Any) -> Tensor:
    """Return the tensors of the sequence ``tensors`` concatenated along dimension ``dim``.

    The tensors must have equal sizes in all dimensions except ``dim``.

    >>> import retrograd as torch
    >>> torch.cat([torch.zeros(1, 2), torch.ones(2, 2)])
    tensor([[0., 0.],
            [1., 1.],
            [1., 1.]])
    """
    if HANDLERS and (answer := intercept_locals(cat, locals())) is not GO_ON:
        return answer
    if not kwargs:
        result = _fast_cat(tensors, dim)
        if result is not None:
            return result
    given = _tensors("cat", tensors)
    dim = kwargs.get("axis", dim)
    if not given:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    if (special := innermost(given)) is not None:
        return special.joined(given, dim, cat)
    arrays = _common(given)
    if 0 in [each.ndim for each in arrays]:
        position = [each.ndim for each in arrays].index(0)
        raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    full = [each for each in arrays if each.shape != (0,)] or arrays[:1]
    at = normalize_dim(dim, full[0].ndim)
    _check_sizes(arrays, full[0], at)
    np = array_module_of(full[0])
    joined = np.ascontiguousarray(np.concatenate(full, at))
    result, node = _tensor_of(CatBackward, _gradient_edges(given), joined)
    if node is not None:
        old = full[0].shape != (0,)
        node.dim, node.sizes = at, tuple(-1 if old and each.shape == (0,) else each.shape[at] for each in arrays)
    return result


def _check_sizes(arrays: Sequence[Any], first: Any, dim: int) -> None:
    for position, each in enumerate(arrays):
        if each.shape == (0,):
            continue
        if each.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {each.ndim}")
        for axis, (have, want) in enumerate(zip(each.shape, first.shape, strict=True)):
            if axis != dim and have != want:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {want} but got size {have} "
                    f"for tensor number {position} in the list."
                )


@public(method=False, fast_function=_fast_stack)
def stack(tensors: Any, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return the tensors of the sequence ``tensors`` joined along a new dimension ``dim``.

    The tensors must have equal shapes.

    >>> import retrograd as torch
    >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], 1)
    tensor([[1, 3],
            [2, 4]])
    """
    if HANDLERS and (answer := intercept_locals(stack, locals())) is not GO_ON:
        return answer
    joined = _fast_stack(tensors, dim)
    if joined is not None:
        return joined
    given = _tensors("stack", tensors)
    if not given:
        raise RuntimeError("stack expects a non-empty TensorList")
    if (special := innermost(given)) is not None:
        return special.joined(given, dim, stack)
    arrays = _common(given)
    _check_equal(arrays)
    np, at = array_module_of(arrays[0]), normalize_dim(dim, arrays[0].ndim + 1)
    result, node = _tensor_of(StackBackward, _gradient_edges(given), rearrangement.stack_arrays(np, arrays, at))
    if node is not None:
        node.dim = at
    return result


def _check_equal(arrays: Sequence[Any]) -> None:
    for position, each in enumerate(arrays):
        if each.shape != arrays[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(arrays[0].shape)} at entry 0 and "
                f"{list(each.shape)} at entry {position}"
            )


# -- Joining gradients of which some are None, for the derivative rules of unbind and split


def _stack_or_zeros(grads: Sequence[Any], shape: tuple[int, ...], dtype: Any, dim: int) -> Any:
    level = rule_namespace_of(next(each for each in grads if each is not None))
    return level.stack([level.zeros_of(shape, dtype, grads) if each is None else each for each in grads], dim)


def _cat_or_zeros(grads: Sequence[Any], shapes: Sequence[tuple[int, ...]], dtype: Any, dim: int) -> Any:
    level = rule_namespace_of(next(each for each in grads if each is not None))
    filled = [
        level.zeros_of(shape, dtype, grads) if each is None else each for each, shape in zip(grads, shapes, strict=True)
    ]
    return level.cat(filled, dim)


def _zeros_of(shape: tuple[int, ...], dtype: Any, near: Sequence[Any]) -> Any:
    return array_module_of(next(each for each in near if each is not None)).zeros(shape, dtype)


def _zero_tensor(shape: tuple[int, ...], dtype: Any, near: Sequence[Any]) -> Tensor:
    array = next(each for each in near if each is not None)._array
    return wrap(array_module_of(array).zeros(shape, dtype))


def _concatenate(arrays: Sequence[Any], dim: int = 0) -> Any:
    return rearrangement.concatenate_arrays(array_module_of(arrays[0]), list(arrays), dim)


def _stack(arrays: Sequence[Any], dim: int = 0) -> Any:
    return rearrangement.stack_arrays(array_module_of(arrays[0]), arrays, dim)


rule_function("cat", _concatenate, cat)
rule_function("stack", _stack, stack)
rule_function("zeros_of", _zeros_of, _zero_tensor)
rule_function("stack_or_zeros", _stack_or_zeros, _stack_or_zeros)
rule_function("cat_or_zeros", _cat_or_zeros, _cat_or_zeros)


# -- Other joins -----------------------------------------------------------------------------------------------------


@public(method=False)
def hstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Return ``tensors`` joined along the second dimension, or along the first dimension if they are 1-d.

    0-d tensors are treated as 1-d tensors of one element.
    """
    given = [atleast_1d(each) for each in _tensors("hstack", tensors)]
    if not given:
        raise RuntimeError("hstack expects a non-empty TensorList")
    return cat(given, 0 if given[0]._array.ndim == 1 else 1)


@public(method=False, aliases=("row_stack",))
def vstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Return ``tensors`` joined along the first dimension; 0-d and 1-d tensors are treated as single rows.

    >>> import retrograd as torch
    >>> torch.vstack((torch.tensor([1, 2]), torch.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    given = [atleast_2d(each) for each in _tensors("vstack", tensors)]
    if not given:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return cat(given, 0)


@public(method=False)
def dstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Return ``tensors`` joined along the third dimension.

    Tensors with fewer than three dimensions are first extended by :func:`atleast_3d`.

    >>> import retrograd as torch
    >>> torch.dstack((torch.tensor([1, 2]), torch.tensor([3, 4])))
    tensor([[[1, 3],
             [2, 4]]])
    """
    given = [atleast_3d(each) for each in _tensors("dstack", tensors)]
    if not given:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return cat(given, 2)


@public(method=False)
def column_stack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Return ``tensors`` joined along the second dimension; 0-d and 1-d tensors are treated as single columns.

    >>> import retrograd as torch
    >>> torch.column_stack((torch.tensor([1, 2]), torch.tensor([3, 4])))
    tensor([[1, 3],
            [2, 4]])
    """
    given = [
        reshape(each, (each._array.size, 1)) if each._array.ndim <= 1 else each
        for each in _tensors("column_stack", tensors)
    ]
    if not given:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return hstack(given)


def _atleast(name: str, one: Any) -> Any:
    def atleast(*tensors: Any) -> Any:
        given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
        results = tuple(one(each) for each in given)
        return results[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else results

    atleast.__name__ = atleast.__qualname__ = name
    atleast.__doc__ = (
        f"Return each tensor with at least {name[-2]} dimension(s): a tensor if one is passed, else a tuple."
    )
    return public(method=False, name=name)(atleast)


atleast_1d = _atleast("atleast_1d", lambda x: x if x._array.ndim else reshape(x, (1,)))
atleast_2d = _atleast(
    "atleast_2d",
    lambda x: x if x._array.ndim > 1 else reshape(x, (1, 1)) if x._array.ndim == 0 else unsqueeze(x, 0),
)
atleast_3d = _atleast(
    "atleast_3d",
    lambda x: (
        x
        if x._array.ndim > 2
        else reshape(x, (1, 1, 1))
        if x._array.ndim == 0
        else unsqueeze(unsqueeze(x, 0), -1)
        if x._array.ndim == 1
        else unsqueeze(x, -1)
    ),
)


@op(name="repeat_block", backward="RepeatBackward0", function=False, method=False, linear=True)
def repeat_block(np: Any, self: Any, /, repeats: tuple[int, ...]) -> Any:
    """Return ``self`` repeated ``repeats[i]`` times along each dimension ``i``.

    If ``repeats`` has more items than ``self`` has dimensions, new dimensions are added in front.
    """
    return np.tile(self, repeats)


def _repeat_rule(F: Any, g: Any, self_shape: Any, repeats: Any) -> Any:
    lead = len(repeats) - len(self_shape)
    shape = (1,) * lead + tuple(self_shape)
    folded = tuple(each for pair in zip(repeats, shape, strict=True) for each in pair)
    summed = tuple(each for size in shape for each in (1, size))
    return F.reshape(F.sum_to_size(F.reshape(g, folded), summed), self_shape)


repeat_block.derivative(self=_repeat_rule)


@public(function=False)
def repeat(input: Tensor, *repeats: Any, **kwargs: Any) -> Tensor:
    """Return a copy of ``input`` repeated ``repeats[i]`` times along each dimension ``i``.

    ``repeats`` are ints or one sequence of ints. If there are more ints than dimensions of ``input``, new dimensions
    are added in front. If there are fewer ints, RuntimeError is raised.
    """
    times = parse_int_arguments("repeat", repeats, "repeats", kwargs)
    lead = len(times) - input._array.ndim
    if lead < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = [count * size for count, size in zip(times, (1,) * lead + input._array.shape, strict=True)]
    if min(shape, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {shape}")
    return repeat_block(input, times)


@public()
def tile(input: Tensor, *dims: Any, **kwargs: Any) -> Tensor:
    """Return ``input`` repeated ``dims[i]`` times along each dimension ``i``.

    ``dims`` are ints or one sequence of ints. If there are fewer ints than dimensions of ``input``, they apply to the
    last dimensions. If there are more, new dimensions are added in front.

    >>> import retrograd as torch
    >>> torch.tile(torch.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    times = parse_int_arguments("tile", dims, "dims", kwargs)
    return repeat(input, (1,) * (input._array.ndim - len(times)) + times)


@public()
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Return ``input`` with each element, or each slice along ``dim``, repeated ``repeats`` times in a row.

    ``repeats`` is an int, or a 1-d tensor with a number of repetitions for each element or slice. Without ``dim``,
    ``input`` is flattened first. ``output_size``, if it is not None, must be the size of the result along ``dim``. The
    call ``repeat_interleave(counts)`` returns each index ``i`` of ``counts`` repeated ``counts[i]`` times.

    >>> import retrograd as torch
    >>> torch.repeat_interleave(torch.tensor([4, 5]), torch.tensor([1, 2]))
    tensor([4, 5, 5])
    """
    if repeats is None:
        return _interleaved(input, output_size)
    source = input if dim is not None else reshape(input, (-1,))
    at = normalize_dim(dim or 0, source._array.ndim)
    whole = source._array.shape[at] if source._array.ndim else 1
    if isinstance(repeats, Tensor):
        counts = repeats
        if counts._array.ndim > 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        if counts._array.ndim == 0 or counts._array.size == 1:
            counts = reshape(counts, (1,)).expand(whole)
        if counts._array.size != whole:
            raise RuntimeError(
                "repeats must have the same size as input along dim, but got repeats.size(0) = "
                f"{counts._array.size} and input.size({at}) = {whole}"
            )
        return source.index_select(at, _interleaved(counts, output_size))
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    shape = source._array.shape
    wide = unsqueeze(source, at + 1).expand(*shape[: at + 1], repeats, *shape[at + 1 :])
    return view(wide.clone(memory_format=contiguous_format), (*shape[:at], whole * repeats, *shape[at + 1 :]))


def _interleaved(counts: Tensor, output_size: int | None) -> Tensor:
    """Return a 1-d tensor in which each index ``i`` of the 1-d tensor ``counts`` is repeated ``counts[i]`` times.

    ``output_size`` is the expected number of elements of the result, or None.
    """
    array = counts._array
    if array.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if counts.dtype not in (dtypes.int64, dtypes.int32):
        raise dtypes.unsupported("repeat_interleave_cpu", array.dtype)
    if counts.is_meta:
        if output_size is None:
            raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
        return wrap(array_module_of(array).empty(output_size, array.dtype))
    np = array_module_of(array)
    if on_gpu(array) and output_size is not None:  # the ends of the repetitions, without waiting for the device
        ends = np.searchsorted(np.cumsum(array), np.arange(output_size), "right")
        return wrap(ends.astype(array.dtype))
    if array.size and int(array.min()) < 0:
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and output_size != int(array.sum()):
        raise RuntimeError("allocated size does not match required size")
    return wrap(np.repeat(np.arange(array.size, dtype=array.dtype), array))


@public(method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid: each of the 1-d ``tensors``, expanded along the dimensions of all others.

    With ``indexing="ij"`` the first tensor varies along the first dimension of the results and the second tensor along
    the second dimension. With ``indexing="xy"`` these two dimensions are exchanged.
    """
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)
    if indexing is None:
        warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
        )
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    _all_tensors(tuple(given))
    if not given:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if any(each.dtype is not given[0].dtype for each in given):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    for each in given:
        if each._array.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {each}")
    swap = indexing == "xy" and len(given) >= 2
    if swap:
        given[0], given[1] = given[1], given[0]
    shape = tuple(each._array.size for each in given)
    grids = [
        reshape(each, (1,) * i + (-1,) + (1,) * (len(given) - i - 1)).expand(shape) for i, each in enumerate(given)
    ]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


class BlockDiagBackward(Node):
    """Backward node of ``block_diag``: the gradient of each input tensor is its block of the output gradient."""

    __slots__ = ("shapes",)
    __module__ = "builtins"
    shapes: tuple[tuple[int, ...], ...]

    def vjp(self, grad: Any, edges: tuple[Any, ...], keep: bool) -> Any:
        level, row, column, grads = rule_namespace_of(grad), 0, 0, []
        for edge, shape in zip(edges, self.shapes, strict=True):
            height, width = (1,) * (2 - len(shape)) + shape
            block = level.slice(level.slice(grad, 0, row, row + height, 1), 1, column, column + width, 1)
            grads.append(None if edge is None else level.reshape(block, shape))
            row, column = row + height, column + width
        return grads[0] if len(edges) == 1 else tuple(grads)

    vjp_recorded = vjp


BlockDiagBackward.__name__ = BlockDiagBackward.__qualname__ = "BlockDiagBackward0"


@public(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix with ``tensors`` as blocks along its diagonal and zeros elsewhere.

    A 1-d tensor is treated as a matrix of one row, a 0-d tensor as a matrix of one element.
    """
    if not tensors:
        return wrap(numpy.zeros((1, 0), dtypes.default.floating.numpy))
    if (special := innermost(_all_tensors(tensors))) is not None:
        return special.joined(tensors, None, lambda each, dim: block_diag(*each))
    arrays = _common(tensors)
    for position, each in enumerate(arrays):
        if each.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {position} has {each.ndim} "
                "dimensions"
            )
    blocks = [each.reshape((1,) * (2 - each.ndim) + each.shape) for each in arrays]
    out = array_module_of(blocks[0]).zeros(
        [sum(each.shape[axis] for each in blocks) for axis in (0, 1)], blocks[0].dtype
    )
    row = column = 0
    for each in blocks:
        height, width = each.shape
        out[row : row + height, column : column + width] = each
        row, column = row + height, column + width
    result, node = _tensor_of(BlockDiagBackward, _gradient_edges(tensors), out)
    if node is not None:
        node.shapes = tuple(each.shape for each in arrays)
    return result


def _check_vector(x: Tensor) -> None:
    if x._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(x._array.shape)}")


@public(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return the Cartesian product of the 1-d ``tensors``: a matrix with one row for each combination of elements.

    If only one tensor is passed, it is returned unchanged.

    >>> import retrograd as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    for each in _all_tensors(tensors):
        _check_vector(each)
    if len(tensors) == 1:
        return tensors[0]
    return stack([each.flatten() for each in meshgrid(*tensors, indexing="ij")], 1)


@public(method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all combinations of ``r`` elements of the 1-d tensor ``input``, as the rows of a matrix.

    If ``with_replacement`` is true, a row may contain the same element of ``input`` more than once.
    """
    _check_vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return wrap(array_module_of(input._array).zeros(0, input._array.dtype))
    grids = meshgrid(*[input] * r, indexing="ij")
    if input.is_meta:
        count = math.comb(input._array.size + (r - 1) * with_replacement, r)
        return stack([each.reshape(-1)[:count] for each in grids], 1)
    places = numpy.indices([input._array.size] * r)
    before = numpy.less_equal if with_replacement else numpy.less
    mask = numpy.logical_and.reduce(before(places[:-1], places[1:]), axis=0, initial=True)
    mask = mask if r > 1 else numpy.ones(input._array.shape, bool)
    if innermost((input,)) is not None or on_gpu(input._array):  # the count depends on the size only
        np = array_module_of(input._array)
        return stack([input[wrap(np.asarray(each))] for each in numpy.nonzero(mask)], 1)
    return stack([each.masked_select(wrap(mask)) for each in grids], 1)


BOOL = numpy.dtype(numpy.bool_)


@op(
    backward="WhereBackward0", function=False, method=False,
    inline=lambda condition, self, other, _d: (
        elementwise.choose(numpy, self, other, condition) if _d is BOOL and self.dtype is other.dtype else None
    ), linear=True, vmap="elementwise",
)  # fmt: skip
def where_block(np: Any, condition: Any, self: Any, other: Any, /) -> Any:
    """Return the elements of ``self`` where ``condition`` is true, and the elements of ``other`` elsewhere.

    Raises TypeError if ``condition`` is not boolean, or if ``self`` and ``other`` have different dtypes. After this
    error, ``torch.where`` converts the operands to valid dtypes and repeats the operation.
    """
    if condition.dtype.kind != "b" or self.dtype != other.dtype:
        raise TypeError  # the public wrapper promotes
    try:
        return elementwise.choose(np, self, other, condition)
    except ValueError:
        raise next(
            error for a, b in ((condition, self), (self, other), (condition, other))
            if (error := broadcast_mismatch(a.shape, b.shape)) is not None
        ) from None  # fmt: skip


where_block.derivative(
    self=lambda F, g, condition: F.where_else(condition, g),
    other=lambda F, g, condition: F.where_else(F.logical_not(condition), g),
)


def where_(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """Return the elements of ``input`` where ``condition`` is true, and the elements of ``other`` elsewhere.

    ``input`` and ``other`` are tensors or numbers, which are broadcast with ``condition``. Without ``input`` and
    ``other``, the result is ``condition.nonzero(as_tuple=True)``.

    >>> import retrograd as torch
    >>> torch.where(torch.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if input is None or other is None or not isinstance(condition, Tensor):
        raise TypeError("where() received an invalid combination of arguments")
    if condition.dtype is dtypes.uint8:
        warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version "
            "of PyTorch. Use a boolean condition instead.",
        )
        condition = condition.to(dtypes.bool_)
    if condition.dtype is not dtypes.bool_:
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{dtypes.scalar_name(condition.dtype)}"
        )
    return where_block(condition, *_as_one(input, other))


def _as_one(*operands: Any) -> list[Any]:
    """Return the two ``operands`` of ``where`` as tensors of their promoted dtype.

    An operand is a tensor or a number.
    """
    x, number = operands if isinstance(operands[0], Tensor) else operands[::-1]
    if number.__class__ in NUMBERS and isinstance(x, Tensor) and stores_like_pytorch(number, x._array.dtype):
        number = wrap(array_module_of(x._array).asarray(number, x._array.dtype))
        return [x, number] if x is operands[0] else [number, x]
    target = common_dtype(operands)
    return [
        each.to(target) if isinstance(each, Tensor) else wrap(dtypes.number_to_array(each, target.numpy))
        for each in operands
    ]


#: The condition for the fast path of ``where``: no operand needs promotion.
_OF_ONE_DTYPE: dict[str, Any] = {"if_arrays": lambda self, other, _d: _d is BOOL and self.dtype is other.dtype}


public(method=False, name="where", fast_path=where_block, **_OF_ONE_DTYPE)(where_)


@public(
    function=False, name="where", fast_path=where_block, **_OF_ONE_DTYPE,
    operands=("condition", "self", "other"),
)  # fmt: skip
def _method_where(self: Tensor, condition: Tensor, other: Any) -> Any:
    """Return the elements of ``self`` where ``condition`` is true, and the elements of ``other`` elsewhere."""
    return where_(condition, self, other)
