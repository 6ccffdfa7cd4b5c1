"""Recording modes of a thread: ``no_grad``, ``enable_grad`` and ``inference_mode``.

The modes are context variables with one value per thread (and per asyncio task): reading one takes 15 ns, an attribute
of ``threading.local`` 40 ns. Context managers set the variables and restore the previous values.

One variable, the recording mode, combines all settings, so that functions that are called often read a single variable.
It has four values. True and False are the values of grad mode. ``INFERENCE`` (falsy) means that grad mode is enabled
but inference mode prevents recording. ``HOOKED`` (truthy) means that recording is enabled and that saved-tensor hooks
or anomaly detection must process each recorded node. Each operation has a fast function for the usual case, which is
used only if the value is exactly True. So programs without hooks are not slowed down.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from ..compat.module_names import shown_in
from ..runtime.user_frame import warn
from .deferral import end_segment

if TYPE_CHECKING:
    from .typing import Function, Recording

Callee = TypeVar("Callee", bound=Callable[..., Any])

INFERENCE: Final = None
HOOKED: Final = "hooked"
_grad: ContextVar[bool | str | None] = ContextVar("grad", default=True)
_inference: ContextVar[bool] = ContextVar("inference", default=False)
#: The features that need to see recorded nodes.
_hooked: ContextVar[frozenset[str]] = ContextVar("hooked", default=frozenset())

#: Functions that return context managers which restore the present state of a mode of a higher layer (autocast). The
#: recomputation of a checkpoint enters them.
modes_to_restore: Final[list[Callable[[], Sequence[AbstractContextManager[object]]]]] = []

#: Return the mode, which is true if operations are recorded. Called on hot paths.
recording: Final[Callable[[], Recording]] = _grad.get
in_inference: Final = _inference.get


#: Restore the mode that :func:`set_recording` returned. This is a C function, because an interrupt may be raised at the
#: start of a Python function, and a ``finally`` clause that calls one would then not restore the mode.
restore_recording: Final[Callable[[Recording], object]] = _grad.set


def set_recording(enabled: object) -> Recording:
    """Enable or disable recording, and return the previous recording mode.

    The caller passes this mode to :func:`restore_recording`. While inference mode is enabled, operations are not
    recorded even if ``enabled`` is true.
    """
    before = _grad.get()
    try:
        _grad.set(False if enabled is False else INFERENCE if _inference.get() else HOOKED if _hooked.get() else True)
    except BaseException:  # an interrupt
        _grad.set(before)
        raise
    return before


def set_hooked(feature: str, hooked: bool) -> None:
    """Activate a feature that must process each recorded node, or deactivate it if ``hooked`` is false.

    ``feature`` is the name of the feature, such as ``"hooks"`` for saved-tensor hooks. Several features may be active
    at the same time. While at least one is active, operations are recorded by a general, slower function.
    """
    before, mode = _hooked.get(), _grad.get()
    features = before | {feature} if hooked else before - {feature}
    try:
        _hooked.set(features)
        if mode:
            _grad.set(HOOKED if features else True)
    except BaseException:  # an interrupt
        _hooked.set(before)
        _grad.set(mode)
        raise


def is_grad_enabled() -> bool:
    """Whether grad mode is enabled in this thread (inference mode may still prevent recording).

    >>> import retrograd as torch
    >>> with torch.no_grad():
    ...     print(torch.is_grad_enabled())
    False
    """
    return _grad.get() is not False


def is_inference_mode_enabled() -> bool:
    """Whether :class:`inference_mode` is enabled in this thread.

    >>> import retrograd as torch
    >>> with torch.inference_mode():
    ...     print(torch.is_inference_mode_enabled())
    True
    """
    return _inference.get()


class _Switch(ABC):
    """Base class of ``no_grad`` and the other modes: context managers that can also be used as decorators."""

    @abstractmethod
    def __enter__(self) -> None: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def clone(self) -> Self:
        """Return a new context manager with the same setting.

        Each call of a decorated function enters a new context manager, because the function may call itself.
        """
        return type(self)()

    def __call__(self, function: Callee) -> Callee:
        """Return ``function`` wrapped such that its code runs in this mode, as for the decorator ``@no_grad()``."""
        if inspect.isclass(function):
            warn(DECORATED_CLASS, FutureWarning)
            return self._decorate_class(function)
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)  # type: ignore[return-value]

        @functools.wraps(function)
        def within(*args: object, **kwargs: object) -> object:
            with self.clone():
                return function(*args, **kwargs)

        return within  # type: ignore[return-value]

    def _decorate_class(self, cls: Callee) -> Callee:
        cls.__init__ = self(cls.__init__)  # type: ignore[method-assign]
        return cls

    def _decorate_generator(self, function: Function) -> Function:
        @functools.wraps(function)
        def within(*args: object, **kwargs: object) -> Generator[object, object, object]:
            # The mode holds while the code of the generator runs, but not in the calling code between two values.
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
    """Base class of ``no_grad``, ``enable_grad`` and ``set_grad_enabled``, which set grad mode to ``enabled``."""

    enabled: bool

    def __enter__(self) -> None:
        self.before = set_recording(self.enabled)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _grad.set(self.before)


class _DecoratorSwitch(_GradSwitch):
    def __new__(cls, function: Any = None) -> Any:  # Note [Any in public signatures]
        """Return a new context manager or, if ``function`` is not None, the decorated ``function``.

        Python passes ``function`` for the decorator ``@no_grad`` without parentheses.
        """
        switch = super().__new__(cls)
        return switch if function is None else switch(function)


class no_grad(_DecoratorSwitch):
    """Disable recording in this block (or decorated function): results do not require gradients.

    >>> import retrograd as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    __module__ = shown_in("torch.autograd.grad_mode", __name__)
    enabled = False


