"""Accumulation of gradients: sums of gradients that arrive at the same node, and addition to ``.grad`` of leaves.

A gradient is modified in place only if no object other than the engine refers to its array. The engine detects this by
the reference count of the array (``sys.getrefcount``). Function calls add references, and their number depends on the
version of Python. Therefore the expected count is measured when the module is imported: a sample array is passed
through the same number of function calls as a gradient.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import numpy

from ..runtime.extension_module import use_compiled_copy
from ..runtime.forks import replace_in_child
from ..runtime.interrupts import has_returned
from . import devices
from .devices import CUDA_MODULES, array_module_of
from .error_context import describe_recording
from .grad_mode import recording
from .gradients import as_tensor, is_broadcastable
from .graph import AccumulateGrad, dead_ref, edges_of_other_shape
from .hooks import check_hook_result, hook_hint, run_node_pre_hooks, run_tensor_hooks
from .rule_namespace import arithmetic, rule_namespace_of
from .tensor import Tensor, element_strides, strided, wrap
from .views import check_overlap, is_dense, mark_interrupted

if TYPE_CHECKING:
    from .typing import Array, Edge, Gradient, Wanted

#: Lock for adding to a leaf's ``grad``. Reentrant, because a recorded addition may call the user's code.
accumulation_lock = threading.RLock()

replace_in_child(sys.modules[__name__], "accumulation_lock")
#: Number of elements from which gradients are added and copied by functions that may use several threads.
LARGE = 1 << 15


@use_compiled_copy
def sum_gradients(first: Gradient, second: Gradient) -> Gradient:
    if first.__class__ is second.__class__ is numpy.ndarray and first.size >= LARGE:
        return arithmetic.add(first, second)
    if devices.several_gpus and (selected := devices.selected_for((first,))) is not None:
        with selected:
            return first + second
    return first + second


def add_pending(pending: dict[Edge, Gradient], owned: set[Edge], edge: Edge, arrived: Gradient) -> None:
    """Add ``arrived``, a gradient that has arrived at ``edge``, to ``pending[edge]``.

    ``pending`` is a dict from gradient edges to the sum of the gradients that have arrived there. If the sum is None,
    ``arrived`` becomes the sum. Otherwise, the addition is done in place if no object other than the engine refers to
    the array of the sum. This is known for the edges in the set ``owned``, because the engine itself has created their
    sums. For other edges, the reference count of the array is tested. After an addition, ``edge`` is added to
    ``owned``.
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
    """Return the reference count of the array ``pending[edge]``, to which only the dict ``pending`` refers.

    The count includes the references of the running function, which are the same in :func:`add_pending`. That function
    modifies an array in place only if it does not have more references than this.
    """
    held = pending[edge]
    return sys.getrefcount(held)


_HELD = _references_pending({0: numpy.zeros(1)}, 0)


def visit_leaf(leaf: AccumulateGrad, grad: Gradient, owned: bool, record: bool, wanted: Wanted, write: bool) -> None:
    """Run the hooks of ``leaf`` with the gradient ``grad``, and store the gradient.

    ``wanted`` and ``write`` determine where the gradient is stored:

    If ``wanted`` is None, as for ``backward()``, the gradient is added to the leaf's ``grad``.

    If ``wanted`` is a dict without the key ``leaf``, this gradient has not been requested and is discarded.

    If ``wanted`` has the key ``leaf``, as for ``autograd.grad``, the gradient is stored as the value of this key. If
    ``write`` is true, as for ``backward(inputs=…)``, the gradient is also added to the leaf's ``grad``.

    If ``owned`` is true, no object other than the engine refers to the array of ``grad``. ``record`` is true if the
    backward pass is recorded (``create_graph=True``).
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
        if leaf.grad is not None:
            leaf.grad = variable._grad
    elif variable is None and grad is not None and leaf.variable_ref is not dead_ref:
        variable = leaf.variable
        accumulate_grad(leaf, variable, grad, owned, record)
        leaf.grad = variable._grad  # for `leaf.variable`
    if leaf.hooks is not None and (leaf.hooks.accumulated or leaf.hooks.after):
        for hook in list(leaf.hooks.accumulated.values()):
            result = hook(leaf.variable)
            if result is not None:
                check_hook_result(hook, result, leaf.variable)
                raise RuntimeError(f"Tensor post accumulate grad hooks should return None.{hook_hint(hook)}")
        for hook in list(leaf.hooks.after.values()):
            hook((), (as_tensor(grad),))


def _is_still_leaf(variable: Tensor) -> bool:
    """Whether ``variable`` is still a leaf that requires gradients, although its AccumulateGrad has changed.

    The AccumulateGrad of ``variable`` at present is not the one in the graph of this backward pass. The result is False
    if ``requires_grad`` has been set to False since the graph was recorded. Raises RuntimeError if ``variable`` has
    become the result of a recorded in-place operation.
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
        if edges_of_other_shape and grad.shape != (variable if held is None or record else held).shape:
            grad = _in_other_shape(variable, held, grad, record)
            owned = True
            if held is None:
                variable._grad = grad
                return
        if held is None:
            if record and not recording():  # below __torch_dispatch__, without create_graph
                grad = grad.detach()
                plain = grad.__class__ is Tensor and grad._array.__class__ is numpy.ndarray
                variable._grad = _own(leaf, grad._array, False) if plain else grad
                return
            variable._grad = _copied(leaf, grad) if record else _own(leaf, grad, owned)
        elif record or (grad.__class__ is not numpy.ndarray and isinstance(grad, Tensor)):
            variable._grad = variable.grad + grad
        elif held.__class__ is not Tensor and isinstance(held, Tensor) and held.layout is not strided:
            variable._grad = as_tensor(grad) + held
        elif held.__class__ is Tensor or isinstance(held, Tensor):
            array, counter = held._array, held._counter
            if not array.flags.c_contiguous:
                check_overlap(held)
            if counter is None:
                counter = held._counter = [0, None]
            version = counter[0] + 1 if counter else 0
            try:
                _add_to(array, grad)
                if counter:
                    counter[0] = version
            except KeyboardInterrupt as error:
                returned = has_returned(error)
                if returned is None:
                    mark_interrupted(held)
                elif returned and counter:
                    counter[0] = version
                raise
        else:
            _add_to(held, grad)


