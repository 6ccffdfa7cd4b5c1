"""The namespace ``F`` of functions for derivative rules, with a version for arrays and one for Tensors.

A derivative rule is a function that computes the gradient of one operand of an operation, by functions such as
``F.mul``. In an ordinary backward pass, gradients are arrays, and ``F`` contains functions of arrays (kernels). With
``create_graph=True``, gradients are Tensors, and ``F`` contains operations on Tensors, which are recorded.
:func:`rule_namespace_of` selects the version, and ``dispatch/op.py`` creates both.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from .typing import Gradient, RuleNamespace

#: Mapping from types of gradients to namespaces, filled by ``dispatch/declare.py``.
RULE_NAMESPACES: dict[type, RuleNamespace] = {}
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
    for base in type(gradient).__mro__:
        if base in RULE_NAMESPACES:
            RULE_NAMESPACES[type(gradient)] = RULE_NAMESPACES[base]
            return RULE_NAMESPACES[base]
    raise TypeError(f"a gradient can not be of type {type(gradient).__name__}")
