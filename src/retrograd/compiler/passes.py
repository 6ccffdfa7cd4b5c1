"""Passes of the compiler: each takes the list of steps of a program and returns an equivalent list that runs faster.

The passes merge repeated steps, remove unused steps, replace the transpose of a product by a product of transposes, and
select steps of the forward program that the backward program computes again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .ir import Step, Value, count_uses

if TYPE_CHECKING:
    from .typing import Operand, StepKind


def eliminate_common_subexpressions(
    steps: Sequence[Step], apart: Iterable[Value], removed: Mapping[Value, Value] | None = None
) -> tuple[list[Step], dict[Value, Value]]:
    """Return the recorded operations ``steps`` without repetitions, and a dictionary of the removed results.

    The dictionary maps each result (:class:`Value`) of a removed operation to the equal result that is kept; it begins
    with the items of ``removed``. The results in ``apart`` are not removed, because the caller of the program receives
    them as distinct arrays, and do not replace others, because the caller may write to them. The operands of ``steps``
    are replaced in place.
    """
    own = set(apart)
    found: dict[Hashable, Step] = {}
    instead: dict[Value, Value] = dict(removed or {})
    kept = []
    for step in steps:
        step.operands = tuple([instead.get(each, each) if each.__class__ is Value else each for each in step.operands])
        key = _key(step)
        if key is None or any(each in own for each in step.results):
            kept.append(step)
            continue
        if key in found:
            instead.update(zip(step.results, found[key].results, strict=True))
            continue
        found[key] = step
        kept.append(step)
    for each in {value for step in kept for value in step.results}:
        each.root = instead.get(each.root, each.root)
    return kept, instead


def _key(step: Step) -> Hashable:
    """Return a hashable key that is equal for steps that compute equal results.

    The key is None if a parameter of ``step`` is not hashable.
    """
    operands = tuple([_operand_key(each) for each in step.operands])
    kinds = tuple([(each.dtype, each.shape) for each in step.results])
    try:
        key = step.op.name, id(step.op), operands, tuple(map(_typed, step.params)), kinds
        hash(key)
    except TypeError:
        return None
    return key


def _typed(value: object) -> tuple[type, object]:
    return (value.__class__, tuple(map(_typed, value))) if isinstance(value, tuple) else (value.__class__, value)


def _operand_key(each: Operand) -> Hashable:
    if each.__class__ is not Value:
        return each.__class__, repr(each)
    if each.array is not None and each.size <= 64:  # small constants are compared by their elements
        return each.dtype, each.shape, each.array.tobytes()
    return each


def eliminate_dead_code(steps: Sequence[StepKind], outputs: Iterable[Value]) -> list[StepKind]:
    """Return ``steps`` without the steps (recorded operations) whose results are unused.

    A result is used if it is among ``outputs``, the values that the program returns, or is an operand of a kept step.
    """
    wanted = set(outputs)
    kept = []
    for step in reversed(steps):
        if any(each in wanted for each in step.results):
            kept.append(step)
            wanted.update(step.values())
    return kept[::-1]


def transposed_matrix(step: Step) -> Value | None:
    """Return the matrix that ``step`` transposes, or None if ``step`` is not the transpose of a matrix."""
    x = step.operands[0] if step.operands else None
    if x.__class__ is not Value or len(x.shape) != 2:
        return None
    both = step.op.name == "t" or (step.op.name == "transpose" and {each % 2 for each in step.params} == {0, 1})
    return x if both else None


def push_transposes(steps: Sequence[Step], apart: Iterable[Value]) -> list[Step]:
    """Return ``steps`` with ``(a @ b).t()`` replaced by ``b.t() @ a.t()``, where no other step reads ``a @ b``.

    The gradient of a linear layer's weight then has the strides of the weight, so that it is accumulated without a
    copy. The strides of the recorded arrays in ``apart`` are not changed, because the caller of the program receives
    them.
    """
    kept, count = set(apart), count_uses(steps)
    maker = {value: step for step in steps for value in step.results}
    found: dict[Step, None] = {}

    def across(x: Value, turn: Step) -> Value:
        if x in maker and (before := transposed_matrix(maker[x])) is not None:
            return before
        made = x.like(x.shape[::-1])
        made.strides, made.root = x.strides[::-1], x.root
        found[Step(turn.op, (x,), turn.params, (made,), False, turn.line)] = None
        return made

    for step in steps:
        product, result = transposed_matrix(step), step.results[0]
        made = maker.get(product) if product is not None and count[product] == 1 else None
        if made is None or made.op.name != "mm" or kept & {product, result}:
            found[step] = None
            continue
        del found[made]
        operands = tuple([across(each, step) for each in reversed(made.operands)])
        found[Step(made.op, operands, made.params, (result,), False, made.line)] = None
        result.strides = result.like(result.shape).strides
        for value in [value for each in steps for value in each.results if value.root is product]:
            value.root = result
    return list(found)


def steps_to_recompute(
    forward: Sequence[Step],
    backward: Sequence[Step],
    at_hand: Iterable[Value],
    cheap: Callable[[Step], bool],
    usable: Callable[[Value], bool],
) -> list[Step]:
    """Return the steps of the program ``forward`` that the program ``backward`` should repeat.

    To compute a cheap result again in a fused loop takes less time than to save it and load it. ``cheap(step)`` returns
    whether a fused loop can compute ``step`` with little extra time. ``at_hand`` are recorded arrays that the backward
    program receives in any case, and ``usable(value)`` returns whether it may receive ``value``.

    The operands of the repeated steps must be saved instead of the results. If they have more elements than the
    results, the function returns an empty list.
    """
    there = set(at_hand)
    maker: dict[Value, Step] = {}
    repeatable: set[Value] = set()
    for step in forward:
        maker.update(dict.fromkeys(step.results, step))
        if cheap(step) and all(each in repeatable or each in there or usable(each) for each in step.values()):
            repeatable.update(step.results)
    ends = {value for step in backward if not cheap(step) for value in step.values()}
    used = dict.fromkeys(value for step in backward for value in step.values() if value in maker)
    there |= {value for value in used if value in ends or value not in repeatable}
    wanted = [value for value in used if value not in there]
    found: set[Step] = set()
    leaves: set[Value] = set()
    pending = list(wanted)
    while pending:
        value = pending.pop()
        if value in there or value.kind != "result":
            continue
        if value not in repeatable:
            leaves.add(value)
        elif maker[value] not in found:
            found.add(maker[value])
            pending += maker[value].values()
    if sum(each.size for each in leaves) > sum(each.size for each in wanted):
        return []
    return [step for step in forward if step in found]
