"""``SparseTensor``: a tensor of which only the elements at given indices are stored.

Note [Representation of sparse tensors]. A sparse tensor is an instance of a subclass of Tensor that overrides all
functions by ``__torch_function__``; a function that has no implementation for sparse tensors raises an error. Its
``_array`` is a :class:`NoArray`, which raises an error as soon as it is used as an array, so that functions which do not
support overrides raise, too. Its fields are in ``__dict__``:

``_pattern``   the layout and the indices, a :class:`Coordinates` or :class:`Compressed`; constant
``_stored``    the values, a dense tensor of shape (number of elements, *dense sizes); it has the gradient edge
``_sizes``     the shape

Importing this module registers the class for overrides, so programs without sparse tensors are not slowed down.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn
from weakref import ReferenceType

import numpy

from ..compat.missing_names import DOCS_FOLDER
from ..core import dtypes, formatting
from ..core.devices import CPU
from ..core.grad_mode import recording
from ..core.size import Size, size_of
from ..core.tensor import (
    Tensor,
    normalize_dim,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    wrap,
)
from ..core.tensor import layout as layout_class
from ..core.torch_function import OVERRIDING, call_without_overrides
from ..dispatch.layout_classes import PLAIN_PROPERTIES, NoArray, StoredTensor, implements_in, name_of
from ..kernels import indexing
from ..kernels import sparse as kernels
from ..operations.tensor_methods import listed_and_readable
from .operations import ALIAS, GATHER

NO_NUMPY = "can't convert {} layout tensor to numpy. Use Tensor.to_dense() first."
#: PyTorch's names of the layouts in errors.
SHOWN = {"sparse_coo": "Sparse", "sparse_csr": "SparseCsr", "sparse_csc": "SparseCsc", "strided": "Strided"}
#: For compressed layouts, the names of the compressed and of the plain indices.
NAMES: dict[layout_class, tuple[str, str]] = {
    sparse_csr: ("crow_indices", "col_indices"),
    sparse_csc: ("ccol_indices", "row_indices"),
}
#: The functions of sparse tensors by PyTorch's names, filled by the other modules of this folder.
IMPLEMENTED: dict[str, Callable[..., Any]] = {}
implements = implements_in(IMPLEMENTED)


def unsupported(what: str, layout: layout_class) -> NotImplementedError:
    """Return the error for ``what``, a function that has no implementation for tensors of ``layout``."""
    return NotImplementedError(
        f"{what} is not implemented for tensors of layout {layout}. Remedy: convert the tensor by to_dense(), or compute "
        "with its values(). Sparse tensors have products (mm, mv, matmul, addmm, torch.sparse.mm), sums, softmax, "
        "elementwise functions with f(0) = 0, add, sub, mul, div by a number, transposition, indexing, cat and "
        f"conversions; {DOCS_FOLDER}/sparse.md lists them."
    )


# --- Indices --------------------------------------------------------------------------------------------------------


class Coordinates:
    """Indices in coordinate format: an int64 array with a row for each sparse dimension, a column for each element.

    ``coalesced`` is true if the columns are sorted and distinct.
    """

    __slots__ = ("coalesced", "indices")
    layout = sparse_coo

    def __init__(self, indices: Any, coalesced: bool) -> None:
        self.indices, self.coalesced = indices, coalesced

    @property
    def dims(self) -> int:
        """Number of sparse dimensions."""
        return len(self.indices)

    @property
    def count(self) -> int:
        """Number of stored elements."""
        return self.indices.shape[1]

    def coordinates(self) -> Any:
        """Return the indices as an array of shape (sparse dimensions, elements)."""
        return self.indices


class Compressed:
    """Indices in compressed format, ``sparse_csr`` or ``sparse_csc``.

    ``starts`` has the position of the first element of each row (of each column for ``sparse_csc``), and the number of
    elements; ``plain`` has the column (row) of each element.
    """

    __slots__ = ("layout", "plain", "starts")
    dims, coalesced = 2, True

    def __init__(self, layout: layout_class, starts: Any, plain: Any) -> None:
        self.layout, self.starts, self.plain = layout, starts, plain

    @property
    def count(self) -> int:
        """Number of stored elements."""
        return self.plain.size

    def coordinates(self) -> Any:
        """Return the indices as an array of shape (2, elements)."""
        lines = (kernels.expanded(self.starts), self.plain)
        return numpy.stack(lines if self.layout is sparse_csr else lines[::-1])


Pattern = Coordinates | Compressed


# --- The class ------------------------------------------------------------------------------------------------------


class SparseTensor(StoredTensor):
    """Tensor that stores only some elements, in the layout ``sparse_coo``, ``sparse_csr`` or ``sparse_csc``."""

    __slots__ = ()
    __module__ = "torch"
    _pattern: Pattern
    _sizes: tuple[int, ...]
    _is_param: bool
    __dir__ = listed_and_readable

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = name_of(func)
        function = IMPLEMENTED.get(name)
        if function is None and name.endswith("_") and not name.startswith("__") and name[:-1] in IMPLEMENTED:
            function = partial(_in_place, name)
        if function is not None:
            try:
                return function(*args, **(kwargs or {}))
            except AttributeError as error:  # an argument that is no sparse tensor
                kinds = ", ".join([each.__class__.__name__ for each in args])
                raise TypeError(f"{name}() of sparse tensors does not take arguments of types ({kinds})") from error
        if name in PLAIN_PROPERTIES:
            return call_without_overrides(func, args, kwargs or {})
        raise unsupported(f"{name}()", _layout_in((*args, *(kwargs or {}).values())))

    @property
    def _array(self) -> Any:  # type: ignore[override]
        layout = self._pattern.layout
        no_numpy = NO_NUMPY.format(SHOWN[layout.name])
        return NoArray(self._sizes, self._stored._array.dtype, lambda: unsupported("This function", layout), no_numpy)

    # -- shape and memory

    shape = property(lambda self: size_of(Size, self._sizes), doc="Size of every dimension.")
    ndim = property(lambda self: len(self._sizes), doc="Number of dimensions.")
    device = property(lambda self: CPU, doc="Device of the memory: the CPU.")
    layout = property(lambda self: self._pattern.layout, doc="Layout: ``torch.sparse_coo`` or a compressed one.")
    is_sparse = property(lambda self: self._pattern.layout is sparse_coo, doc="Whether the layout is sparse_coo.")
    is_sparse_csr = property(lambda self: self._pattern.layout is sparse_csr, doc="Whether the layout is sparse_csr.")

    @property
    def nbytes(self) -> NoReturn:
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the nbytes "
            "of the indices and values.  If you want the size of the  equivalent dense tensor, multiply numel() by "
            "element_size()"
        )

    def size(self, dim: int | None = None, **names: int) -> Any:
        dim = names.get("axis", dim)
        return self.shape if dim is None else self._sizes[normalize_dim(dim, len(self._sizes))]

    def dim(self) -> int:
        return len(self._sizes)

    ndimension = dim

    def numel(self) -> int:
        return math.prod(self._sizes)

    nelement = numel

    def element_size(self) -> int:
        return self._stored.element_size()

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def stride(self, dim: int | None = None) -> Any:
        if self._pattern.layout is not sparse_coo:
            raise RuntimeError("Sparse CSR tensors do not have strides")
        return (0,) * len(self._sizes) if dim is None else 0

    def storage_offset(self) -> int:
        return 0

    def is_contiguous(self, *, memory_format: Any = None) -> bool:
        return False

    def data_ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    tolist: Any = data_ptr

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError(NO_NUMPY.format(SHOWN[self.layout.name]))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(NO_NUMPY.format(SHOWN[self.layout.name]))

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return IMPLEMENTED["to_dense"](self).item()

    def __len__(self) -> int:
        if not self._sizes:
            raise TypeError("len() of a 0-d tensor")
        return self._sizes[0]

    def __bool__(self) -> bool:
        if self.numel() != 1:
            many = "more than one value" if self.numel() else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
        return bool(self.item())

    def __iter__(self) -> Any:
        return iter([IMPLEMENTED["select"](self, 0, index) for index in range(len(self))])

    __hash__ = Tensor.__hash__

    # -- gradients arrive in the engine as sparse tensors, and are added to arrays

    def __add__(self, other: object) -> Any:
        return _added_to(self, other) if isinstance(other, numpy.ndarray) else Tensor.__add__(self, other)

    def __radd__(self, other: object) -> Any:
        if isinstance(other, numpy.ndarray):
            return _added_to(self, other)
        return Tensor.__add__(other, self) if isinstance(other, Tensor) else Tensor.__radd__(self, other)

    # -- the graph

    @property
    def grad(self) -> Tensor | None:
        """Gradient of the stored elements, a sparse tensor with the same indices, or None."""
        assigned = self.__dict__.get("_assigned")
        if assigned is not None:
            return assigned
        values = self._stored.grad
        if values is None:
            return None
        result = gradient_of(self, values)
        result.__dict__["_accumulates"] = True
        return result

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            self._check_grad(value)
        self.__dict__["_assigned"] = value
        self._stored.grad = None

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def _grad(self) -> Any:
        return self.grad

    @_grad.setter
    def _grad(self, value: Any) -> None:
        self.grad = value

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        self._stored.requires_grad_(requires_grad)
        return self

    def _set_requires_grad(self, requires_grad: bool = True) -> SparseTensor:
        self._stored._set_requires_grad(requires_grad)
        return self

    def retain_grad(self) -> None:
        self._stored.retain_grad()

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        def call(values: Tensor) -> Tensor | None:
            result = hook(gradient_of(self, values))
            return None if result is None else values_at(result, self)

        return self._stored.register_hook(call)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        return self._stored.register_post_accumulate_grad_hook(lambda values: hook(self))

    def detach(self) -> SparseTensor:
        return sparse_tensor(self._pattern, self._stored.detach(), self._sizes, type(self))

    _base = None

    def _is_view(self) -> bool:
        return False

    def detach_(self) -> SparseTensor:
        self.__dict__["_stored"] = self._stored.detach()
        return self

    @property
    def data(self) -> SparseTensor:
        return sparse_tensor(self._pattern, self._stored.data, self._sizes, type(self))

    @data.setter
    def data(self, value: object) -> None:
        if not isinstance(value, SparseTensor) or value._sizes != self._sizes:
            raise RuntimeError("data of a sparse tensor can only be set to a sparse tensor of the same shape")
        requires = self.requires_grad
        self.__dict__.update(_pattern=value._pattern, _stored=value._stored.detach().requires_grad_(requires))

    # -- copies and text

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        if id(self) not in memo:
            if not self.is_leaf:
                copy.deepcopy(self._stored, memo)  # raises PyTorch's error
            values = self._stored.detach().clone().requires_grad_(self.requires_grad)
            memo[id(self)] = copied = sparse_tensor(_copy_of(self._pattern), values, self._sizes, type(self))
            if self.__dict__.get("_is_param"):
                copied._is_param = True
            if self.grad is not None:
                copied.grad = self.grad.__deepcopy__(memo)
        return memo[id(self)]

    def __copy__(self) -> SparseTensor:
        made = self.detach().requires_grad_(self.requires_grad)
        if self.__dict__.get("_is_param"):
            made._is_param = True
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        pattern, flags = self._pattern, (self.requires_grad, bool(self.__dict__.get("_is_param")))
        indices = (
            (pattern.indices, pattern.coalesced)
            if isinstance(pattern, Coordinates)
            else (pattern.starts, pattern.plain)
        )
        return rebuild, (pattern.layout, indices, self._stored.detach(), self._sizes, flags)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        text = _text(self)
        return f"Parameter containing:\n{text}" if self.__dict__.get("_is_param") else text

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)


SparseTensor.__name__ = SparseTensor.__qualname__ = "Tensor"
_REFERENCE: ReferenceType[type] = ReferenceType(SparseTensor, OVERRIDING.discard)


def _in_place(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call the in-place function ``name``: the fields of its first argument become those of the result."""
    x = args[0] if args else kwargs["input"]
    result = IMPLEMENTED[name[:-1]](*args, **kwargs)
    if not isinstance(x, SparseTensor):
        if isinstance(result, SparseTensor):
            raise unsupported(f"{name}() of a dense tensor that would become sparse", result.layout)
        return x.copy_(result)
    return replace(x, result, name)


