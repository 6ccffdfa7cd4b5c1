"""Names of classes as in PyTorch's errors.

This module imports no other module of retrograd, and not NumPy.
"""

from __future__ import annotations

from typing import Any

# Classes that PyTorch implements in C++: its errors show their names with the module.
WITH_MODULE = frozenset({"Size", "device", "dtype", "layout", "memory_format"})


def type_name(value: Any) -> str:
    """Return the name of the class of ``value`` as PyTorch's errors show it.

    >>> import numpy
    >>> type_name([1]), type_name(None), type_name(numpy.float64(1)), type_name(numpy.ones(1))
    ('list', 'NoneType', 'numpy.float64', 'numpy.ndarray')
    """
    kind = type(value)
    if kind.__module__ == "torch" and kind.__name__ in WITH_MODULE:
        return f"torch.{kind.__name__}"
    if kind.__module__ == "torch" and kind.__name__ == "Generator":
        return "torch._C.Generator"
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
