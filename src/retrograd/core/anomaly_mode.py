"""Anomaly detection: while it is on, every node of a backward pass is watched for errors and for NaN.

Where it is off the engine does not come here. Nodes remember their line of the user's program anyway; while it is on, the
whole stack of calls is remembered as well. Knows no operation.
"""

from __future__ import annotations

import traceback
from contextvars import ContextVar
from typing import Any

from ..runtime import user_frame
from .grad_mode import recording, set_hooked
from .graph import Node


class _Setting:
    """One setting for the whole process, as in PyTorch."""

    enabled = False
    check_nan = True
    check_inf = False  # PyTorch has no such setting


setting = _Setting()


def set_anomaly_enabled(enabled: Any, check_nan: Any = True) -> None:
    """Switch anomaly detection on or off; ``check_nan``: whether NaN in a gradient is an error then."""
    for position, (name, value) in enumerate((("enabled", enabled), ("check_nan", check_nan))):
        if value.__class__ is not bool:
            raise TypeError(
                f"set_anomaly_enabled(): argument '{name}' (position {position + 1}) must be bool, not "
                f"{type(value).__name__}"
            )
    setting.enabled, setting.check_nan = enabled, check_nan
    set_hooked("anomaly", enabled)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on (see :class:`autograd.detect_anomaly`)."""
    return setting.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection, while it is on, looks for NaN."""
    return setting.check_nan


# --- While the graph is recorded ------------------------------------------------------------------------------------

_evaluating: ContextVar[Any] = ContextVar("evaluating", default=None)


def note(node: Any) -> None:
    """Let a node that is being made remember the calls that led to it, and the node whose derivative it belongs to."""
    frames = [frame for frame, _ in traceback.walk_stack(None) if user_frame.MARK not in frame.f_globals]
    summary = traceback.StackSummary.extract(
        ((frame, frame.f_lineno) for frame in reversed(frames)), lookup_lines=False
    )
    node.metadata["traceback_"] = summary.format()
    parent = _evaluating.get()
    if parent is not None:
        node.metadata["parent_"] = parent


# --- In the backward pass -------------------------------------------------------------------------------------------

#: The first node of the running sweep that made an infinite gradient.
_first_infinite: ContextVar[Any] = ContextVar("first_infinite", default=None)


def begin() -> None:
    """A sweep begins."""
    _first_infinite.set(None)


def run(node: Any, grad: Any, edges: Any, keep: bool) -> Any:
    """What the node's vjp gives; an error of it, or a NaN in it, is explained by the lines of the user's program."""
    checked = setting.check_nan or setting.check_inf
    seen = _values(node) if checked else []  # the vjp may free them
    token = _evaluating.set(node)
    try:
        grads = node.vjp_recorded(grad, edges, keep) if recording() else node.vjp(grad, edges, keep)
        if checked:
            _check(node, grad, grads, seen)
    except Exception:
        _tell(node)
        raise
    finally:
        _evaluating.reset(token)
    return grads


def _tell(node: Any) -> None:
    """Warn of where the node was recorded, and likewise of the nodes whose derivatives it and its parents belong to."""
    user_frame.warn(f"Error detected in {node.name()}. " + _traceback(node, "caused the error"))
    parent = _metadata(node).get("parent_")
    while parent is not None:
        user_frame.warn(
            f"\n\nPrevious calculation was induced by {parent.name()}. "
            + _traceback(parent, "induced the previous calculation")
        )
        parent = _metadata(parent).get("parent_")


def _metadata(node: Any) -> Any:
    return node.metadata if isinstance(node, Node) else {}


def _traceback(node: Any, did: str) -> str:
    lines = _metadata(node).get("traceback_")
    if lines is None:
        place = user_frame.describe(getattr(node, "code", None), getattr(node, "instruction", -1))
        if not place:
            return (
                "No forward pass information available. Enable detect anomaly during forward pass for more information."
            )
        lines = [f"  {place}\n"]
    return f"Traceback of forward call that {did}:\n" + "".join(lines)


# --- NaN ------------------------------------------------------------------------------------------------------------


