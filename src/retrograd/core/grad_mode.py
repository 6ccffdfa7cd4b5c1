"""What a thread is recording: the switches ``no_grad``, ``enable_grad`` and ``inference_mode``.

All the package's implicit state of this kind lives here, set by context classes that put back what was. It is held in
context variables: one value per thread (and per asyncio task), read in 15 ns where ``threading.local`` takes 40.

In inference mode nothing is recorded whatever else is switched on. So that hot paths need to read one variable only,
"recording is on, but inference mode masks it" is a value of its own that counts as false: ``MASKED``. Likewise "recording
is on, and somebody watches what is saved" is a value of its own that counts as true: ``HOOKED``. Generated callers record
by themselves only where the value is exactly True, so that a hook costs nothing where there is none.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from ..runtime.user_frame import warn

Callee = TypeVar("Callee", bound=Callable[..., Any])


INFERENCE: Final = None
HOOKED: Final = "watched"
_grad: ContextVar[bool | str | None] = ContextVar("grad", default=True)
_inference: ContextVar[bool] = ContextVar("inference", default=False)
_hooked: ContextVar[frozenset[str]] = ContextVar("watched", default=frozenset())

#: Whether operations are being recorded now (true or false). What hot paths call.
recording: Final[Callable[[], Any]] = _grad.get
in_inference: Final = _inference.get


#: Puts back what :func:`set_recording` returned. Not a function of Python's: at the beginning of one an interrupt may
#: be raised, and a ``finally`` that calls one would leave the mode as it is.
restore_recording: Final[Callable[[Any], Any]] = _grad.set


def set_recording(enabled: Any) -> Any:
    """Record from now on, or not; returns what was, for :func:`restore_recording`. Never in inference mode."""
    before = _grad.get()
    try:
        _grad.set(False if enabled is False else INFERENCE if _inference.get() else HOOKED if _hooked.get() else True)
    except BaseException:  # an interrupt
        _grad.set(before)
        raise
    return before


def set_hooked(who: str, watched: bool) -> None:
    """From now on let all that is recorded take the readable way, where ``who`` sees what is saved; or no longer."""
    watchers = _hooked.get() | {who} if watched else _hooked.get() - {who}
    _hooked.set(watchers)
    if _grad.get():
        _grad.set(HOOKED if watchers else True)


def is_grad_enabled() -> bool:
    """Whether operations of this thread are to be recorded (which inference mode prevents all the same)."""
    return _grad.get() is not False


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in :class:`inference_mode`."""
    return _inference.get()


class _Switch(ABC):
    """A mode to enter for a block or, as a decorator, for every call of a function, a generator or a class's making."""

    @abstractmethod
    def __enter__(self) -> Any: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def clone(self) -> Self:
        """A switch of the same setting, with a past of its own (a decorated function may call itself)."""
        return type(self)()

    def __call__(self, function: Callee) -> Callee:
        """Decorate ``function`` so that it runs within this mode."""
        if inspect.isclass(function):
            warn(DECORATED_CLASS, FutureWarning)
            return self._decorate_class(function)
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)

        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return within  # type: ignore[return-value]

    def _decorate_class(self, cls: Any) -> Any:
        cls.__init__ = self(cls.__init__)
        return cls

    def _decorate_generator(self, function: Any) -> Any:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            # The mode holds while the generator's own code runs, and not in the caller's between two values.
            generator = function(*args, **kwargs)
            resume, value = generator.send, None
            while True:
                try:
                    with self.clone():
                        produced = resume(value)
                except StopIteration as end:
                    return end.value
                try:
                    resume, value = generator.send, (yield produced)
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    resume, value = generator.throw, error

        return within


DECORATED_CLASS = (
    "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
    "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method and "
    "nothing else."
)


class _GradSwitch(_Switch):
    enabled: bool

    def __enter__(self) -> None:
        self.before = set_recording(self.enabled)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _grad.set(self.before)


class _Bare(_GradSwitch):
    def __new__(cls, function: Any = None) -> Any:
        """``@no_grad`` without parentheses decorates as well."""
        made = super().__new__(cls)
        return made if function is None else made(function)


class no_grad(_Bare):
    """Do not record what is done in this block (or decorated function): results do not require gradients.

    >>> import retrograd as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    __module__ = "torch.autograd.grad_mode"
    enabled = False


class enable_grad(_Bare):
    """Record what is done in this block (or decorated function), also inside :class:`no_grad`."""

    __module__ = "torch.autograd.grad_mode"
    enabled = True


class set_grad_enabled(_GradSwitch):
    """Record or not, by the value of ``mode``: at once as a function, for a block as a context manager."""

    __module__ = "torch.autograd.grad_mode"

    def __init__(self, mode: Any) -> None:
        if mode.__class__ is not bool:
            kind = type(mode).__name__
            raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {kind}")
        self.enabled = mode
        self.before = set_recording(self.enabled)

    def __enter__(self) -> None:
        set_recording(self.enabled)

    def __call__(self, function: Callee) -> Callee:
        _grad.set(self.before)  # as a decorator it takes effect in the function only
        return super().__call__(function)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.enabled})"

    def clone(self) -> set_grad_enabled:
        copy = set_grad_enabled(self.enabled)
        _grad.set(copy.before)
        return copy


class inference_mode(_Switch):
    """Neither record nor count versions in this block (or decorated function): the cheapest mode.

    Tensors made inside are inference tensors: they can not be saved for a backward pass later.
    """

    __module__ = "torch.autograd.grad_mode"

    def __new__(cls, mode: Any = True) -> Any:
        """``@inference_mode`` without parentheses decorates as well."""
        made = super().__new__(cls)
        if isinstance(mode, bool):
            return made
        made.mode = True
        return made(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        self.before = _grad.get(), _inference.get()
        _inference.set(self.mode)
        _grad.set(not self.mode)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _grad.set(self.before[0])
        _inference.set(self.before[1])

    def clone(self) -> inference_mode:
        copy: inference_mode = inference_mode(self.mode)
        return copy


class set_multithreading_enabled(_Switch):
    """Accepted as PyTorch accepts it, to no effect: a backward pass runs in the thread that asks for it.

    At once as a function, for a block as a context manager. What was set, :func:`is_multithreading_enabled` tells.
    """

    __module__ = "torch.autograd.grad_mode"

    def __init__(self, mode: Any) -> None:
        if mode.__class__ is not bool:
            kind = type(mode).__name__
            raise TypeError(f"set_multithreading_enabled(): argument 'enabled' (position 1) must be bool, not {kind}")
        self.prev, self.mode = _multithreading.get(), mode
        _multithreading.set(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _multithreading.set(self.prev)

    def clone(self) -> set_multithreading_enabled:
        return set_multithreading_enabled(self.mode)


_multithreading: ContextVar[bool] = ContextVar("multithreading", default=True)
is_multithreading_enabled: Final = _multithreading.get
