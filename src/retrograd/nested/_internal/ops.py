"""The functions of nested tensors, which compute with the elements of all components at once where that is possible.

Otherwise a function is applied to each component (:func:`each_component`), and the results are put together. All of them
are composed of operations of ordinary tensors, so they need no derivative rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ...autograd.stored_tensors import implement_gradients
from ...core import dtypes
from ...core.tensor import Tensor, normalize_dim, strided, wrap
from ...dispatch.declare import FUNCTIONS as F
from ...nn import functional
from .nested_int import NestedInt
from .nested_tensor import (
    IMPLEMENTED,
    Nested,
    NestedTensor,
    StridedNestedTensor,
    implements,
    jagged,
    jagged_of,
    offsets_of,
    strided_from,
    strided_of,
    unsupported,
)

#: Functions of PyTorch that are elementwise but no single operation here; the others are known by their kind.
_NAMES = """
    relu relu6 silu mish elu selu celu leaky_relu hardtanh hardswish hardsigmoid softsign tanhshrink threshold rrelu
    prelu dropout alpha_dropout native_dropout div pow where masked_fill clamp clip clamp_min clamp_max float_power round
    remainder lerp isclose xlogy rsub square frexp true_divide nan_to_num __rdiv__ __rsub__ __rpow__ __pow__ __invert__
    __rfloordiv__ __rmod__ __neg__ __pos__ __abs__ __mod__ __truediv__ __itruediv__ __idiv__ __div__ __floordiv__
    __and__ __or__ __xor__ __rtruediv__ fmod logit polygamma sinc positive conj conj_physical real imag resolve_conj
    resolve_neg bitwise_left_shift bitwise_right_shift ldexp to type float double half bfloat16 int long short char byte
    bool cpu cuda clone cfloat cdouble type_as ones_like zeros_like empty_like full_like rand_like randn_like
    randint_like view_as_real view_as_complex fill zero normal uniform bernoulli random logsigmoid softplus gelu
    sigmoid tanh
"""
ELEMENTWISE = frozenset(_NAMES.split())
#: Elementwise functions that the layout strided does not have.
_NOT_FOR_STRIDED = frozenset(["full_like", "rand_like", "randint_like", "isclose"])


# -- Components ----------------------------------------------------------------------------------------------------


@implements()
def unbind(input: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the components, which share the memory of the nested tensor."""
    if normalize_dim(dim, input.dim()):
        raise RuntimeError(f"unbind(): only supported for NestedTensor on dim=0, but got dim={dim}")
    if isinstance(input, StridedNestedTensor):
        sizes = input._components()
        parts = input._stored.split([math.prod(each) for each in sizes]) if sizes else ()
        return tuple([part.view(each) for part, each in zip(parts, sizes, strict=True)])
    place, pieces = input._ragged_idx - 1, input._pieces
    if input._lengths is None and pieces and pieces[0][0] == 0:
        total = pieces[-1][0] + pieces[-1][1]
        stored = input._stored if total == input._stored.shape[place] else input._stored.narrow(place, 0, total)
        return tuple(stored.split([count for _, count in pieces], place))
    return tuple([input._stored.narrow(place, start, count) for start, count in pieces])


def from_components(like: Any, parts: Sequence[Tensor], ragged: int | None = None) -> Any:
    """Return a nested tensor of ``parts``, of the layout and with the offsets of ``like``."""
    if isinstance(like, StridedNestedTensor):
        return strided_from(parts)
    ragged = like._ragged_idx if ragged is None else ragged
    values = F["cat"](list(parts), dim=ragged - 1)
    if like._lengths is None:
        return jagged_of(values, like._offsets, None, ragged)
    return jagged_of(values, offsets_of([each.shape[ragged - 1] for each in parts]), None, ragged)


def each_component(function: Callable[..., Any], x: Any, *others: Any) -> Any:
    """Return the nested tensor of ``function`` of the components of ``x`` and of the other nested tensors."""
    columns = [each.unbind() if isinstance(each, Nested) else [each] * len(x._components()) for each in others]
    return from_components(x, [function(*row) for row in zip(x.unbind(), *columns, strict=True)])


def _is_strided(*values: Any) -> bool:
    return any(isinstance(each, StridedNestedTensor) for each in values)


# -- Elementwise functions -------------------------------------------------------------------------------------------


def _is_elementwise(func: Any, name: str) -> bool:
    plain = name[:-1] if name.endswith("_") and not name.startswith("__") else name
    if plain in ELEMENTWISE or name in ELEMENTWISE:
        return True
    operation = getattr(func, "op", None) or getattr(F.get(plain), "op", None)
    return operation is not None and operation.kind == "pointwise"


