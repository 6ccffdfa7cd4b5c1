"""Execution of update rules, the functions by which optimisers such as Adam compute one step.

A rule such as ``Adam.rule(F, param, grad, …)`` updates ``param`` in place. It computes with the methods of ``F``, for
example ``F.sqrt(x)``. ``F`` is an ``ArrayOps`` for arrays, or a ``TensorOps`` for Tensors, whose operations can be
recorded for the backward pass. Methods with a trailing underscore modify their first argument, a parameter or a state
tensor. The others return a temporary, which is valid only until the rule returns, because its buffer is then reused.
This module does not depend on any optimiser.

Note [Interrupted steps]. A KeyboardInterrupt during the step of a parameter is raised before or after the step. If it is
raised inside a NumPy call, ``ArrayOps`` goes on and raises it after the step. If it is raised between two calls, the rule
is run again: methods that have computed their result return it, in the same buffer as before, and compute nothing.
Copies of the arrays would be simpler, but make a step of Adam 15 % slower. A step by operations on Tensors is undone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import CodeType
from typing import Any

import numpy

from ..compat.lazy_imports import load_part
from ..core import devices
from ..core.grad_mode import recording
from ..core.rule_namespace import RULE_NAMESPACES
from ..core.tensor import Tensor
from ..core.views import bump_version, mark_interrupted, version_of
from ..kernels.numba_dispatch import LARGE
from ..runtime import user_frame
from ..runtime.interrupts import has_returned

#: Block size in bytes of each array. A rule passes over its arrays a dozen times, therefore the blocks of all arrays
#: should fit in the L2 cache (Adam, 300,000 parameters: 0.45 ms with 2**15 floats, 0.9 with 2**12, 0.7 with 2**17).
STRIDE = 2**17

#: Elements of a parameter on the CPU up to which its step is computed together with those of others, and how many of
#: these there must be. A step of Adam for 30 parameters of 64 elements takes 0.31 ms together and 0.58 one by one, of 1024
#: elements 0.42 and 0.67; SGD with momentum 0.23 and 0.33, 0.27 and 0.36.
JOINED, JOINED_COUNT = 1 << 10, 4

Rule = Callable[..., None]
#: The arguments ``weight_decay``, ``maximize`` and ``shrink`` of :meth:`ArrayOps.direction`; None if it has no effect.
Decay = tuple[Any, bool, Any] | None
#: Location of a call in the user's program: a code object and the offset of an instruction.
Place = tuple[CodeType | None, int]


class ArrayOps:
    """Arithmetic on NumPy or CuPy arrays of one dtype, for the update rules of optimisers.

    Methods with a trailing underscore modify their first argument in place. The others return temporary arrays, whose
    buffers are reused after the rule has returned.
    """

    used_loose: int
    used: int
    skip: int
    done: int
    dtype: Any
    np: Any

    def __init__(self, np: Any, dtype: Any) -> None:
        self.np, self.dtype = np, dtype
        self.on_cpu: bool = np is numpy
        self.length: Any | int = (
            STRIDE // dtype.itemsize if self.on_cpu else sys.maxsize
        )  # on a GPU arrays are not split
        self.buffers: list[Any] = []
        self.loose: list[Any] = []  # temporaries that are no buffers
        self.used = self.used_loose = 0
        #: First element of the block that is being updated, and the value of `done` at its beginning; None before a step.
        self.start: tuple[int, int] | None = None
        self.done = 0  # number of methods that have computed their result
        self.skip = 0  # number of methods that have done so before the step was interrupted
        self.known: bool = True  # whether `done` is right; if not, the arrays may be partly written
        self.pending: BaseException | None = None  # interrupt to be raised after the step

    def run(self, rule: Rule, decay: Decay, numbers: dict[str, Any], arrays: list[Any], resume: bool = False) -> None:
        """Perform one optimiser step: call ``rule(self, *arrays, **numbers)``, which updates ``arrays`` in place.

        ``arrays`` are the parameter, its gradient and its state, all of the same shape. If ``decay`` is not None, the
        rule receives the gradient with the weight decay added: ``self.direction(param, grad, *decay)``.

        If all arrays are C-contiguous or all are Fortran-contiguous, they are split into blocks that fit in the CPU's
        cache, and the rule is called for each block. If the NumPy arrays are large and the rule has an attribute
        ``large``, this function is called first; it returns a compiled loop that performs the step, and its arguments
        (``numba_steps.py``). If it returns None, the rule is called.

        If ``resume`` is true, a step with the same arguments was interrupted, and the rest of it is performed.
        """
        size, first = arrays[0].size, 0
        if resume:
            assert self.start is not None
            first, begun = self.start
            self.skip = self.done - begun
        else:
            self.loose = []
            if self.on_cpu and size >= LARGE:
                large = getattr(rule, "large", None)
                prepared = None if large is None else large(arrays, decay, numbers)
                if prepared is not None:
                    self._run_loop(*prepared)
                    self.start = size, self.done
                    return
            elif self.np is not numpy and not devices.is_meta(arrays[0]):
                launches = load_part("kernels.cuda.calls").update_calls(
                    partial(_rule_call, rule, decay, numbers), [arrays]
                )
                if launches is not None:
                    (launch,) = launches
                    self._run_loop(*launch)
                    self.start = size, self.done
                    return
        if first == size > 0:  # interrupted after the compiled loop
            return
        lines = as_flat_views(arrays)
        length = self.length if lines is not None else size
        lines = arrays if lines is None else lines
        if size <= length:
            self._run_block(rule, decay, numbers, lines, 0, resume)
            return
        for begin in range(first, size, length):
            block = [line[begin : begin + length] for line in lines]
            self._run_block(rule, decay, numbers, block, begin, resume and begin == first)

    def _run_block(
        self, rule: Rule, decay: Decay, numbers: dict[str, Any], arrays: list[Any], begin: int, resume: bool
    ) -> None:
        """Call ``rule`` for ``arrays``, of which ``begin`` is the position in the whole arrays."""
        self.used = self.used_loose = 0
        if not resume:
            self.start = begin, self.done
        param, grad, *state = arrays
        rule(self, param, self.direction(param, grad, *decay) if decay else grad, *state, **numbers)

    def _run_loop(self, loop: Callable[..., None], args: Iterable[Any]) -> None:
        """Call ``loop(*args)``, a compiled loop that performs the step; see Note [Interrupted steps]."""
        self.known = False
        try:
            loop(*args)
        except KeyboardInterrupt as error:
            returned = has_returned(error)
            self.known = returned is not None
            if not returned:
                raise
            self.pending = error
        self.known = True

    def _defer(self, error: KeyboardInterrupt) -> None:
        """Store ``error``, which has interrupted a ufunc that modifies an array in place, to raise it after the step."""
        if has_returned(error) is None:
            self.known = False
            raise error
        self.pending = error
        self.done += 1

    def new(self, like: Any) -> Any:
        """Return an uninitialised temporary array of the shape of ``like``.

        The array is valid until the update rule returns, because its buffer is then reused.
        """
        if like.ndim != 1 or like.size > self.length or not self.on_cpu:
            if self.used_loose == len(self.loose):
                self.loose.append(self.np.empty_like(like))
            self.used_loose += 1
            return self.loose[self.used_loose - 1]
        if self.used == len(self.buffers):
            self.buffers.append(self.np.empty(self.length, self.dtype))
        self.used += 1
        return self.buffers[self.used - 1][: like.size]

    def free(self, last: Any) -> None:
        """Release the temporary array ``last``, so that the next call of :meth:`new` reuses its buffer.

        ``last`` must be the result of the latest call of :meth:`new`.
        """
        self.used -= last.ndim == 1 and self.on_cpu

    def number(self, value: Any) -> Any:
        """Return ``value`` as a 0-d array for operations on NumPy arrays, or ``value`` itself for CuPy arrays.

        NumPy multiplies an array by a 0-d array in 0.25 µs, but by a Python number in 0.75 µs.
        """
        return self.np.array(value, self.dtype) if self.on_cpu else value

    # -- operations that return a temporary; to compute one a second time has no other effect

    def direction(self, param: Any, grad: Any, weight_decay: Any, maximize: bool, shrink: Any) -> Any:
        """Return the gradient with the weight decay added: ``grad + weight_decay * param``.

        If ``maximize`` is true, the result is ``-grad + weight_decay * param``. If ``shrink`` is not None, ``param`` is
        first multiplied in place by ``shrink``, the factor of decoupled weight decay.
        """
        if shrink is not None:
            self.mul_(param, shrink)
        if maximize:
            grad = self._unary(self.np.negative, grad)
        return self.add(grad, param, weight_decay) if weight_decay != 0 else grad

    def add(self, x: Any, y: Any, scale: Any) -> Any:
        """Return ``x + scale * y``."""
        out = self.new(x)
        if self.skip:
            self.skip -= 1
        else:
            self.np.add(x, self.np.multiply(y, self.number(scale), out), out)
            self.done += 1
        return out

    def shift(self, x: Any, number: Any) -> Any:
        """Return ``x + number``."""
        return self._binary(self.np.add, x, self.number(number))

    def mul(self, x: Any, y: Any) -> Any:
        """Return ``x * y``."""
        return self._binary(self.np.multiply, x, y)

    def div(self, x: Any, y: Any) -> Any:
        """Return ``x / y``."""
        return self._binary(self.np.divide, x, y)

    def abs(self, x: Any) -> Any:
        """Return the absolute value of ``x``."""
        return self._unary(self.np.absolute, x)

    def sign(self, x: Any) -> Any:
        """Return the sign of each element of ``x``: -1, 0 or 1."""
        return self._unary(self.np.sign, x)

    def sqrt(self, x: Any) -> Any:
        """Return the square root of ``x``."""
        return self._unary(self.np.sqrt, x)

    def _unary(self, ufunc: Any, x: Any) -> Any:
        out = self.new(x)
        if self.skip:
            self.skip -= 1
        else:
            ufunc(x, out)
            self.done += 1
        return out

    def _binary(self, ufunc: Any, x: Any, y: Any) -> Any:
        out = self.new(x)
        if self.skip:
            self.skip -= 1
        else:
            ufunc(x, y, out)
            self.done += 1
        return out

    def select(self, x: Any, negative: Any, zero: Any, positive: Any) -> Any:
        """Return ``negative`` where ``x`` is negative, ``zero`` where it is 0, and ``positive`` where it is positive.

        ``negative``, ``zero`` and ``positive`` are numbers or arrays.
        """
        np, out = self.np, self.new(x)
        if self.skip:
            self.skip -= 1
        else:
            np.copyto(out, zero)
            np.copyto(out, negative, where=x < 0)
            np.copyto(out, positive, where=x > 0)
            self.done += 1
        return out

    def root(self, x: Any, scale: Any, eps: Any) -> Any:
        """Return ``sqrt(x) / scale + eps``, by which optimisers such as Adam divide the step."""
        out = self.new(x)
        if self.skip:
            self.skip -= 1
        else:
            self.np.sqrt(x, out)
            if scale != 1:
                self.np.divide(out, self.number(scale), out)
            self.np.add(out, self.number(eps), out)
            self.done += 1
        return out

    def detached(self, x: Any) -> Any:
        """Return ``x`` unchanged, because an array has no autograd graph.

        In :class:`TensorOps` this method detaches ``x`` from the graph.
        """
        return x

    # -- operations in place; of those that read what they write, only the last call modifies x

    def set_(self, x: Any, y: Any) -> None:
        """Copy ``y`` to ``x``."""
        if self.skip:
            self.skip -= 1
        else:
            self.np.copyto(x, y)
            self.done += 1

    def clamp_(self, x: Any, low: Any, high: Any) -> None:
        """Clamp ``x`` in place to the range from ``low`` to ``high``."""
        if self.skip:
            self.skip -= 1
        else:
            self.np.clip(x, low, high, out=x)
            self.done += 1

    def maximum_(self, x: Any, y: Any) -> None:
        """Set ``x`` to the elementwise maximum of ``x`` and ``y``."""
        if self.skip:
            self.skip -= 1
        else:
            self.np.maximum(x, y, out=x)
            self.done += 1

    def mul_(self, x: Any, y: Any) -> None:
        """Multiply ``x`` in place by ``y``, a number or an array."""
        self._write(self.np.multiply, x, y if isinstance(y, self.np.ndarray) else self.number(y), x)

    def _write(self, ufunc: Any, x: Any, y: Any, out: Any) -> None:
        """Call ``ufunc(x, y, out)``, where ``out`` is ``x`` or ``y``, unless that has been done before an interrupt."""
        if self.skip:
            self.skip -= 1
            return
        try:
            ufunc(x, y, out)
            self.done += 1
        except KeyboardInterrupt as error:
            self._defer(error)

    def add_(self, x: Any, y: Any, scale: Any = 1) -> None:
        """Add ``scale * y`` to ``x`` in place."""
        if scale == 1:
            self._write(self.np.add, x, y, x)
            return
        out = self.new(x)
        if self.skip:
            self.skip -= 1
        else:
            add = self.np.add
            self.np.multiply(y, self.number(scale), out)
            try:
                add(x, out, x)
                self.done += 1
            except KeyboardInterrupt as error:
                self._defer(error)
        self.free(out)

    def lerp_(self, x: Any, y: Any, weight: Any) -> None:
        """Set ``x`` to ``x + weight * (y - x)``, the linear interpolation between ``x`` and ``y``."""
        np, near, out = self.np, weight < 0.5, self.new(x)
        if self.skip:
            self.skip -= 1
        else:
            add, start = np.add, x if near else y
            np.multiply(np.subtract(y, x, out), self.number(weight if near else weight - 1), out)
            try:
                add(start, out, x)
                self.done += 1
            except KeyboardInterrupt as error:
                self._defer(error)
        self.free(out)

    def addcmul_(self, x: Any, a: Any, b: Any, scale: Any = 1) -> None:
        """Add ``scale * a * b`` to ``x`` in place."""
        self._addc(self.np.multiply, x, a, b, scale)

    def addcdiv_(self, x: Any, a: Any, b: Any, scale: Any = 1) -> None:
        """Add ``scale * a / b`` to ``x`` in place."""
        self._addc(self.np.divide, x, a, b, scale)

    def _addc(self, combine: Any, x: Any, a: Any, b: Any, scale: Any) -> None:
        out = self.new(x)
        if self.skip:
            self.skip -= 1
        else:
            if scale != 1:
                a = self.np.multiply(a, self.number(scale), out)
            combine(a, b, out)
            add = self.np.add
            try:
                add(x, out, x)
                self.done += 1
            except KeyboardInterrupt as error:
                self._defer(error)
        self.free(out)


def _rule_call(
    rule: Rule, decay: Decay, numbers: dict[str, Any], np: Any, dtype: Any, param: Any, grad: Any, *state: Any
) -> None:
    """Call ``rule`` for ``param``, ``grad`` and ``state``, symbolic elements of the array module ``np``."""
    ops = ArrayOps(np, dtype)
    rule(ops, param, ops.direction(param, grad, *decay) if decay else grad, *state, **numbers)


class TensorOps:
    """Arithmetic on Tensors for the update rules of optimisers, with the same methods as :class:`ArrayOps`.

    This class is used if the step is recorded for the backward pass (option ``differentiable=True``), and for Tensors
    that :class:`ArrayOps` does not support, such as Tensors of half precision.
    """

    def kept(self, x: Any) -> Any:
        """Return a copy of ``x`` if operations are recorded for the backward pass, otherwise ``x`` itself.

        The update rule later modifies ``x`` in place, but the backward pass needs the present value, which the copy
        keeps.
        """
        return x.clone() if recording() else x

    def direction(self, param: Tensor, grad: Tensor, weight_decay: Any, maximize: bool, shrink: Any) -> Tensor:
        if shrink is not None:
            self.mul_(param, shrink)
        grad = -grad if maximize else grad
        return self.add(grad, self.kept(param), weight_decay) if is_on(weight_decay) else grad

    def add(self, x: Tensor, y: Tensor, scale: Any) -> Tensor:
        return x + scale * y if isinstance(scale, Tensor) else x.add(y, alpha=scale)

    def shift(self, x: Tensor, number: Any) -> Tensor:
        return x + number

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        return self.kept(x) * self.kept(y)

    def div(self, x: Tensor, y: Tensor) -> Tensor:
        return self.kept(x) / self.kept(y)

    def abs(self, x: Tensor) -> Tensor:
        return x.abs()

    def sign(self, x: Tensor) -> Tensor:
        return x.sign()

    def sqrt(self, x: Tensor) -> Tensor:
        return x.sqrt()

    def select(self, x: Tensor, negative: Any, zero: Any, positive: Any) -> Tensor:
        low, middle, high = (y if isinstance(y, Tensor) else x.new_full(x.shape, y) for y in (negative, zero, positive))
        return high.where(x > 0, low.where(x < 0, middle))

    def root(self, x: Tensor, scale: Any, eps: Any) -> Tensor:
        return self.kept(x).sqrt() / scale + eps

    def detached(self, x: Tensor) -> Tensor:
        return x.detach()

    def set_(self, x: Tensor, y: Tensor) -> None:
        x.copy_(y)

    def mul_(self, x: Tensor, y: Any) -> None:
        x.mul_(self.kept(y) if isinstance(y, Tensor) else y)

    def clamp_(self, x: Tensor, low: Any, high: Any) -> None:
        x.clamp_(low, high)

    def maximum_(self, x: Tensor, y: Tensor) -> None:
        x.copy_(RULE_NAMESPACES[Tensor].maximum(self.kept(x), self.kept(y)))

    def add_(self, x: Tensor, y: Tensor, scale: Any = 1) -> None:
        if isinstance(scale, Tensor):
            x.add_(self.kept(y) * scale)
        else:
            x.add_(y, alpha=scale)

    def lerp_(self, x: Tensor, y: Tensor, weight: Any) -> None:
        x.lerp_(y, weight)

    def addcmul_(self, x: Tensor, a: Tensor, b: Tensor, scale: Any = 1) -> None:
        if isinstance(scale, Tensor):
            x.add_(self.kept(a) * self.kept(b) * scale)
        else:
            x.addcmul_(self.kept(a), self.kept(b), value=scale)

    def addcdiv_(self, x: Tensor, a: Tensor, b: Tensor, scale: Any = 1) -> None:
        if isinstance(scale, Tensor):
            x.add_(self.kept(a) / self.kept(b) * scale)
        else:
            x.addcdiv_(self.kept(a), self.kept(b), value=scale)


def is_on(weight_decay: Any) -> bool:
    """Whether ``weight_decay`` has an effect: it is a Tensor or a number other than 0.

    A Tensor with value 0 also has an effect, because the backward pass may compute its gradient.
    """
    return isinstance(weight_decay, Tensor) or weight_decay != 0


def as_flat_views(arrays: list[Any]) -> list[Any] | None:
    """Return a list with a 1-d view of each of ``arrays``, in which the elements are in memory order.

    The result is None unless all arrays are C-contiguous or all are Fortran-contiguous.
    """
    for array in arrays:
        if not array.flags.c_contiguous:
            break
    else:
        return arrays if arrays[0].ndim == 1 else [array.reshape(-1) for array in arrays]
    if all(array.flags.f_contiguous for array in arrays):
        return [array.T.reshape(-1) for array in arrays]
    return None


class _Levels(threading.local):
    """Cache of ``ArrayOps`` objects. Each thread has its own, because an ``ArrayOps`` overwrites its buffers."""

    def __init__(self) -> None:
        self.made: dict[Any, ArrayOps] = {}


_levels = _Levels()
_on_tensors = TensorOps()


#: Values that are stored after the rule: pairs of a 0-d tensor and its new value, such as the number of steps.
Counters = Sequence[tuple[Tensor, float | Tensor]]
#: A state of a parameter, and the entries to be added to it.
Entries = tuple[dict[str, Any], dict[str, Any]]


def apply_rule(
    rule: Rule, param: Tensor, grad: Tensor, state: list[Tensor], decay: Decay, numbers: dict[str, Any],
    counters: Counters = (), entries: Entries | None = None,
) -> None:  # fmt: skip
    """Perform one optimiser step: update ``param`` and the Tensors in ``state`` in place.

    The step is the call ``rule(F, param, grad, *state, **numbers)``, where the methods of ``F`` are the operations. If
    ``decay`` is not None, the rule receives the gradient with the weight decay added, the result of
    :meth:`ArrayOps.direction` for the arguments ``decay``. Afterwards the values of ``counters`` are stored, and the
    ``entries`` are added to the state of the parameter. A step that is interrupted is completed or undone (see Note
    [Interrupted steps]).

    If no operations are recorded for backward and all Tensors have the same shape and dtype (not of half precision),
    ``F`` is an :class:`ArrayOps`, and the rule receives the arrays of the Tensors. Otherwise ``F`` is a
    :class:`TensorOps`, and the rule receives the Tensors. In both cases complex values are passed as real views.
    """
    if devices.several_gpus and (selected := devices.selected_for((param._array,))) is not None:
        with selected:
            return apply_rule(rule, param, grad, state, decay, numbers, counters, entries)
    tensors = [param, grad, *state]
    arrays = None if recording() else _numbers(tensors)
    if arrays is None:
        undo_if_interrupted(
            [param, *state, *[each for each, _ in counters]],
            lambda: _apply_to_tensors(rule, param, grad, state, decay, numbers, counters, entries),
        )
        return
    place, ops = user_frame.user_location(), array_ops_for(param._array, arrays[0].dtype)
    written = [param, *state, *[each for each, _ in counters]] if counters else [param, *state]
    try:
        ops.run(rule, decay, numbers, arrays)
        _store(written, counters, entries, place)
        ops.start = None
    except (KeyboardInterrupt, MemoryError):
        try:
            if ops.known and ops.start is not None:
                ops.run(rule, decay, numbers, arrays, True)
                _store(written, counters, entries, place)
        except MemoryError:
            ops.known = False
        if not ops.known:
            for each in written:
                mark_interrupted(each)
        ops.start, ops.skip, ops.known, ops.pending = None, 0, True, None
        raise
    if ops.pending is not None:
        pending, ops.pending = ops.pending, None
        raise pending


#: Arguments of :func:`apply_rule`, and the arrays of the parameter, the gradient and the state.
_Step = tuple[tuple[Any, ...], list[Any]]


def apply_rules(steps: Sequence[tuple[Any, ...]]) -> None:
    """Perform the steps of several parameters, of which each is a tuple of arguments of :func:`apply_rule`.

    Steps of one rule with equal numbers are performed together: those of small parameters on the CPU as one step of
    their joined arrays, those on a GPU by a launch for many parameters. The other parameters are updated one after the
    other. If the arrays of a parameter share memory with those of an earlier one, the earlier steps are performed first.
    """
    groups: dict[Any, list[_Step]] = {}
    written, read = set[int](), set[int]()  # the ids of the arrays that own memory of the steps in `groups`
    last, common = None, ()  # the numbers of the parameter before, and what its key has of them
    for step in steps:
        rule, param, grad, state, decay, numbers, *_ = step
        arrays = None if recording() else _numbers([param, grad, *state])
        key: Any = None
        if arrays is not None:
            owners = [id(each if each.base is None else each.base) for each in arrays]
            source = owners.pop(1)
            if source in written or not written.isdisjoint(owners) or not read.isdisjoint(owners):
                _apply_to_groups(groups)
                groups, written, read = {}, set(), set()
            if source not in owners and _may_be_grouped(arrays):
                if numbers is not last:
                    last, common = numbers, (decay, *numbers.values())
                device = devices.device_of(param._array) if devices.several_gpus else None
                key = rule, arrays[0].dtype, len(arrays), device, common
        try:
            group = None if key is None else groups.setdefault(key, [])
        except TypeError:  # a list among the numbers
            group = None
        if arrays is None or group is None:
            apply_rule(*step)
        else:
            group.append((step, arrays))
            written.update(owners)
            read.add(source)
    _apply_to_groups(groups)


def _may_be_grouped(arrays: list[Any]) -> bool:
    """Whether the arrays of a parameter, its gradient and its state are on a GPU, or small and contiguous.

    The memory of the latter must belong to an array of NumPy and must not be read-only.
    """
    if arrays[0].__class__ is not numpy.ndarray:
        return devices.on_gpu(arrays[0])
    if arrays[0].size > JOINED:
        return False
    for each in arrays:
        base, flags = each.base, each.flags
        if not (flags.c_contiguous and flags.writeable):
            return False
        if base is not None and (base.__class__ is not numpy.ndarray or base.base is not None):
            return False
    return True


def _apply_to_groups(groups: dict[Any, list[_Step]]) -> None:
    """Perform the steps of each of the ``groups`` together, or one after the other if they are few."""
    for group in groups.values():
        on_cpu = group[0][1][0].__class__ is numpy.ndarray
        if len(group) < (JOINED_COUNT if on_cpu else 2):
            for step, _ in group:
                apply_rule(*step)
        elif on_cpu:
            _apply_to_joined(group)
        else:
            _apply_to_group(group)


def _apply_to_joined(group: list[_Step]) -> None:
    """Perform the steps of ``group``, small parameters on the CPU, as one step of copies, and write the results back.

    A group that is interrupted before it writes has not changed; later it is completed.
    """
    (rule, _, _, _, decay, numbers, *_), (first, *_) = group[0]
    lines = [[each.reshape(-1) for each in arrays] for _, arrays in group]
    joined = [numpy.concatenate(each) for each in zip(*lines, strict=True)]
    ops, (code, position) = array_ops_for(first, first.dtype), user_frame.user_location()
    places: list[Place] = [(code, position) for _ in group]
    try:
        ops.run(rule, decay, numbers, joined)
    except (KeyboardInterrupt, MemoryError):
        ops.start, ops.skip, ops.known, ops.pending = None, 0, True, None
        raise
    ops.start, pending, ops.pending = None, ops.pending, None
    try:
        _write_joined(group, lines, joined, places)
    except KeyboardInterrupt:
        _write_joined(group, lines, joined, places)
        raise
    if pending is not None:
        raise pending


def _write_joined(group: list[_Step], lines: list[list[Any]], joined: list[Any], places: list[Place]) -> None:
    """Write the arrays ``joined`` back to ``lines``, except the gradients; a second call has no other effect."""
    start = 0
    for param, _, *state in lines:
        end = start + param.size
        param[...] = joined[0][start:end]
        for line, whole in zip(state, joined[2:], strict=True):
            line[...] = whole[start:end]
        start = end
    for ((_, param, _, state, _, _, counters, entries), _), place in zip(group, places, strict=True):
        _store([param, *state, *[each for each, _ in counters]], counters, entries, place)


def _apply_to_group(group: list[_Step]) -> None:
    """Perform the steps of ``group`` by few launches on a GPU, or one after the other without a kernel for the rule.

    A group that is interrupted can neither be completed nor undone, so that the tensors are marked.
    """
    (rule, _, _, _, decay, numbers, *_), (first, *_) = group[0]
    if devices.several_gpus and (selected := devices.selected_for((first,))) is not None:
        with selected:
            return _apply_to_group(group)
    call, rows = partial(_rule_call, rule, decay, numbers), [arrays for _, arrays in group]
    launches = load_part("kernels.cuda.calls").update_calls(call, rows)
    if launches is None:
        for step, _ in group:
            apply_rule(*step)
        return
    code, position = user_frame.user_location()
    stored: list[tuple[list[Tensor], Counters, Entries | None, Place]] = []
    for (_, param, _, state, _, _, counters, entries), _ in group:
        stored.append(([param, *state, *[each for each, _ in counters]], counters, entries, (code, position)))
    ops, complete = array_ops_for(first, first.dtype), False
    try:
        for launch in launches:
            ops._run_loop(*launch)
        complete = True
        for each in stored:
            _store(*each)
    except (KeyboardInterrupt, MemoryError):
        if complete:
            for each in stored:
                _store(*each)
        else:
            for written, *_ in stored:
                for tensor in written:
                    mark_interrupted(tensor)
        ops.known, ops.pending = True, None
        raise
    if ops.pending is not None:
        pending, ops.pending = ops.pending, None
        raise pending


def _store(written: list[Tensor], counters: Counters, entries: Entries | None, place: Place) -> None:
    """Store what follows the update of the arrays in a step; a second call has no effect.

    ``counters`` and ``entries`` are arguments of :func:`apply_rule`. ``written`` are the tensors that the step modifies.
    ``place``, the location of the step in the user's program, is an object that belongs to this step alone.
    """
    for tensor, value in counters:
        tensor._array[...] = value
    for each in written:
        cell = each._counter
        if cell is None:
            cell = each._counter = [0, None]
        if cell and cell[1] is not place:
            cell[:] = cell[0] + 1, place
    if entries is not None:
        entries[0].update(entries[1])


def _apply_to_tensors(
    rule: Rule, param: Tensor, grad: Tensor, state: list[Tensor], decay: Decay, numbers: dict[str, Any],
    counters: Counters, entries: Entries | None,
) -> None:  # fmt: skip
    """Perform the step of :func:`apply_rule` by operations on Tensors."""
    for tensor, value in counters:
        if isinstance(value, Tensor):
            tensor.copy_(value)
        else:
            tensor._array[...] = value
            bump_version(tensor)
    if param.is_complex():
        param, grad, *state = [RULE_NAMESPACES[Tensor].view_as_real(each) for each in (param, grad, *state)]
    rule(_on_tensors, param, _on_tensors.direction(param, grad, *decay) if decay else grad, *state, **numbers)
    if entries is not None:
        entries[0].update(entries[1])


def undo_if_interrupted(tensors: list[Tensor], step: Callable[[], None]) -> None:
    """Call ``step``, which modifies ``tensors`` in place; if it is interrupted or fails, restore their values and edges.

    ``step`` must have no other effect before its last statement.
    """
    before = [(each, each._array, each._array.copy(), each._grad_edge, version_of(each)) for each in tensors]
    try:
        step()
    except BaseException:
        for tensor, array, values, edge, version in before:
            array[...] = values
            tensor._array, tensor._grad_edge = array, edge
            if tensor._counter:
                tensor._counter[0] = version
        raise


def _numbers(tensors: list[Tensor]) -> list[Any] | None:
    """Return a list of the arrays of ``tensors``, or None if :class:`ArrayOps` does not support them.

    The arrays must have the same shape and the same floating-point or complex dtype, not of half precision. Complex
    arrays must also be all C-contiguous or all Fortran-contiguous; they are returned as real views.
    """
    first = tensors[0]._array
    dtype, shape = first.dtype, first.shape
    if dtype.kind not in "fc" or dtype.itemsize < 4:
        return None
    arrays = [each._array for each in tensors]
    for array in arrays:
        if array.dtype != dtype or array.shape != shape or array.__class__ is not first.__class__:
            return None
    if dtype.kind == "f":
        return arrays
    lines = as_flat_views(arrays)
    return None if lines is None else [line.view(line.real.dtype) for line in lines]


def array_ops_for(array: Any, dtype: Any) -> ArrayOps:
    """Return the ``ArrayOps`` of this thread for ``dtype`` and for the array module of ``array`` (NumPy or CuPy)."""
    key = (array.__class__, dtype, devices.device_of(array).index if devices.several_gpus else None)
    level = _levels.made.get(key)
    if level is None:
        level = _levels.made[key] = ArrayOps(devices.array_module_of(array), dtype)
    return level
