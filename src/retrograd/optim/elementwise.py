"""Base classes of optimisers: ``ElementwiseOptimizer`` and ``WholeParameterOptimizer``.

An elementwise rule, such as the rule of Adam, updates each element of a parameter from the same element of the
gradient and of the state, by the operations of ``fused.py``. The rules of Adafactor and Muon need all elements of a
parameter. LBFGS derives from ``Optimizer`` directly, because its step depends on all parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ..core import dtypes
from ..core.devices import array_module_of
from ..core.tensor import Tensor, wrap
from ..core.views import bump_version, check_in_place
from .fused import apply_rule
from .optimizer import Optimizer, evaluate_closure, recorded, step_counter

_CAPTURABLE = ("cuda", "xpu", "hpu", "privateuseone", "xla")


class ElementwiseOptimizer(Optimizer):
    """Base class of Adam, SGD and others, which update each element from the same element of the gradient and state.

    A subclass defines ``rule`` (the update of one parameter), ``moved`` (the names of the state tensors that ``rule``
    updates), ``fresh()`` (the initial state) and ``numbers()`` (the scalar arguments of ``rule``).
    """

    #: Names of the state tensors passed to the rule, in order.
    moved: ClassVar[tuple[str, ...]] = ()
    #: Error text for tensors that ``capturable`` requires on a GPU, and the device types allowed.
    captured: ClassVar[str] = "params and state_steps"
    capturable_on: ClassVar[tuple[str, ...]] = _CAPTURABLE
    #: Whether ``foreach`` and ``differentiable`` may be combined.
    foreach_recorded: ClassVar[bool] = False

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        """Return the state of ``param`` before its first step, a dict that maps names to values.

        ``group`` is the parameter group of ``param``, a dict of options.
        """
        raise NotImplementedError

    def numbers(self, group: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        """Return the scalar arguments of ``rule`` as a dict, and increment the step counter in ``state``.

        ``group`` is the parameter group, a dict of options. ``state`` is the state of one parameter.
        """
        raise NotImplementedError

    rule: ClassVar[Callable[..., None]]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return the result of ``closure``, if passed.

        ``closure`` is called first, with gradients enabled; it computes the loss and the gradients and returns the
        loss. Raises AssertionError or RuntimeError for options that cannot be combined.
        """
        with recorded(bool(self.defaults.get("differentiable"))):
            loss = evaluate_closure(closure)
            for group in self.param_groups:
                params = [param for param in group["params"] if param._grad is not None]
                self._check(group, params)
                for param in params:
                    self._move(group, param)
        return loss

    def _check(self, group: dict[str, Any], params: list[Tensor]) -> None:
        if group.get("foreach") and group.get("differentiable") and not self.foreach_recorded:
            raise AssertionError("_foreach ops don't support autograd")
        fused = group.get("fused")
        for param in params:
            check_in_place(param, False)
            kind = param.device.type if fused or group.get("capturable") else ""
            if fused and not param.is_floating_point():
                raise RuntimeError(
                    "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                    f"{_FUSED} but {param.dtype} and {kind}"
                )
            if group.get("capturable") and not fused and kind not in self.capturable_on:
                raise AssertionError(
                    f"If capturable=True, {self.captured} must be on supported devices: {list(self.capturable_on)}."
                )

    def _move(self, group: dict[str, Any], param: Tensor) -> None:
        state = self.state[param]
        if not state:
            state.update(self.fresh(group, param))
        numbers = self.numbers(group, state)
        apply_rule(
            type(self).rule, param, gradient(param), [state[name] for name in self.moved if name in state], numbers
        )


class WholeParameterOptimizer(Optimizer):
    """Base class of Adafactor and Muon, whose update of an element depends on the whole parameter.

    A subclass defines ``_move(group, param)``, which updates one parameter.
    """

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return the result of ``closure``, if passed.

        ``closure`` is called first, with gradients enabled; it computes the loss and the gradients and returns the
        loss. Raises RuntimeError for complex parameters.
        """
        with recorded(False):
            loss = evaluate_closure(closure)
            for group in self.param_groups:
                params = [param for param in group["params"] if param._grad is not None]
                if any(param.is_complex() for param in params):
                    raise RuntimeError(f"{type(self).__name__} does not support complex parameters")
                for param in params:
                    self._move(group, param)
        return loss

    def _move(self, group: dict[str, Any], param: Tensor) -> None:
        raise NotImplementedError


def gradient(param: Tensor) -> Tensor:
    """Return ``param.grad`` as a Tensor; ``param`` must have a gradient."""
    return param._grad if isinstance(param._grad, Tensor) else wrap(param._grad)


_FUSED = ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def full_like_param(param: Tensor, value: Any = 0) -> Tensor:
    """Return a Tensor of the shape, dtype and memory layout of ``param``, filled with ``value``."""
    array = param._array
    return wrap(array_module_of(array).full_like(array, value))


def initial_step_count(group: dict[str, Any], param: Tensor) -> Tensor:
    """Return a step counter with value 0, a 0-d Tensor.

    The counter is on the device of ``param`` if the option ``capturable`` or ``fused`` is true in ``group``. Otherwise
    it is on the CPU.
    """
    if group.get("capturable") or group.get("fused"):
        return step_counter(floats=dtypes.float32).to(param.device)
    return step_counter()


def increment_step(state: dict[str, Any]) -> float:
    """Increment the step counter ``state["step"]`` in place and return its new value."""
    step: Tensor = state["step"]
    if step.requires_grad:
        raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
    array = step._array
    array += 1
    bump_version(step)
    return float(array)


def option_value(group: dict[str, Any], value: Any) -> Any:
    """Return ``value``, the value of an option in the parameter group ``group``, as a Python number.

    If ``value`` is a Tensor, it is converted to a number. If the option ``differentiable`` of ``group`` is true, a
    Tensor of shape ``()`` is returned instead, because the backward pass may compute its gradient.
    """
    if not isinstance(value, Tensor):
        return value
    return (value if value._array.ndim == 0 else value.squeeze()) if group.get("differentiable") else value.item()
