"""The classes of nested tensors: batches of tensors of different sizes.

Note [Representation of nested tensors]. A nested tensor is an instance of a subclass of Tensor that overrides all
functions by ``__torch_function__``. Its field ``_stored`` is an ordinary tensor with the elements of all components, which
has the gradient edge; so the graph has no nested tensors. There are two layouts:

``strided`` (:class:`StridedNestedTensor`)
    ``_stored`` is a vector, in which the components follow each other; ``_sizes`` is an array with a row of sizes for
    each component. Components may differ in any dimension.

``jagged`` (:class:`NestedTensor`)
    ``_stored`` has all components side by side along the one ragged dimension, ``_ragged_idx``, which is 1 or
    larger, because dimension 0 is the batch. Component k is from ``offsets[k]`` to ``offsets[k + 1]``, or has
    ``lengths[k]`` rows.

Importing this module does not register the classes for overrides; the first nested tensor does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NoReturn
from weakref import ReferenceType

import numpy

from ...compat.missing_names import DOCS_FOLDER
from ...core.size import Size, size_of
from ...core.tensor import Tensor, normalize_dim, strided, wrap
from ...core.tensor import layout as layout_class
from ...core.torch_function import OVERRIDING, call_without_overrides
from ...dispatch.declare import FUNCTIONS
from ...dispatch.layout_classes import PLAIN_PROPERTIES, NoArray, StoredTensor, implements_in, name_of
from ...operations.tensor_methods import listed_and_readable
from .nested_int import registry

jagged = layout_class("jagged")
#: The functions of nested tensors by PyTorch's names, filled by ``ops``.
IMPLEMENTED: dict[str, Callable[..., Any]] = {}
implements = implements_in(IMPLEMENTED)
NO_SIZES = "Internal error: NestedTensorImpl doesn't support {}. Please file an issue."


def unsupported(name: str, layout: layout_class) -> NotImplementedError:
    """Return the error for ``name``, a function that nested tensors of ``layout`` do not have."""
    begin = (
        f"aten.{name}"
        if layout is jagged
        else f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend."
    )
    return NotImplementedError(
        f"{begin} is not implemented for nested tensors. Remedy: compute with unbind(), values() or to_padded_tensor(). "
        "Nested tensors have elementwise functions, linear, matmul, bmm, embedding, softmax, layer_norm, rms_norm, "
        "dropout, attention, sums and other reductions, views, chunk, split, cat, stack and conversions; "
        f"{DOCS_FOLDER}/nested.md lists them."
    )


class Nested(StoredTensor):
    """Base class of nested tensors."""

    __slots__ = ()
    __module__ = "torch"
    __dir__ = listed_and_readable
    device = property(lambda self: self._stored.device, doc="Device of the elements.")
    nbytes = property(lambda self: self._stored.nbytes, doc="Number of bytes of the elements.")
    is_sparse = property(lambda self: False, doc="False.")
    is_nested = property(lambda self: True, doc="True.")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = name_of(func)
        kwargs = kwargs or {}
        function = IMPLEMENTED.get(name)
        if function is not None:
            return function(*args, **kwargs)
        if name in PLAIN_PROPERTIES:
            return call_without_overrides(func, args, kwargs)
        return IMPLEMENTED["elementwise"](func, name, args, kwargs)

    @property
    def _array(self) -> Any:  # type: ignore[override]
        shape = (len(self._components()), *self._stored.shape)
        no_numpy = ".numpy() is not supported for tensor subclasses."
        return NoArray(shape, self._stored._array.dtype, lambda: unsupported("This function", self.layout), no_numpy)

    def _components(self) -> list[tuple[int, ...]]:
        """Return the sizes of the components."""
        raise NotImplementedError

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def element_size(self) -> int:
        return self._stored.element_size()

    def storage_offset(self) -> int:
        return self._stored.storage_offset()

    def untyped_storage(self) -> Any:
        return self._stored.untyped_storage()

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self._stored.item()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            many = "more than one value" if self.numel() else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
        return bool(self.item())

    __hash__ = Tensor.__hash__

    def _like(self, stored: Tensor, ragged: int | None = None) -> Any:
        """Return a nested tensor of the same structure with other elements, and with another ragged dimension."""
        raise NotImplementedError

    # -- the graph

    @property
    def grad(self) -> Any:
        """Gradient, a nested tensor of the same structure, or None."""
        grad = self._stored.grad
        return None if grad is None else self._like(grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._stored.grad = value._stored if isinstance(value, Nested) else value

    @grad.deleter
    def grad(self) -> None:
        self._stored.grad = None

    @property
    def _grad(self) -> Any:
        return self.grad

    @_grad.setter
    def _grad(self, value: Any) -> None:
        self.grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        self._stored.requires_grad_(requires_grad)
        return self

    def _set_requires_grad(self, requires_grad: bool = True) -> Any:
        return self.requires_grad_(requires_grad)

    def retain_grad(self) -> None:
        self._stored.retain_grad()

    def register_hook(self, hook: Any) -> Any:
        def call(stored: Tensor) -> Any:
            result = hook(self._like(stored))
            return None if result is None else result._stored

        return self._stored.register_hook(call)

    def detach(self) -> Any:
        return self._like(self._stored.detach())

    def detach_(self) -> Any:
        self.__dict__["_stored"] = self._stored.detach()
        return self

    data = property(lambda self: self.detach(), doc="The nested tensor outside of the graph.")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        import copy

        if id(self) not in memo:
            memo[id(self)] = self._like(copy.deepcopy(self._stored, memo))
        return memo[id(self)]

    def __copy__(self) -> Any:
        return self._like(self._stored)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)


class StridedNestedTensor(Nested):
    """Nested tensor of the layout ``strided``, whose components may differ in every dimension."""

    __slots__ = ()
    _sizes: Any
    layout = property(lambda self: strided, doc="The layout ``torch.strided``.")
    ndim = property(lambda self: self.dim(), doc="Number of dimensions.")

    def _components(self) -> list[tuple[int, ...]]:
        return [tuple(map(int, row)) for row in self._sizes]

    @property
    def shape(self) -> NoReturn:
        raise RuntimeError(NO_SIZES.format("sizes"))

    def size(self, dim: int | None = None, **names: int) -> Any:
        dim = names.get("axis", dim)
        if dim is None:
            raise RuntimeError(NO_SIZES.format("sizes"))
        dim = normalize_dim(dim, self.dim())
        if not dim:
            return len(self._sizes)
        if not len(self._sizes) or (self._sizes[:, dim - 1] != self._sizes[0, dim - 1]).any():
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return int(self._sizes[0, dim - 1])

    def dim(self) -> int:
        return 1 + self._sizes.shape[1] if len(self._sizes) else 1

    ndimension = dim

    def numel(self) -> int:
        return self._stored.numel()

    nelement = numel

    def stride(self, dim: int | None = None) -> NoReturn:
        raise RuntimeError(NO_SIZES.format("strides"))

    def is_contiguous(self, *, memory_format: Any = None) -> bool:
        return True

    def values(self) -> Tensor:
        """Return the elements of all components as a vector."""
        return self._stored.view_as(self._stored)

    def __len__(self) -> NoReturn:
        raise RuntimeError(NO_SIZES.format("sizes"))

    def __iter__(self) -> Any:
        return iter(IMPLEMENTED["unbind"](self))

    def tolist(self) -> NoReturn:
        raise RuntimeError(NO_SIZES.format("strides"))

    def numpy(self, *, force: bool = False) -> NoReturn:
        raise RuntimeError(NO_SIZES.format("sizes"))

    def _nested_tensor_size(self) -> Tensor:
        """Return the sizes of the components, an int64 tensor with a row for each."""
        return wrap(self._sizes.copy())

    def _nested_tensor_strides(self) -> Tensor:
        """Return the strides of the components, an int64 tensor with a row for each."""
        strides = numpy.ones_like(self._sizes)
        strides[:, :-1] = numpy.cumprod(self._sizes[:, :0:-1], 1)[:, ::-1]
        return wrap(strides)

    def _nested_tensor_storage_offsets(self) -> Tensor:
        """Return the position of each component in the memory."""
        counts = self._sizes.prod(1)
        return wrap(numpy.cumsum(counts) - counts)

    def _like(self, stored: Tensor, ragged: int | None = None) -> StridedNestedTensor:
        return strided_of(stored, self._sizes)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuild_strided, (self._stored.detach(), self._sizes, self.requires_grad)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        flag = ", requires_grad=True)" if self.requires_grad else ")"
        parts = [repr(each)[:-1] + flag for each in IMPLEMENTED["unbind"](self.detach())]
        text = ",\n".join([part.replace("\n", "\n  ") for part in ["  " + part for part in parts]])
        node = self.grad_fn
        end = flag if node is None else f", grad_fn=<{type(node).__name__}>)"
        return f"nested_tensor([\n{text}\n]{end}"


class NestedTensor(Nested):
    """Nested tensor of the layout ``jagged``, whose components differ in one dimension.

    ``values`` has the components side by side; component k is at ``offsets[k]`` to ``offsets[k + 1]`` of dimension
    ``_ragged_idx - 1``, or has ``lengths[k]`` rows.
    """

    __slots__ = ()
    __module__ = "torch.nested._internal.nested_tensor"
    _offsets: Tensor
    _lengths: Tensor | None
    _ragged_idx: int
    _metadata_cache: dict[str, Any]
    layout = property(lambda self: jagged, doc="The layout ``torch.jagged``.")
    ndim = property(lambda self: self.dim(), doc="Number of dimensions.")

    def __new__(
        cls, values: Any, offsets: Any, *, lengths: Any = None, requires_grad: bool = False, **named: Any
    ) -> NestedTensor:  # fmt: skip
        if offsets is None or offsets.dim() != 1:
            got = "" if offsets is None else f", but got {offsets.dim()}D"
            raise AssertionError("offsets must not be None" if offsets is None else f"offsets must be 1D{got}")
        if isinstance(values, NestedTensor):
            raise AssertionError("values must not be a NestedTensor")
        stored = values.detach() if requires_grad else values
        made = jagged_of(stored, offsets, lengths, named.get("_ragged_idx", 1), named.get("_metadata_cache"))
        return made.requires_grad_() if requires_grad else made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @cached_property
    def _pieces(self) -> list[tuple[int, int]]:
        """First row and number of rows of each component."""
        starts = self._offsets._array.tolist()
        if self._lengths is None:
            return [(a, b - a) for a, b in pairwise(starts)]
        return list(zip(starts, self._lengths._array.tolist(), strict=False))

    def _components(self) -> list[tuple[int, ...]]:
        shape, place = tuple(self._stored.shape), self._ragged_idx - 1
        return [(*shape[:place], count, *shape[place + 1 :]) for _, count in self._pieces]

    @property
    def _size(self) -> tuple[Any, ...]:
        shape, place = tuple(self._stored.shape), self._ragged_idx - 1
        return (self._offsets.shape[0] - 1, *shape[:place], self._symbol, *shape[place + 1 :])

    @property
    def _symbol(self) -> Any:
        return registry[self._offsets if self._lengths is None else self._lengths]

    @property
    def _strides(self) -> tuple[Any, ...]:
        strides = self._stored.stride()
        return (self._symbol * strides[self._ragged_idx - 1], *strides)

    @property
    def shape(self) -> Size:
        """Size of every dimension; that of the ragged one is a symbol."""
        return size_of(Size, self._size)

    def size(self, dim: int | None = None, **names: int) -> Any:
        dim = names.get("axis", dim)
        return self.shape if dim is None else self._size[normalize_dim(dim, self.dim())]

    def dim(self) -> int:
        return self._stored.dim() + 1

    ndimension = dim

    def numel(self) -> int:
        if self._lengths is None:
            return self._stored.numel()
        return sum(map(math.prod, self._components()))

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        return self._strides if dim is None else self._strides[normalize_dim(dim, self.dim())]

    def is_contiguous(self, *, memory_format: Any = None) -> bool:
        return self._lengths is None and self._stored.is_contiguous()

    def values(self) -> Tensor:
        """Return the elements of all components side by side, as part of the graph."""
        return self._stored.view_as(self._stored)

    def offsets(self) -> Tensor:
        """Return the first row of each component, and the number of rows."""
        return self._offsets

    def lengths(self) -> Tensor | None:
        """Return the number of rows of each component if there are gaps, else None."""
        return self._lengths

    @property
    def _values(self) -> Tensor:
        return self._stored.detach() if self._stored.requires_grad else self._stored

    def _get_max_seqlen(self) -> int:
        return max([count for _, count in self._pieces], default=0)

    def _get_min_seqlen(self) -> int:
        return min([count for _, count in self._pieces], default=0)

    _max_seqlen = _maybe_max_seqlen = property(_get_max_seqlen, doc="Number of rows of the longest component.")
    _min_seqlen = _maybe_min_seqlen = property(_get_min_seqlen, doc="Number of rows of the shortest component.")
    _max_seqlen_tensor = property(lambda self: FUNCTIONS["zeros"]((self._get_max_seqlen(), 0)))
    _min_seqlen_tensor = property(lambda self: FUNCTIONS["zeros"]((self._get_min_seqlen(), 0)))

    def __tensor_flatten__(self) -> tuple[list[str], dict[str, Any]]:
        names = ["_values", "_offsets", *(["_lengths"] if self._lengths is not None else [])]
        return names, {"requires_grad": self.requires_grad, "ragged_idx": self._ragged_idx}

    @staticmethod
    def __tensor_unflatten__(inner_tensors: Any, meta: Any, outer_size: Any, outer_stride: Any) -> NestedTensor:
        return NestedTensor(
            inner_tensors["_values"], inner_tensors["_offsets"], lengths=inner_tensors.get("_lengths"),
            _ragged_idx=meta["ragged_idx"], requires_grad=meta["requires_grad"],
        )  # fmt: skip

    def __len__(self) -> int:
        return self._offsets.shape[0] - 1

    def __iter__(self) -> Any:
        return iter(IMPLEMENTED["unbind"](self))

    def tolist(self) -> NoReturn:
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")

    def numpy(self, *, force: bool = False) -> NoReturn:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def _like(self, stored: Tensor, ragged: int | None = None) -> NestedTensor:
        return jagged_of(
            stored, self._offsets, self._lengths, self._ragged_idx if ragged is None else ragged, self._metadata_cache
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        given = {
            "values": self._values, "offsets": self._offsets, "lengths": self._lengths, "_ragged_idx": self._ragged_idx,
            "requires_grad": self.requires_grad,
        }  # fmt: skip
        return _rebuild_njt, (given,)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        node = self.grad_fn
        graph = f", grad_fn={node}" if node is not None else ", requires_grad=True" if self.requires_grad else ""
        return f"NestedTensor(size={self._size}, offsets={self._offsets}{graph}, contiguous={self.is_contiguous()})"


StridedNestedTensor.__name__ = StridedNestedTensor.__qualname__ = "Tensor"
_REFERENCES: list[ReferenceType[type]] = [
    ReferenceType(each, OVERRIDING.discard) for each in (Nested, StridedNestedTensor, NestedTensor)
]
OVERRIDING.difference_update(_REFERENCES)  # registered with the first instance


def strided_of(stored: Tensor, sizes: Any) -> StridedNestedTensor:
    """Return the nested tensor of the layout ``strided`` with the elements ``stored`` and the array ``sizes``."""
    OVERRIDING.update(_REFERENCES)
    made = object.__new__(StridedNestedTensor)
    made.__dict__.update(_stored=stored, _sizes=sizes)
    return made


def jagged_of(
    stored: Tensor, offsets: Tensor, lengths: Tensor | None = None, ragged: int = 1, cache: Any = None
) -> NestedTensor:
    """Return the nested tensor of the layout ``jagged`` with these parts."""
    OVERRIDING.update(_REFERENCES)
    made = object.__new__(NestedTensor)
    made.__dict__.update(
        _stored=stored, _offsets=offsets, _lengths=lengths, _ragged_idx=ragged,
        _metadata_cache={} if cache is None else cache,
    )  # fmt: skip
    return made


def rebuild_strided(stored: Tensor, sizes: Any, requires_grad: bool) -> StridedNestedTensor:
    """Return a nested tensor of the layout ``strided``: the function that ``pickle`` calls to load one."""
    return strided_of(stored.requires_grad_(requires_grad), sizes)


def _rebuild_njt(constructor_kwargs: dict[str, Any]) -> NestedTensor:
    """Return a nested tensor of the layout ``jagged``: the function that ``pickle`` calls to load one."""
    return NestedTensor(**constructor_kwargs)


# --- Creation -------------------------------------------------------------------------------------------------------


def strided_from(tensors: Sequence[Tensor]) -> StridedNestedTensor:
    """Return the nested tensor of the layout ``strided`` with copies of ``tensors``, as part of the graph."""
    for index, each in enumerate(tensors):
        if each.dim() != tensors[0].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{each.dim()} for Tensor at index {index} and dimension {tensors[0].dim()} for Tensor at index 0."
            )
    if not tensors:
        return strided_of(FUNCTIONS["zeros"]((0,)), numpy.zeros((0, 0), numpy.int64))
    dtype = tensors[0].dtype
    stored = FUNCTIONS["cat"]([each.to(dtype).reshape(-1) for each in tensors])
    return strided_of(stored, numpy.array([each.shape for each in tensors], numpy.int64).reshape(len(tensors), -1))


def offsets_of(lengths: Sequence[int]) -> Tensor:
    """Return the int64 offsets of components with ``lengths`` rows."""
    return wrap(numpy.cumsum([0, *lengths], dtype=numpy.int64))


def jagged_from_list(
    tensors: Sequence[Tensor], offsets: Tensor | None = None, dtype: Any = None, device: Any = None
) -> tuple[NestedTensor, Tensor]:
    """Return a nested tensor with copies of ``tensors``, as part of the graph, and its offsets."""
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for attribute in ("dtype", "device"):
        if len({str(getattr(each, attribute)) for each in tensors}) > 1:
            raise RuntimeError(
                f"When constructing a nested tensor, all tensors in list must have the same {attribute}"
            )  # fmt: skip
    if len({each.dim() for each in tensors}) > 1:
        raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dim")
    if not tensors[0].dim():
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    shapes = numpy.array([each.shape for each in tensors])
    irregular = numpy.flatnonzero((shapes != shapes[0]).any(0))
    if len(irregular) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout "
            "only allows for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    place = int(irregular[0]) if len(irregular) else 0
    registry.reserve()
    values = FUNCTIONS["cat"](list(tensors), dim=place)
    if dtype is not None or device is not None:
        values = values.to(dtype=dtype or values.dtype, device=device or values.device)
    offsets = offsets_of(shapes[:, place].tolist()) if offsets is None else offsets
    return jagged_of(values, offsets, None, place + 1), offsets


def jagged_from_tensor_and_lengths(
    tensor: Tensor, starts: Any, lengths: Any
) -> tuple[NestedTensor, Tensor, Tensor | None]:
    """Return ``tensor``, of shape (batch, length, …), as a nested tensor of the rows from ``starts``, ``lengths`` of each.

    The elements are not copied.
    """
    batch, longest = tensor.shape[:2]
    registry.reserve()
    flat = tensor.flatten(0, 1)

    def each(value: Any) -> Any:
        array = value._array if isinstance(value, Tensor) else numpy.full(batch, value)
        return numpy.broadcast_to(array, (batch,)).astype(numpy.int64)

    first, counts = each(starts), each(lengths)
    offsets = numpy.append(numpy.arange(batch) * longest + first, batch * longest)
    offsets[-1] = offsets[-2] + counts[-1] if batch else 0
    made = jagged_of(flat, wrap(offsets), wrap(counts))
    if (numpy.diff(offsets) == counts).all():
        return jagged_of(flat[offsets[0] : offsets[-1]], wrap(offsets - offsets[0])), wrap(offsets), None
    return made, made._offsets, made._lengths


def nested_view_from_values_offsets(
    values: Tensor, offsets: Tensor, ragged_idx: int = 1, min_seqlen: Any = None, max_seqlen: Any = None
) -> NestedTensor:
    """Return the nested tensor of the layout ``jagged`` with these elements, which are not copied."""
    return nested_view_from_values_offsets_lengths(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values: Tensor, offsets: Tensor, lengths: Tensor | None, ragged_idx: int = 1, min_seqlen: Any = None,
    max_seqlen: Any = None,
) -> NestedTensor:  # fmt: skip
    """Return the nested tensor of the layout ``jagged`` with these elements, which are not copied."""
    registry.reserve()
    return jagged_of(values.view_as(values) if values.requires_grad else values, offsets, lengths, ragged_idx)


def buffer_from_jagged(jagged: NestedTensor) -> Tensor:
    """Return the elements of a nested tensor."""
    return jagged._stored


def nested_from_padded(
    padded: Tensor, offsets: Tensor, ragged_idx: int = 1, min_seqlen: Any = None, max_seqlen: Any = None,
    sum_S: Any = None,
) -> NestedTensor:  # fmt: skip
    """Return the nested tensor of the first rows of ``padded``, of shape (batch, length, …), as many as ``offsets`` tell."""
    counts = numpy.diff(offsets._array)
    moved = padded.movedim(ragged_idx, 1)
    batch = numpy.repeat(numpy.arange(len(counts)), counts)
    row = numpy.arange(len(batch)) - numpy.repeat(offsets._array[:-1], counts)
    values = moved[wrap(batch), wrap(row)].movedim(0, ragged_idx - 1)
    return jagged_of(values, offsets, None, ragged_idx)


_tensor_symint_registry = registry
__all__ = [
    "IMPLEMENTED", "Nested", "NestedTensor", "StridedNestedTensor", "buffer_from_jagged", "implements", "jagged",
    "jagged_from_list", "jagged_from_tensor_and_lengths", "jagged_of", "nested_from_padded",
    "nested_view_from_values_offsets", "nested_view_from_values_offsets_lengths", "offsets_of", "strided_from",
    "strided_of", "unsupported",
]  # fmt: skip
