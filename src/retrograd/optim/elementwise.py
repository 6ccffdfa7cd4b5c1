"""Base classes of optimisers: ``PerParameterOptimizer`` and ``ElementwiseOptimizer``.

An ``ElementwiseOptimizer``, such as Adam, computes each element of a parameter only from the same element of the
gradient and of the state. Adafactor and Muon need all elements of a parameter, and derive from
``PerParameterOptimizer``. LBFGS derives from ``Optimizer`` directly, because its step depends on all parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy

from ..core import dtypes
from ..core.devices import array_module_of
from ..core.grad_mode import restore_recording, set_recording
from ..core.tensor import Tensor, strided, wrap
from ..core.views import bump_version, check_in_place
from ..dispatch.operand_promotion import PLAIN
from .fused import Counters, apply_rule, apply_rules, is_on, undo_if_interrupted
from .optimizer import Optimizer, check_option, evaluate_closure, step_counter

_CAPTURABLE = ("cuda", "xpu", "hpu", "privateuseone", "xla")


#: Keys of the numbers of a step in the copy of a parameter group: no option has these names.
LAST_NUMBERS, FIRST_NUMBERS = "\0numbers", "\0numbers of the first step"


class PerParameterOptimizer(Optimizer):
    """Base class of optimisers that update one parameter after another.

    A subclass defines ``_update(group, values, param)``, which updates the parameter ``param``. ``group`` is the
    parameter group of ``param``, and ``values`` is a copy of the group with numbers in place of Tensors (see
    :func:`option_values`). Adafactor and Muon derive directly from this class, because their update of an element
    depends on the whole parameter.
    """

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return the result of ``closure``, if passed.

        ``closure`` is called first, with gradients enabled; it computes the loss and the gradients and returns the
        loss. Raises AssertionError or RuntimeError for options that cannot be combined, and for parameters that the
        optimiser does not support.
        """
        before = set_recording(bool(self.defaults.get("differentiable")))
        try:
            loss = evaluate_closure(closure)
            for group in self.param_groups:
                params = [param for param in group["params"] if param._grad is not None]
                sparse = [param for param in params if param._grad.__class__ not in _DENSE and _is_sparse(param)]
                if sparse:
                    self._check_sparse(group)
                self._check(group, [param for param in params if param.layout is strided] if sparse else params)
                values = option_values(group, self.defaults) if params else {}
                if not sparse:
                    self._move_all(group, values, params)
                    continue
                for param in params:
                    if _is_sparse(param):
                        self._move_sparse(group, param, gradient(param))
                    else:
                        self._move(group, values, param)
        finally:
            restore_recording(before)
        return loss

    def _check(self, group: dict[str, Any], params: list[Tensor]) -> None:
        if any(param.is_complex() for param in params):
            raise RuntimeError(f"{type(self).__name__} does not support complex parameters")

    def _check_sparse(self, group: dict[str, Any]) -> None:
        """Raise PyTorch's error if the optimiser does not support sparse gradients with the options ``group``."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def _move_sparse(self, group: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        """Update ``param``, whose gradient ``grad`` is sparse; ``group`` is its parameter group."""
        raise NotImplementedError

    def _move_all(self, group: dict[str, Any], values: dict[str, Any], params: list[Tensor]) -> None:
        """Update ``params``, whose gradients are dense."""
        for param in params:
            self._move(group, values, param)

    def _move(self, group: dict[str, Any], values: dict[str, Any], param: Tensor) -> None:
        """Call :meth:`_update`; if it is interrupted or fails, restore ``param`` and its state."""
        if param.__class__ not in PLAIN and hasattr(param, "full_tensor"):  # the array is a part of the parameter
            raise RuntimeError(f"{type(self).__name__} needs whole parameters, but got a {type(param).__name__}")
        state = self.state[param]
        before = dict(state)
        tensors = [param, *[each for each in before.values() if isinstance(each, Tensor)]]
        try:
            undo_if_interrupted(tensors, lambda: self._update(group, values, param))
        except BaseException:
            state.clear()
            state.update(before)
            raise

    def _update(self, group: dict[str, Any], values: dict[str, Any], param: Tensor) -> None:
        raise NotImplementedError


class ElementwiseOptimizer(PerParameterOptimizer):
    """Base class of Adam, SGD and others, which update each element from the same element of the gradient and state.

    A subclass defines the static method ``rule(F, param, grad, *state, **numbers)``, which updates one parameter in
    place by the methods of ``F`` (see ``fused.py``). The class attribute ``moved`` contains the names of the state
    tensors, which ``rule`` receives as ``state`` and also updates. If a keyword argument of ``rule`` has the name of an
    option, its value is that of the option; the method ``numbers()`` returns a dict of the other keyword arguments.
    ``grad`` already includes the weight decay. A subclass may override ``fresh()``, which returns the initial state, by
    default zeros.
    """

    later_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    counted: tuple[str, ...] = ("step",)
    #: Names of the options whose values the constructor checks, in this order.
    checked: ClassVar[tuple[str, ...]] = ("lr",)
    #: Names of the state tensors passed to the rule, in order.
    moved: ClassVar[tuple[str, ...]] = ()
    #: For a state tensor that exists only if an option is neither zero nor false: the name of this option.
    moved_if: ClassVar[dict[str, str]] = {}
    #: Error text for tensors that ``capturable`` requires on a GPU, and the device types allowed.
    captured: ClassVar[str] = "params and state_steps"
    capturable_on: ClassVar[tuple[str, ...]] = _CAPTURABLE
    #: Whether ``foreach`` and ``differentiable`` may be combined.
    foreach_recorded: ClassVar[bool] = False
    #: Names of the arguments of the rule that are options.
    _given: ClassVar[tuple[str, ...]] = ()
    #: Whether the numbers depend only on the number of the step, because the state has no other counters.
    _counts_only_steps: ClassVar[bool] = True
    rule: ClassVar[Callable[..., None]]

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls._counts_only_steps = cls.counters is ElementwiseOptimizer.counters
        if "rule" in cls.__dict__:
            code = cls.rule.__code__
            taken = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
            cls._given = tuple(name for name in taken if name in cls.__init__.__code__.co_varnames)

    def __init__(self, params: Any, values: dict[str, Any]) -> None:
        self.check_options(values)
        super().__init__(params, values)
        if values.get("fused") and values.get("differentiable"):
            raise RuntimeError("`fused` does not support `differentiable`")
        if values.get("fused") and values.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def check_options(self, values: dict[str, Any]) -> None:
        """Raise ValueError if one of ``values``, a dict of the constructor's options, is outside its range."""
        for name in self.checked:
            check_option(name, values[name])

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        """Return the state of ``param`` before its first step, a dict that maps names to values.

        ``group`` is the parameter group of ``param``, a dict of options.
        """
        names = [name for name in self.moved if name not in self.moved_if or group[self.moved_if[name]]]
        return {"step": initial_step_count(group, param), **{name: full_like_param(param) for name in names}}

    def numbers(self, values: dict[str, Any], state: dict[str, Any], step: float) -> dict[str, Any]:
        """Return a dict of the keyword arguments of ``rule`` that are not options, such as Adam's bias correction.

        ``values`` are the options of the parameter group, as returned by :func:`option_values`. ``state`` is the state
        of one parameter, and ``step`` the number of the step, 1 for the first.
        """
        return {}

    def counters(self, values: dict[str, Any], state: dict[str, Any], step: float) -> Counters:
        """Return pairs of a 0-d Tensor in ``state``, other than the step counter, and its value after the step.

        The arguments are those of :meth:`numbers`.
        """
        return ()

    def _check(self, group: dict[str, Any], params: list[Tensor]) -> None:
        if group.get("foreach") and group.get("differentiable") and not self.foreach_recorded:
            raise AssertionError("_foreach ops don't support autograd")
        fused, capturable = group.get("fused"), group.get("capturable")
        for param in params:
            check_in_place(param, False)
            if not fused and not capturable:
                continue
            kind = param.device.type
            if fused and not param.is_floating_point():
                raise RuntimeError(
                    "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                    f"{_FUSED} but {param.dtype} and {kind}"
                )
            if capturable and not fused and kind not in self.capturable_on:
                raise AssertionError(
                    f"If capturable=True, {self.captured} must be on supported devices: {list(self.capturable_on)}."
                )

    def _move_all(self, group: dict[str, Any], values: dict[str, Any], params: list[Tensor]) -> None:
        steps_counted = [id(state["step"]) for each in params if "step" in (state := self.state.get(each, ()))]
        if len(params) < 2 or any(len(set(ids)) < len(ids) for ids in (list(map(id, params)), steps_counted)):
            return super()._move_all(group, values, params)
        steps: list[tuple[Any, ...]] = []
        for param in params:
            self._move(group, values, param, lambda *step: steps.append(step))
        apply_rules(steps)

    def _move(
        self, group: dict[str, Any], values: dict[str, Any], param: Tensor, perform: Callable[..., None] = apply_rule
    ) -> None:
        stored = self.state[param]
        state = stored or self.fresh(group, param)
        step = next_step(state)
        last = values.get(LAST_NUMBERS)  # of the parameter before this one
        if last is not None and last[0] == step:
            numbers = last[1]
        else:
            numbers = self.numbers(values, state, step)
            for name in self._given:
                numbers.setdefault(name, values[name])
            if self._counts_only_steps:
                values[LAST_NUMBERS] = step, numbers
        tensors = [state[name] for name in self.moved if name in state]
        entries = None if state is stored else (stored, state)
        counters: list[Any] = [(state["step"], step)]
        if not self._counts_only_steps:
            counters += self.counters(values, state, step)
        perform(type(self).rule, param, gradient(param), tensors, values["decay"], numbers, counters, entries)


