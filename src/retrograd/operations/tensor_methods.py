"""Set the methods, operators and properties of the class Tensor.

Importing this module imports the modules of all operations.
"""

# ruff: noqa: F401 - the import of each module registers its operations

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..compat import unsupported
from ..compat.lazy_imports import MethodOnDemand
from ..compat.missing_names import UnsupportedAttribute, readable, without_unsupported
from ..core.tensor import Tensor
from ..dispatch.declare import FUNCTIONS, METHODS, operator_form, public_form
from ..dispatch.intercept import interceptable
from ..dispatch.torch_function_overrides import is_overridable
from . import engine_ops, tensor_operators, tensor_protocols
from .creation import conversion, factory, from_data, legacy_types, random, ranges, storage
from .elementwise import arithmetic, bitwise, comparison, complex, elementary, rounding, special
from .indexing import gather_scatter, getitem, masked_fill, search, sort
from .linalg import checks, eigen_svd, einsum, factorizations, matmul, norms, solve
from .nn import (
    activation,
    attention,
    class_losses,
    convolution,
    dropout,
    embedding,
    interpolation,
    linear,
    losses,
    normalization,
    pooling,
    rnn,
    softmax,
)
from .reductions import distance, extrema, finite_differences, scan, segment, statistics, sums
from .shape import inplace, join, padding, rearrange, slicing, view_copies, views
from .signal import fft, stft, windows

# Binary operators: the name of the dunder method without underscores, and that of the function that implements it.
OPERATORS = {
    "add": "add", "radd": "add", "iadd": "add_", "sub": "sub", "isub": "sub_", "mul": "mul",
    "rmul": "mul", "imul": "mul_", "truediv": "div", "floordiv": "floor_divide",
    "ifloordiv": "floor_divide_", "mod": "remainder", "imod": "remainder_", "pow": "pow", "ipow": "pow_",
    "and": "bitwise_and",
    "rand": "bitwise_and", "iand": "bitwise_and_", "or": "bitwise_or", "ror": "bitwise_or", "ior": "bitwise_or_",
    "xor": "bitwise_xor", "rxor": "bitwise_xor", "ixor": "bitwise_xor_", "lshift": "bitwise_left_shift",
    "ilshift": "bitwise_left_shift_", "rshift": "bitwise_right_shift", "irshift": "bitwise_right_shift_",
    "div": "div", "idiv": "div_", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
}  # fmt: skip
#: Dunder methods whose ``__name__`` differs, as in PyTorch.
CALLED = {"__pow__": "pow", "__ipow__": "pow_", "__rtruediv__": "__rdiv__"}
PACKAGE = __name__.partition(".")[0]
UNARY = {"neg": "neg", "pos": "positive", "abs": "abs"}


#: Slots of the class, which have no value while it is not needed.
FIELDS = {name for name in Tensor.__slots__ if name[:2] != "__"}
#: Properties of some tensors only: matrices, complex tensors.
PARTIAL = frozenset({"H", "mH", "mT", "imag"})


