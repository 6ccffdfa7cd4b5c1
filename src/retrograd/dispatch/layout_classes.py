"""Functions and classes that sparse, masked and nested tensors share.

Their classes override all functions by ``__torch_function__`` and have a table from names to functions. :func:`name_of` returns
the name of a function: a function and its method have one name, a synonym has that of the function, and a property has
its own. :func:`implements_in` makes the decorator that fills such a table. :class:`NoArray` is the class of ``_array`` of a
tensor without an array; :class:`StoredTensor` is the base class of tensors whose elements are in another tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn, TypeVar

import numpy

from ..core.tensor import Tensor

Implementation = TypeVar("Implementation", bound=Callable[..., object])

#: Functions with the name of another one.
SPECIAL: dict[object, str] = {}
ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "negative": "neg",
    "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div", "fix": "trunc", "concat": "cat",
    "concatenate": "cat", "swapaxes": "transpose", "swapdims": "transpose", "__pow__": "pow",
    "multiply_": "mul_", "subtract_": "sub_", "divide_": "div_", "true_divide_": "div_", "negative_": "neg_",
    "absolute_": "abs_", "__floordiv__": "floor_divide", "__ipow__": "pow_", "special_expm1": "expm1",
    "special_log1p": "log1p", "special_erf": "erf", "special_round": "round", "greater": "gt", "greater_equal": "ge",
    "less": "lt", "less_equal": "le", "not_equal": "ne", "special_expit": "sigmoid", "special_softmax": "softmax",
    "special_log_softmax": "log_softmax",
}  # fmt: skip
_PROPERTY_NAMES: dict[int, str] = {}


def name_of(func: object) -> str:
    """Return the name of ``func``, a function that ``__torch_function__`` received; that of a property is its own."""
    if not SPECIAL:
        SPECIAL[vars(Tensor)["backward"]] = "Tensor.backward"
    if func in SPECIAL:
        return SPECIAL[func]
    name: str = getattr(func, "__name__", "")
    if name not in ("__get__", "__set__", "__delete__"):
        return ALIASES.get(name, name)
    if not _PROPERTY_NAMES:
        _PROPERTY_NAMES.update({id(each): key for key, each in vars(Tensor).items() if isinstance(each, property)})
    return _PROPERTY_NAMES.get(id(getattr(func, "__self__", None)), name)


#: Properties and methods of Tensor that read only its fields.
_NAMES = """
    is_cuda is_cpu is_quantized is_meta is_mkldnn is_mps is_xpu is_ipu is_maia is_mtia is_vulkan is_xla is_nested is_inference
    name names grad_dtype is_signed is_floating_point is_complex
"""
PLAIN_PROPERTIES = frozenset(_NAMES.split())


def implements_in(
    table: dict[str, Callable[..., object]],
) -> Callable[..., Callable[[Implementation], Implementation]]:
    """Return a decorator ``implements(*names)``, which enters a function in ``table``, by default under its own name."""

    def implements(*names: str) -> Callable[[Implementation], Implementation]:
        def declare(function: Implementation) -> Implementation:
            for name in names or (function.__name__,):
                table[name] = function
            return function

        return declare

    return implements


class StoredTensor(Tensor):
    """Base class of tensors whose elements are in ``_stored``, an ordinary tensor that has the gradient edge."""

    __slots__ = ()
    __array_ufunc__ = None
    _stored: Tensor


def _of_stored(name: str) -> property:
    return property(
        lambda self: getattr(self._stored, name), lambda self, value: setattr(self._stored, name, value),
        doc=f"The attribute ``{name}`` of the elements.",
    )  # fmt: skip


for _name in (
    "_grad_edge", "_counter", "_view", "_view_version", "_creation_meta",
    "requires_grad", "is_leaf", "grad_fn", "output_nr", "retains_grad", "_version", "dtype", "itemsize",
):  # fmt: skip
    setattr(StoredTensor, _name, _of_stored(_name))


class NoArray:
    """The ``_array`` of a tensor without one: it has a shape and a dtype, and every other use raises an error.

    ``unsupported`` is a function that returns the error; ``no_numpy`` is the message of the conversion to NumPy.
    """

    __slots__ = ("dtype", "no_numpy", "shape", "unsupported")

    def __init__(
        self, shape: tuple[int, ...], dtype: numpy.dtype[numpy.generic], unsupported: Callable[[], Exception], no_numpy: str
    ) -> None:  # fmt: skip
        # Another object than the dtype of arrays, which differs from it by identity: the engine then validates gradients.
        self.shape, self.dtype = shape, numpy.dtype(dtype, copy=True)
        self.unsupported, self.no_numpy = unsupported, no_numpy

    def not_an_array(self) -> Exception:
        """Return the error for a function that needs the array module."""
        return self.unsupported()

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # what Python and NumPy look for in any object
            raise AttributeError(name)
        raise self.unsupported()

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(self.no_numpy)

    def __array_ufunc__(self, *args: object, **kwargs: object) -> NoReturn:
        raise self.unsupported()

    __array_function__ = __array_ufunc__
    __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __array_ufunc__
    __eq__ = __ne__ = __lt__ = __gt__ = __array_ufunc__
    __hash__ = object.__hash__
    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __matmul__ = __array_ufunc__


__all__ = ["PLAIN_PROPERTIES", "SPECIAL", "NoArray", "StoredTensor", "implements_in", "name_of"]
