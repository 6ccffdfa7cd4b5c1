"""Views in another shape: ``view``, ``reshape``, ``flatten``, ``squeeze``, ``expand``, ``transpose``, ``permute``, ….

``reshape`` and the functions that call it return a copy if the strides do not allow a view.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core import dtypes
from ...core.devices import array_module_of
from ...core.size import Size
from ...core.tensor import Tensor, contiguous_format, element_strides, normalize_dim
from ...dispatch.declare import AXIS, FUNCTIONS, NEW_AXIS, op, public, rule_function, with_fast_path
from ...dispatch.intercept import GO_ON, OVERRIDING, ask_classes_of
from ...dispatch.operand_promotion import broadcast_error
from ...dispatch.transform_tensor import slicewise
from ...runtime.user_frame import strips_frames, warn
from ..creation.conversion import clone
from ..engine_ops import as_strided_of, expand


def view_op(name: str, backward: str | None = None, **options: Any) -> Any:
    """Return a decorator that makes a differentiable operation from a function that returns a view of an array.

    ``name`` is the name of the operation, and ``backward`` the name of its autograd node. ``options`` are further
    keyword arguments of ``dispatch.declare.op``, the general form of this decorator.
    """
    return op(view=True, name=name, backward=backward, function=False, method=False, linear=True, **options)


_RENAMED: dict[tuple[type, str], type] = {}


def renamed_node_class(kind: type, name: str) -> type:
    """Return the class ``kind`` of autograd nodes if its name is ``name``, else a subclass of ``kind`` with this name.

    In PyTorch, for example, the nodes of a view function and of its in-place version have different names.
    """
    if name == kind.__name__:
        return kind
    if (kind, name) not in _RENAMED:
        _RENAMED[kind, name] = type(name, (kind,), {"__slots__": (), "__module__": "builtins"})
    return _RENAMED[kind, name]


def as_int_tuple(value: Any) -> tuple[int, ...]:
    """Return ``value`` as a tuple of ints.

    ``value`` is an int, a 0-d integer tensor, or a sequence of these.
    """
    return (value.__index__(),) if hasattr(value, "__index__") and not isinstance(value, (tuple, list)) else tuple(
        each.__index__() for each in value
    )  # fmt: skip


def parse_int_arguments(
    name: str, given: tuple[Any, ...], argument: str = "size", kwargs: Any = None
) -> tuple[int, ...]:
    """Return the ints that were passed to the function ``name`` for its parameter ``argument``, as a tuple.

    ``given`` holds the positional arguments: ints or one sequence of ints. ``kwargs`` holds the keyword arguments,
    which may contain ``argument``. Raises TypeError with PyTorch's message if the ints are missing or if ``kwargs``
    contains another argument.
    """
    if kwargs:
        given = (*given, kwargs.pop(argument)) if argument in kwargs else given
        for wrong in kwargs:
            raise TypeError(f"{name}() got an unexpected keyword argument '{wrong}'")
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = tuple(given[0])
    elif not given:
        raise TypeError(f'{name}() missing 1 required positional arguments: "{argument}"')
    for each in given:
        if each.__class__ is not int:
            break
    else:
        return given
    if given and isinstance(given[0], bool):
        raise TypeError(f"{name}(): argument '{argument}' (position 1) must be tuple of ints, not bool")
    try:
        return tuple(each.__index__() for each in given)
    except (AttributeError, TypeError):
        raise _no_ints(name, argument, given) from None


def _no_ints(name: str, argument: str, given: tuple[Any, ...]) -> TypeError:
    position = next(i for i, each in enumerate(given) if not hasattr(each, "__index__"))
    kind = type(given[position]).__name__
    if position:
        return TypeError(
            f"{name}(): argument '{argument}' failed to unpack the object at pos {position + 1} with error \"type must be "
            f'tuple of ints,but got {kind}"'
        )
    return TypeError(f"{name}(): argument '{argument}' (position 1) must be tuple of ints, not {kind}")


_SEQUENCES = (tuple, list, Size)


#: The parameter ``size`` of fast paths: the arguments, or the sequence that is the only argument.
_SIZE: dict[str, Any] = {
    "size": lambda array, size: (
        size if len(size) != 1 or size[0].__class__ is int else size[0] if size[0].__class__ in _SEQUENCES else None
    )
}


# -- view, reshape and flatten ---------------------------------------------------------------------------------------


def infer_size(shape: Sequence[int], size: Sequence[int]) -> tuple[int, ...]:
    """Return the shape ``size`` with a -1 replaced by the size that gives as many elements as ``shape`` has.

    Raises RuntimeError if the numbers of elements differ.
    """
    total = math.prod(shape)
    if min(size, default=0) < -1:
        wrong = next(i for i, each in enumerate(size) if each < -1)
        raise RuntimeError(f"invalid shape dimension {size[wrong]} at index {wrong} of shape {list(size)}")
    if -1 not in size:
        if math.prod(size) != total:
            raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {total}")
        return tuple(size)
    if list(size).count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    rest = math.prod(each for each in size if each != -1)
    if rest == 0 and total == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(size)} because the unspecified dimension size -1 can "
            "be any value and is ambiguous"
        )
    if rest == 0 or total % rest:
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {total}")
    return tuple(total // rest if each == -1 else each for each in size)


@view_op(
    "view",
    "ViewBackward0",
    inline=lambda self, size: self.reshape(size) if self.flags.c_contiguous and (not size or min(size) > -2) else None,
    vmap="leading",
)
def view_block(np: Any, self: Any, /, size: tuple[int, ...]) -> Any:
    """Return a view of ``self`` in the shape ``size``; raise RuntimeError if the strides of ``self`` do not allow one.

    One item of ``size`` may be -1 and is then inferred from the number of elements.
    """
    target = infer_size(self.shape, size)
    if self.flags.c_contiguous:
        return self.reshape(target)
    strides = view_strides(self.shape, self.strides, target)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return as_strided_of(np)(self, target, strides)


view_block.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


def view_strides(shape: Sequence[int], strides: Sequence[int], size: Sequence[int]) -> tuple[int, ...] | None:
    """Return the strides of a view of shape ``size``, or None if a view of this shape is impossible.

    The view is that of a tensor with the given ``shape`` and ``strides``, and has its elements in the same order. If
    the result is None, a reshape to ``size`` must copy.
    """
    if math.prod(shape) == 0:
        step, steps = 1, []
        for each in reversed(size):
            steps.append(step)
            step *= max(each, 1)
        return tuple(reversed(steps))
    result = [0] * len(size)
    at = len(size) - 1
    chunk_step = strides[-1] if strides else 1
    old = new = 1
    for i in range(len(shape) - 1, -1, -1):
        old *= shape[i]
        # A chunk ends at dimension i if dimension i - 1 is not contiguous with it.
        if i == 0 or (shape[i - 1] != 1 and strides[i - 1] != old * chunk_step):
            while at >= 0 and (new < old or size[at] == 1):
                result[at] = new * chunk_step
                new *= size[at]
                at -= 1
            if new != old:
                return None
            if i > 0:
                chunk_step, old, new = strides[i - 1], 1, 1
    return None if at != -1 else tuple(result)


@view_op("reshape_alias", "ReshapeAliasBackward0", vmap="leading")
def reshape_alias(np: Any, self: Any, /, size: tuple[int, ...]) -> Any:
    """Return a view of ``self`` in the shape ``size``.

    ``reshape`` uses this operation instead of ``view`` if ``self`` is not contiguous, but its strides allow such a
    view.
    """
    return view_block.op.kernel(np, self, size)


reshape_alias.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


@public(function=False, fast_path=view_block, inline_only=True, **_SIZE)
def view(input: Tensor, *size: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
    """Return a view of ``input`` in the shape ``size``, or a view whose bytes are interpreted as elements of ``dtype``.

    ``size`` are ints or one sequence of ints. One of the ints may be -1 and is then inferred from the number of
    elements. Raises RuntimeError if the strides do not allow a view.
    """
    if size and isinstance(size[0], dtypes.dtype):
        return _view_dtype(input, size[0])
    if dtype is not None:
        return _view_dtype(input, dtype)
    return view_block(input, parse_int_arguments("view", size, "size", kwargs))


@slicewise
def _view_dtype(input: Tensor, target: Any) -> Tensor:
    """Return a tensor that shares the memory of ``input`` and has the dtype ``target``, for ``view(dtype)``.

    The bytes are interpreted as elements of ``target``; they are not converted. The result is detached from the graph
    and, as in PyTorch, its ``_base`` is None.
    """
    array = input._array
    have, want = array.itemsize, target.itemsize
    names = f"view {dtypes.scalar_name(input.dtype)} as {dtypes.scalar_name(target)} (different element sizes)"
    if have != want and not array.ndim:
        raise RuntimeError("self.dim() cannot be 0 to " + names)
    steps = element_strides(array)
    if have != want and steps[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 to {names}, but got {steps[-1]}")
    if want > have:
        _check_wider(input, want // have, steps, names)
    if have == want:
        return input.detach() if input.dtype is target else _reread(input, array.view(target.numpy))
    step = target.itemsize
    start = as_strided_of(array_module_of(array))(array, (array.nbytes // have,), (have,)).view(target.numpy)
    shape = (*array.shape[:-1], array.shape[-1] * have // step)
    return _reread(input, as_strided_of(array_module_of(array))(start, shape, (*array.strides[:-1], step)))


def _reread(input: Tensor, array: Any) -> Tensor:
    result = input.detach()
    result._array = array
    return result


def _check_wider(input: Tensor, ratio: int, steps: tuple[int, ...], names: str) -> None:
    last = input._array.shape[-1]
    if last % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} to {names}, but got {last}")
    if input.storage_offset() % ratio:
        raise RuntimeError(
            f"self.storage_offset() must be divisible by {ratio} to {names}, but got {input.storage_offset()}"
        )
    for dim, step in enumerate(steps[:-1]):
        if step % ratio:
            raise RuntimeError(f"self.stride({dim}) must be divisible by {ratio} to {names}, but got {step}")


@public(function=False)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view of ``input`` in the shape of ``other``."""
    return view_block(input, other._array.shape)


