"""``tracing``: while it is on, it is remembered why tensors have no gradient, and what operations were called with.

A node keeps nothing of an operand that gets no gradient and that no derivative needs: afterwards nobody can tell whether it
was detached, computed under ``no_grad`` or a number. To remember it, Python's profiler hook watches what the package's
functions return to the program; where it is off, nothing is paid for it. All that is remembered is held weakly.
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from ..core.grad_mode import in_inference, recording
from ..core.graph import AccumulateGrad
from ..core.tensor import Tensor
from ..runtime import user_frame

NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True)
class Told:
    """What is remembered of a tensor or of an operand: why it has no gradient, its form, and for an operand which it was."""

    why: str
    shape: tuple[int, ...] | None = None
    dtype: Any = None
    tensor: weakref.ref[Tensor] | None = None


_tensors: dict[int, tuple[weakref.ref[Tensor], Told]] = {}
_operands: weakref.WeakKeyDictionary[Any, list[Told | None]] = weakref.WeakKeyDictionary()


def remembered(node: Any, operand: int) -> Told | None:
    """What is remembered of an operand without a gradient."""
    found = _operands.get(node)
    return found[operand] if found is not None and operand < len(found) else None


def remembered_of(tensor: Tensor) -> Told | None:
    """What is remembered of a tensor without a gradient."""
    found = _tensors.get(id(tensor))
    return found[1] if found is not None and found[0]() is tensor else None


class tracing:
    """Within this block, remember why tensors have no gradient, so that :func:`explain` can tell.

    It holds for the thread that enters it, and makes every operation several times slower: for debugging only.

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
    """Remember what a function of the package returns."""
    node = result._grad_edge
    if node is not None and node.__class__ is not AccumulateGrad:
        if node.node not in _operands:
            _note_operands(frame, node.node)
        return
    if node is not None or (remembered_of(result) is not None and frame.f_code.co_name not in _CUTS):
        return
    why = _why(frame, result)
    if why:
        number = id(result)
        told = Told(why, result._array.shape, result._array.dtype)
        _tensors[number] = weakref.ref(result, lambda _: _tensors.pop(number, None)), told


#: Functions that cut a tensor off, and what is said of it.
_CUTS = {
    "detach": "detached", "detach_": "detached by detach_()", "data": "taken by .data",
    "requires_grad_": "requires_grad=False was set",
}  # fmt: skip


def _why(frame: FrameType, result: Tensor) -> str:
    """Why a result has no gradient; nothing if this function is not the one to say."""
    name = frame.f_code.co_name
    at = user_frame.describe(*user_frame.user_location())
    at = f" at {at}" if at else ""
    if name in _CUTS:
        return _CUTS[name] + at
    operation = frame.f_globals.get("op")
    outside = frame.f_back is None or user_frame.MARK not in frame.f_back.f_globals
    given = _arguments(frame)
    if (operation is None and not outside) or any(each is result for each in given):
        return ""
    name = str(operation.shown) if operation is not None else name
    tensors = [each for each in given if isinstance(each, Tensor)]
    if result._array.dtype.kind not in "fcV":
        return f"{result._array.dtype} has no gradients (made by {name}{at})"
    if in_inference():
        return f"made by {name} in inference mode{at}"
    if not tensors:
        return f"made by {name} without requires_grad{at}"
    if any(each.requires_grad for each in tensors):
        return f"computed by {name} {'without a derivative' if recording() else 'under no_grad'}{at}"
    return f"computed by {name} from what requires no gradient{at}"


def _arguments(frame: FrameType) -> list[Any]:
    """The arguments of the call, those in lists and tuples too."""
    code: CodeType = frame.f_code
    values = frame.f_locals
    found: list[Any] = []
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4)]:
        value = values.get(name)
        found += value if value.__class__ in (tuple, list) else [value]
    return found


def _note_operands(frame: FrameType, node: Any) -> None:
    """Remember what a node's operation was called with, if this frame is that of its call."""
    edges = node.spread(node.edge) if node.lone else node.edges
    operation = frame.f_globals.get("op") or frame.f_locals.get("op")
    given = frame.f_locals.get("tensors")
    if operation is None or operation is not getattr(node, "operation", None) or given.__class__ is not tuple:
        given = [each for each in _arguments(frame) if each is None or isinstance(each, (Tensor, *NUMBERS))]
    if len(given) < len(edges):
        return
    given = given[: len(edges)]
    if any((edge is not None) and not isinstance(each, Tensor) for edge, each in zip(edges, given, strict=True)):
        return
    if not any(isinstance(each, Tensor) for each in given):
        return
    _operands[node] = [
        None if edge is not None else _told(each) for edge, each in zip(edges, given, strict=True)
    ]  # fmt: skip


def _told(value: Any) -> Told | None:
    """What can be said of an operand without a gradient."""
    if value is None:
        return Told("not given")
    if isinstance(value, NUMBERS):
        return Told("a number")
    form = value._array.shape, value._array.dtype, weakref.ref(value)
    known = remembered_of(value)
    if known is not None:
        return Told(known.why, *form)
    if value._array.dtype.kind not in "fcV":
        return Told(f"{value._array.dtype} has no gradients", *form)
    return Told("requires_grad=False", *form)


__all__ = ["Told", "remembered", "remembered_of", "tracing"]