def replace(x: SparseTensor, result: Tensor, name: str) -> SparseTensor:
    """Give ``x`` the elements of ``result``, and return ``x``; ``name`` is the in-place function that is called."""
    if recording() and x.is_leaf and x.requires_grad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if not isinstance(result, SparseTensor) or result._sizes != x._sizes:
        raise RuntimeError(f"{name}: the result has another layout or shape than the tensor to be modified")
    if result.dtype is not x.dtype:
        if result.dtype.category > x.dtype.category:
            names = dtypes.scalar_name(result.dtype), dtypes.scalar_name(x.dtype)
            raise RuntimeError(f"result type {names[0]} can't be cast to the desired output type {names[1]}")
        result = with_values(result, result._stored.to(x.dtype))
    if x.__dict__.get("_accumulates") and result._pattern.count == x._pattern.count:
        x._stored.copy_(result._stored)  # the values are the ``grad`` of a leaf's values
        return x
    stored = result._stored
    if x.is_leaf and x.requires_grad:  # not recorded, as in an optimizer
        if x._pattern.count == result._pattern.count and (flat_of(x) == flat_of(result)).all():
            x._stored.copy_(stored)
            return x
        stored = stored.detach().requires_grad_()
    x.__dict__.update(_pattern=result._pattern, _stored=stored)
    return x


