"""Accumulation of gradients: at edges with several gradients, and in ``.grad`` of leaves.

A gradient is modified in place only if no object other than the engine refers to its array. The engine decides this by
the reference count of the array. The expected count depends on Python's version. Therefore it is measured on a sample
array that is passed through the same number of function calls.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

import numpy

from .devices import array_module_of
from .error_context import describe_recording
from .gradients import as_tensor
from .graph import AccumulateGrad
from .hooks import check_hook_result, hook_hint, run_node_pre_hooks, run_tensor_hooks
from .rule_namespace import arithmetic
from .tensor import Tensor, wrap
from .views import check_overlap

if TYPE_CHECKING:
    from .typing import Array, Edge, Gradient, Wanted

#: Lock for adding to a leaf's ``grad``. Reentrant, because a recorded addition may call the user's code.
accumulation_lock = threading.RLock()


def _after_fork() -> None:
    """Replace the lock in a forked child process, which does not have the thread that may hold the lock."""
    global accumulation_lock
    accumulation_lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
#: Number of elements from which gradients are added and copied by functions that may use several threads.
LARGE = 1 << 15


def sum_gradients(first: Gradient, second: Gradient) -> Gradient:
    if first.__class__ is second.__class__ is numpy.ndarray and first.size >= LARGE:
        return arithmetic.add(first, second)
    return first + second


def add_pending(pending: dict[Edge, Gradient], owned: set[Edge], edge: Edge, arrived: Gradient) -> None:
    """Add the gradient ``arrived`` to ``pending[edge]``, the sum of the gradients that have arrived at ``edge``.

    ``pending`` is a dict from gradient edges to these sums; a sum of None is replaced by ``arrived``. ``owned`` is the
    set of the edges whose sum is a new array, computed by the engine, to which no other object refers. The sum is
    modified in place if ``edge`` is in ``owned``, or if the reference count shows that only the engine refers to the
    array of the sum.
    """
    held = pending[edge]
    if held is None:
        pending[edge] = arrived
        return
    # References: the local variable, the dictionary, the argument of the call. A view would refer to its base as well.
    if held.__class__ is numpy.ndarray and (
        edge in owned or (held.base is None and sys.getrefcount(held) <= _HELD and held.flags.writeable)
    ):
        owned.add(edge)
        _add_to(held, arrived)
        return
    pending[edge] = sum_gradients(held, arrived)
    owned.add(edge)


def _references_pending(pending: dict[int, Array], edge: int) -> int:
    """Return the reference count of the array ``pending[edge]`` during a call of this function.

    The function is called once, with an array to which only ``pending`` refers. The result is the count that
    :func:`add_pending` expects for such an array.
    """
    held = pending[edge]
    return sys.getrefcount(held)


_HELD = _references_pending({0: numpy.zeros(1)}, 0)


def visit_leaf(leaf: AccumulateGrad, grad: Gradient, owned: bool, record: bool, wanted: Wanted, write: bool) -> None:
    """Run the hooks of ``leaf`` with the gradient ``grad``, and store the gradient.

    ``wanted`` is the dict of the gradients that the caller has requested by the argument ``inputs`` of ``backward`` or
    ``autograd.grad``. It is None if the gradients of all leaves are computed. If the dict has the key ``leaf``, the
    gradient is stored as the value of this key. If it does not have the key, the gradient is discarded. A gradient that
    is not discarded is added to the leaf's ``grad`` if ``write`` is true. If ``owned`` is true, no object other than
    the engine refers to the gradient's array. ``record`` is true if the backward pass is recorded
    (``create_graph=True``).
    """
    if leaf.hooks is not None:
        hooked = run_tensor_hooks(leaf.hooks, grad, record)
        if write and leaf.hooks.before:
            hooked = run_node_pre_hooks(leaf, (hooked,), record)[0]
        owned = owned and not leaf.hooks.tensor and not leaf.hooks.before  # a hook may have stored its argument
        grad = hooked
    if wanted is not None:
        if leaf not in wanted:
            return
        wanted[leaf] = grad
    if not write:
        return
    variable = leaf.variable_ref()
    if variable is not None and grad is not None and (variable._grad_edge is leaf or _is_still_leaf(variable)):
        accumulate_grad(leaf, variable, grad, owned, record)
    if leaf.hooks is not None and (leaf.hooks.accumulated or leaf.hooks.after):
        for hook in list(leaf.hooks.accumulated.values()):
            result = hook(leaf.variable)
            if result is not None:
                check_hook_result(hook, result, leaf.variable)
                raise RuntimeError(f"Tensor post accumulate grad hooks should return None.{hook_hint(hook)}")
        for hook in list(leaf.hooks.after.values()):
            hook((), (as_tensor(grad),))


def _is_still_leaf(variable: Tensor) -> bool:
    """Whether ``variable`` is still a leaf, so that a gradient can be accumulated in its ``grad``.

    The engine calls this function if the gradient edge of ``variable`` has changed since the graph was recorded. The
    result is False if ``requires_grad`` has been set to False. Raises RuntimeError if a recorded in-place operation has
    made ``variable`` the result of a node.
    """
    if variable._grad_edge is not None and variable._grad_edge.__class__ is not AccumulateGrad:
        raise RuntimeError(
            f"leaf variable has been moved into the graph interior.{describe_recording(variable._grad_edge)}"
        )
    return variable._grad_edge is not None


def accumulate_grad(leaf: AccumulateGrad, variable: Tensor, grad: Gradient, owned: bool, record: bool) -> None:
    """Add ``grad`` to the ``grad`` of ``variable``, in place unless the backward pass is recorded.

    ``leaf`` is the AccumulateGrad of ``variable``. If ``owned`` is true, no object other than the engine refers to the
    array of ``grad``. ``record`` is true if the backward pass is recorded (``create_graph=True``).
    """
    with accumulation_lock:
        held = variable._grad
        if held is None:
            variable._grad = _copied(leaf, grad) if record else _own(leaf, grad, owned)
        elif record or (grad.__class__ is not numpy.ndarray and isinstance(grad, Tensor)):
            variable._grad = variable.grad + grad
        elif held.__class__ is Tensor or isinstance(held, Tensor):
            array, counter = held._array, held._counter
            if not array.flags.c_contiguous:
                check_overlap(held)
            _add_to(array, grad)
            if counter is None:
                held._counter = [1, None]
            elif counter:
                counter[0] += 1
        else:
            _add_to(held, grad)


def _add_to(held: Array, grad: Gradient) -> None:
    """Add the gradient ``grad`` in place to the array ``held``, a gradient or the sum of several gradients."""
    if held.size >= LARGE and held.__class__ is numpy.ndarray:
        arithmetic.add(held, grad, out=held)
    elif grad.__class__ is not numpy.ndarray and not held.ndim and isinstance(grad, numpy.generic):
        held[...] = held[()] + grad  # takes a quarter of the time of an addition in place
    else:
        held += grad


def _copied(leaf: AccumulateGrad, grad: Tensor) -> Tensor:
    """Return a copy of the gradient ``grad`` in the memory layout of the array of ``leaf``.

    The copy is a recorded operation, so that it can be differentiated.
    """
    module = array_module_of(leaf.array)
    return wrap(module.empty_like(leaf.array, dtype=grad._array.dtype)).copy_(grad)


def _own(leaf: AccumulateGrad, grad: Gradient, owned: bool) -> Array:
    """Return ``grad`` or a copy of it, such that only ``leaf`` refers to the array, in the memory layout of the leaf.

    If ``owned`` is true, no object other than the engine refers to ``grad``, which may then be returned without a copy.
    """
    if grad.__class__ is numpy.ndarray:
        # 5 references: the local variables of this function and its two callers, the arguments of the two calls.
        free = owned or (sys.getrefcount(grad) <= _FREE and (grad.base is None or _is_whole_view(grad)))
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


def _is_whole_view(grad: Array) -> bool:
    """Whether ``grad`` is a view of all elements of an array to which no other object refers.

    An example of such a view is a reshaped array.
    """
    base = grad.base
    if base.__class__ is not numpy.ndarray or base.base is not None or base.nbytes != grad.nbytes:
        return False
    return sys.getrefcount(base) <= _VIEWED


def _references() -> int:
    """Return the reference count of a gradient to which only the engine refers, measured on a sample gradient.

    :func:`_own` compares the reference count of a gradient with this number.
    """

    def finish(grad: Array) -> int:
        return accumulate(grad)

    def accumulate(grad: Array) -> int:
        return own(grad)

    def own(grad: Array) -> int:
        return sys.getrefcount(grad)

    pending = {0: numpy.zeros(1)}
    return finish(pending.pop(0))


_FREE = _references()


def _references_viewed(grad: Array) -> int:
    """Return the reference count of the base array of a view if only the view refers to the base.

    ``grad`` is a sample view, on which the count is measured. :func:`_is_whole_view` compares the reference count of a
    base array with this number.
    """
    base = grad.base
    return sys.getrefcount(base)


_VIEWED = _references_viewed(numpy.zeros(1).reshape(1, 1))
