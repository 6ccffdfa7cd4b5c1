"""Saved-tensor hooks, which pack a tensor when a node saves it and unpack it in the backward pass.

The active hooks of each thread are a stack, stored in a context variable. While the stack is not empty, the recording
mode is ``HOOKED`` (``core/grad_mode.py``), and operations are recorded by a general implementation, which calls the
hooks. While it is empty, operations are recorded by faster functions, which do not use this module.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from .error_context import describe_definition
from .grad_mode import recording, restore_recording, set_hooked, set_recording
from .tensor import Tensor, at_edge

Hooks = tuple[Callable[[Tensor], object], Callable[..., Tensor]]

_stack: ContextVar[tuple[Hooks, ...]] = ContextVar("hooks", default=())
_refusal: ContextVar[str | None] = ContextVar("refusal", default=None)
#: Functions called with a tensor before it is modified (see ``autograd.graph.allow_mutation_on_saved_tensors``).
before_modification: Final[list[Callable[[Tensor], None]]] = []


def active_hooks() -> Hooks | None:
    """Return the innermost active pair of hooks (pack, unpack), or None if no hooks are active."""
    stack = _stack.get()
    return stack[-1] if stack else None


def push(pack: Callable[[Tensor], object], unpack: Callable[..., Tensor]) -> None:
    """Activate the pair of hooks ``pack`` and ``unpack`` in this thread.

    Raises RuntimeError if hooks are disabled, and TypeError if ``pack`` or ``unpack`` is not callable.
    """
    refusal = _refusal.get()
    if refusal is not None:
        raise RuntimeError(refusal)
    for each in (pack, unpack):
        if not callable(each):
            raise TypeError(f"saved_tensors_hooks(): the hooks must be callable, not {type(each).__name__}")
    before = _stack.get()
    try:
        _stack.set((*before, (pack, unpack)))
        set_hooked("hooks", True)
    except BaseException:  # an interrupt
        restore(before)
        raise


#: Return the active pairs of hooks of this thread, for :func:`restore`.
active_stack: Final = _stack.get


def restore(stack: tuple[Hooks, ...]) -> None:
    """Activate the pairs of hooks ``stack``, the result of a call of :func:`active_stack`, and no others."""
    _stack.set(stack)
    set_hooked("hooks", bool(stack))


def pop() -> None:
    """Deactivate the pair of hooks that :func:`push` activated last."""
    restore(_stack.get()[:-1])


def refuse(message: str | None) -> str | None:
    """Disable saved-tensor hooks, or enable them again if ``message`` is None.

    While hooks are disabled, :func:`push` raises RuntimeError with the text ``message``. The same error is raised at
    once if hooks are active. Return the message of the previous call, or None if hooks were enabled.
    """
    before = _refusal.get()
    if message is not None and _stack.get():
        raise RuntimeError(message)
    _refusal.set(message)
    return before


class PackedValue:
    """Value that a node stores in place of a saved tensor, if saved-tensor hooks are active.

    It consists of the result of the pack hook, and of the unpack hook.
    """

    __slots__ = ("hook", "value")

    def __init__(self, tensor: Tensor, pack: Callable[[Tensor], object], unpack: Callable[..., Tensor]) -> None:
        counter = tensor._version_counter or (0,)
        before, version = recording(), counter[0]
        try:
            if before is not False:
                set_recording(False)
            self.value = pack(tensor)
        finally:
            if before is not False:
                restore_recording(before)
        if counter[0] != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot "
                "be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if "
                "you need to perform in-place operations on the input to a pack hook."
                f" The hook is defined{describe_definition(pack)}. Remedy: let it work on a clone."
            )
        self.hook = unpack

    @classmethod
    def result(cls, tensor: Tensor, pack: Callable[[Tensor], object], unpack: Callable[..., Tensor]) -> PackedValue:
        """Return the PackedValue of ``tensor``, which is saved by the node that computed it.

        ``pack`` and ``unpack`` are the saved-tensor hooks. If ``pack`` stored ``tensor``, there would be a reference
        cycle, because ``tensor`` refers to the node. Therefore ``pack`` is called with another Tensor of the same
        array. This Tensor has the same ``grad_fn`` during the call of ``pack``, and none afterwards.
        """
        stand_in = at_edge(tensor._array, tensor._version_counter, tensor._grad_edge)
        packed = cls(stand_in, pack, unpack)
        stand_in._grad_edge = None
        return packed

    def unpack(self) -> Tensor:
        """Return the tensor that the unpack hook returns; raise TypeError if the hook returns anything else."""
        tensor = self.hook(self.value)
        if not isinstance(tensor, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(tensor).__name__}. The hook is defined{describe_definition(self.hook)}. "
                "Remedy: return a tensor of the values that were packed."
            )
        return tensor
