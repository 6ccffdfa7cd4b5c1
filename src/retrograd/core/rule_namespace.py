"""The namespace ``F`` of functions for derivative rules, with versions for arrays and one for Tensors.

A derivative rule is a function that computes the gradient of one operand of an operation, by functions such as
``F.mul``. In an ordinary backward pass, gradients are arrays, and ``F`` contains functions of arrays (kernels): each
array module (NumPy, CuPy, that of meta arrays) has a version, which is created on first use. With
``create_graph=True``, gradients are Tensors, and ``F`` contains operations on Tensors, which are recorded.
:func:`rule_namespace_of` selects the version, and ``dispatch/op.py`` creates all.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy

from .devices import array_module_of

if TYPE_CHECKING:
    from .typing import ArrayModule, Gradient, RuleNamespace

#: Mapping from types of gradients to namespaces, filled by ``dispatch/op.py``.
RULE_NAMESPACES: dict[type, RuleNamespace] = {}
#: The function that creates the namespace for the arrays of an array module; set by ``dispatch/op.py``.
namespace_factory: list[Callable[[ArrayModule], RuleNamespace]] = []
#: Functions that add and copy large gradients; ``kernels/numba_dispatch.py`` replaces them by compiled loops.
arithmetic = SimpleNamespace(add=numpy.add, copy_into=numpy.copyto)


def rule_namespace_of(gradient: Gradient) -> RuleNamespace:
    """Return the namespace ``F`` of functions that compute with gradients of the type of ``gradient``.

    If ``gradient`` is an array, the namespace contains functions of arrays (kernels). If it is a Tensor, the namespace
    contains operations on Tensors, which are recorded. Raises TypeError for other types.
    """
    try:
        return RULE_NAMESPACES[gradient.__class__]
    except KeyError:
        pass
    kind = type(gradient)
    for base in kind.__mro__:
        if base in RULE_NAMESPACES:
            RULE_NAMESPACES[kind] = RULE_NAMESPACES[base]
            return RULE_NAMESPACES[base]
    np = array_module_of(gradient) if hasattr(gradient, "dtype") else numpy
    if not isinstance(gradient, np.ndarray):
        raise TypeError(f"a gradient can not be of type {kind.__name__}")
    return RULE_NAMESPACES.setdefault(np.ndarray, namespace_factory[0](np))