def _array(value: Any) -> Any:
    """The floating-point or complex array of a gradient, or None."""
    array = getattr(value, "_array", value)
    return array if hasattr(array, "shape") and array.dtype.kind in "fcV" else None


def _values(node: Any) -> list[tuple[str, Any]]:
    """What a node of the table keeps, by name: arrays and numbers."""
    found = [(each.name, getattr(node, each.held, None)) for each in getattr(node, "arrays", ())]
    return [
        (f"saved {'result' if name == 'out' else name}", value)
        for name, value in found
        if hasattr(value, "shape") or isinstance(value, (int, float, complex))
    ]


def _check(node: Any, grad: Any, grads: Any, seen: list[tuple[str, Any]]) -> None:
    """Raise if a gradient that the node sends on has a NaN, or an infinity if that is asked for; if not, remember the first."""
    sent = grads if isinstance(grads, tuple) else (grads,)
    for position, each in enumerate(sent):
        array = _array(each)
        if array is None:
            continue
        if setting.check_nan and bool((array != array).any()):
            raise RuntimeError(_explained(node, _output(node, position), grad, array, seen, "nan", array != array))
        if _first_infinite.get() is None:
            infinite = abs(array) == float("inf")
            if bool(infinite.any()):
                if setting.check_inf:
                    raise RuntimeError(_explained(node, _output(node, position), grad, array, seen, "inf", infinite))
                _first_infinite.set(node)


def _output(node: Any, position: int) -> int:
    """The number that ``next_functions`` gives to an edge."""
    operand = node.operand if node.lone else position
    return node.listed.index(operand) if node.listed else operand


def _explained(node: Any, output: int, grad: Any, bad: Any, seen: list[tuple[str, Any]], kind: str, wrong: Any) -> str:
    """PyTorch's sentence, then the place in the program, the values around the first NaN (or inf), and what helps."""
    lines = [f"Function '{node.name()}' returned {kind} values in its {output}th output."]
    place = user_frame.describe(node.code, node.instruction)
    if place:
        lines.append(f"It was recorded at {place}")
    index = tuple(int(each[0]) for each in wrong.nonzero()) if bad.ndim else ()
    lines.append(
        f"The first of {int(wrong.sum())} {kind} (of {bad.size} elements) is at index {list(index)}; around it:"
    )
    arrived = grad if isinstance(grad, (tuple, list)) else (grad,)
    shown = [("gradient returned", bad), *(("gradient that arrived", _array(each)) for each in arrived), *seen]
    lines += [f"  {name}: {_around(array, index)}" for name, array in shown if array is not None]
    first = _first_infinite.get()
    if kind == "inf":
        lines.append(
            "Remedy: keep the values there away from where the derivative is infinite or too large for the dtype: clamp, "
            "scale, or add an epsilon."
        )
    elif any(_array(value) is not None and bool((value != value).any()) for _, value in shown[1:]):
        lines.append("Remedy: there was nan before this operation: look at where these values come from.")
    elif first is not None:
        made = user_frame.describe(first.code, first.instruction)
        lines.append(
            f"The first infinite gradient of this pass came from {first.name()}" + (f" at {made}" if made else "")
        )
        lines.append(
            "Remedy: keep the values there away from where the derivative is infinite: clamp, or add an epsilon."
        )
    else:
        lines.append(
            "Remedy: keep the operands away from where there is no derivative: mask or clamp before, not after."
        )
    return "\n".join(lines)


def _around(array: Any, index: tuple[int, ...]) -> str:
    """The element at ``index`` with its neighbours in the last dimension; the nearest there is, if broadcast."""
    if not getattr(array, "ndim", 0):
        return str(array)
    at = [min(i, size - 1) for i, size in zip(index[-array.ndim :], array.shape[-len(index) :], strict=False)]
    at = [0] * (array.ndim - len(at)) + at
    row = array[tuple(at[:-1])]
    start, end = max(at[-1] - 2, 0), min(at[-1] + 3, row.shape[0])
    shown = ", ".join(str(row[i]) for i in range(start, end))
    return f"{'… ' * (start > 0)}{shown}{' …' * (end < row.shape[0])} (from index {[*at[:-1], start]})"