def _added_to(x: SparseTensor, array: Any) -> Any:
    """Return the sum of ``array`` and the sparse gradient ``x`` as a new array."""
    result = array.copy()
    add_into(result, x)
    return result


def add_into(array: Any, x: SparseTensor, factor: Any = 1) -> None:
    """Add ``x`` times ``factor`` in place to ``array``, an array of the same shape."""
    if not x._pattern.count:
        return
    values, coordinates = x._stored._array, x._pattern.coordinates()
    kernels.check_range(coordinates, x._sizes[: x._pattern.dims])
    indexing.add(numpy, array, tuple(coordinates), values if factor == 1 else values * factor)


def _layout_in(values: Sequence[Any]) -> layout_class:
    for each in values:
        for one in each if isinstance(each, (tuple, list)) else (each,):
            if isinstance(one, SparseTensor):
                return one.layout
    return sparse_coo


# --- Making them ----------------------------------------------------------------------------------------------------


def sparse_tensor(
    pattern: Pattern, values: Tensor, sizes: Sequence[int], cls: type[SparseTensor] = SparseTensor
) -> SparseTensor:
    """Return the sparse tensor with the given indices, values and shape."""
    OVERRIDING.add(_REFERENCE)
    made = object.__new__(cls)
    made.__dict__.update(_pattern=pattern, _stored=values, _sizes=tuple(sizes))
    return made