def install() -> None:
    """Set all methods, operators and properties as attributes of the class Tensor."""
    for name, function in METHODS.items():
        setattr(Tensor, name, public_form(function, "Tensor", name))
    for dunder, name in OPERATORS.items():
        function = arithmetic.div_true if name == "div" else FUNCTIONS.get(name) or METHODS[name]
        setattr(Tensor, f"__{dunder}__", operator_form(function, f"__{dunder}__"))
    for dunder, name in UNARY.items():
        function = METHODS[name]
        setattr(
            Tensor, f"__{dunder}__", operator_form(function, f"__{dunder}__") if hasattr(function, "op") else function
        )
    for dunder, function in tensor_operators.OPERATORS.items():
        setattr(Tensor, dunder, operator_form(function, dunder))
    for name, shown in views.PROPERTIES.items():
        setattr(Tensor, name, shown)
    for name in unsupported.TENSOR_ATTRIBUTES:
        setattr(Tensor, name, UnsupportedAttribute(name))
    for name in unsupported.SPARSE_METHODS:
        setattr(Tensor, name, MethodOnDemand(name, "sparse"))
    for name in unsupported.NESTED_METHODS:
        setattr(Tensor, name, MethodOnDemand(name, "nested"))
    # __array_priority__: NumPy's scalars and arrays leave binary operators with a tensor to Tensor.
    for name, given in (("__invert__", tensor_operators.invert), ("__array_priority__", 1000), ("__dir__", _listed)):
        setattr(Tensor, name, given)
    for dunder, alias in (("__rtruediv__", "__rdiv__"), ("__idiv__", "__itruediv__")):
        setattr(Tensor, alias, vars(Tensor)[dunder])
    for dunder, each in vars(Tensor).items():
        if dunder.startswith("__") and isinstance(each, FunctionType) and dunder[2:-2] not in UNARY:
            each.__name__ = CALLED.get(dunder, dunder)
    for name in ("is_contiguous", "stride", "data_ptr", "element_size", "retain_grad", "detach_"):
        setattr(Tensor, name, public_form(vars(Tensor)[name], "Tensor", name))
    for name, each in list(vars(Tensor).items()):
        if isinstance(each, property):
            fget, fset, fdel = (_interceptable(name, part) for part in (each.fget, each.fset, each.fdel))
            setattr(Tensor, name, property(fget, fset, fdel, each.__doc__))
        elif isinstance(each, FunctionType):
            setattr(Tensor, name, _interceptable(name, each))
    for name, each in list(vars(Tensor).items()):
        if isinstance(each, property) and each.fset is None:
            deleter = each.fdel or _unwritable(name)
            setattr(Tensor, name, each.setter(_unwritable(name)).deleter(deleter))
    for name in list(vars(Tensor)):
        name_for_pickle(name)


def name_for_pickle(name: str) -> None:
    """Give the method ``name`` of Tensor the names of the class and its module, by which ``pickle`` refers to it."""
    method = vars(Tensor)[name]
    if isinstance(method, FunctionType):
        method.__module__, method.__qualname__ = PACKAGE, f"Tensor.{name}"


def _interceptable(name: str, function: Any) -> Any:
    """Return a version of ``function`` whose calls can be intercepted by ``__torch_function__``.

    ``function`` implements the attribute ``name`` of Tensor. It is returned unchanged in three cases: if it already
    calls ``__torch_function__`` itself, if PyTorch does not call ``__torch_function__`` for the attribute, or if it is
    a built-in function or was created by a code generator.
    """
    written = function.__class__ is FunctionType and "write" not in function.__globals__
    if (
        not written
        or not is_overridable(name)
        or "HANDLERS" in function.__code__.co_names + function.__code__.co_freevars
    ):
        return function
    return interceptable(function)


def _listed(self: Tensor) -> list[str]:
    """Return the names of the attributes of ``self``, for ``dir(tensor)``.

    Attributes of PyTorch's Tensor that retrograd does not support are omitted, and so are the fields of the class and
    those of ``PARTIAL`` that this tensor does not have.
    """
    own = vars(self)
    omitted = FIELDS | {"_repr_html_"} if self.is_cuda else FIELDS | {"_repr_html_", "__cuda_array_interface__"}
    inherited = [name for name in object.__dir__(self) if name not in own and name not in omitted]
    absent = PARTIAL.difference(readable(self, PARTIAL))
    return [name for name in (*without_unsupported(type(self), inherited), *own) if name not in absent]


def listed_and_readable(self: Tensor) -> list[str]:
    """Return the names for ``dir(tensor)`` without properties that raise: ``__dir__`` of tensors without an array."""
    return readable(self, _listed(self))


def _unwritable(name: str) -> Callable[..., None]:
    """Return a function that raises PyTorch's AttributeError for the read-only property ``name``.

    The function is used as the setter and as the deleter of the property.
    """

    def refuse(self: Tensor, value: Any = None) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")

    return refuse


def add_method(name: str, function: Any) -> None:
    """Make ``function`` a method of Tensor with the name ``name``.

    Modules that import ``operations``, such as ``autograd.backward``, call this function to define methods. They cannot
    be imported here, because the import would be circular.
    """
    setattr(Tensor, name, public_form(function, "Tensor", name))
    name_for_pickle(name)


__all__ = ["add_method", "install"]
install()