#: Classes of gradients that are not sparse.
_DENSE = frozenset({numpy.ndarray, Tensor})


def _is_sparse(param: Tensor) -> bool:
    return isinstance(param._grad, Tensor) and param._grad.layout is not strided


def gradient(param: Tensor) -> Tensor:
    """Return ``param.grad`` as a Tensor; ``param`` must have a gradient."""
    return param._grad if isinstance(param._grad, Tensor) else wrap(param._grad)  # type: ignore[arg-type]


_FUSED = ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def full_like_param(param: Tensor, value: Any = 0) -> Tensor:
    """Return a Tensor of the shape, dtype and memory layout of ``param``, filled with ``value``.

    If the dtype is complex, the real and imaginary parts of the elements are both ``value``. For an instance of a
    subclass that overrides functions, it is an instance of the subclass.
    """
    if param.__class__ not in PLAIN:
        return param.detach().clone().fill_(complex(value, value) if param.is_complex() else value)
    array = param._array
    return wrap(array_module_of(array).full_like(array, complex(value, value) if array.dtype.kind == "c" else value))


def initial_step_count(group: dict[str, Any], param: Tensor) -> Tensor:
    """Return a step counter with value 0, a 0-d Tensor.

    The counter is on the device of ``param`` if the option ``capturable`` or ``fused`` is true in ``group``. Otherwise
    it is on the CPU.
    """
    if group.get("capturable") or group.get("fused"):
        return step_counter(floats=dtypes.float32).to(param.device)
    return step_counter()