def elementwise(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return ``func``, an elementwise function called ``name``, of nested tensors of one structure and other arguments.

    An ordinary tensor is broadcast to the nested tensors. Raises NotImplementedError if the function is not elementwise.
    """
    given = (*args, *kwargs.values())
    nested = [each for each in given if isinstance(each, Nested)]
    if not nested:
        nested = [each for one in given if isinstance(one, (list, tuple)) for each in one if isinstance(each, Nested)]
    first: Any = nested[0]
    if not _is_elementwise(func, name) or (_is_strided(first) and name in _NOT_FOR_STRIDED):
        raise unsupported(name, first.layout)
    if name in ("to", "type_as") and isinstance(args[0], Nested):
        result = func(*[_in_graph(each) for each in args], **{key: _in_graph(each) for key, each in kwargs.items()})
        return args[0] if result is args[0]._stored else args[0]._like(result)
    if _is_strided(first):
        _check_strided(name.strip("_"), first, given)
    else:
        _check_jagged(name.strip("_"), first, given)
    changed = [_prepared(first, each) for each in args]
    named = {key: _prepared(first, each) for key, each in kwargs.items()}
    result = func(*changed, **named)
    if isinstance(args[0], Nested) and result is changed[0]:
        return args[0]  # in place, or unchanged
    if isinstance(result, tuple):
        made = [_shaped(first, each) for each in result]
        return type(result)(made)
    return _shaped(first, result)


def _check_strided(name: str, first: Any, given: Sequence[Any]) -> None:
    for each in given:
        if isinstance(each, NestedTensor):
            raise RuntimeError(f"{name} does not support nested tensors of different layouts")
        if isinstance(each, StridedNestedTensor):
            if each._sizes.shape != first._sizes.shape or (each._sizes != first._sizes).any():
                raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
            if name == "eq" and each is not first:
                raise RuntimeError("eq does not support nested tensor as other value.")
        elif isinstance(each, Tensor) and each.dim():
            if name in ("where", "masked_fill"):
                raise RuntimeError("other must be nested")
            if each.dim() < first.dim() and name not in ("prelu",):
                raise RuntimeError(
                    "Expected both self and other to be nested, but got a nested self and non-nested other"
                )


def _check_jagged(name: str, first: Any, given: Sequence[Any]) -> None:
    for each in given:
        if isinstance(each, StridedNestedTensor):
            raise RuntimeError(f"{name} does not support nested tensors of different layouts")
        if isinstance(each, NestedTensor) and (
            each._symbol != first._symbol or each._ragged_idx != first._ragged_idx or each.dim() != first.dim()
        ):
            raise RuntimeError(
                f"cannot call binary pointwise function {name}.Tensor with inputs of shapes {first._size} and {each._size}"
            )


def _prepared(first: Any, value: Any) -> Any:
    """Return the elements of the nested tensor ``value``, or an ordinary tensor broadcast to those of ``first``."""
    if isinstance(value, Nested):
        return value._stored
    if type(value) in (list, tuple):
        return type(value)([_prepared(first, each) for each in value])
    if not isinstance(value, Tensor) or not value.dim():
        return value
    if isinstance(first, StridedNestedTensor):
        parts = [each.expand(size) for each, size in zip(_rows(first, value), first._components(), strict=True)]
        return F["cat"]([each.reshape(-1) for each in parts])
    ragged, ndim = first._ragged_idx, first.dim()
    if value.dim() < ndim and (value.dim() < ndim - ragged or value.shape[ragged - ndim] == 1):
        return value
    if value.dim() < ndim:
        value = value[(None,) * (ndim - value.dim())]
    if value.dim() > ndim:
        raise RuntimeError(f"cannot broadcast a tensor of shape {tuple(value.shape)} to {first._size}")
    return _gathered(first, value)


def _rows(first: Any, value: Tensor) -> list[Tensor]:
    count = len(first._components())
    return [value[k if value.shape[0] > 1 else 0] for k in range(count)]


def _gathered(first: NestedTensor, value: Tensor) -> Tensor:
    """Return the rows of ``value``, of shape (batch, …, rows, …), that belong to the elements of ``first``."""
    ragged, longest = first._ragged_idx, first._get_max_seqlen()
    moved = value.movedim(ragged, 1)
    batch, rows = moved.shape[:2]
    if rows not in (1, longest):
        target = [len(first), *[longest if k == ragged else n for k, n in enumerate(first._size)][1:]]
        raise RuntimeError(
            f"The expanded size of the tensor ({longest}) must match the existing size ({rows}) at non-singleton "
            f"dimension {ragged}.  Target sizes: {target}.  Tensor sizes: {list(value.shape)}"
        )
    total = first._stored.shape[ragged - 1]
    number, row = numpy.zeros(total, numpy.int64), numpy.zeros(total, numpy.int64)
    for k, (start, count) in enumerate(first._pieces):
        number[start : start + count] = k if batch > 1 else 0
        row[start : start + count] = numpy.arange(count) if rows > 1 else 0
    return moved[wrap(number), wrap(row)].movedim(0, ragged - 1)


def _shaped(first: Any, stored: Any) -> Any:
    return first._like(stored) if isinstance(stored, Tensor) else stored


IMPLEMENTED["elementwise"] = elementwise


@implements()
def equal(input: Any, other: Any) -> bool:
    """Return whether the nested tensors have equal components."""
    a, b = input.unbind(), other.unbind()
    return len(a) == len(b) and all(F["equal"](x, y) for x, y in zip(a, b, strict=True))


@implements()
def allclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:  # fmt: skip
    """Return whether the components of the nested tensors are close."""
    a, b = input.unbind(), other.unbind()
    return len(a) == len(b) and all(F["allclose"](x, y, rtol, atol, equal_nan) for x, y in zip(a, b, strict=True))


@implements()
def is_same_size(input: Any, other: Any) -> bool:
    """Return whether the nested tensors have the same structure."""
    if isinstance(input, NestedTensor) and isinstance(other, NestedTensor):
        return input._size == other._size
    return isinstance(input, Nested) and isinstance(other, Nested) and input._components() == other._components()


@implements()
def contiguous(input: Any, *, memory_format: Any = None) -> Any:
    """Return a nested tensor without gaps: the argument itself if it has none."""
    if input.is_contiguous():
        return input
    if input._lengths is None:
        return input._like(input._stored.contiguous())
    return from_components(input, input.unbind())


@implements()
def detach(input: Any) -> Any:
    """Return the nested tensor outside of the graph."""
    return input.detach()


@implements()
def numel(input: Any) -> int:
    """Return the number of elements."""
    return input.numel()


@implements()
def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copy the elements of ``src``, which has the same structure."""
    if not isinstance(src, Nested) or self._components() != src._components():
        raise RuntimeError(
            f"copy_ only supports Nested tensors that have same size. Expected {getattr(src, '_size', '')}"
        )
    self._stored.copy_(src._stored)
    return self


@implements("new_empty", "new_zeros", "new_ones", "new_full")
def new(self: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """Refuse sizes: only 0-d tensors are created."""
    if tuple(size if isinstance(size, (tuple, list)) else (size,)):
        raise RuntimeError("new_empty() not supported for NJT with shape != ()")
    return F["zeros"]((), dtype=kwargs.get("dtype") or self.dtype)


# -- Dimensions --------------------------------------------------------------------------------------------------------


def _inner(name: str, x: Any, dim: int, *, batch: bool = False) -> int:
    """Return the dimension of the elements for ``dim`` of the jagged ``x``; refuse the batch and the ragged one."""
    place = normalize_dim(dim, x.dim())
    if not place:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if place == x._ragged_idx:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return place - 1


@implements("transpose", "swapaxes", "swapdims")
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Return the nested tensor with two dimensions swapped; the batch dimension cannot be moved."""
    a, b = normalize_dim(dim0, input.dim()), normalize_dim(dim1, input.dim())
    if _is_strided(input):
        if not a or not b:
            raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
        return each_component(lambda x: x.transpose(a - 1, b - 1), input)
    if a == b:
        return input
    if not a or not b:
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    ragged = {a: b, b: a}.get(input._ragged_idx, input._ragged_idx)
    return input._like(input._stored.transpose(a - 1, b - 1), ragged)


@implements()
def permute(input: Any, *dims: Any) -> Any:
    """Return the nested tensor with its dimensions in another order; the batch dimension cannot be moved."""
    if _is_strided(input):
        raise unsupported("permute", strided)
    order = [normalize_dim(each, input.dim()) for each in (dims[0] if len(dims) == 1 else dims)]
    if len(order) != input.dim():
        raise ValueError(f"permute(): number of dimensions in the tensor input ({input.dim()}) does not match the length "
                         f"of the desired ordering of dimensions ({len(order)}).")  # fmt: skip
    if order[0]:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return input._like(input._stored.permute([each - 1 for each in order[1:]]), order.index(input._ragged_idx))


@implements("T")
def reversed_dims(input: Any) -> Any:
    """Refuse: the batch dimension cannot be moved."""
    return permute(input, *reversed(range(input.dim())))


@implements("mT")
def matrix_transpose(input: Any) -> Any:
    """Return the nested tensor with its last two dimensions swapped."""
    return transpose(input, -1, -2)


@implements("view", "reshape", "view_as", "reshape_as", "_unsafe_view")
def view(input: Any, *shape: Any) -> Any:
    """Return the nested tensor in another shape, whose first size is that of the batch; -1 is the ragged dimension."""
    if len(shape) == 1 and not isinstance(shape[0], (int, NestedInt)):
        if isinstance(shape[0], dtypes.dtype):
            return input._like(input._stored.view(shape[0]))
        shape = tuple(shape[0]._size if isinstance(shape[0], NestedTensor) else shape[0])
    batch = len(input._components())
    if _is_strided(input):
        if not shape or shape[0] != batch:
            raise RuntimeError("view: For now nested view cannot change or infer the implicit batch dimension")
        return each_component(lambda x: x.reshape(_inferred(tuple(x.shape), shape)), input)
    shown = list(shape)
    if tuple(shape) == input._size:
        return input._like(input._stored.view_as(input._stored))
    refusal = RuntimeError(f"view(): cannot view shape {input._size} as {shown}")
    if not shape or shape[0] != batch:
        raise refusal
    if input._ragged_idx != 1 and input._ragged_idx >= len(shape):
        raise refusal
    ragged = next((k for k, each in enumerate(shape) if isinstance(each, NestedInt)), input._ragged_idx)
    sizes = list(shape[1:])
    if ragged > len(sizes) or (not isinstance(sizes[ragged - 1], NestedInt) and sizes[ragged - 1] != -1):
        raise refusal
    stored = input._stored
    sizes[ragged - 1] = stored.shape[input._ragged_idx - 1]
    before = math.prod(stored.shape[: input._ragged_idx - 1])
    known = math.prod([each for each in sizes if each != -1])
    if known != stored.numel() and (-1 not in sizes or stored.numel() % max(known, 1)):
        raise refusal
    if -1 not in sizes[: ragged - 1] and math.prod(sizes[: ragged - 1]) != before:
        raise refusal
    return input._like(stored.reshape(sizes), ragged)


def _inferred(old: tuple[int, ...], shape: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of a component of sizes ``old`` for the sizes ``shape`` of the nested tensor.

    -1 at the place of a dimension of the component is its size, behind them it is inferred.
    """
    sizes = [old[k] if each == -1 and k < len(old) else each for k, each in enumerate(shape[1:])]
    if sizes.count(-1) == 0 and math.prod(sizes) != math.prod(old):
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {math.prod(old)}")
    return tuple(sizes)


@implements()
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """Return the nested tensor with one dimension split into several."""
    if _is_strided(input):
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")
    place = _inner("unflatten", input, dim)
    extra = len(tuple(sizes)) - 1
    return input._like(
        input._stored.unflatten(place, sizes), input._ragged_idx + (extra if place + 1 < input._ragged_idx else 0)
    )


@implements()
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Return the nested tensor with neighbouring dimensions merged, neither the batch nor the ragged one."""
    if _is_strided(input):
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")
    first, last = normalize_dim(start_dim, input.dim()), normalize_dim(end_dim, input.dim())
    if not first:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if first <= input._ragged_idx <= last:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    ragged = input._ragged_idx - (last - first if last < input._ragged_idx else 0)
    return input._like(input._stored.flatten(first - 1, last - 1), ragged)


@implements()
def unsqueeze(input: Any, dim: int) -> Any:
    """Return the nested tensor with a dimension of size 1 inserted at ``dim``."""
    place = normalize_dim(dim, input.dim() + 1)
    if not place:
        raise RuntimeError(
            "unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported at the moment if you need this "
            "feature, please open an issue on github describing your use case."
            if _is_strided(input)
            else "unsqueeze(): not supported for NestedTensor on dim=0"
        )
    if _is_strided(input):
        return each_component(lambda x: x.unsqueeze(place - 1), input)
    return input._like(input._stored.unsqueeze(place - 1), input._ragged_idx + (place <= input._ragged_idx))


@implements()
def squeeze(input: Any, dim: Any = None) -> Any:
    """Return the nested tensor without the dimension ``dim`` if its size is 1."""
    if dim is None:
        if _is_strided(input):
            raise RuntimeError(
                "For nested tensors, squeeze without the dim argument can only be called on a nested tensor"
            )
        raise unsupported("squeeze without dim", jagged)
    if _is_strided(input):
        place = normalize_dim(dim, input.dim())
        if not place:
            raise RuntimeError("For nested tensors, squeezing dimension 0 is not supported at the moment")
        if any(each[place - 1] != 1 for each in input._components()):
            return input
        return each_component(lambda x: x.squeeze(place - 1), input)
    place = _inner("squeeze", input, dim)
    if input._stored.shape[place] != 1:
        return input._like(input._stored)
    return input._like(input._stored.squeeze(place), input._ragged_idx - (place + 1 < input._ragged_idx))


@implements()
def expand(input: Any, *size: Any) -> Any:
    """Return the nested tensor with dimensions of size 1 expanded."""
    sizes = tuple(size[0] if len(size) == 1 and not isinstance(size[0], (int, NestedInt)) else size)
    if _is_strided(input) or len(sizes) != input.dim():
        raise unsupported("expand to more dimensions", input.layout)
    inner = [-1 if isinstance(each, NestedInt) else each for each in sizes[1:]]
    return input._like(input._stored.expand(inner))


@implements("expand_as", "broadcast_to")
def expand_as(input: Any, other: Any) -> Any:
    """Return ``input``, a nested or an ordinary tensor, expanded to the shape of ``other``."""
    if not isinstance(input, Nested) and isinstance(other, NestedTensor):
        return other._like(_prepared(other, input).expand(tuple(other._stored.shape)))
    return expand(input, other._size if isinstance(other, NestedTensor) else other)


# -- Parts -------------------------------------------------------------------------------------------------------------


@implements()
def select(input: Any, dim: int, index: int) -> Any:
    """Return component ``index``, or the nested tensor of the slices at ``index`` of another dimension."""
    place = normalize_dim(dim, input.dim())
    if not place:
        parts = input.unbind()
        if not -len(parts) <= index < len(parts):
            if _is_strided(input):
                raise IndexError(f"index {index} is out of bounds for dimension 0 with size {len(parts)}")
            raise IndexError("tuple index out of range")
        return parts[index]
    if _is_strided(input):
        return each_component(lambda x: x.select(place - 1, index), input)
    inner = _inner("select", input, dim)
    return input._like(input._stored.select(inner, index), input._ragged_idx - (place < input._ragged_idx))


@implements()
def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """Return the part of ``length`` from ``start`` along a dimension."""
    if _is_strided(input):
        if normalize_dim(dim, input.dim()):
            raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
        return from_components(input, input.unbind()[start : start + length])
    return input._like(input._stored.narrow(_inner("narrow", input, dim), start, length))


@implements("__getitem__")
def getitem(input: Any, index: Any) -> Any:
    """Return the part of the nested tensor for an index of integers, slices of step 1, ``None`` and ``...``."""
    if not isinstance(input, Nested):
        raise unsupported("Indexing by a nested tensor", jagged)
    items = list(index) if isinstance(index, tuple) else [index]
    if any(each is Ellipsis for each in items):
        place = next(k for k, each in enumerate(items) if each is Ellipsis)
        used = len([each for each in items if each is not None and each is not Ellipsis])
        items[place : place + 1] = [...] * (input.dim() - used)
    result: Any = input
    dim = 0
    for count, each in enumerate(items):
        if not isinstance(result, Nested):
            return result[tuple(items[count:])]
        if each is Ellipsis:
            dim += 1
        elif each is None:
            result, dim = unsqueeze(result, dim), dim + 1
        elif isinstance(each, slice):
            result, dim = _sliced(result, dim, each), dim + 1
        elif isinstance(each, (int, numpy.integer)) and not isinstance(each, bool):
            result = select(result, dim, int(each))
        else:
            raise unsupported("index.Tensor", input.layout)
    return result


def _sliced(x: Any, dim: int, part: slice) -> Any:
    if _is_strided(x):
        raise unsupported("slice.Tensor", strided)
    inner = _inner("slice", x, dim)
    before = (slice(None),) * inner
    return x._like(x._stored[(*before, part)])


@implements()
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Return the nested tensor in ``chunks`` parts along a dimension."""
    place = normalize_dim(dim, input.dim())
    if _is_strided(input):
        if place != input.dim() - 1:
            raise RuntimeError("Chunk for nested tensors is currently only supported for the last dimension.")
        if input._sizes[:, -1].max(initial=0) % chunks:
            raise RuntimeError(
                "Chunk for nested tensors is only supported for nested tensors with trailing dimension divisible by "
                f"chunks, got: {input._sizes[0, -1]} % {chunks} != 0"
            )
        columns = zip(*[each.chunk(chunks, -1) for each in input.unbind()], strict=True)
        return tuple([from_components(input, column) for column in columns])
    if place:
        inner = _inner("chunk", input, dim)
        return tuple([input._like(each) for each in input._stored.chunk(chunks, inner)])
    parts, step = input.unbind(), -(-len(input) // chunks)
    made = []
    for start in range(0, len(parts), step):
        rows = parts[start : start + step]
        offsets = offsets_of([each.shape[input._ragged_idx - 1] for each in rows])
        made.append(jagged_of(F["cat"](list(rows), dim=input._ragged_idx - 1), offsets, None, input._ragged_idx))
    return tuple(made)


@implements("split", "split_with_sizes")
def split(input: Any, split_size_or_sections: Any = None, dim: int = 0, **named: Any) -> tuple[Any, ...]:
    """Return the nested tensor in parts of given sizes along a dimension that is neither the batch nor the ragged one."""
    sizes = next(iter(named.values())) if split_size_or_sections is None else split_size_or_sections
    if _is_strided(input):
        if isinstance(sizes, int) or normalize_dim(dim, input.dim()) != input.dim() - 1:
            raise unsupported("split.Tensor", strided)
        columns = zip(*[each.split(list(sizes), -1) for each in input.unbind()], strict=True)
        return tuple([from_components(input, column) for column in columns])
    return tuple([input._like(each) for each in input._stored.split(sizes, _inner("split", input, dim))])


@implements("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0, *, axis: Any = None) -> Any:
    """Return nested tensors joined along a dimension: for the layout strided the batch too."""
    first = next(each for each in tensors if isinstance(each, Nested))
    place = normalize_dim(dim if axis is None else axis, first.dim())
    if _is_strided(first):
        if not all(isinstance(each, Nested) for each in tensors):
            raise RuntimeError("Expected each tensor in given list to be nested.")
        if not place:
            return strided_from([part for each in tensors for part in each.unbind()])
        rows = zip(*[each.unbind() for each in tensors], strict=True)
        return strided_from([F["cat"](list(row), dim=place - 1) for row in rows])
    inner = _inner("cat", first, place)
    return first._like(F["cat"]([_prepared(first, each) for each in tensors], dim=inner))


@implements()
def stack(tensors: Any, dim: int = 0) -> Any:
    """Return nested tensors of one structure joined along a new dimension."""
    first = next(each for each in tensors if isinstance(each, Nested))
    if _is_strided(first):
        raise unsupported("stack", strided)
    place = normalize_dim(dim, first.dim() + 1)
    if not place:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    stored = F["stack"]([_prepared(first, each) for each in tensors], dim=place - 1)
    return first._like(stored, first._ragged_idx + (place <= first._ragged_idx))


@implements()
def masked_select(input: Any, mask: Any) -> Any:
    """Return the elements of the components at which ``mask`` is true, for matrices with a ragged dimension."""
    if _is_strided(input) or input.dim() != 2:
        raise RuntimeError("masked_select only support 2-D selections currently")
    if tuple(input._size) != tuple(mask._size):
        raise RuntimeError(f"Mask with shape {mask._size} is not compatible with input's shape {input._size}")
    counts = [int(each.sum()) for each in mask.unbind()]
    return jagged_of(input._stored.masked_select(mask._stored), offsets_of(counts))


# -- Conversion to ordinary tensors --------------------------------------------------------------------------------


@implements()
def to_padded_tensor(self: Any, padding: float, output_size: Any = None) -> Tensor:
    """Return an ordinary tensor of shape (batch, …) with ``padding`` after the elements of each component.

    >>> import retrograd as torch
    >>> x = torch.nested.nested_tensor([torch.ones(1), torch.ones(3)])
    >>> x.to_padded_tensor(0.0)
    tensor([[1., 0., 0.],
            [1., 1., 1.]])
    """
    if not isinstance(self, Nested):
        raise NotImplementedError(
            "Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend: the tensor is not nested."
        )
    sizes = self._components()
    if not sizes:
        return F["zeros"]((0,), dtype=self.dtype)
    longest = [max(column) for column in zip(*sizes, strict=True)]
    target = longest if output_size is None else list(output_size)[1:]
    if len(target) != len(longest):
        raise RuntimeError("Length of output_size does not match NestedTensor dims. Broadcasting is not supported.")
    if any(given < needed for given, needed in zip(target, longest, strict=True)):
        if _is_strided(self):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not supported."
            )
        return to_padded_tensor(self, padding)[tuple([slice(n) for n in (len(sizes), *target)])]
    if isinstance(self, NestedTensor) and padding == padding:
        return _padded(self, padding, target)
    parts = []
    for part, size in zip(self.unbind(), sizes, strict=True):
        missing = [(0, n - m) for n, m in zip(reversed(target), reversed(size), strict=True)]
        parts.append(functional.pad(part, [each for pair in missing for each in pair], value=padding))
    return F["stack"](parts)


def _padded(x: NestedTensor, padding: Any, target: Sequence[int]) -> Tensor:
    """Return the padded tensor of a jagged one by one gathering of rows."""
    place = x._ragged_idx - 1
    moved = x._stored.movedim(place, 0)
    rest = [n for k, n in enumerate(target) if k != place]
    short = [n - m for n, m in zip(reversed(rest), reversed(moved.shape[1:]), strict=True)]
    padded = functional.pad(moved, [*[each for n in short for each in (0, n)], 0, 1], value=padding)
    index = numpy.full((len(x), target[place]), moved.shape[0])
    for k, (start, count) in enumerate(x._pieces):
        index[k, :count] = numpy.arange(start, start + count)
    return padded[wrap(index)].movedim(1, place + 1)


# -- Reductions --------------------------------------------------------------------------------------------------------

#: The number that does not change the result of a reduction.
_IDENTITY: dict[str, Any] = {
    "sum": 0, "prod": 1, "mean": 0, "amax": -math.inf, "max": -math.inf, "argmax": -math.inf, "amin": math.inf,
    "min": math.inf, "argmin": math.inf, "any": False, "all": True,
}  # fmt: skip


def _identity(name: str, dtype: Any) -> Any:
    value = _IDENTITY[name]
    if dtype.is_floating_point or not isinstance(value, float):
        return value
    if dtype is dtypes.bool_:
        return value > 0
    return getattr(dtypes.iinfo(dtype), "max" if value > 0 else "min")


def _reduction(name: str) -> None:
    def call(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None) -> Any:
        return _reduce(name, input, dim if axis is None else axis, keepdim, {} if dtype is None else {"dtype": dtype})

    call.__name__ = name
    IMPLEMENTED[name] = call


for _name in _IDENTITY:
    _reduction(_name)


def _reduce(name: str, x: Any, dim: Any, keepdim: bool, named: dict[str, Any]) -> Any:
    function = F[name]
    if _is_strided(x):
        return _reduce_strided(name, x, dim, keepdim, named)
    if isinstance(dim, Tensor):  # torch.max(a, b)
        return elementwise(F["maximum" if name == "max" else "minimum"], name, (x, dim), {})
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return function(x._stored, **named)
    places = sorted({normalize_dim(each, x.dim()) for each in (dim if isinstance(dim, (tuple, list)) else (dim,))})
    ragged = x._ragged_idx
    one = not isinstance(dim, (tuple, list)) or name not in ("sum", "mean", "amax", "amin", "any", "all")
    if 0 in places and ragged not in places:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors"
        )
    if 0 in places:
        inner = tuple([each - 1 for each in places if each])
        result = function(x._stored, inner, keepdim=keepdim, **named)
        return result.unsqueeze(0) if keepdim else result
    if ragged in places and len(places) > 1:
        if name == "mean":
            raise AssertionError("Cannot reduce on both ragged and non-batch dimensions without also reducing on batch")
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
        )
    if ragged in places:
        padded = to_padded_tensor(x, _identity(name, x.dtype))
        if name != "mean":
            return function(padded, ragged, keepdim=keepdim, **named)
        counts = F["tensor"]([count for _, count in x._pieces])
        total = padded.sum(ragged, keepdim=keepdim, **named)
        return total / counts.reshape(-1, *(1,) * (total.dim() - 1))
    inner = tuple([each - 1 for each in places])
    result = function(x._stored, inner[0] if one else inner, keepdim=keepdim, **named)
    shift = 0 if keepdim else len([each for each in places if each < ragged])
    if isinstance(result, tuple):
        return type(result)([x._like(each, ragged - shift) for each in result])
    return x._like(result, ragged - shift)


def _reduce_strided(name: str, x: Any, dim: Any, keepdim: bool, named: dict[str, Any]) -> Any:
    if name != "sum" or dim is None:
        raise unsupported(name, strided)
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    places = [normalize_dim(each, x.dim()) for each in dims]
    if places != [x.dim() - 1]:
        raise RuntimeError(
            "NestedTensor can only be reduced across the last dimension for now got dimension "
            f"{places[0] if places else 0} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return each_component(lambda each: each.sum(-1, keepdim=True, **named), x)


# -- Functions of layers -----------------------------------------------------------------------------------------------


@implements()
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Return ``input @ weight.T + bias`` for each component."""
    if not isinstance(input, Nested) or isinstance(weight, Nested):
        raise unsupported("linear with a nested weight", jagged)
    if _is_strided(input):
        if input.dim() != 3:
            raise RuntimeError(f"Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: "
                               f"{input.dim()}. Dense tensor dim: {weight.dim()}")  # fmt: skip
        features = input.size(2)
        stored = functional.linear(input._stored.reshape(-1, features), weight, bias)
        sizes = input._sizes.copy()
        sizes[:, -1] = weight.shape[0]
        return strided_of(stored.reshape(-1), sizes)
    if input._ragged_idx == input.dim() - 1:
        raise RuntimeError("linear(): not supported for NestedTensor on ragged dim")
    return input._like(functional.linear(input._stored, weight, bias))


@implements("matmul", "__matmul__", "bmm", "__rmatmul__")
def matmul(input: Any, other: Any) -> Any:
    """Return the product of each component and the matrix that belongs to it."""
    if _is_strided(input, other):
        for name, each in (("self", input), ("other", other)):
            if not isinstance(each, Nested):
                kinds = "nested self and non-nested" if name == "other" else "non-nested self and nested"
                raise RuntimeError(f"Expected both to be nested, but got a {kinds} other")
        return each_component(lambda a, b: a @ b, input, other)
    shapes = input._size if isinstance(input, Nested) else input.shape, other.shape
    refusal = RuntimeError(f"matmul(): not supported between inputs of shapes {shapes[0]} and {shapes[1]}")
    a, b = isinstance(input, Nested), isinstance(other, Nested)
    if a and not b:
        last = input.dim() - 1
        if other.dim() == 2 and input._ragged_idx != last:
            return input._like(input._stored @ other)
        if other.dim() == 2 or other.dim() != input.dim() or other.shape[0] != len(input):
            raise refusal
        if input._ragged_idx != last - 1:
            raise refusal
        return from_components(input, [x @ y for x, y in zip(input.unbind(), other.unbind(), strict=True)])
    if b and not a:
        last = other.dim() - 1
        if input.dim() != other.dim() or input.shape[0] != len(other) or other._ragged_idx != last:
            raise refusal
        return from_components(other, [x @ y for x, y in zip(input.unbind(), other.unbind(), strict=True)])
    last = input.dim() - 1
    if input._ragged_idx == last and other._ragged_idx == last - 1 and input._symbol == other._symbol:
        return F["stack"]([x @ y for x, y in zip(input.unbind(), other.unbind(), strict=True)])
    raise refusal


@implements("softmax", "log_softmax", "special_softmax")
def softmax(input: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return the softmax along a dimension of each component, its ragged one too."""
    return _softmax("softmax", input, dim, kwargs.get("dtype") or (args[0] if args else None))


def _softmax(name: str, input: Any, dim: Any, dtype: Any) -> Any:
    function = getattr(functional, name)
    place = normalize_dim(dim, input.dim())
    if _is_strided(input):
        if not place:
            raise RuntimeError("Cannot apply softmax across nested dimension 0")
        return each_component(lambda x: function(x, place - 1, dtype=dtype), input)
    if not place:
        raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
    if place != input._ragged_idx:
        return input._like(function(input._stored, place - 1, dtype=dtype))
    if input._lengths is not None or (name == "log_softmax" or place > 1):
        more = " for ragged_idx > 1" if name == "softmax" else ""
        raise RuntimeError(f"{name}(): not supported when reducing along the ragged dimension{more} for NestedTensor")
    return each_component(lambda x: function(x, place - 1, dtype=dtype), input)


IMPLEMENTED["log_softmax"] = lambda input, dim=None, *args, **kwargs: _softmax(
    "log_softmax", input, dim, kwargs.get("dtype") or (args[0] if args and not isinstance(args[0], int) else None)
)


@implements()
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05, *rest: Any
) -> Any:  # fmt: skip
    """Return the nested tensor normalized over the last dimensions, which are not ragged."""
    if _is_strided(input):
        if weight is None or bias is None:
            raise ValueError("NestedTensor layer_norm requires weight and bias")
        shape = tuple(normalized_shape)
        if any(each[-len(shape) :] != shape for each in input._components()):
            raise RuntimeError(f"normalized_shape {shape} does not match the components of the nested tensor")
        stored = functional.layer_norm(input._stored.reshape(-1, *shape), shape, weight, bias, eps)
        return input._like(stored.reshape(-1))
    if input._ragged_idx > input.dim() - 1 - len(tuple(normalized_shape)):
        return _ragged_norm(input, tuple(normalized_shape), weight, bias, eps)
    return input._like(functional.layer_norm(input._stored, normalized_shape, weight, bias, eps))


def _ragged_norm(input: Any, shape: Sequence[Any], weight: Any, bias: Any, eps: float) -> Any:
    """Normalize over the ragged and the later dimensions of each component."""

    def normalize(x: Tensor) -> Tensor:
        made = functional.layer_norm(x, tuple(x.shape[-len(shape) :]), eps=eps)
        made = made if weight is None else made * weight
        return made if bias is None else made + bias

    return each_component(normalize, input)


@implements()
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """Return the nested tensor divided by the root of the mean square over the last dimensions."""
    if _is_strided(input):
        raise unsupported("rms_norm", strided)
    return input._like(functional.rms_norm(input._stored, normalized_shape, weight, eps))


@implements()
def embedding(input: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the rows of ``weight`` at the indices of the nested tensor ``input``."""
    if isinstance(input, NestedTensor):
        return input._like(functional.embedding(input._stored, weight, *args, **kwargs))
    sizes = numpy.concatenate([input._sizes, numpy.full((len(input._sizes), 1), weight.shape[1])], 1)
    return strided_of(functional.embedding(input._stored, weight, *args, **kwargs).reshape(-1), sizes)


@implements()
def glu(input: Any, dim: int = -1) -> Any:
    """Return the first half along ``dim`` times the sigmoid of the second half."""
    a, b = chunk(input, 2, dim)
    return a * b.sigmoid()


@implements()
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **named: Any,
) -> Any:
    """Return the attention of each component of ``query`` to the same component of ``key`` and ``value``.

    The components have the shape (heads, length, features). The layout and structure are those of ``query``.
    """
    if attn_mask is not None:
        raise RuntimeError("No viable backend for scaled_dot_product_attention was found: masks are not supported")
    if query.dim() < 4 and not _is_strided(query):
        raise RuntimeError("No viable backend for scaled_dot_product_attention was found.")

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, None, dropout_p, is_causal, **named)

    return each_component(attend, query, key, value)


@implements()
def multi_head_attention_forward(
    query: Any, key: Any, value: Any, *args: Any, need_weights: bool = True, **kwargs: Any
) -> tuple[Any, Any]:
    """Return the attention of each component of ``query``, of shape (length, features), and None.

    The arguments are those of :func:`torch.nn.functional.multi_head_attention_forward`.
    """
    if kwargs.get("key_padding_mask") is not None or kwargs.get("attn_mask") is not None:
        raise RuntimeError("MultiheadAttention does not support NestedTensor outside of its fast path: masks")

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        given = [each.unsqueeze(1) for each in (q, k, v)]
        result: Any = functional.multi_head_attention_forward(*given, *args, **{**kwargs, "need_weights": False})
        return result[0].squeeze(1)

    return each_component(attend, query, key, value), None


# -- The graph ---------------------------------------------------------------------------------------------------------


def _in_graph(x: Any) -> Any:
    return x._stored if isinstance(x, Nested) else x


implement_gradients(IMPLEMENTED, lambda x, gradient: x._like(gradient), lambda out, gradient: _in_graph(gradient))


def extract_kwargs(arg: NestedTensor) -> dict[str, Any]:
    """Return the parts of a nested tensor other than its elements, as keyword arguments of its class."""
    return {
        "offsets": arg._offsets, "lengths": arg._lengths, "_metadata_cache": arg._metadata_cache,
        "_ragged_idx": arg._ragged_idx,
    }  # fmt: skip


__all__ = ["elementwise", "extract_kwargs", "from_components", "to_padded_tensor"]
