"""Accumulation of gradients: into ``.grad`` of leaves, and at edges where several gradients meet."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import numpy

from .devices import module_of
from .error_context import describe_recording
from .gradients import as_tensor
from .graph import AccumulateGrad
from .hooks import _check_hook, _hook_hint, _run_node_pre_hooks, _run_pre_hooks
from .rule_namespace import arithmetic
from .tensor import Tensor, wrap
from .views import check_overlap

#: Held while a gradient is added to a leaf's. Reentrant, as adding what records itself may call the user's code.
_accumulating = threading.RLock()


def _after_fork() -> None:
    """In a child nobody adds: whichever thread of the parent held the lock is not there to let go of it."""
    global _accumulating
    _accumulating = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
#: From so many elements on, gradients are added and copied by what may use several threads.
LARGE = 1 << 15


def _sum(first: Any, second: Any) -> Any:
    """Two gradients added up."""
    if first.__class__ is second.__class__ is numpy.ndarray and first.size >= LARGE:
        return arithmetic.add(first, second)
    return first + second


def _add(pending: dict[Any, Any], owned: set[Any], edge: Any, arrived: Any) -> None:
    """Add what ``arrived`` to what is pending at ``edge``: into the same memory where nobody else holds it."""
    held = pending[edge]
    if held is None:
        pending[edge] = arrived
        return
    # References: ours, the dictionary's, the argument of the call. A view would hold its base, too.
    if held.__class__ is numpy.ndarray and (
        edge in owned or (held.base is None and sys.getrefcount(held) <= _HELD and held.flags.writeable)
    ):
        owned.add(edge)
        _add_to(held, arrived)
        return
    pending[edge] = _sum(held, arrived)
    owned.add(edge)


def _references_pending(pending: dict[Any, Any], edge: Any) -> int:
    """How many references :func:`_add` counts on a gradient that only the sweep holds (it depends on Python's version)."""
    held = pending[edge]
    return sys.getrefcount(held)


_HELD = _references_pending({0: numpy.zeros(1)}, 0)


def _visit_leaf(
    leaf: AccumulateGrad, grad: Any, owned: bool, record: bool, wanted: dict[Any, Any] | None, write: bool
) -> None:
    if leaf.hooks is not None:
        hooked = _run_pre_hooks(leaf.hooks, grad, record)
        if write and leaf.hooks.before:
            hooked = _run_node_pre_hooks(leaf, (hooked,), record)[0]
        owned = owned and not leaf.hooks.tensor and not leaf.hooks.before  # a hook may have kept what it saw
        grad = hooked
    if wanted is not None:
        if leaf not in wanted:
            return
        wanted[leaf] = grad
    if not write:
        return
    variable = leaf.variable_ref()
    if variable is not None and grad is not None and (variable._grad_edge is leaf or _is_still_leaf(variable)):
        _accumulate(leaf, variable, grad, owned, record)
    if leaf.hooks is not None and (leaf.hooks.accumulated or leaf.hooks.after):
        for hook in list(leaf.hooks.accumulated.values()):
            result = hook(leaf.variable)
            if result is not None:
                _check_hook(hook, result, leaf.variable)
                raise RuntimeError(f"Tensor post accumulate grad hooks should return None.{_hook_hint(hook)}")
        for hook in list(leaf.hooks.after.values()):
            hook((), (as_tensor(grad),))


def _is_still_leaf(variable: Any) -> bool:
    """Whether a gradient can be accumulated in ``variable``, which no longer refers to the end of the graph at hand.

    False for a leaf that was frozen after the graph was recorded; an error for one that was modified in place since.
    """
    if variable._grad_edge is not None and variable._grad_edge.__class__ is not AccumulateGrad:
        raise RuntimeError(
            f"leaf variable has been moved into the graph interior.{describe_recording(variable._grad_edge)}"
        )
    return variable._grad_edge is not None


def _accumulate(leaf: AccumulateGrad, variable: Any, grad: Any, owned: bool, record: bool) -> None:
    """Add ``grad`` to the leaf's ``grad``: in place, unless the sweep records itself."""
    with _accumulating:
        held = variable._grad
        if held is None:
            variable._grad = _copied(leaf, grad) if record else _own(leaf, grad, owned)
        elif record or (grad.__class__ is not numpy.ndarray and isinstance(grad, Tensor)):
            variable._grad = variable.grad + grad
        elif held.__class__ is Tensor or isinstance(held, Tensor):
            array, cell = held._array, held._counter
            if not array.flags.c_contiguous:
                check_overlap(held)
            _add_to(array, grad)
            if cell is None:
                held._counter = [1, None]
            elif cell:
                cell[0] += 1
        else:
            _add_to(held, grad)


def _add_to(held: Any, grad: Any) -> None:
    """Add ``grad`` to ``held`` in place."""
    if held.size >= LARGE and held.__class__ is numpy.ndarray:
        arithmetic.add(held, grad, out=held)
    elif grad.__class__ is not numpy.ndarray and not held.ndim and isinstance(grad, numpy.generic):
        held[...] = held[()] + grad  # a quarter of the time that it takes in place
    else:
        held += grad


def _copied(leaf: AccumulateGrad, grad: Tensor) -> Any:
    """``grad`` in memory of its own, laid out as the leaf is, as a copy that is recorded."""
    module = module_of(leaf.array)
    return wrap(module.empty_like(leaf.array, dtype=grad._array.dtype)).copy_(grad)


def _own(leaf: AccumulateGrad, grad: Any, owned: bool) -> Any:
    """``grad`` as an array that nobody else holds, laid out as the leaf is."""
    if grad.__class__ is numpy.ndarray:
        # 5 references: the caller's local, ours, its caller's, the two arguments of the calls.
        free = owned or (sys.getrefcount(grad) <= _FREE and (grad.base is None or _whole(grad)))
        if free and grad.flags.c_contiguous and leaf.array.flags.c_contiguous:
            return grad
        fresh = numpy.empty_like(leaf.array, dtype=grad.dtype)
        if fresh.size >= LARGE:
            arithmetic.copy_into(fresh, grad)
        else:
            fresh[...] = grad
        return fresh
    if isinstance(grad, numpy.generic):
        return numpy.asarray(grad)
    return grad.copy()


def _whole(grad: Any) -> bool:
    """Whether ``grad`` shows all of memory that nobody else sees, as in another shape."""
    base = grad.base
    if base.__class__ is not numpy.ndarray or base.base is not None or base.nbytes != grad.nbytes:
        return False
    return sys.getrefcount(base) <= _VIEWED


def _references() -> int:
    """How many references :func:`_own` counts on a gradient that only the sweep holds."""

    def finish(grad: Any) -> int:
        return accumulate(grad)

    def accumulate(grad: Any) -> int:
        return own(grad)

    def own(grad: Any) -> int:
        return sys.getrefcount(grad)

    pending = {0: numpy.zeros(1)}
    return finish(pending.pop(0))


_FREE = _references()


def _references_viewed(grad: Any) -> int:
    """How many references :func:`_whole` counts on memory that only a view holds."""
    base = grad.base
    return sys.getrefcount(base)


_VIEWED = _references_viewed(numpy.zeros(1).reshape(1, 1))
