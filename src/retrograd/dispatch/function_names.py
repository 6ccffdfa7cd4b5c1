"""Names of the functions that ``__torch_function__`` receives, for classes that implement functions by name.

Sparse, masked and nested tensors have a table from names to functions. A function and its method have one name, a
synonym has that of the function, and a property has its own.
"""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor

#: Functions with the name of another one.
SPECIAL: dict[Any, str] = {}
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


def name_of(func: Any) -> str:
    """Return the name of ``func``, a function that ``__torch_function__`` received; that of a property is its own."""
    if not SPECIAL:
        SPECIAL[vars(Tensor)["backward"]] = "Tensor.backward"
    if func in SPECIAL:
        return SPECIAL[func]
    name = getattr(func, "__name__", "")
    if name not in ("__get__", "__set__", "__delete__"):
        return ALIASES.get(name, name)
    if not _PROPERTY_NAMES:
        _PROPERTY_NAMES.update({id(each): key for key, each in vars(Tensor).items() if isinstance(each, property)})
    return _PROPERTY_NAMES.get(id(func.__self__), name)


#: Properties and methods of Tensor that read only its fields.
_NAMES = """
    is_cuda is_cpu is_quantized is_meta is_mkldnn is_mps is_xpu is_ipu is_maia is_mtia is_vulkan is_xla is_nested is_inference
    name names grad_dtype is_signed is_floating_point is_complex
"""
PLAIN_PROPERTIES = frozenset(_NAMES.split())

__all__ = ["PLAIN_PROPERTIES", "SPECIAL", "name_of"]
