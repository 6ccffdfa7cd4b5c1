"""Anomaly detection: checks of every node of a backward pass for errors and NaN.

While anomaly detection is disabled, the engine calls no function of this module. A node always records its line in the
user's program; while anomaly detection is enabled, a node records the whole call stack.
"""

from __future__ import annotations

import sys
import traceback
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..runtime import user_frame
from .grad_mode import recording, set_hooked
from .graph import Node

if TYPE_CHECKING:
    from .typing import Array, Edges, Gradient, Gradients, Saved


class _Setting:
    """Settings of anomaly detection, which hold for the whole process.

    :func:`set_anomaly_enabled` sets ``enabled`` and ``check_nan``. ``check_inf`` is set by
    ``autograd.set_detect_anomaly`` and ``autograd.detect_anomaly``.
    """

    enabled = False
    check_nan = True
    check_inf = False  # PyTorch has no such setting


setting = _Setting()


def set_anomaly_enabled(enabled: Any, check_nan: Any = True) -> None:  # Note [Any in public signatures]
    """Enable or disable anomaly detection in the whole process.

    If ``check_nan`` is true, a gradient that contains NaN raises RuntimeError while anomaly detection is enabled.

    >>> import retrograd as torch
    >>> torch.set_anomaly_enabled(True)
    >>> torch.is_anomaly_enabled()
    True
    >>> torch.set_anomaly_enabled(False)
    """
    for position, (name, value) in enumerate((("enabled", enabled), ("check_nan", check_nan))):
        if value.__class__ is not bool:
            raise TypeError(
                f"set_anomaly_enabled(): argument '{name}' (position {position + 1}) must be bool, not "
                f"{type(value).__name__}"
            )
    setting.enabled, setting.check_nan = enabled, check_nan
    set_hooked("anomaly", enabled)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is enabled (see :class:`autograd.detect_anomaly`).

    >>> import retrograd as torch
    >>> with torch.autograd.detect_anomaly():
    ...     print(torch.is_anomaly_enabled())
    True
    """
    return setting.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether a NaN in a gradient is an error while anomaly detection is enabled (setting ``check_nan``).

    >>> import retrograd as torch
    >>> with torch.autograd.detect_anomaly(check_nan=False):
    ...     print(torch.is_anomaly_check_nan_enabled())
    False
    """
    return setting.check_nan


# --- While the graph is recorded ------------------------------------------------------------------------------------

_evaluating: ContextVar[Node | None] = ContextVar("evaluating", default=None)


def note(node: Node) -> None:
    """Store the call stack in the metadata of ``node``, a new node, for the errors of anomaly detection.

    If the node is recorded in a backward pass with ``create_graph=True``, its metadata also refers to the node whose
    gradients this backward pass is computing.
    """
    frames = [frame for frame, _ in traceback.walk_stack(None) if user_frame.MARK not in frame.f_globals]
    summary = traceback.StackSummary.extract(
        ((frame, frame.f_lineno) for frame in reversed(frames)), lookup_lines=False
    )
    node.metadata["traceback_"] = summary.format()
    parent = _evaluating.get()
    if parent is not None:
        node.metadata["parent_"] = parent


# --- In the backward pass -------------------------------------------------------------------------------------------

#: The first node of the running backward pass whose gradient was infinite.
_first_infinite: ContextVar[Node | None] = ContextVar("first_infinite", default=None)


def begin() -> None:
    """Reset the record of the first node with an infinite gradient, at the start of a backward pass."""
    _first_infinite.set(None)


