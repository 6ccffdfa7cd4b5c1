"""How a rule of an optimiser is carried out: fast and in place on arrays, or recorded on Tensors.

A rule is written once, in the words that ``OnArrays`` and ``OnTensors`` have in common. Words that end with an
underscore modify their first argument, which is a parameter or a part of the state; the others give a new value, which
the rule may not keep. Knows no optimiser.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy

from ..core import devices
from ..core.grad_mode import recording
from ..core.rule_namespace import RULE_NAMESPACES
from ..core.tensor import Tensor
from ..kernels.numba_dispatch import LARGE
from ..runtime import user_frame

#: Bytes of each array that a rule works on at a time. A rule goes over them a dozen times: all of its arrays together
#: are to stay in the second cache (2**15 floats: 300,000 parameters of Adam in 0.45 ms; 2**12: 0.9 ms, 2**17: 0.7 ms).
STRIDE = 2**17

Rule = Callable[..., None]


class OnArrays:
    """The words of the rules on arrays of one dtype in one array module, with buffers for what comes between."""

    def __init__(self, np: Any, dtype: Any) -> None:
        self.np, self.dtype = np, dtype
        self.on_cpu = np is numpy
        self.length = STRIDE // dtype.itemsize if self.on_cpu else sys.maxsize  # a GPU takes an array as a whole
        self.buffers: list[Any] = []
        self.used = 0

    def run(self, rule: Rule, numbers: dict[str, Any], arrays: list[Any]) -> None:
        """Carry out ``rule`` on arrays of one shape, a stretch at a time where all lie in memory alike."""
        large = getattr(rule, "large", None) if self.on_cpu and arrays[0].size >= LARGE else None
        if large is not None and large(arrays, numbers):
            return
        lines = in_lines(arrays)
        length = self.length if lines is not None else arrays[0].size
        lines = arrays if lines is None else lines
        self.used = 0
        if arrays[0].size <= length:
            rule(self, *lines, **numbers)
            return
        for start in range(0, arrays[0].size, length):
            self.used = 0
            rule(self, *[line[start : start + length] for line in lines], **numbers)

    def new(self, like: Any) -> Any:
        """Memory for a value in between, of the shape of ``like``: a buffer, free again when the rule has ended."""
        if like.ndim != 1 or like.size > self.length or not self.on_cpu:
            return self.np.empty_like(like)
        if self.used == len(self.buffers):
            self.buffers.append(self.np.empty(self.length, self.dtype))
        self.used += 1
        return self.buffers[self.used - 1][: like.size]

    def free(self, last: Any) -> None:
        """Let the buffer that was taken last be taken again."""
        self.used -= last.ndim == 1 and self.on_cpu

    def number(self, value: Any) -> Any:
        """A number as an array: NumPy takes 0.25 µs for one product with it, and 0.75 with a Python number."""
        return self.np.array(value, self.dtype) if self.on_cpu else value

    # -- what gives a new value

    def direction(self, param: Any, grad: Any, weight_decay: Any, maximize: bool) -> Any:
        """The gradient, turned round to maximise, plus ``weight_decay`` times the parameter."""
        if maximize:
            grad = self.np.negative(grad, self.new(grad))
        return self.add(grad, param, weight_decay) if weight_decay != 0 else grad

    def add(self, x: Any, y: Any, scale: Any) -> Any:
        """``x + scale * y``."""
        out = self.np.multiply(y, self.number(scale), self.new(x))
        return self.np.add(x, out, out)

    def shift(self, x: Any, number: Any) -> Any:
        """``x + number``."""
        return self.np.add(x, self.number(number), self.new(x))

    def mul(self, x: Any, y: Any) -> Any:
        """``x * y``."""
        return self.np.multiply(x, y, self.new(x))

    def div(self, x: Any, y: Any) -> Any:
        """``x / y``."""
        return self.np.divide(x, y, self.new(x))

    def abs(self, x: Any) -> Any:
        """``|x|``."""
        return self.np.absolute(x, self.new(x))

    def sign(self, x: Any) -> Any:
        """-1, 0 or 1."""
        return self.np.sign(x, self.new(x))

    def sqrt(self, x: Any) -> Any:
        """The square root."""
        return self.np.sqrt(x, self.new(x))

    def select(self, x: Any, negative: Any, zero: Any, positive: Any) -> Any:
        """Of three values (numbers or arrays) the one that belongs to the sign of ``x``."""
        np, out = self.np, self.new(x)
        np.copyto(out, zero)
        np.copyto(out, negative, where=x < 0)
        np.copyto(out, positive, where=x > 0)
        return out

    def root(self, x: Any, scale: Any, eps: Any) -> Any:
        """``sqrt(x) / scale + eps``: what the steps of many optimisers are divided by."""
        out = self.np.sqrt(x, self.new(x))
        if scale != 1:
            self.np.divide(out, self.number(scale), out)
        return self.np.add(out, self.number(eps), out)

    def detached(self, x: Any) -> Any:
        """``x`` itself, through which no gradient goes."""
        return x

    # -- what modifies

    def set_(self, x: Any, y: Any) -> None:
        """``x`` becomes ``y``."""
        self.np.copyto(x, y)

    def mul_(self, x: Any, y: Any) -> None:
        """``x`` times ``y``, a number or an array."""
        self.np.multiply(x, y if isinstance(y, self.np.ndarray) else self.number(y), x)

    def clamp_(self, x: Any, low: Any, high: Any) -> None:
        """``x`` within two numbers."""
        self.np.clip(x, low, high, out=x)

    def maximum_(self, x: Any, y: Any) -> None:
        """The greater of the two."""
        self.np.maximum(x, y, out=x)

    def add_(self, x: Any, y: Any, scale: Any = 1) -> None:
        """``x + scale * y``."""
        if scale == 1:
            self.np.add(x, y, x)
            return
        out = self.np.multiply(y, self.number(scale), self.new(x))
        self.np.add(x, out, x)
        self.free(out)

    def lerp_(self, x: Any, y: Any, weight: Any) -> None:
        """From ``x`` to ``y`` as ``weight`` goes from 0 to 1."""
        np, near = self.np, weight < 0.5
        out = np.subtract(y, x, self.new(x))
        np.multiply(out, self.number(weight if near else weight - 1), out)
        np.add(x if near else y, out, x)
        self.free(out)

    def addcmul_(self, x: Any, a: Any, b: Any, scale: Any = 1) -> None:
        """``x + scale * a * b``."""
        self._addc(self.np.multiply, x, a, b, scale)

    def addcdiv_(self, x: Any, a: Any, b: Any, scale: Any = 1) -> None:
        """``x + scale * a / b``."""
        self._addc(self.np.divide, x, a, b, scale)

    def _addc(self, combine: Any, x: Any, a: Any, b: Any, scale: Any) -> None:
        out = self.new(x)
        if scale != 1:
            a = self.np.multiply(a, self.number(scale), out)
        self.np.add(x, combine(a, b, out), x)
        self.free(out)


class OnTensors:
    """The same words on Tensors: recorded if ``differentiable``, and for dtypes that NumPy does not calculate in."""

    def run(self, rule: Rule, numbers: dict[str, Any], tensors: list[Tensor]) -> None:
        """Carry out ``rule``."""
        rule(self, *tensors, **numbers)

    def choose(self, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """``x`` where ``condition`` holds, else ``y``."""
        return x.where(condition, y)

    def kept(self, x: Any) -> Any:
        """A value that a node may save although its Tensor will be modified in place."""
        return x.clone() if recording() else x

    def direction(self, param: Tensor, grad: Tensor, weight_decay: Any, maximize: bool) -> Tensor:
        grad = -grad if maximize else grad
        return self.add(grad, self.kept(param), weight_decay) if _is_on(weight_decay) else grad

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
        return self.choose(x > 0, high, self.choose(x < 0, low, middle))

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


def _is_on(weight_decay: Any) -> bool:
    return isinstance(weight_decay, Tensor) or weight_decay != 0


def in_lines(arrays: list[Any]) -> list[Any] | None:
    """The arrays as lines of their elements in the order of memory, if that is the same for all; else None."""
    if all(array.flags.c_contiguous for array in arrays):
        return arrays if arrays[0].ndim == 1 else [array.reshape(-1) for array in arrays]
    if all(array.flags.f_contiguous for array in arrays):
        return [array.T.reshape(-1) for array in arrays]
    return None


class _Levels(threading.local):
    """The levels of this thread: buffers must not be shared."""

    def __init__(self) -> None:
        self.made: dict[Any, OnArrays] = {}


_levels = _Levels()
_on_tensors = OnTensors()


def carry_out(rule: Rule, param: Tensor, grad: Tensor, state: list[Tensor], numbers: dict[str, Any]) -> None:
    """Move ``param`` and ``state`` by ``rule(level, param, grad, *state, **numbers)``.

    All of them are Tensors of one shape. Complex ones are moved as pairs of real numbers.
    """
    tensors = [param, grad, *state]
    arrays = None if recording() else _numbers(tensors)
    if arrays is not None:
        level_for(param._array, arrays[0].dtype).run(rule, numbers, arrays)
        place = user_frame.user_location()
        for each in (param, *state):
            cell = each._version_counter
            if cell is not None:
                cell[0] += 1
                cell[1] = place
        return
    if param.is_complex():
        tensors = [RULE_NAMESPACES[Tensor].view_as_real(each) for each in tensors]
    _on_tensors.run(rule, numbers, tensors)


def _numbers(tensors: list[Tensor]) -> list[Any] | None:
    """The arrays of the tensors as real numbers that NumPy calculates in; None if they are not such, or not alike."""
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
    lines = in_lines(arrays)
    return None if lines is None else [line.view(line.real.dtype) for line in lines]


def level_for(array: Any, dtype: Any) -> OnArrays:
    """This thread's level for arrays of ``dtype`` where ``array`` is."""
    key = (array.__class__, dtype)
    level = _levels.made.get(key)
    if level is None:
        level = _levels.made[key] = OnArrays(devices.module_of(array), dtype)
    return level