def with_values(x: SparseTensor, values: Tensor) -> SparseTensor:
    """Return a sparse tensor with the indices of ``x`` and the given values, whose last dimensions are those of ``x``."""
    return sparse_tensor(x._pattern, values, x._sizes)


def coo(coordinates: Any, values: Tensor, sizes: Sequence[int], coalesced: bool) -> SparseTensor:
    """Return a tensor of layout ``sparse_coo``."""
    return sparse_tensor(Coordinates(coordinates, coalesced or coordinates.shape[1] < 2), values, sizes)


def flat_of(x: SparseTensor) -> Any:
    """Return the flat index of each stored element in the sparse dimensions."""
    return kernels.flat_indices(x._pattern.coordinates(), x._sizes[: x._pattern.dims])


def gather(node: str, source: Tensor, flat: Any, dims: int) -> Tensor:
    """Return the elements of ``source`` at the flat indices ``flat`` of its first ``dims`` dimensions."""
    return GATHER[node](source, wrap(flat), dims)


def values_at(source: Tensor, x: SparseTensor, node: str = "SparseMaskBackward0") -> Tensor:
    """Return the elements of ``source``, a dense or sparse tensor of the shape of ``x``, at the indices of ``x``."""
    if isinstance(source, SparseTensor):
        source = IMPLEMENTED["sparse_mask"](source, x)
        return source._stored
    return gather(node, source, flat_of(x), x._pattern.dims)


