"""The namespace ``F`` of a derivative rule, which depends on the type of the gradient.

A derivative rule computes gradients by the functions in ``F``. If the gradient is an array,
``rule_namespace_of(gradient)`` contains the kernels, which compute with arrays. If the gradient is a Tensor
(``create_graph=True``), the namespace contains the functions that record operations. ``dispatch/op.py`` fills the
namespaces.
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
    """Return the namespace ``F`` of the functions by which a derivative rule computes with the gradient ``gradient``.

    The namespace contains the kernels, which compute with arrays, if ``gradient`` is an array. It contains the
    functions that record operations if ``gradient`` is a Tensor. Raises TypeError for other types.
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