def run(node: Node, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
    """Compute the gradients of the inputs of ``node``, check them for NaN, and return them.

    ``grad`` is the incoming gradient, and ``edges`` are the gradient edges of the node's inputs. If the node or the
    check raises an error, a warning shows the call stack that recorded the node, and the error is raised again. If
    ``keep`` is true, the saved values of the node are not freed.
    """
    checked = setting.check_nan or setting.check_inf
    saved = _values(node) if checked else []  # the vjp may free them
    token = _evaluating.set(node)
    try:
        grads = node.vjp_recorded(grad, edges, keep) if recording() else node.vjp(grad, edges, keep)
        if checked:
            _check(node, grad, grads, saved)
    except Exception:
        _warn_recording(node)
        raise
    finally:
        _evaluating.reset(token)
    return grads


def _warn_recording(node: Node) -> None:
    """Issue a warning with the call stack that recorded ``node``.

    If ``node`` was itself recorded in a backward pass (``create_graph=True``), a further warning shows the node that
    this backward pass was running, and so on.
    """
    _warn(f"Error detected in {node.name()}. " + _traceback(node, "caused the error"))
    parent = _metadata(node).get("parent_")
    while parent is not None:
        _warn(
            f"\n\nPrevious calculation was induced by {parent.name()}. "
            + _traceback(parent, "induced the previous calculation")
        )
        parent = _metadata(parent).get("parent_")


def _warn(text: str) -> None:
    """Issue a warning with ``text``; if warnings are errors, print it to ``sys.stderr``, because an error is raised."""
    try:
        user_frame.warn(text)
    except Warning:
        print(text, file=sys.stderr)


def _metadata(node: object) -> dict[Any, Any]:  # Note [Any in public signatures]: users may add data
    return node.metadata if isinstance(node, Node) else {}


def _traceback(node: Node, role: str) -> str:
    """Return the call stack that recorded ``node``, as text under a heading.

    ``role`` is the end of the heading. It describes the role of the node in the error, such as ``caused the error``.
    """
    lines = _metadata(node).get("traceback_")
    if lines is None:
        text = "No forward pass information available. Enable detect anomaly during forward pass for more information."
        location = user_frame.describe(getattr(node, "code", None), getattr(node, "instruction", -1))
        return f"{text} The node was recorded at {location}\n" if location else text
    return f"Traceback of forward call that {role}:\n" + "".join(lines)


# --- NaN ------------------------------------------------------------------------------------------------------------


def _array(value: Gradient) -> Array | None:
    """Return the array of the gradient ``value``, or None if its elements are neither floating-point nor complex."""
    array: Gradient = getattr(value, "_array", value)
    if hasattr(array, "not_an_array"):  # a sparse tensor
        array = value._values()._array
    return array if hasattr(array, "shape") and array.dtype.kind in "fcVW" else None


def _values(node: Node) -> list[tuple[str, Saved]]:
    """Return (description, value) pairs of the arrays and numbers that ``node`` has saved for the backward pass.

    A description is a text such as ``saved result``. The list is empty for a node without a list of its saved values,
    such as the node of a custom ``autograd.Function``.
    """
    saved = [(each.name, getattr(node, each.held, None)) for each in getattr(node, "arrays", ())]
    return [
        (f"saved {'result' if name == 'out' else name}", value)
        for name, value in saved
        if hasattr(value, "shape") or isinstance(value, (int, float, complex))
    ]


def _check(node: Node, grad: Gradient, grads: Gradients, saved: list[tuple[str, Saved]]) -> None:
    """Raise RuntimeError if one of ``grads``, the gradients that ``node`` computed from ``grad``, has a NaN.

    If the setting ``check_inf`` is true, an infinity raises RuntimeError as well. Otherwise the first node with an
    infinite gradient is stored, and the error for a later NaN names this node. ``saved`` are the (name, value) pairs of
    the node's saved values, which the error shows.
    """
    sent = grads if isinstance(grads, tuple) else (grads,)
    for position, each in enumerate(sent):
        array = _array(each)
        if array is None:
            continue
        if setting.check_nan and bool((array != array).any()):
            raise RuntimeError(_message(node, _output(node, position), grad, array, saved, "nan", array != array))
        if _first_infinite.get() is None:
            infinite = abs(array) == float("inf")
            if bool(infinite.any()):
                if setting.check_inf:
                    raise RuntimeError(_message(node, _output(node, position), grad, array, saved, "inf", infinite))
                _first_infinite.set(node)


def _output(node: Node, position: int) -> int:
    """Return the index in ``node.next_functions`` of the input to which a gradient of ``node`` belongs.

    ``position`` is the index of the gradient among those that the node returned. The indices can differ for two
    reasons: ``next_functions`` omits operands that cannot have a gradient, and some nodes return the gradient of a
    single operand.
    """
    operand = node.operand if node.lone else position
    return node.listed.index(operand) if node.listed else operand


def _message(
    node: Node, output: int, grad: Gradient, bad: Array, saved: list[tuple[str, Saved]], kind: str, wrong: Array
) -> str:
    """Return the text of the error about NaN or infinities in ``bad``, a gradient that ``node`` returned.

    The text has PyTorch's message, the line in the user's program, the elements around the first NaN, and a remedy.

    Args:
        node: Node that returned the gradient.
        output: Index of ``bad`` among the returned gradients.
        grad: Incoming gradient of the node.
        bad: Gradient with NaN or infinities.
        saved: Pairs (name, value) of the saved values of the node.
        kind: The text ``nan`` or ``inf``.
        wrong: Mask of the NaN or infinite elements of ``bad``.
    """
    lines = [f"Function '{node.name()}' returned {kind} values in its {output}th output."]
    location = user_frame.describe(node.code, node.instruction)
    if location:
        lines.append(f"It was recorded at {location}")
    index = tuple(int(each[0]) for each in wrong.nonzero()) if bad.ndim else ()
    lines.append(
        f"The first of {int(wrong.sum())} {kind} (of {bad.size} elements) is at index {list(index)}; around it:"
    )
    arrived = grad if isinstance(grad, (tuple, list)) else (grad,)
    shown = [("gradient returned", bad), *(("gradient that arrived", _array(each)) for each in arrived), *saved]
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


def _around(array: Gradient, index: tuple[int, ...]) -> str:
    """Return a text with the element of ``array`` at ``index`` and its neighbours along the last axis.

    ``index`` may be an index into a larger array, to whose shape ``array`` can be broadcast. For an axis along which
    ``array`` has size 1, index 0 is used.
    """
    if not getattr(array, "ndim", 0):
        return str(array)
    at = [min(i, size - 1) for i, size in zip(index[-array.ndim :], array.shape[-len(index) :], strict=False)]
    at = [0] * (array.ndim - len(at)) + at
    row = array[tuple(at[:-1])]
    start, end = max(at[-1] - 2, 0), min(at[-1] + 3, row.shape[0])
    shown = ", ".join(str(row[i]) for i in range(start, end))
    return f"{'… ' * (start > 0)}{shown}{' …' * (end < row.shape[0])} (from index {[*at[:-1], start]})"
