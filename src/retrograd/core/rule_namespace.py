"""The two levels at which a derivative rule runs: on arrays, and on Tensors.

``level_of(g)`` is the namespace ``F`` of a rule: raw kernels if the gradient is an array, the public, recording
operations if it is a Tensor. The table of operations fills them in.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy

#: The namespace for each type of gradient; ``dispatch/declare.py`` enters them.
RULE_NAMESPACES: dict[type, Any] = {}


#: How large gradients are added (as by the ufunc) and copied; ``kernels/numba_dispatch.py`` puts in what uses compiled loops.
arithmetic = SimpleNamespace(add=numpy.add, copy_into=numpy.copyto)


def rule_namespace_of(gradient: Any) -> Any:
    """The namespace in which the rules for a gradient of this type find their operations."""
    try:
        return RULE_NAMESPACES[gradient.__class__]
    except KeyError:
        pass
    for base in type(gradient).__mro__:
        if base in RULE_NAMESPACES:
            RULE_NAMESPACES[type(gradient)] = RULE_NAMESPACES[base]
            return RULE_NAMESPACES[base]
    raise TypeError(f"a gradient can not be of type {type(gradient).__name__}")