@op(backward="UnsafeViewBackward0", function=False, method=False, linear=True, vmap="leading")
def reshape_copy(np: Any, self: Any, /, size: tuple[int, ...]) -> Any:
    """Return a copy of ``self`` in the shape ``size``."""
    return self.reshape(size)


reshape_copy.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


@public(name="reshape", fast_path=view_block, inline_only=True, **_SIZE)
def _reshape(input: Tensor, *shape: Any, **kwargs: Any) -> Tensor:
    """Return ``input`` in the shape ``shape``: a view if the strides allow one, else a copy.

    ``shape`` are ints or one sequence of ints. One of the ints may be -1 and is then inferred from the number of
    elements.

    >>> import retrograd as torch
    >>> torch.reshape(torch.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """
    size = infer_size(input._array.shape, parse_int_arguments("reshape", shape, "shape", kwargs))
    array = input._array
    if array.flags.c_contiguous:
        return view_block(input, size)
    if view_strides(array.shape, array.strides, size) is not None:
        return reshape_alias(input, size)
    return unsafe_view(clone(input, memory_format=_contiguous()), size)


def _contiguous() -> Any:
    return contiguous_format


@op(backward="UnsafeViewBackward0", function=False, method=False, linear=True, vmap="leading")
def unsafe_view(np: Any, self: Any, /, size: tuple[int, ...]) -> Any:
    """Return ``self`` in the shape ``size``, sharing its memory if possible, but not marked as a view for autograd.

    The caller must hold the only reference to ``self`` and must not use ``self`` afterwards.
    """
    return self.reshape(size)


