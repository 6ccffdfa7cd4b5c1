"""``MaskedTensor``: a tensor with a mask that tells which elements are valid.

Note [Representation of masked tensors]. A masked tensor is an instance of a subclass of Tensor that overrides all
functions by ``__torch_function__``. Its fields are in ``__dict__``: ``_masked_data``, an ordinary (or sparse) tensor,
which has the gradient edge, and ``_masked_mask``, a bool tensor. A function is applied to the data, and the
result gets the mask of the operands, or the function of it.

Note [Masked gradients]. The nodes of the graph are those of the data. A backward pass that starts at a masked tensor
computes with Tensors, not with arrays: the incoming gradient is a masked tensor, the derivative rules call the public
functions with it, and so the gradients are masked tensors, also those of ordinary tensors. Where an element is masked
out, its gradient is nan or infinite without effect on others. A backward pass that starts at an ordinary tensor has zeros
there (``masked_gradient``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ReferenceType

from ...autograd.stored_tensors import implement_method
from ...core import dtypes, engine
from ...core.tensor import Tensor, sparse_coo, sparse_csr, strided, wrap
from ...core.torch_function import GO_ON, OVERRIDING, call_without_overrides, handlers
from ...dispatch.declare import FUNCTIONS
from ...dispatch.intercept import Call, Handler
from ...dispatch.layout_classes import PLAIN_PROPERTIES, implements_in, name_of
from ...operations.tensor_methods import listed_and_readable
from ...runtime.user_frame import warn
from ..operations import masked_combine, masked_construct, masked_get_data, masked_gradient, masked_where

#: Elementwise functions of one tensor, whose mask the result has.
UNARY = """
    abs acos acosh angle asin asinh atan atanh bitwise_not __invert__ ceil clamp conj_physical cos cosh deg2rad digamma
    erf erfc erfinv exp exp2 expm1 floor frac lgamma log log10 log1p log2 logit i0 isnan nan_to_num neg __neg__ positive
    __pos__ pow rad2deg reciprocal relu round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc
    isinf isfinite isposinf isneginf conj conj resolve_conj resolve_neg real
"""
#: Elementwise functions of two tensors with the same mask, or of one with a mask and one without.
BINARY = """
    add atan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div floor_divide fmod logaddexp
    logaddexp2 mul nextafter remainder sub rsub eq ne le ge gt lt maximum minimum fmax fmin
    __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__ __itruediv__
    __div__ __rdiv__ __idiv__ __mod__ __rmod__ __rfloordiv__ __rpow__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__
    __lshift__ __rlshift__ __rshift__ __rrshift__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __ifloordiv__ __imod__
    __iand__ __ior__ __ixor__
"""
#: Functions that are applied to the data and to the mask.
PASSTHROUGH = """
    select transpose split chunk t narrow __getitem__ expand expand_as view view_as reshape flatten unflatten ravel cat
    unsqueeze squeeze unfold stack permute movedim moveaxis unbind tensor_split broadcast_to index_select T mT H mH
    hstack vstack diagonal flip