def next_step(state: dict[str, Any]) -> float:
    """Return the value of the step counter ``state["step"]`` after the next step."""
    step: Tensor = state["step"]
    if step.requires_grad:
        raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
    return float(step._array) + 1


def increment_step(state: dict[str, Any]) -> float:
    """Increment the step counter ``state["step"]`` in place and return its new value."""
    step = next_step(state)
    state["step"]._array[...] = step
    bump_version(state["step"])
    return step


#: Types of the values of parameter groups that are not Tensors.
_PLAIN = frozenset((bool, float, int, list, str, tuple, type(None)))


def option_values(group: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return a copy of the parameter group ``group`` with numbers in place of Tensors, and the key ``"decay"``.

    The options ``names`` are converted, but not Tensors within tuples. If the option ``differentiable`` is true, a
    Tensor is replaced by a Tensor of shape ``()`` instead of a number, because the backward pass may compute its
    gradient.

    The value of ``"decay"`` is the tuple ``(weight_decay, maximize, shrink)``: the arguments of
    :meth:`ArrayOps.direction`, which adds the weight decay to the gradient. The value is None if there is no weight
    decay and ``maximize`` is false. With ``decoupled_weight_decay``, the item ``weight_decay`` is 0, and the parameter
    is multiplied by ``shrink``, which is ``1 - lr * weight_decay``. Otherwise ``shrink`` is None.
    """
    values = group.copy()
    if not _PLAIN.issuperset(map(type, values.values())):
        values |= {name: as_number(values[name], values) for name in names if name in values}
    decay, maximize, shrink = values.get("weight_decay", 0), values.get("maximize"), None
    if values.get("decoupled_weight_decay"):
        shrink, decay = 1 - values["lr"] * decay if is_on(decay) else None, 0
    values["decay"] = (decay, maximize, shrink) if is_on(decay) or maximize or shrink is not None else None
    return values


def as_number(value: Any, options: dict[str, Any]) -> Any:
    """Return the option ``value`` as a number if it is a Tensor, otherwise unchanged.

    If ``options["differentiable"]`` is true, a Tensor is returned with shape ``()`` instead of a number.
    """
    if not isinstance(value, Tensor):
        return value
    return (value if value._array.ndim == 0 else value.squeeze()) if options.get("differentiable") else value.item()