unsafe_view.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


def _reshape_array(array: Any, size: Any) -> Any:
    return array.reshape(size)


reshape: Any = FUNCTIONS["reshape"]  # with its fast path
rule_function("reshape", _reshape_array, reshape)


@public(function=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input`` in the shape of ``other``: a view if the strides allow one, else a copy.

    >>> import retrograd as torch
    >>> torch.arange(4).reshape_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape(input, other._array.shape)


def _flat(array: Any, start_dim: int, end_dim: int) -> tuple[int, ...] | None:
    """Return the shape of ``flatten(array, start_dim, end_dim)``, or None if no dimensions are merged.

    No dimensions are merged if ``start_dim`` is not before ``end_dim``.
    """
    shape = array.shape
    if start_dim == 0 and end_dim == -1 and len(shape) > 1:
        return (array.size,)
    first, last = normalize_dim(start_dim, len(shape)), normalize_dim(end_dim, len(shape))
    if first >= last:
        return None
    return (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])


@public(fast_path=view_block, inline_only=True, size=_flat)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return ``input`` with the dimensions from ``start_dim`` to ``end_dim`` merged into one dimension.

    By default all dimensions are merged.

    >>> import retrograd as torch
    >>> torch.flatten(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    shape = input._array.shape
    first, last = normalize_dim(start_dim, len(shape)), normalize_dim(end_dim, len(shape))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape(input, (1,))
    return input if first == last else reshape(input, _flat(input._array, first, last))


@public()
def ravel(input: Tensor) -> Tensor:
    """Return all elements of ``input`` in one dimension: a view if ``input`` is contiguous, else a copy."""
    return reshape(input.contiguous(), (-1,))


@public()
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Return ``input`` with dimension ``dim`` split into dimensions of the sizes ``sizes``.

    One of the sizes may be -1 and is then inferred.
    """
    shape = input._array.shape
    at = normalize_dim(dim, len(shape))
    if not shape:
        text = f"Dimension specified as {dim} but tensor has no dimensions"
        raise RuntimeError(f"unflatten got an unexpected error:\n{text}")
    sizes = tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if sizes.count(-1) > 1:
        raise RuntimeError("unflatten got an unexpected error:\nonly one dimension can be inferred")
    known = math.prod(each for each in sizes if each != -1)
    if (shape[at] % known if known else shape[at]) if -1 in sizes else known != shape[at]:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[at]}) in the "
            "input tensor"
        )
    return view(input, (*shape[:at], *infer_size((shape[at],), sizes), *shape[at + 1 :]))


@view_op("alias", "AliasBackward0", inline=lambda self: self.view(), vmap="leading")
def alias(np: Any, self: Any, /) -> Any:
    """Return a view of ``self`` with the same shape and strides."""
    return self.view()


alias.derivative(self=1)


# -- Dimensions of size one ------------------------------------------------------------------------------------------


@view_op(
    "unsqueeze",
    "UnsqueezeBackward0",
    inline=lambda self, dim: self.reshape((*self.shape[:dim], 1, *self.shape[dim:])) if dim >= 0 else None,
)
def unsqueeze_block(np: Any, self: Any, /, dim: int) -> Any:
    """Return a view of ``self`` with a new dimension of size 1 inserted before dimension ``dim``."""
    return np.expand_dims(self, dim)


unsqueeze_block.derivative(self=lambda F, g, dim: F.squeeze_dim(g, dim))


@public(fast_path=unsqueeze_block, dim=NEW_AXIS)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return a view of ``input`` with a new dimension of size 1 at position ``dim`` of the result.

    >>> import retrograd as torch
    >>> torch.unsqueeze(torch.zeros(2), 0).shape
    torch.Size([1, 2])
    """
    return unsqueeze_block(input, normalize_dim(dim, input._array.ndim + 1))


@view_op("squeeze_all", "SqueezeBackward0", inline=lambda self: self.squeeze())
def squeeze_all(np: Any, self: Any, /) -> Any:
    """Return a view of ``self`` without its dimensions of size 1."""
    return self.squeeze()


squeeze_all.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


@view_op("squeeze_dim", "SqueezeBackward1")
def squeeze_dim(np: Any, self: Any, /, dim: int) -> Any:
    """Return a view of ``self`` without dimension ``dim`` if the size of that dimension is 1."""
    return self.squeeze(dim) if self.ndim and self.shape[dim] == 1 else self.view()


squeeze_dim.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


@view_op("squeeze_dims", "SqueezeBackward2")
def squeeze_dims(np: Any, self: Any, /, dims: tuple[int, ...]) -> Any:
    """Return a view of ``self`` without the dimensions in ``dims`` whose size is 1."""
    if not self.ndim:
        return self.view()
    return self.squeeze(tuple(dim for dim in dims if self.shape[dim] == 1))


squeeze_dims.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


@public(fast_path=squeeze_all)
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Return a view of ``input`` without its dimensions of size 1.

    If ``dim`` (an int or a tuple of ints) is passed, only the dimensions in ``dim`` are removed, and only if their size
    is 1.

    >>> import retrograd as torch
    >>> torch.squeeze(torch.zeros(1, 2, 1)).shape
    torch.Size([2])
    """
    if dim is None:
        return squeeze_all(input)
    if isinstance(dim, (tuple, list)):
        dims = tuple(normalize_dim(each, input._array.ndim) for each in dim)
        if len(set(dims)) != len(dims):
            twice = next(each for each in dims if dims.count(each) > 1)
            raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
        return squeeze_dims(input, dims)
    return squeeze_dim(input, normalize_dim(dim, input._array.ndim))


# -- Expanding -------------------------------------------------------------------------------------------------------


@public(function=False, name="expand", fast_path=expand, **_SIZE)
def expand_method(input: Tensor, *size: Any, implicit: bool = False, **kwargs: Any) -> Tensor:
    """Return a view of ``input`` in the shape ``size``, where dimensions of size 1 are expanded without copying.

    ``size`` are ints or one sequence of ints. An item -1 keeps the size of the dimension. If ``size`` has more items
    than ``input`` has dimensions, new dimensions are added in front. ``implicit`` has no effect.
    """
    return expand(input, parse_int_arguments("expand", size, "size", kwargs))


@public(function=False)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view of ``input`` expanded to the shape of ``other``."""
    return expand(input, other._array.shape)


@public()
def broadcast_to(input: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    """Return a view of ``input`` expanded to the shape ``size`` (ints or one sequence of ints)."""
    return expand(input, parse_int_arguments("broadcast_to", size, "size", kwargs))


@public(method=False)
def broadcast_shapes(*shapes: Any) -> Any:
    """Return the common broadcast shape of all ``shapes``; an int is treated as a shape of one dimension.

    >>> import retrograd as torch
    >>> torch.broadcast_shapes((2, 1), 3)
    torch.Size([2, 3])
    """
    given = [(each,) if isinstance(each, int) else each if isinstance(each, Size) else tuple(each) for each in shapes]
    merged = [1] * max(map(len, given), default=0)
    for position, shape in enumerate(given):
        for back in range(1, len(shape) + 1):
            if shape[-back] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if shape[-back] in (1, merged[-back]):
                continue
            if merged[-back] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[-back]} at -{back}! Mismatching argument at "
                    f"index {position} had {shape}; but expected shape should be broadcastable to {merged}"
                )
            merged[-back] = shape[-back]
    return Size(merged)