"""
UNARY_NAMES, BINARY_NAMES, PASSTHROUGH_NAMES = (frozenset(each.split()) for each in (UNARY, BINARY, PASSTHROUGH))
#: Functions of masked tensors by PyTorch's names.
IMPLEMENTED: dict[str, Callable[..., Any]] = {}
implements = implements_in(IMPLEMENTED)
_DTYPES = frozenset(
    {
        dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32,
        dtypes.int64,
    }
)  # fmt: skip
PROTOTYPE = (
    "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a Github "
    "issue for features requests and see our documentation on the torch.masked module for further information about the "
    "project."
)
HISTORY = (
    "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can use "
    "data.detach().clone()"
)


def unsupported(name: str) -> TypeError:
    """Return the error for ``name``, a function that masked tensors do not have."""
    return TypeError(
        f"Multiple dispatch failed for 'torch.ops.aten.{name}'; all __torch_dispatch__ handlers returned NotImplemented: "
        f"{name}() is not implemented for masked tensors. Remedy: use get_data() and get_mask(). Masked tensors have "
        "elementwise functions of one and of two tensors, reductions (sum, mean, prod, amax, amin, argmax, argmin, all, "
        "norm, var, std), softmax, where, indexing, views, cat and stack."
    )


# --- The class ------------------------------------------------------------------------------------------------------


def _of_data(name: str) -> Any:
    """Return a property that reads and writes the attribute ``name`` of the data."""
    return property(
        lambda self: getattr(self._masked_data, name), lambda self, value: setattr(self._masked_data, name, value),
        doc=f"The attribute ``{name}`` of the data.",
    )  # fmt: skip


def _method_of_data(name: str) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._masked_data, name)(*args, **kwargs)

    call.__name__ = name
    return call


class MaskedTensor(Tensor):
    """Tensor with a mask of the same shape, in which True marks the valid elements.

    ``data`` is a tensor of a floating-point, integer or bool dtype, ``mask`` a bool tensor of the same shape and layout;
    both are copied. The result is a leaf. Raises TypeError for other dtypes and layouts, ValueError for other shapes.
    """

    __slots__ = ()
    __module__ = "torch.masked.maskedtensor.core"
    __array_ufunc__ = None
    _masked_data: Tensor
    _masked_mask: Tensor
    __dir__ = listed_and_readable

    _array, _grad_edge, _counter, _view = map(_of_data, ("_array", "_grad_edge", "_counter", "_view"))
    _view_version, _creation_meta = map(_of_data, ("_view_version", "_creation_meta"))
    requires_grad, is_leaf, grad_fn, output_nr, retains_grad, _version = map(
        _of_data, ("requires_grad", "is_leaf", "grad_fn", "output_nr", "retains_grad", "_version")
    )
    shape, ndim, dtype, device, layout, itemsize, nbytes = map(
        _of_data, ("shape", "ndim", "dtype", "device", "layout", "itemsize", "nbytes")
    )
    size, dim, numel, nelement, element_size, stride, storage_offset, is_contiguous, is_floating_point, is_complex = map(
        _method_of_data,
        ("size", "dim", "numel", "nelement", "element_size", "stride", "storage_offset", "is_contiguous",
         "is_floating_point", "is_complex"),
    )  # fmt: skip
    retain_grad, register_hook, register_post_accumulate_grad_hook, data_ptr = map(
        _method_of_data, ("retain_grad", "register_hook", "register_post_accumulate_grad_hook", "data_ptr")
    )

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        _check_arguments(data, mask)
        _warn(data)
        data, mask = _prepared(data, mask)
        return make(data.detach().clone().requires_grad_(requires_grad), mask)

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        pass

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = name_of(func)
        kwargs = kwargs or {}
        function = IMPLEMENTED.get(name)
        if function is not None:
            return function(*args, **kwargs)
        plain = name[:-1] if name.endswith("_") and not name.startswith("__") else name
        if plain in BINARY_NAMES:
            return _binary(func, name, args, kwargs)
        if plain in UNARY_NAMES:
            return _unary(func, name, args, kwargs)
        if name in PASSTHROUGH_NAMES:
            return wrapped(*(_call(func, each, args, kwargs) for each in ("_masked_data", "_masked_mask")))
        if name in PLAIN_PROPERTIES:
            return call_without_overrides(func, args, kwargs)
        if _in_backward(func):
            return _gradient_part(func, args, kwargs)
        raise unsupported(name)

    # -- data and mask

    def get_data(self) -> Tensor:
        """Return the data as an ordinary tensor that is part of the graph; masked-out elements have any value."""
        data = self._masked_data
        return masked_get_data(data, self._masked_mask) if data.requires_grad else data.detach()

    def get_mask(self) -> Tensor:
        """Return the mask."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """Return an ordinary tensor with ``value`` in place of the masked-out elements."""
        return self.get_data().masked_fill(self._masked_mask.logical_not(), value)

    def is_sparse_coo(self) -> bool:
        """Return whether the layout is ``torch.sparse_coo``."""
        return self.layout is sparse_coo

    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        """Return whether the layout is ``torch.sparse_csr``."""
        return self.layout is sparse_csr

    is_sparse = property(lambda self: self.layout is not strided, doc="Whether the layout is a sparse one.")

    def _set_data_mask(self, data: Any, mask: Any) -> None:
        self.__dict__.update(_masked_data=data, _masked_mask=mask)

    def item(self) -> Any:
        if not self._masked_mask:
            raise ValueError("__torch_dispatch__, aten._local_scalar_dense: expected a mask tensor")
        return self._masked_data.item()

    __hash__ = Tensor.__hash__

    def __len__(self) -> int:
        return len(self._masked_data)

    def __iter__(self) -> Any:
        return iter([self[index] for index in range(len(self))])

    def __bool__(self) -> bool:
        return bool(self.item()) if self.numel() == 1 else bool(self._masked_data)

    # -- the graph

    @property
    def grad(self) -> Any:
        """Gradient, a masked tensor, or None."""
        grad = self._masked_data.grad
        return grad if grad is None or isinstance(grad, MaskedTensor) else make(grad, self._masked_mask)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._masked_data._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._masked_data._grad = None

    @property
    def _grad(self) -> Any:
        return self.grad

    @_grad.setter
    def _grad(self, value: Any) -> None:
        self._masked_data._grad = value

    def requires_grad_(self, requires_grad: bool = True) -> MaskedTensor:
        self._masked_data.requires_grad_(requires_grad)
        return self

    def detach(self) -> MaskedTensor:
        return make(self._masked_data.detach(), self._masked_mask)

    def detach_(self) -> MaskedTensor:
        self.__dict__["_masked_data"] = self._masked_data.detach()
        return self

    data = property(lambda self: self.detach(), doc="The tensor outside of the graph.")

    # -- copies and text

    def __deepcopy__(self, memo: dict[int, Any]) -> MaskedTensor:
        import copy

        if id(self) not in memo:
            parts = copy.deepcopy(self._masked_data, memo), copy.deepcopy(self._masked_mask, memo)
            memo[id(self)] = make(*parts)
        return memo[id(self)]

    def __copy__(self) -> MaskedTensor:
        return make(self._masked_data, self._masked_mask)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuild, (self._masked_data.detach(), self._masked_mask, self.requires_grad)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        data, mask = self._masked_data.detach(), self._masked_mask
        if data.layout is not strided:
            data, mask = data.to_dense(), mask.to_dense()
        if data.dim() == 0:
            return f"MaskedTensor({_element(data.item()) if mask else '--'}, {bool(mask)})"
        return f"MaskedTensor(\n{_indented(_text(data._array, mask._array))}\n)"

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)


_REFERENCE: ReferenceType[type] = ReferenceType(MaskedTensor, OVERRIDING.discard)
OVERRIDING.discard(_REFERENCE)  # registered with the first instance


def make(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Return a masked tensor of ``data`` and ``mask`` themselves."""
    OVERRIDING.add(_REFERENCE)
    made = object.__new__(MaskedTensor)
    made.__dict__.update(_masked_data=data, _masked_mask=mask)
    return made


