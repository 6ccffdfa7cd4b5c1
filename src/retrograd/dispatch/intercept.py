"""Interception of calls of public functions by modes, classes with ``__torch_function__``, autocast and profilers.

Note [Interception]. A handler is an object that intercepts calls. While a handler is active, it is in the list
``HANDLERS``. Every generated function and public wrapper tests first whether the list is empty:

    if HANDLERS and (answer := intercept_call(form, args, …)) is not GO_ON: return answer

Two stacks, which are context variables and therefore differ between threads, determine which handlers get a call. The
first are the modes of ``__torch_function__`` (``core/torch_function.py``), beginning with the innermost. A mode is
removed from its stack while it runs, so that functions that the mode calls are passed only to outer modes. A recording
for ``torch.compile`` is such a mode. The second are the handlers in ``_handlers``, beginning with the innermost:
autocast and profilers. These also get calls inside the package, and stay on their stack while they run. Such a handler
calls the function again, by ``Call.go_on``. The call arrives here again, and goes to the remaining handlers. If no
handler returns a result, the result is ``GO_ON``, and the function runs its body.

Classes with a ``__torch_function__`` are not handlers. An operand of such a class leaves the fast path of a generated
function, because it is not in ``PLAIN``, and the fallback calls :func:`ask_classes`. Functions that do not test the
classes of their arguments otherwise (wrappers of Python functions, properties) test ``HANDLERS or OVERRIDING``.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextvars import ContextVar
from itertools import chain
from typing import TYPE_CHECKING

from ..core import torch_function
from ..core.tensor import Tensor
from ..core.torch_function import GO_ON, HANDLERS, NONE, OVERRIDING, listen, overriding_arguments, unlisten
from ..runtime.codegen import renamed
from ..runtime.user_frame import strip_frames
from .given_arguments import LOOSE, as_given, parameters_of
from .torch_function_overrides import Overridable, overridable, overridable_of

if TYPE_CHECKING:
    from ..core.typing import Args, Function, Intercepted, Kwargs
    from .form import PublicForm
    from .typing import ArgumentList, CallForm, DeclaredFunction, Known, Locals, Result


class Handler(ABC):
    """Object that intercepts calls of public functions while it is on the stack of handlers; a context manager."""

    @abstractmethod
    def wanted(self, function: object) -> Known:
        """Return an object for ``function``, or None to ignore calls of this function.

        The object, such as the dtype rule of autocast, is passed to :meth:`around` as ``known``.
        """

    @abstractmethod
    def around(self, known: Known, call: Call) -> Result:
        """Return the result of ``call``, usually that of ``call.go_on()``, or ``GO_ON`` to ignore the call.

        ``known`` is the object that :meth:`wanted` has returned for the called function.
        """

    def __enter__(self) -> Handler:
        listen(self)
        _handlers.set((*_handlers.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        stack = _handlers.get()
        for index in reversed(range(len(stack))):
            if stack[index] is self:
                _handlers.set(stack[:index] + stack[index + 1 :])
                break
        unlisten(self)


#: The handlers of this context, except modes; the innermost last.
_handlers: ContextVar[tuple[Handler, ...]] = ContextVar("handlers", default=())


class Call:
    """Intercepted call of ``function``; ``rest`` are the handlers that have not got the call yet.

    A handler repeats the call by :meth:`go_on`; two attributes describe the repeated call. ``arrived`` becomes true
    when it is intercepted. ``skipped`` becomes true when the fallback of the function does not pass it to the classes
    of the arguments, because they have got the first call.
    """

    __slots__ = ("args", "arrived", "function", "kwargs", "rest", "skipped")

    def __init__(self, function: Function, args: Args, kwargs: Kwargs, rest: tuple[Handler, ...]) -> None:
        self.function, self.args, self.kwargs, self.rest = function, args, kwargs, rest

    def go_on(self) -> Result:
        """Return the function's result for ``args`` and ``kwargs``; only the handlers ``rest`` intercept this call."""
        self.arrived = self.skipped = False
        args, kwargs = self.args, self.kwargs  # local variables: see given_arguments.py
        token = _going.set(self)
        try:
            return self.function(*args, **kwargs)
        finally:
            _going.reset(token)


#: The call that the innermost running handler has passed on.
_going: ContextVar[Call | None] = ContextVar("going", default=None)


def go_on(function: Function, args: Args, kwargs: Kwargs) -> Result:
    """Return ``function(*args, **kwargs)`` without passing this call to modes and classes of arguments.

    The handlers that also get calls inside the package, such as autocast and profilers, still get this call.
    """
    return Call(function, args, kwargs, _handlers.get()).go_on()


def _continued(function: object) -> Call | None:
    """Return the call that a handler has repeated, if it is the call of ``function`` which begins now, else None."""
    going = _going.get()
    return going if going is not None and going.function is function and not going.arrived else None


def intercept(function: Function, args: Args, kwargs: Kwargs) -> Intercepted:
    """Pass a call of ``function`` to the active modes, the classes of its arguments, and the handlers, in this order.

    Return the first result that one of them returns, or ``GO_ON`` if the function must compute the result itself.
    """
    going = _continued(function)
    if going is not None:
        going.arrived, rest = True, going.rest
    else:
        rest = _handlers.get()
        level, modes = torch_function.state()
        if (modes and level < NONE) or (OVERRIDING and not level):
            known = overridable_of(function)
            if known is not None and (answer := known.ask(args, kwargs)) is not GO_ON:
                return answer
    for index in reversed(range(len(rest))):
        handler = rest[index]
        what = handler.wanted(function)
        if what is not None:
            answer = handler.around(what, Call(function, args, kwargs, rest[:index]))
            if answer is not GO_ON:
                return answer
    return GO_ON