@public(method=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return ``tensors`` expanded to their common broadcast shape, as a tuple of views."""
    for position, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {type(each).__name__}")
    if len({each._array.shape for each in tensors}) < 2:
        return tensors
    error = broadcast_error(tensors)
    if error is not None:
        raise error
    shape = broadcast_shapes(*(each._array.shape for each in tensors))
    return tuple(each if each._array.shape == shape else expand(each, shape) for each in tensors)


# -- Permuting dimensions --------------------------------------------------------------------------------------------


@view_op(
    "transpose", "TransposeBackward0", inline=lambda self, dim0, dim1: self.swapaxes(dim0, dim1) if self.ndim else None
)
def transpose_block(np: Any, self: Any, /, dim0: int, dim1: int) -> Any:
    """Return a view of ``self`` with dimensions ``dim0`` and ``dim1`` exchanged."""
    return self.swapaxes(dim0, dim1) if self.ndim else self.view()


transpose_block.derivative(self=lambda F, g, dim0, dim1: F.transpose(g, dim0, dim1))


@public(aliases=("swapdims",), fast_path=transpose_block, inline_only=True, dim0=AXIS, dim1=AXIS)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view of ``input`` with dimensions ``dim0`` and ``dim1`` exchanged.

    >>> import retrograd as torch
    >>> torch.transpose(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """
    ndim = input._array.ndim
    return transpose_block(input, normalize_dim(dim0, ndim), normalize_dim(dim1, ndim))


@public()
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Return a view of ``input`` with dimensions ``axis0`` and ``axis1`` exchanged, like :func:`transpose`.

    >>> import retrograd as torch
    >>> torch.swapaxes(torch.zeros(2, 3, 4), 0, 2).shape
    torch.Size([4, 3, 2])
    """
    return transpose(input, axis0, axis1)


@view_op("t", "TBackward0", inline=lambda self: self.T if self.ndim < 3 else None)
def t_block(np: Any, self: Any, /) -> Any:
    """Return the transpose of the matrix ``self`` as a view; a 0-d or 1-d ``self`` keeps its shape."""
    return self.T


t_block.derivative(self=lambda F, g: F.t(g))


@public(fast_path=t_block, inline_only=True)
def t(input: Tensor) -> Tensor:
    """Return the transpose of the matrix ``input`` as a view; a 0-d or 1-d ``input`` keeps its shape."""
    if input._array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
    return t_block(input)


@view_op("permute", "PermuteBackward0", inline=lambda self, dims: self.transpose(dims))
def permute_block(np: Any, self: Any, /, dims: tuple[int, ...]) -> Any:
    """Return a view of ``self`` whose ``i``-th dimension is dimension ``dims[i]`` of ``self``."""
    return self.transpose(dims)


permute_block.derivative(self=lambda F, g, dims: F.permute(g, _inverse(dims)))


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


def _order(array: Any, dims: tuple[Any, ...]) -> tuple[int, ...] | None:
    """Return the argument ``dims`` of ``permute`` as a tuple of non-negative dimensions of ``array``, or None.

    ``dims`` holds ints or one sequence of ints. The result is None if ``dims`` is empty or an int is less than
    ``-array.ndim``; then the general implementation of ``permute`` checks the arguments. Other errors are not detected
    here, such as a dimension that occurs twice.
    """
    if not dims:
        return None
    order = tuple(dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    if order and min(order) < 0:
        ndim = array.ndim
        order = tuple([each + ndim if each < 0 else each for each in order])
        if min(order) < 0:
            return None
    return order


@public(fast_path=permute_block, dims=_order)
def permute(input: Tensor, *dims: Any, **kwargs: Any) -> Tensor:
    """Return a view of ``input`` whose ``i``-th dimension is dimension ``dims[i]`` of ``input``.

    >>> import retrograd as torch
    >>> torch.permute(torch.zeros(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    given = parse_int_arguments("permute", dims, "dims", kwargs)
    ndim = input._array.ndim
    if len(given) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(given)}"
        )
    order = tuple(normalize_dim(each, ndim) for each in given)
    if len(set(order)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return permute_block(input, order)


@public(aliases=("moveaxis",))
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Return a view of ``input`` with the dimensions ``source`` moved to the positions ``destination``.

    ``source`` and ``destination`` are ints or tuples of ints. The other dimensions keep their order.
    """
    if isinstance(source, (tuple, list)) is not isinstance(destination, (tuple, list)):
        raise TypeError("movedim() accepts two ints or two tuples of ints")
    ndim = input._array.ndim
    sources = [normalize_dim(each, ndim) for each in as_int_tuple(source)]
    targets = [normalize_dim(each, ndim) for each in as_int_tuple(destination)]
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(as_int_tuple(source))} dims) should contain the same "
            f"number of dims as destination ({list(as_int_tuple(destination))} dims)"
        )
    for name, given, resolved_dims in (("source", source, sources), ("destination", destination, targets)):
        if len(set(resolved_dims)) != len(resolved_dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(as_int_tuple(given))})")
    if not ndim and sources:
        return alias(input)
    rest = iter(axis for axis in range(ndim) if axis not in sources)
    source_of = dict(zip(targets, sources, strict=True))
    order = tuple(source_of[axis] if axis in source_of else next(rest) for axis in range(ndim))
    return permute_block(input, order)


@public()
def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transpose of the matrices in the last two dimensions of ``input``.

    For a real tensor, this is a view with these dimensions exchanged. For a complex tensor, it is ``conj()`` of this
    view.

    >>> import retrograd as torch
    >>> torch.adjoint(torch.tensor([[1 + 2j, 3.0]]))
    tensor([[1.-2.j],
            [3.-0.j]])
    """
    return _adjoint(input, "adjoint()")


def _adjoint(x: Tensor, name: str) -> Tensor:
    result = _matrix_transpose(x, name)
    return result.conj() if x.is_complex() else result


def _matrix_transpose(x: Tensor, name: str) -> Tensor:
    ndim = x._array.ndim
    if ndim == 0:
        _deprecated(f"Tensor.{name} is deprecated on 0-D tensors. " + (
            "This function is the identity in these cases." if name == "mT" else "Consider using x.conj()."
        ))  # fmt: skip
        return x
    if ndim == 1:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return transpose(x, -2, -1)


def _deprecated(text: str) -> None:
    warn(text)


def _reversed_dims(self: Tensor) -> Tensor:
    if OVERRIDING and (answer := ask_classes_of("T.__get__", self)) is not GO_ON:
        return answer
    ndim = self._array.ndim
    if ndim == 0:
        _deprecated("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    elif ndim != 2:
        _deprecated(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw "
            "an error in a future release. Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange("
            "x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return permute_block(self, tuple(range(ndim - 1, -1, -1)))


def _mt(self: Tensor) -> Tensor:
    if OVERRIDING and (answer := ask_classes_of("mT.__get__", self)) is not GO_ON:
        return answer
    return _matrix_transpose(self, "mT")


def _mh(self: Tensor) -> Tensor:
    return _adjoint(self, "mH")


def _h(self: Tensor) -> Tensor:
    ndim = self._array.ndim
    if ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if ndim > 2 else "")
        )
    return _adjoint(self, "H")


_fast_t = with_fast_path(_reversed_dims, permute_block, if_arrays=lambda self: self.ndim == 2, dims=(1, 0))
_fast_mt = with_fast_path(_mt, transpose_block, if_arrays=lambda self: self.ndim == 2, dim0=0, dim1=1)

PROPERTIES = {
    "T": property(_fast_t, doc="View of the tensor with its dimensions in reverse order."),
    "mT": property(_fast_mt, doc="View of the tensor with its last two dimensions exchanged."),
    "H": property(strips_frames(_h), doc="Conjugate transpose of a matrix."),
    "mH": property(strips_frames(_mh), doc="Conjugate transpose of the matrices in the last two dimensions."),
}
