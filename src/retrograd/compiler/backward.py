"""Differentiation of a recorded call: gradient rules are applied to its operations, from the last to the first.

The same rules serve three purposes. An ordinary backward pass calls them with arrays. A backward pass with
``create_graph=True`` calls them with tensors. This module calls them with traced tensors, whose operations
are recorded, so that the operations which a rule calls are appended to the recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy

from ..core import devices
from ..core.grad_mode import restore_recording, set_recording
from ..core.gradients import validate_gradient
from ..core.pytree import tree_flatten
from ..core.rule_namespace import rule_namespace_of
from ..core.tensor import wrap
from ..dispatch.op import TENSORS, arguments, is_shared
from ..dispatch.transform_tensor import TransformTensor
from .errors import Unsupported
from .ir import ExtraOp, Step, Value

if TYPE_CHECKING:
    from ..core.typing import Array, ArrayModule, Function, Gradient, Rule, RuleNamespace
    from .recorder import Recorder, Traced
    from .typing import RuleArgument


class _Level:
    """Object that gradient rules receive as ``F`` when a recorded call is differentiated: ``F.mul`` is ``torch.mul``.

    Its attributes are the operations of tensors, which are recorded when a rule calls them. ``attention_back`` and
    ``recurrent_back``, the gradients of attention and of recurrent layers, compute with NumPy arrays; a call of one of
    them is recorded as a single operation.
    """

    def __getattr__(self, name: str) -> Function:
        return getattr(TENSORS, name)

    def attention_back(self, g: Gradient, *rest: object) -> list[Traced | None]:
        return _record_array_call("attention_back", g, rest)

    def recurrent_back(self, g: Gradient, *rest: object) -> list[Traced | None]:
        return _record_array_call("recurrent_back", g, rest)


F = _Level()


def namespace_of(recorder: Recorder) -> RuleNamespace:
    """Return the namespace of operations for gradient rules.

    The gradients of a whole function may be differentiated again, so that rules must not use what has no derivative,
    such as the factors of a linear system.
    """
    return TENSORS if recorder.guarded else F


def _record_array_call(name: str, g: Gradient, rest: tuple[object, ...]) -> list[Traced | None]:
    """Call ``name``, a gradient function of NumPy arrays, and record the call as a single operation.

    The arguments are ``(g, *rest)``, where ``g`` is the incoming gradient; tensors among them are passed as arrays.
    Return a list with the results of the function as traced tensors, and None where the function returns None.
    """
    leaves, spec = tree_flatten((g, *rest))
    places = [i for i, each in enumerate(leaves) if isinstance(each, TransformTensor)]
    if len({leaves[i]._run for i in places}) > 1:
        raise Unsupported(f"{name}, in a transform")
    run = leaves[places[0]]._run

    def whole(arrays: Sequence[Array]) -> Sequence[Array]:
        given = list(leaves)
        for i, array in zip(places, arrays, strict=True):
            given[i] = array
        return getattr(rule_namespace_of(arrays[0]), name)(*spec.unflatten(given))

    kept = [i for i, each in enumerate(whole([leaves[i]._inner._array for i in places])) if each is not None]

    def some(np: ArrayModule, *arrays: Array) -> tuple[Array, ...]:
        found = whole(arrays)
        return tuple([found[i] for i in kept])

    operands = tuple([leaves[i] for i in places])
    made = some(numpy, *[each._inner._array for each in operands])
    found = run.noted(ExtraOp(name, some), operands, (), tuple([wrap(numpy.asarray(each)) for each in made]))
    return [found[kept.index(i)] if i in kept else None for i in range(max(kept) + 1)] + [None] * 8


class GradientType:
    """Shape and dtype of the recorded array ``value``, to which ``validate_gradient`` converts its gradient."""

    def __init__(self, value: Value) -> None:
        self.shape, self.dtype = value.shape, value.dtype


def differentiate(
    recorder: Recorder,
    outs: Sequence[Value],
    grads: Sequence[Gradient],
    wanted: Sequence[Value | None],
    steps: Sequence[Step],
    record: bool = False,
) -> list[Traced | None]:
    """Append a backward pass to the recorded steps of ``recorder``, and return the gradients with respect to ``wanted``.

    A :class:`Value` describes one recorded array. ``outs`` are the values from which the backward pass starts, and
    ``grads`` are the incoming gradients of ``outs``. The backward pass goes through ``steps``. The returned list has
    one item for each item of ``wanted``: the gradient as a traced tensor, or None if ``outs`` do not depend on this
    value. If ``record`` is true, the backward pass can be differentiated again.
    """
    arrived: dict[Value, Gradient] = {}
    ends = set(wanted)
    found: dict[Value | None, Gradient] = {}
    for out, grad in zip(outs, grads, strict=True):
        _accumulate(arrived, out, grad)
    before = set_recording(record)
    try:
        with recorder.unseen():
            for step in reversed(_between(steps, wanted)):
                found.update((each, arrived[each]) for each in step.results if each in ends and each in arrived)
                _backward_step(recorder, step, arrived)
    finally:
        restore_recording(before)
    return [found.get(each, arrived.get(each)) for each in wanted]  # type: ignore[arg-type]


def _between(steps: Sequence[Step], wanted: Sequence[Value | None]) -> list[Step]:
    """Return those of ``steps`` that compute one of ``wanted``, or depend on one."""
    reached = set(wanted)
    found = []
    for step in steps:
        if any(each in reached for each in (*step.values(), *step.results)):
            reached.update(step.results)
            found.append(step)
    return found


def _accumulate(arrived: dict[Value, Gradient], value: Value, grad: Gradient) -> None:
    held = arrived.get(value)
    arrived[value] = grad if held is None else F.add(held, grad)


def _backward_step(recorder: Recorder, step: Step, arrived: dict[Value, Gradient]) -> None:
    """Compute the gradients of the operands of ``step``, a recorded operation, and add them to ``arrived``.

    ``arrived`` is a dictionary from each :class:`Value` to the sum of the gradients computed for it so far. It already
    has the gradients of the results of ``step``.
    """
    op = step.op
    count = len(step.results) if op.differentiable is None else op.differentiable
    grads = [arrived.pop(each, None) if each.graded else None for each in step.results[:count]]
    if all(each is None for each in grads):
        return
    live = [each.__class__ is Value and each.graded for each in step.operands]
    if not any(live) or not op.has_rules:
        return
    g: Gradient = tuple(grads) if op.several or len(grads) > 1 else grads[0]
    if getattr(op, "gradients", None) is not None:
        found = op.gradients(namespace_of(recorder), g, step)
    else:
        found = _apply_rules(recorder, step, g, live)
    for value, grad, wanted in zip(step.operands, found, live, strict=True):
        if wanted and grad is not None:
            _accumulate(arrived, value, validate_gradient(grad, GradientType(value), step))  # type: ignore[arg-type]


def _apply_rules(recorder: Recorder, step: Step, g: Gradient, live: Sequence[bool]) -> list[Gradient]:
    found: list[Gradient] = []
    together: dict[Rule, tuple[Gradient, ...]] = {}
    rules = step.op.rules
    for index, rule in enumerate(rules):
        if rule is None or not live[index]:
            found.append(None)
        elif isinstance(rule, (int, float)):
            found.append(g if rule == 1 else -g if rule == -1 else None if rule == 0 else g * rule)
        elif isinstance(rule, str):
            found.append(g * _rule_argument(recorder, step, rule, g))
        elif is_shared(rule):
            if rule not in together:
                together[rule] = rule(*[_rule_argument(recorder, step, name, g) for name in arguments(rule)])
            found.append(together[rule][[k for k, each in enumerate(rules) if each is rule].index(index)])
        else:
            names = arguments(rule)
            partial = rule(*[_rule_argument(recorder, step, name, g) for name in names])
            found.append(partial if "g" in names else g * partial)
    return found


def _rule_argument(recorder: Recorder, step: Step, name: str, g: Gradient) -> RuleArgument:
    """Return the argument for the parameter ``name`` of a gradient rule of ``step``, a recorded operation.

    A rule is a function whose parameter names determine its arguments: ``F`` is the namespace of operations, and ``g``
    the incoming gradient. Any other name is that of an operand, a result or a parameter of the operation.
    """
    if name == "F":
        return namespace_of(recorder)
    if name == "g":
        return g
    saved = next(each for each in step.op.saved() if each.name == name)
    if saved.kind == "parameter":
        return step.params[saved.index]
    if saved.kind in ("out_shape", "out_dtype"):
        return getattr(step.results[0], saved.kind.removeprefix("out_"))
    value = step.results[saved.index] if saved.kind == "result" else step.operands[saved.index]
    if saved.kind == "device":
        return devices.CPU
    if saved.kind in ("shape", "strides"):
        return getattr(value, saved.kind, ())
    if saved.kind == "dtype":
        return value.dtype if value.__class__ is Value else wrap(numpy.asarray(value))._array.dtype
    return None if value is None else recorder.read(step, value)