def rebuild(data: Tensor, mask: Tensor, requires_grad: bool) -> MaskedTensor:
    """Return a masked tensor: the function that ``pickle`` calls to load one."""
    return make(data.requires_grad_(requires_grad), mask)


def is_masked_tensor(obj: Any, /) -> bool:
    """Return whether ``obj`` is a masked tensor."""
    return isinstance(obj, MaskedTensor)


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """Return a masked tensor with copies of ``data`` and ``mask``, a leaf of the graph.

    ``mask`` is a bool tensor of the shape and layout of ``data``; True marks the valid elements.

    >>> import retrograd as torch
    >>> import warnings; warnings.simplefilter("ignore")
    >>> x = torch.masked.masked_tensor(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True]))
    >>> x.mean()
    MaskedTensor(  2.0000, True)
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """Return a masked tensor with a copy of ``data``, through which gradients flow to ``data``."""
    _check_arguments(data, mask)
    _warn(data)
    data, mask = _prepared(data, mask)
    return constructed(data, mask)


def constructed(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Return a masked tensor whose gradients flow to ``data``."""
    return make(masked_construct(data, mask) if data.layout is strided else data, mask)


def _check_arguments(data: Any, mask: Any) -> None:
    for name, value in (("data", data), ("mask", mask)):
        if is_masked_tensor(value) or not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a Tensor")