def gradient_of(x: SparseTensor, values: Tensor) -> SparseTensor:
    """Return the gradient of ``x`` for ``values``, the gradient of its values.

    The elements of an uncoalesced tensor that have the same index have the same gradient, which the result has once.
    """
    if x._pattern.coalesced:
        return sparse_tensor(x._pattern, values, x._sizes)
    flat, first = numpy.unique(flat_of(x), return_index=True)
    coordinates = kernels.coordinates_of(flat, x._sizes[: x._pattern.dims])
    return coo(coordinates, gather("IndexSelectBackward0", values, first, 1), x._sizes, True)


def _copy_of(pattern: Pattern) -> Pattern:
    if isinstance(pattern, Coordinates):
        return Coordinates(pattern.indices.copy(), pattern.coalesced)
    return Compressed(pattern.layout, pattern.starts.copy(), pattern.plain.copy())


def rebuild(layout: Any, indices: Any, values: Any, sizes: Any, flags: Any) -> SparseTensor:
    """Return a sparse tensor: the function that ``pickle`` calls to load one."""
    pattern = Coordinates(*indices) if layout is sparse_coo else Compressed(layout, *indices)
    made = sparse_tensor(pattern, values.requires_grad_(flags[0]), sizes)
    if flags[1]:
        made._is_param = True
    return made


rebuild.__module__, rebuild.__qualname__ = "retrograd._rebuild", "sparse_tensor"


def _text(x: SparseTensor) -> str:
    """Return the text of ``x`` as PyTorch prints it."""
    indent = len("tensor(")
    pattern = x._pattern
    parts = (
        [("indices", pattern.indices)]
        if isinstance(pattern, Coordinates)
        else list(zip(NAMES[pattern.layout], (pattern.starts, pattern.plain), strict=True))
    )
    lines = []
    for name, array in (*parts, ("values", x._stored.detach()._array)):
        start = f"{name}=tensor("
        text = formatting.elements_text(array, indent + len(start)) if array.size else "[]"
        lines.append(f"{start}{text}{'' if array.size else f', size={tuple(array.shape)}'})")
    suffixes = [f"size={x._sizes}", f"nnz={pattern.count}"]
    if x.dtype not in (dtypes.default.floating, dtypes.default.complex, dtypes.int64, dtypes.bool_):
        suffixes.append(f"dtype={x.dtype}")
    suffixes.append(f"layout={pattern.layout}")
    node = x.grad_fn
    if node is not None:
        suffixes.append(f"grad_fn=<{type(node).__name__}>")
    elif x.requires_grad:
        suffixes.append("requires_grad=True")
    body = "tensor(" + (",\n" + " " * indent).join(lines)
    return formatting.with_suffixes(body, suffixes, indent, isinstance(pattern, Coordinates))


__all__ = [
    "ALIAS", "IMPLEMENTED", "NAMES", "SHOWN", "Compressed", "Coordinates", "SparseTensor", "add_into", "coo", "flat_of",
    "gather", "gradient_of", "implements", "replace", "sparse_tensor", "unsupported", "values_at", "with_values",
]  # fmt: skip
