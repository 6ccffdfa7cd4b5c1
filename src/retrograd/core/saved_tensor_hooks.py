"""Saved-tensor hooks: what packs a tensor that a node saves, and unpacks it when the backward pass asks for it.

The hooks in force are held in a context variable, one stack per thread. While there are any, ``modes`` says WATCHED, so that
recording takes the readable way; where there are none, nobody looks here. Knows no operation and no node.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from .error_context import describe_definition
from .grad_mode import restore_recording, set_hooked, set_recording
from .tensor import Tensor, at_edge

Hooks = tuple[Callable[[Tensor], Any], Callable[[Any], Tensor]]

_stack: ContextVar[tuple[Hooks, ...]] = ContextVar("hooks", default=())
_refusal: ContextVar[str | None] = ContextVar("refusal", default=None)
#: Called with a tensor before it is written to (see ``autograd.graph.allow_mutation_on_saved_tensors``).
before_writing: Final[list[Callable[[Tensor], None]]] = []


def active_hooks() -> Hooks | None:
    """The hooks that pack and unpack what is saved now: the innermost ones, or None."""
    stack = _stack.get()
    return stack[-1] if stack else None


def push(pack: Any, unpack: Any) -> None:
    """Let these hooks act on all that is saved from now on in this thread."""
    refusal = _refusal.get()
    if refusal is not None:
        raise RuntimeError(refusal)
    for each in (pack, unpack):
        if not callable(each):
            raise TypeError(f"saved_tensors_hooks(): the hooks must be callable, not {type(each).__name__}")
    _stack.set((*_stack.get(), (pack, unpack)))
    set_hooked("hooks", True)


def pop() -> None:
    """Take away the hooks that were pushed last."""
    rest = _stack.get()[:-1]
    _stack.set(rest)
    set_hooked("hooks", bool(rest))


def refuse(message: str | None) -> str | None:
    """Let pushing hooks raise ``message`` from now on (None: allow it); returns what was."""
    before = _refusal.get()
    if message is not None and _stack.get():
        raise RuntimeError(message)
    _refusal.set(message)
    return before


class PackedValue:
    """What a pack hook made of a tensor that was to be saved, and the hook that makes it a tensor again."""

    __slots__ = ("hook", "value")

    def __init__(self, tensor: Tensor, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> None:
        cell = tensor._version_counter or (0,)
        before, version = set_recording(False), cell[0]
        try:
            self.value = pack(tensor)
        finally:
            restore_recording(before)
        if cell[0] != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot "
                "be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if "
                "you need to perform in-place operations on the input to a pack hook."
                f" The hook is defined{describe_definition(pack)}. Remedy: let it work on a clone."
            )
        self.hook = unpack

    @classmethod
    def result(cls, tensor: Tensor, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> PackedValue:
        """One of a node's own results, packed for that node, which must not hold itself.

        The hook is shown a Tensor in its stead, which leaves the graph afterwards.
        """
        shown = at_edge(tensor._array, tensor._version_counter, tensor._grad_edge)
        packed = cls(shown, pack, unpack)
        shown._grad_edge = None
        return packed

    def unpack(self) -> Tensor:
        """The tensor that the hook gives back."""
        found = self.hook(self.value)
        if not isinstance(found, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(found).__name__}. The hook is defined{describe_definition(self.hook)}. Remedy: return a tensor of the numbers that "
                "were packed."
            )
        return found