def _is_wanted(function: object, *arguments: Iterable[object]) -> bool:
    """Whether a mode, the class of an argument or a handler may intercept a call of ``function``.

    ``arguments`` are lists of the arguments of the call.
    """
    level, modes = torch_function.state()
    if modes and level < NONE:
        if overridable_of(function) is not None:
            return True
    elif OVERRIDING and not level and overriding_arguments([*chain(*arguments)], Tensor):
        return True
    return any([each.wanted(function) is not None for each in _handlers.get()])  # noqa: C419 - faster


def intercept_call(
    form: CallForm, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object], out: object
) -> Intercepted:
    """Return the result of :func:`intercept` for a call of the function that ``form`` describes.

    ``args`` are the values of the function's named parameters, ``rest`` and ``unknown`` further positional and keyword
    arguments of the call, and ``out`` is its argument ``out=``.
    """
    function = form.function
    going = _continued(function)
    if going is not None:
        return intercept(function, going.args, going.kwargs)
    if not _is_wanted(function, args, rest, unknown.values()):
        return GO_ON
    if form.exact:
        return intercept(function, tuple(args), {})
    values, named, defaults = form.given(args, unknown, out)
    return intercept(function, *as_given(values, rest, named, defaults, 1, form.space == "Tensor"))


def intercept_locals(function: Function, values: Locals) -> Intercepted:
    """Return the result of :func:`intercept` for a call of ``function`` that has just begun.

    ``values`` are the local variables of the function at its beginning, that is, its parameters.
    """
    going = _continued(function)
    if going is not None:
        return intercept(function, going.args, going.kwargs)
    given = parameters_of(function, values)
    if not _is_wanted(function, given[0].values(), given[1], given[2].values()):
        return GO_ON
    code = function.__code__
    if function.__defaults__ is None and not code.co_kwonlyargcount and not code.co_flags & LOOSE:
        return intercept(function, tuple(values.values()), {})
    known = overridable_of(function)
    return intercept(function, *as_given(*given, 2, known is not None and known.name.startswith("Tensor.")))


def ask_classes_of_call(
    form: PublicForm, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object]
) -> Intercepted:
    """Return the result of :func:`ask_classes` for a call of the public wrapper that ``form`` describes.

    ``args`` are the values of the wrapper's named parameters, and ``rest`` and ``unknown`` are further positional and
    keyword arguments of the call.
    """
    values, named, defaults = form.given(args, unknown, None)
    return ask_classes(form.space, form.name, values, rest, named, defaults)


def ask_classes(
    space: str,
    name: str,
    values: dict[str, object],
    rest: tuple[object, ...],
    named: dict[str, object],
    defaults: dict[str, object],
) -> Intercepted:
    """Return the result of a call if the class of an argument overrides it, otherwise ``GO_ON``.

    The fallback of the public function ``name`` in the namespace ``space`` calls this function. The other parameters
    have the same meaning as for :func:`as_given`.
    """
    if torch_function.state()[0] or not overriding_arguments((*values.values(), *rest, *named.values()), Tensor):
        return GO_ON
    known = overridable(space, name)
    if known is None or _skips(known):
        return GO_ON
    return known.ask(*as_given(values, rest, named, defaults, 2, space == "Tensor"))


def _skips(known: Overridable) -> bool:
    """Whether the fallback must not pass the current call of the function ``known`` to the classes of its arguments.

    They have got the call before, if a handler has repeated it by :meth:`Call.go_on`. The result is True only once per
    call.
    """
    going = _going.get()
    if going is None or going.function is not known.function or going.skipped:
        return False
    going.skipped = True
    return True


def ask_classes_of(name: str, *operands: object) -> Intercepted:
    """Return the result of an operator if the class of an operand overrides it, otherwise ``GO_ON``.

    ``name`` is the name of the operator's method of Tensor, whose fallback calls this function.
    """
    if torch_function.state()[0] or not overriding_arguments(operands, Tensor):
        return GO_ON
    known = overridable("Tensor", name)
    return GO_ON if known is None or _skips(known) else known.ask(operands, {})


def interceptable(function: Function) -> DeclaredFunction:
    """Return a function that calls ``function`` unless a handler, or the class of an argument, intercepts the call.

    Without handlers and such classes, a call takes 60 ns longer.
    """

    def outer(*args: object, **kwargs: object) -> Result:
        try:
            if (HANDLERS or OVERRIDING) and (answer := intercept(made, args, kwargs)) is not GO_ON:
                return answer
            return function(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            strip_frames(interrupt)
            raise
        except Exception as error:
            error = strip_frames(error)  # type: ignore[assignment]
            if error is None:
                raise
            raise error from error.__cause__

    made = functools.update_wrapper(renamed(outer, function.__name__, function.__qualname__), function)
    return made


torch_function.interceptor.intercept = intercept

__all__ = [
    "GO_ON", "HANDLERS", "OVERRIDING", "Call", "Handler", "ask_classes", "ask_classes_of", "go_on", "intercept",
    "intercept_call", "intercept_locals", "interceptable",
]  # fmt: skip