def _in_other_shape(variable: Tensor, held: Array | Tensor | None, grad: Gradient, record: bool) -> Gradient:
    """Return ``grad`` in the shape in which it is accumulated, if the leaf ``variable`` has changed its shape.

    If the leaf has no gradient yet (``held`` is None), PyTorch takes over a gradient with strides like those of the leaf,
    and copies others into a tensor of the leaf's shape. Raises RuntimeError if the shapes do not fit.
    """
    shape = variable.shape if held is None or record else held.shape
    if held is None and _has_layout_of(grad._array if isinstance(grad, Tensor) else grad, variable._array):
        return grad.clone() if isinstance(grad, Tensor) else grad.copy()
    for back, (a, b) in enumerate(zip(reversed(shape), reversed(grad.shape), strict=False)):
        if a != b and 1 not in (a, b):
            raise RuntimeError(
                f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
                f"{max(len(shape), grad.ndim) - 1 - back}"
            )
    if held is not None and record:
        return grad
    if not is_broadcastable(tuple(grad.shape), tuple(shape)):
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(grad.shape)}")
    expanded = rule_namespace_of(grad).expand(grad, tuple(shape))
    return expanded.clone() if isinstance(grad, Tensor) else expanded.copy()


def _has_layout_of(grad: Array, leaf: Array) -> bool:
    """Whether PyTorch takes over the array ``grad`` as the gradient of the leaf with the array ``leaf``, without a copy."""
    if not is_dense(leaf):
        return bool(grad.flags.c_contiguous)
    pairs = zip(grad.shape, element_strides(grad), element_strides(leaf), strict=False)
    return all(size == 1 or step == other for size, step, other in pairs)


def _add_to(held: Array, grad: Gradient) -> None:
    """Add the gradient ``grad`` in place to the array ``held``, which contains a sum of gradients."""
    if grad.__class__ is not numpy.ndarray and isinstance(grad, Tensor):  # sparse
        held[...] = held + grad
    elif held.size >= LARGE and held.__class__ is numpy.ndarray:
        arithmetic.add(held, grad, out=held)
    elif grad.__class__ is not numpy.ndarray and not held.ndim and isinstance(grad, numpy.generic):
        held[...] = held[()] + grad  # takes a quarter of the time of an addition in place
    else:
        held += grad


def _copied(leaf: AccumulateGrad, grad: Tensor) -> Tensor:
    """Return a copy of the gradient ``grad`` in the memory layout of the leaf's array.

    This function is used if the backward pass is recorded (``create_graph=True``). The copy is a recorded operation, so
    that it can be differentiated.
    """
    if grad.layout is not strided:
        return grad.clone()
    module = array_module_of(leaf.array)
    return wrap(module.empty_like(leaf.array, dtype=grad._array.dtype)).copy_(grad)


def _own(leaf: AccumulateGrad, grad: Gradient, owned: bool) -> Array:
    """Return the array that becomes the ``grad`` of ``leaf``: the array ``grad``, or a copy of it.

    Later gradients are added to the leaf's ``grad`` in place, so no other object may refer to its array. ``grad`` is
    returned without a copy if this condition is met and if both ``grad`` and the leaf are C-contiguous. Otherwise the
    result is a copy, which for NumPy arrays has the memory layout of the leaf. If ``owned`` is true, the engine knows
    that no other object refers to ``grad``; otherwise the reference count is tested.
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
    if CUDA_MODULES.get(grad.__class__) is not None and sys.getrefcount(grad) <= _FREE and _is_free_on_gpu(leaf, grad):
        return grad
    return grad.clone() if isinstance(grad, Tensor) else grad.copy()  # a Tensor is sparse


def _is_free_on_gpu(leaf: AccumulateGrad, grad: Array) -> bool:
    """Whether ``grad``, an array on a GPU, may become the ``grad`` of ``leaf`` if only the engine refers to it."""
    free = grad.base is None or _is_whole_view(grad)
    return bool(free and grad.flags.c_contiguous and leaf.array.flags.c_contiguous)


def _is_whole_view(grad: Array) -> bool:
    """Whether ``grad`` is a view of a whole array, to which no other object refers.

    Such a view is created by ``reshape``, for example. It may be modified in place.
    """
    base = grad.base
    if base.__class__ is not grad.__class__ or base.base is not None or base.nbytes != grad.nbytes:
        return False
    return sys.getrefcount(base) <= _VIEWED


def _references() -> int:
    """Return the reference count of a gradient to which only the engine refers, in a call of :func:`_own`.

    The count is measured on a sample array, which is passed through as many nested calls as a gradient. A gradient with
    more references is also used by another object.
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
    """Return the reference count of ``grad.base``, an array to which only the sample view ``grad`` refers.

    :func:`_is_whole_view` compares the reference count of another base array with this number.
    """
    base = grad.base
    return sys.getrefcount(base)


_VIEWED = _references_viewed(numpy.zeros(1).reshape(1, 1))
