"""``swap_tensors``: exchange of the contents of two tensors, so that all references to one show the other."""

from __future__ import annotations

import copyreg
import sys
import weakref
from typing import Any, NoReturn

from .graph import AccumulateGrad
from .tensor import Tensor

POISONED = (
    "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run backward on "
    "a tensor that was swapped. For a module m with `torch.__future__.set_swap_module_params_on_conversion(True)` you should "
    "not change the device or dtype of the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To "
    "resolve this, please only change the device/dtype before running forward (or after both forward and backward)."
)
_FIELDS = [name for name in Tensor.__slots__ if name != "__weakref__"]
_UNSET = object()
#: Reference count of an edge's weak reference that has no other user: the edge, a name, a list, and an argument.
ALONE = 4


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange class, attributes, elements, graph edge and gradient of ``t1`` and ``t2``.

    Raises RuntimeError if the program has a weak reference to one of them. A graph that was recorded before and has one
    of them as a leaf raises RuntimeError in its backward pass.

    >>> import retrograd as torch
    >>> a, b = torch.zeros(2), torch.ones(3)
    >>> torch.utils.swap_tensors(a, b)
    >>> a
    tensor([1., 1., 1.])
    """
    for name, each in (("t1", t1), ("t2", t2)):
        own = getattr(each._grad_edge, "variable_ref", None)
        found = weakref.getweakrefs(each)
        # The program's references are the edge's object, if they have no callback; so its users are counted.
        if len(found) > (own is not None) or (found and sys.getrefcount(own) > ALONE):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots: Any = [set(copyreg._slotnames(type(each))) for each in (t1, t2)]  # type: ignore[attr-defined]
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    first, second = ({name: getattr(each, name, _UNSET) for name in (*_FIELDS, *slots[0])} for each in (t1, t2))
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    for each, values in ((t1, second), (t2, first)):
        for name, value in values.items():
            if value is not _UNSET:
                setattr(each, name, value)
            elif hasattr(each, name):
                delattr(each, name)
        _renew_edge(each)


def _renew_edge(leaf: Tensor) -> None:
    """Give ``leaf`` a new AccumulateGrad, with the hooks of its former one, which then raises in a backward pass."""
    old = leaf._grad_edge
    if isinstance(old, AccumulateGrad):
        leaf._grad_edge = AccumulateGrad(leaf, leaf._array, leaf._version_counter)
        leaf._grad_edge.hooks, old.hooks = old.hooks, None
        old.variable_ref = _no_variable  # not dead_ref, with which the engine would omit the edge and its hook
        old.register_prehook(_poisoned)


def _no_variable() -> None:
    return None


def _poisoned(grads: object) -> NoReturn:
    raise RuntimeError(POISONED)


__all__ = ["swap_tensors"]