class enable_grad(_DecoratorSwitch):
    """Enable recording in this block (or decorated function), also inside :class:`no_grad`.

    >>> import retrograd as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.no_grad(), torch.enable_grad():
    ...     print((x * 2).requires_grad)
    True
    """

    __module__ = shown_in("torch.autograd.grad_mode", __name__)
    enabled = True


class set_grad_enabled(_GradSwitch):
    """Enable or disable recording, depending on ``mode``.

    Called as a function, it sets the mode until the next change. As a context manager, it sets the mode for the block.

    >>> import retrograd as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.set_grad_enabled(False):
    ...     print((x * 2).requires_grad)
    False
    """

    __module__ = shown_in("torch.autograd.grad_mode", __name__)

    def __init__(self, mode: Any) -> None:  # Note [Any in public signatures]
        if mode.__class__ is not bool:
            kind = type(mode).__name__
            raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {kind}")
        self.enabled = mode
        self.before = set_recording(self.enabled)

    def __enter__(self) -> None:
        try:
            set_recording(self.enabled)
        except BaseException:  # an interrupt: __exit__ is not called
            _grad.set(self.before)
            raise

    def __call__(self, function: Callee) -> Callee:
        _grad.set(self.before)  # a decorator takes effect in the function only
        return super().__call__(function)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.enabled})"

    def clone(self) -> set_grad_enabled:
        copy = set_grad_enabled(self.enabled)
        _grad.set(copy.before)
        return copy


class inference_mode(_Switch):
    """Disable recording and version counters in this block (or decorated function): the fastest mode.

    Tensors created in this mode are inference tensors. Operations that are recorded after the block cannot save them
    for the backward pass. If ``mode`` is False, inference mode is disabled in the block.

    >>> import retrograd as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.inference_mode():
    ...     y = x * 2
    >>> y.requires_grad, y.is_inference()
    (False, True)
    """

    __module__ = shown_in("torch.autograd.grad_mode", __name__)

    def __new__(cls, mode: Any = True) -> Any:  # Note [Any in public signatures]
        """Return the context manager, or the decorated function if ``mode`` is a function.

        The decorator ``@inference_mode`` without parentheses passes the function to decorate as ``mode``.
        """
        switch = super().__new__(cls)
        if isinstance(mode, bool):
            return switch
        switch.mode = True
        return switch(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        end_segment("the inference mode changes")
        grad, inference = self.before = _grad.get(), _inference.get()
        try:
            _inference.set(self.mode)
            _grad.set(not self.mode)
        except BaseException:  # an interrupt: __exit__ is not called
            _inference.set(inference)
            _grad.set(grad)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        grad, inference = self.before
        try:
            end_segment("the inference mode changes")
        finally:
            try:
                _grad.set(grad)
            finally:
                _inference.set(inference)

    def clone(self) -> inference_mode:
        copy: inference_mode = inference_mode(self.mode)
        return copy


class set_multithreading_enabled(_Switch):
    """Accept PyTorch's setting without effect, because a backward pass runs in the thread that starts it.

    Called as a function, it stores the setting until the next change; as a context manager, for the block.
    :func:`is_multithreading_enabled` returns the setting.

    >>> import retrograd as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.autograd.set_multithreading_enabled(False):
    ...     (x * 2).backward()
    >>> x.grad
    tensor([2.])
    """

    __module__ = shown_in("torch.autograd.grad_mode", __name__)

    def __init__(self, mode: Any) -> None:  # Note [Any in public signatures]
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
