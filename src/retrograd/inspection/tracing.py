"""``tracing``: a context manager that records why tensors have no gradient, for :func:`explain`.

A node stores an operand only if the operand gets a gradient or a derivative needs it. For other operands, the graph
does not show whether they were detached, computed under ``no_grad`` or plain numbers. Inside ``tracing``, a
``sys.setprofile`` hook records the reason at every return from a function of retrograd. Outside ``tracing``, operations
take no extra time. The records hold weak references to tensors.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from ..core.grad_mode import in_inference, recording
from ..core.graph import AccumulateGrad
from ..core.tensor import Tensor
from ..runtime import user_frame

NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True)
class NoGradRecord:
    """Reason why a tensor has no gradient, with the shape and dtype of the tensor and a weak reference to it."""

    why: str
    shape: tuple[int, ...] | None = None
    dtype: Any = None
    tensor: weakref.ref[Tensor] | None = None


_tensors: dict[int, tuple[weakref.ref[Tensor], NoGradRecord]] = {}
_operands: weakref.WeakKeyDictionary[Any, list[NoGradRecord | None]] = weakref.WeakKeyDictionary()


def operand_record(node: Any, operand: int) -> NoGradRecord | None:
    """Return the :class:`NoGradRecord` of operand number ``operand`` of ``node``, or None if there is no record."""
    records = _operands.get(node)
    return records[operand] if records is not None and operand < len(records) else None


def tensor_record(tensor: Tensor) -> NoGradRecord | None:
    """Return the :class:`NoGradRecord` of ``tensor``, or None if there is no record."""
    entry = _tensors.get(id(tensor))
    return entry[1] if entry is not None and entry[0]() is tensor else None


class tracing:
    """Context manager that records why tensors have no gradient, for :func:`explain`.

    It affects only the current thread. It makes every operation several times slower, so use it for debugging only.

    >>> import retrograd as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.tracing():
    ...     y = w + w.tanh().detach()
    >>> torch.autograd.explain(y).unreached[0].why
    'detached...'
    """

    def __enter__(self) -> None:
        self.before = sys.getprofile()
        sys.setprofile(self._profile)

    def __exit__(self, *error: object) -> None:
        sys.setprofile(self.before)

    def _profile(self, frame: FrameType, event: Any, result: Any) -> None:
        if self.before is not None:
            self.before(frame, event, result)
        if event != "return" or user_frame.MARK not in frame.f_globals:
            return
        if isinstance(result, Tensor):
            _note(frame, result)
        elif result.__class__ in (tuple, list):
            for each in result:
                if isinstance(each, Tensor):
                    _note(frame, each)


def _note(frame: FrameType, result: Tensor) -> None:
    """Record the reason why ``result`` has no gradient, or why operands of its graph node have no gradient.

    ``frame`` is the function call that returned ``result``.
    """
    node = result._grad_edge
    if node is not None and node.__class__ is not AccumulateGrad:
        if node.node not in _operands:
            _note_operands(frame, node.node)
        return
    if node is not None or (tensor_record(result) is not None and frame.f_code.co_name not in _DETACHING):
        return
    operation = getattr(frame.f_globals.get("form"), "op", None)
    outside = frame.f_back is None or user_frame.MARK not in frame.f_back.f_globals
    if operation is not None or outside or frame.f_code.co_name in _DETACHING:
        name = frame.f_code.co_name if operation is None else str(operation.shown)
        _remember(result, _why(name, _arguments(frame), result))


def note_result(name: str, arguments: Sequence[Any], result: Tensor) -> None:
    """Record the reason why ``result``, which the public function ``name`` returned, has no gradient.

    ``arguments`` are the arguments of the call. The first reason that is recorded for a tensor stays, so that of a
    function inside another; only a call that detaches the tensor replaces it.
    """
    if result._grad_edge is None and (tensor_record(result) is None or name in _DETACHING):
        _remember(result, _why(name, arguments, result))


def _remember(result: Tensor, why: str) -> None:
    if why:
        number = id(result)
        record = NoGradRecord(why, result._array.shape, result._array.dtype)
        _tensors[number] = weakref.ref(result, lambda _: _tensors.pop(number, None)), record


#: Functions that detach a tensor, with the reason to record.
_DETACHING = {
    "detach": "detached", "detach_": "detached by detach_()", "data": "taken by .data",
    "requires_grad_": "requires_grad=False was set",
}  # fmt: skip


def _why(name: str, arguments: Sequence[Any], result: Tensor) -> str:
    """Return the reason why ``result``, which the function ``name`` returned for ``arguments``, has no gradient.

    The reason is "" if ``result`` is one of the arguments.
    """
    at = user_frame.describe(*user_frame.user_location())
    at = f" at {at}" if at else ""
    if name in _DETACHING:
        return _DETACHING[name] + at
    if any(each is result for each in arguments):
        return ""
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    if result._array.dtype.kind not in "fcVW":
        return f"{result._array.dtype} has no gradients (created by {name}{at})"
    if in_inference():
        return f"created by {name} in inference mode{at}"
    if not tensors:
        return f"created by {name} without requires_grad{at}"
    if any(each.requires_grad for each in tensors):
        return f"computed by {name} {'without a derivative' if recording() else 'under no_grad'}{at}"
    return f"computed by {name} from tensors that require no gradient{at}"


def _arguments(frame: FrameType) -> list[Any]:
    """Return the arguments of the function call ``frame`` in a flat list.

    An argument that is a tuple or list is replaced by its items.
    """
    code: CodeType = frame.f_code
    values = frame.f_locals
    arguments: list[Any] = []
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4)]:
        value = values.get(name)
        arguments += value if value.__class__ in (tuple, list) else [value]
    return arguments


def _note_operands(frame: FrameType, node: Any) -> None:
    """Record the reasons why operands of ``node`` have no gradient.

    The reasons are recorded only if ``frame`` is the call of the operation that created ``node``.
    """
    operation = getattr(frame.f_globals.get("form"), "op", None) or frame.f_locals.get("op")
    operands = frame.f_locals.get("tensors")
    if operation is None or operation is not getattr(node, "operation", None) or operands.__class__ is not tuple:
        operands = _arguments(frame)
    note_operands(node, operands)


def note_operands(node: Any, arguments: Sequence[Any]) -> Sequence[Any]:
    """Record the reasons why operands of ``node`` have no gradient, and return the operands, one for each edge.

    ``arguments`` are the arguments of the call that created ``node``, of which tensors, numbers and None are operands.
    If they do not fit the edges of the node, nothing is recorded and the result is empty.
    """
    edges = node.spread(node.edge) if node.lone else node.edges
    operands = [each for each in arguments if each is None or isinstance(each, (Tensor, *NUMBERS))][: len(edges)]
    if (
        len(operands) < len(edges)
        or any(edge is not None and not isinstance(each, Tensor) for edge, each in zip(edges, operands, strict=True))
        or not any(isinstance(each, Tensor) for each in operands)
    ):
        return ()
    _operands[node] = [
        None if edge is not None else _record_of(each) for edge, each in zip(edges, operands, strict=True)
    ]  # fmt: skip
    return operands


def _record_of(value: Any) -> NoGradRecord | None:
    """Return a :class:`NoGradRecord` for ``value``, an operand that receives no gradient."""
    if value is None:
        return NoGradRecord("not given")
    if isinstance(value, NUMBERS):
        return NoGradRecord("a number")
    form = value._array.shape, value._array.dtype, weakref.ref(value)
    known = tensor_record(value)
    if known is not None:
        return NoGradRecord(known.why, *form)
    if value._array.dtype.kind not in "fcVW":
        return NoGradRecord(f"{value._array.dtype} has no gradients", *form)
    return NoGradRecord("requires_grad=False", *form)


__all__ = ["NoGradRecord", "note_operands", "note_result", "operand_record", "tensor_record", "tracing"]