def _warn(data: Tensor) -> None:
    warn(PROTOTYPE)
    if data.requires_grad:
        warn(HISTORY)


def _prepared(data: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``data`` and a copy of ``mask`` after checking that they fit."""
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout is sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data.layout in (sparse_coo, sparse_csr):
        if data._nnz() != mask._nnz():
            data = data.sparse_mask(mask)
        elif data.layout is sparse_coo:
            if not FUNCTIONS["equal"](data.indices(), mask.indices()):
                raise ValueError("data and mask are both sparse COO tensors but do not have the same indices.")
        elif not all(
            FUNCTIONS["equal"](getattr(data, each)(), getattr(mask, each)()) for each in ("crow_indices", "col_indices")
        ):
            raise ValueError("data and mask are both sparse CSR tensors but do not share either crow or col indices.")
    elif data.layout is not strided:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype is not dtypes.bool_:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    return data, mask.clone()


# --- Text -----------------------------------------------------------------------------------------------------------


def _element(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _indented(text: str) -> str:
    return "\n".join(["  " + line for line in text.split("\n")])


def _text(data: Any, mask: Any) -> str:
    """Return the text of the arrays ``data`` and ``mask`` as PyTorch prints it: every element, one row a line."""
    if data.ndim > 1:
        return "[\n" + ",\n".join([_indented(_text(*row)) for row in zip(data, mask, strict=True)]) + "\n]"
    elements, kept = [_element(each) for each in data.tolist()], mask.tolist()
    width = max([len(text) if keep else 8 for text, keep in zip(elements, kept, strict=True)], default=0)
    return "[" + ", ".join([t if keep else "--".rjust(width) for t, keep in zip(elements, kept, strict=True)]) + "]"


# --- Calling functions of the data ----------------------------------------------------------------------------------


def _taken(value: Any, part: str) -> Any:
    if isinstance(value, MaskedTensor):
        return value.__dict__[part]
    return type(value)([_taken(each, part) for each in value]) if type(value) in (list, tuple) else value


def _call(func: Any, part: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call ``func`` with the data or the masks, as ``part`` says, of the masked tensors among the arguments."""
    return func(*[_taken(each, part) for each in args], **{key: _taken(each, part) for key, each in kwargs.items()})


def wrapped(data: Any, mask: Any) -> Any:
    """Return a masked tensor, or a list or tuple of them, of corresponding data and masks."""
    if isinstance(data, (list, tuple)):
        return type(data)([wrapped(*each) for each in zip(data, mask, strict=True)])
    return make(data, mask)


def _values_of(x: Any) -> Any:
    return x.coalesce().values() if x.layout is sparse_coo else x.values()


def _with_values(x: Any, values: Any) -> Any:
    from ...sparse.tensor import with_values

    return with_values(x.coalesce() if x.layout is sparse_coo else x, values)


def _elementwise(func: Any, x: MaskedTensor, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return ``func`` of the data of the arguments; for sparse data ``x``, of the stored elements."""
    if x.layout is strided:
        return _call(func, "_masked_data", args, kwargs)
    given = [_values_of(each._masked_data) if isinstance(each, MaskedTensor) else each for each in args]
    return _with_values(x._masked_data, func(*given, **kwargs))


def _unary(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    x = args[0] if args else kwargs["input"]
    if name != "nan_to_num" and any(isinstance(each, Tensor) for each in args[1:]):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    result = _elementwise(func, x, args, kwargs)
    if name.endswith("_") and not name.startswith("__"):
        x._set_data_mask(result, x._masked_mask)
        return x
    return make(result, x._masked_mask)


def _same(a: Tensor, b: Tensor) -> bool:
    if a is b:
        return True
    if a.layout is not strided and b.layout is not strided:
        return a._nnz() == b._nnz() and FUNCTIONS["equal"](_values_of(a), _values_of(b))
    return a.shape == b.shape and bool(FUNCTIONS["equal"](a, b))


def _binary(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    operands = [each for each in (*args, *kwargs.values()) if isinstance(each, MaskedTensor)]
    first = operands[0]
    if any(not _same(first._masked_mask, each._masked_mask) for each in operands[1:]):
        raise ValueError(
            "Input masks must match. If you need support for this, please open an issue on Github."
        )  # fmt: skip
    result = _elementwise(func, first, args, kwargs)
    in_place = (name.endswith("_") and not name.startswith("__")) or name in _IN_PLACE
    if in_place and isinstance(args[0], MaskedTensor):
        args[0]._set_data_mask(result, args[0]._masked_mask)
        return args[0]
    mask = first._masked_mask
    return make(result, mask.expand(result.shape) if mask.shape != result.shape else mask)


_IN_PLACE = frozenset(each for each in BINARY_NAMES if each.startswith("__i"))


# --- Other functions --------------------------------------------------------------------------------------------------


@implements("masked_gradient")
def _masked_gradient(self: Any, mask: Any) -> MaskedTensor:
    if not isinstance(self, MaskedTensor):
        return masked_gradient(self, mask._masked_mask)
    return make(self._masked_data, self._masked_mask & mask)


@implements("clone", "contiguous")
def clone(input: MaskedTensor, *, memory_format: Any = None) -> MaskedTensor:
    """Return a copy with the same mask."""
    return make(input._masked_data.clone(), input._masked_mask)


@implements("detach")
def detach(input: MaskedTensor) -> MaskedTensor:
    """Return the masked tensor outside of the graph."""
    return input.detach()


def _conversion(name: str) -> None:
    def call(self: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
        given = [each._masked_data if isinstance(each, MaskedTensor) else each for each in args]
        return make(getattr(self._masked_data, name)(*given, **kwargs), self._masked_mask)

    IMPLEMENTED[name] = call


for _name in ("to", "float", "double", "half", "int", "long", "short", "char", "bool", "type", "cpu", "type_as"):
    _conversion(_name)


def _like(name: str) -> None:
    def call(input: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
        x = input._masked_data
        if x.layout is not strided:
            values = FUNCTIONS[name](_values_of(x), *args, **kwargs)
            return make(_with_values(x, values), input._masked_mask)
        return make(FUNCTIONS[name](x.detach(), *args, **kwargs), input._masked_mask)

    IMPLEMENTED[name] = call


for _name in ("ones_like", "zeros_like", "empty_like", "full_like"):
    _like(_name)


@implements()
def to_dense(self: MaskedTensor) -> MaskedTensor:
    """Return the masked tensor with the layout ``strided``."""
    return self if self.layout is strided else make(self._masked_data.to_dense(), self._masked_mask.to_dense())


@implements("to_sparse", "to_sparse_coo")
def to_sparse(self: MaskedTensor) -> MaskedTensor:
    """Return the masked tensor with the layout ``sparse_coo``; masked-out elements are not stored."""
    if self.layout is sparse_coo:
        return self
    mask = self._masked_mask.to_sparse_coo().coalesce()
    return make(self._masked_data.sparse_mask(mask), mask)


@implements()
def to_sparse_csr(self: MaskedTensor) -> MaskedTensor:
    """Return the masked matrix with the layout ``sparse_csr``; masked-out elements are not stored."""
    if self.dim() != 2:
        raise ValueError(f"Only 2D tensors can be converted to the SparseCsr layout but got shape: {self.shape}")
    if self.layout is sparse_csr:
        return self
    mask = self._masked_mask.to_sparse_csr()
    return make(self._masked_data.sparse_mask(mask), mask)


@implements("values")
def values(self: MaskedTensor) -> MaskedTensor:
    """Return the stored elements of sparse data."""
    data = _values_of(self._masked_data)
    return make(data, FUNCTIONS["ones_like"](data, dtype=dtypes.bool_))


def _pattern_function(name: str) -> None:
    IMPLEMENTED[name] = lambda self: getattr(self._masked_data, name)()


for _name in ("indices", "crow_indices", "col_indices", "_nnz"):
    _pattern_function(_name)


@implements()
def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copy the data of ``src``, a masked tensor with the same mask."""
    if not isinstance(self, MaskedTensor):  # a gradient that is copied into the memory layout of its leaf
        return make(self.copy_(src._masked_data), src._masked_mask)
    if isinstance(src, MaskedTensor) and not _same(self._masked_mask, src._masked_mask):
        raise ValueError("args[0] mask and args[1] mask must match but do not")
    self._masked_data.copy_(_taken(src, "_masked_data"))
    return self


@implements()
def where(condition: Any, input: Any, other: Any) -> MaskedTensor:
    """Return the elements of ``input`` where ``condition`` is true, else those of ``other``, with their masks.

    The gradient of an element that was not taken is masked out.
    """
    condition = _taken(condition, "_masked_data")
    pairs = [
        (each._masked_data, each._masked_mask)
        if isinstance(each, MaskedTensor)
        else (
            each if isinstance(each, Tensor) else FUNCTIONS["tensor"](each),
            wrap(condition._array.astype(bool) | True),
        )
        for each in (input, other)
    ]
    return make(
        masked_where(condition, pairs[0][0], pairs[1][0]), FUNCTIONS["where"](condition, pairs[0][1], pairs[1][1])
    )


@implements("softmax", "_softmax")
def softmax(
    input: MaskedTensor, dim: int, dtype: Any = None, _stacklevel: int = 3, half_to_float: bool = False
) -> MaskedTensor:  # fmt: skip
    """Return the softmax of the valid elements along ``dim``; a masked-out element is 0."""
    data = masked_combine(input._masked_data, input._masked_mask, -math.inf)
    return constructed(FUNCTIONS["softmax"](data, dim, dtype=dtype), input._masked_mask)


@implements()
def is_same_size(input: Any, other: Any) -> bool:
    """Return whether the tensors have the same shape."""
    return tuple(input.shape) == tuple(other.shape)


@implements("item", "__float__", "__int__", "tolist")
def item(input: MaskedTensor) -> Any:
    """Return the only element."""
    return input.item()


# --- Backward passes --------------------------------------------------------------------------------------------------


def _listed(value: Any, count: int | None = None) -> list[Any]:
    if value is None:
        return [None] * (count or 0)
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _roots(outputs: list[Any], grads: list[Any]) -> list[Any]:
    """Return pairs of gradient edge and incoming gradient; that of a masked tensor is masked."""
    roots = []
    for index, (out, grad) in enumerate(zip(outputs, grads, strict=False)):
        data = _taken(out, "_masked_data")
        if not data.requires_grad:
            raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
        if grad is None:
            if data.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            grad = FUNCTIONS["ones_like"](data)
        if isinstance(out, MaskedTensor) and not isinstance(grad, MaskedTensor):
            grad = make(grad, out._masked_mask)
        roots.append((_edge(data), grad))
    return roots


def _edge(x: Any) -> Any:
    from ...autograd.backward import gradient_edge_of

    return gradient_edge_of(_taken(x, "_masked_data"))


class _Gradients(Handler):
    """Handler of a backward pass with masked gradients, which gets the calls of operations that are not public."""

    def wanted(self, function: Any) -> Any:
        return function

    def around(self, known: Any, call: Call) -> Any:
        args, kwargs = call.args, call.kwargs
        if not any(isinstance(each, MaskedTensor) for each in (*args, *kwargs.values())):
            return GO_ON
        return MaskedTensor.__torch_function__(known, (MaskedTensor,), args, kwargs)


def _in_backward(func: Any) -> bool:
    return any(isinstance(each, _Gradients) for each in handlers())


def _gradient_part(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return ``func`` of the data of masked gradients.

    A linear function of one of them has the mask of its result for ones, another function keeps the mask.
    """
    data = _call(func, "_masked_data", args, kwargs)
    masked = [each for each in (*args, *kwargs.values()) if isinstance(each, MaskedTensor)]
    mask = masked[0]._masked_mask
    if isinstance(data, Tensor) and data.shape != mask.shape:
        operation = getattr(func, "op", None)
        if operation is not None and operation.kind == "view":
            return make(data, _call(func, "_masked_mask", args, kwargs))
        if operation is not None and operation.linear is True and len(masked) == 1:
            given = [each._masked_mask.to(each.dtype) if each is masked[0] else each for each in args]
            return make(data, func(*given, **kwargs) != 0)
        if operation is not None and operation.kind == "pointwise":
            return make(data, mask.expand(data.shape))
        return data
    return make(data, mask) if isinstance(data, Tensor) else data


def _run(*args: Any, **kwargs: Any) -> None:
    with _Gradients():
        engine.run_backward(*args, **kwargs)


@implements()
def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: Any = None, create_graph: bool = False, grad_variables: Any = None,
    inputs: Any = None,
) -> None:  # fmt: skip
    """Run ``torch.autograd.backward`` with masked gradients."""
    outputs = _listed(tensors)
    given = _listed(grad_tensors if grad_variables is None else grad_variables, len(outputs))
    wanted = None
    if inputs is not None:
        targets = [_taken(each, "_masked_data") for each in _listed(inputs)]
        for each in targets:
            each.retain_grad()
        wanted = dict.fromkeys(map(_edge, targets))
    keep = create_graph if retain_graph is None else retain_graph
    _run(_roots(outputs, given), keep, True, wanted, silent=not create_graph)


implement_method(IMPLEMENTED)


@implements()
def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: Any = None, create_graph: bool = False,
    only_inputs: bool = True, allow_unused: Any = None, is_grads_batched: bool = False, materialize_grads: bool = False,
) -> Any:  # fmt: skip
    """Run ``torch.autograd.grad`` with masked gradients."""
    if is_grads_batched:
        raise unsupported("grad() with is_grads_batched")
    outs, targets = _listed(outputs), _listed(inputs)
    edges = [_edge(each) for each in targets]
    if None in edges:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    wanted: dict[Any, Any] = dict.fromkeys(edges)
    keep = create_graph if retain_graph is None else retain_graph
    roots = _roots(outs, _listed(grad_outputs, len(outs)))
    _run(roots, keep, True, wanted, write=False, silent=not create_graph)
    results = []
    for x, edge in zip(targets, edges, strict=True):
        found = wanted[edge]
        if found is None and materialize_grads:
            found = FUNCTIONS["zeros_like"](_taken(x, "_masked_data"))
        if found is None and not allow_unused:
            raise RuntimeError(
                "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if "
                "this is the desired behavior."
            )
        if isinstance(x, MaskedTensor) and found is not None and not isinstance(found, MaskedTensor):
            found = make(found, x._masked_mask)
        results.append(found)
    return tuple(results)


__all__ = [
    "IMPLEMENTED", "MaskedTensor", "as_masked_tensor", "constructed", "implements", "is_masked_tensor", "make",
    "masked_tensor", "rebuild", "unsupported", "wrapped",
]  # fmt: skip
