"""Interception of calls of public functions by modes, classes with ``__torch_function__``, autocast and profilers.

Note [Interception]. A handler is an object that intercepts calls. While a handler is active, it is in the list
``HANDLERS``. Every generated function and public wrapper tests first whether the list is empty, and then whether a
handler is active in its own context:

    if HANDLERS and state()[4] and (answer := intercept_call(form.reader, args, …)) is not GO_ON: return answer

Two stacks in the state, which is a context variable and therefore differs between threads, determine which handlers get
a call (``core/torch_function.py``). The first are the modes of ``__torch_function__``, beginning with the innermost. A
mode is removed from its stack while it runs, so that functions that the mode calls are passed only to outer modes. The
second are the other handlers, beginning with the innermost: autocast and profilers. These also get calls inside the
package, and stay on their stack while they run. Such a handler calls the function again, by ``Call.go_on``. The call
arrives here again, and goes to the remaining handlers. If no handler returns a result, the result is ``GO_ON``, and the
function runs its body.

While a compiled function runs, ``HANDLERS`` also contains its cursor (``core/deferral.py``), which gets the calls of its
thread first, and defers them. It defers none while another handler is active.

Classes with a ``__torch_function__`` are not handlers. An operand of such a class leaves the fast path of a generated
function, because it is not in ``PLAIN``, and the fallback calls :func:`ask_classes`. Functions that do not test the
classes of their arguments otherwise (wrappers of Python functions, properties) test ``HANDLERS or OVERRIDING``. While
the overrides of classes are disabled, because such a class runs the function itself, the fast path takes its instances
(``operand_promotion.is_exempt``).
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from contextvars import ContextVar
from sys import _getframe
from typing import TYPE_CHECKING

from ..core import torch_function
from ..core.deferral import active_cursor, block
from ..core.tensor import Tensor
from ..core.torch_function import GO_ON, HANDLERS, NONE, OVERRIDING, listen, overriding_arguments, unlisten
from ..runtime.codegen import renamed
from ..runtime.user_frame import strip_frames
from .given_arguments import ArgumentReader, Given, arguments_of, reader_of
from .torch_function_overrides import Overridable, overridable, overridable_of

if TYPE_CHECKING:
    from ..core.typing import Args, Function, Intercepted, Kwargs
    from .form import PublicForm
    from .typing import ArgumentList, DeclaredFunction, Known, Locals, Result


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
        block(f"{type(self).__name__} begins", 1)
        before = torch_function.handlers()
        count = len(HANDLERS)
        try:
            listen(self)
            torch_function.set_handlers((*before, self))
        except BaseException:  # an interrupt: __exit__ is not called
            torch_function.set_handlers(before)
            if len(HANDLERS) > count:
                unlisten(self)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        count = len(HANDLERS)
        stack = rest = torch_function.handlers()
        for index in reversed(range(len(stack))):
            if stack[index] is self:
                rest = stack[:index] + stack[index + 1 :]
                break
        try:
            block(f"{type(self).__name__} ends", -1)
            torch_function.set_handlers(rest)
            unlisten(self)
        except BaseException:  # an interrupt
            torch_function.set_handlers(rest)
            if len(HANDLERS) == count:
                unlisten(self)
            raise


class Call:
    """Intercepted call of ``function``; ``rest`` are the handlers that have not got the call yet.

    A handler repeats the call by :meth:`go_on`; two attributes describe the repeated call. ``arrived`` becomes true
    when it is intercepted. ``skipped`` becomes true when the fallback of the function does not pass it to the classes
    of the arguments, because they have got the first call.
    """

    __slots__ = ("args", "arrived", "function", "kwargs", "rest", "skipped")
    args: Args
    function: Function
    kwargs: Kwargs
    rest: tuple[Handler, ...]
    skipped: bool

    def __init__(self, function: Function, args: Args, kwargs: Kwargs, rest: tuple[Handler, ...]) -> None:
        self.function, self.args, self.kwargs, self.rest = function, args, kwargs, rest

    def go_on(self) -> Result:
        """Return the function's result for ``args`` and ``kwargs``; only the handlers ``rest`` intercept this call."""
        self.arrived = self.skipped = False
        args, kwargs = self.args, self.kwargs  # local variables: see given_arguments.py
        before = _going.get()
        try:
            _going.set(self)
            return self.function(*args, **kwargs)
        finally:
            _going.set(before)


_state = torch_function.state
#: The call that the innermost running handler has passed on.
_going: ContextVar[Call | None] = ContextVar("going", default=None)


def go_on(function: Function, args: Args, kwargs: Kwargs) -> Result:
    """Return ``function(*args, **kwargs)`` without passing this call to modes and classes of arguments.

    The handlers that also get calls inside the package, such as autocast and profilers, still get this call.
    """
    return Call(function, args, kwargs, torch_function.handlers()).go_on()


def intercept(function: Function, args: Args, kwargs: Kwargs) -> Intercepted:
    """Pass a call of ``function`` to the active modes, the classes of its arguments, and the handlers, in this order.

    Return the first result that one of them returns, or ``GO_ON`` if the function must compute the result itself.
    """
    cursor = active_cursor()
    if cursor is not None and (answer := cursor.called(function, args, kwargs)) is not GO_ON:
        return answer
    going = _going.get()
    if going is not None and going.function is function and not going.arrived:
        going.arrived, handlers = True, going.rest
    else:
        level, modes, handlers, _, _ = _state()
        if (
            level < NONE
            if modes
            else OVERRIDING and not level and overriding_arguments((*args, *kwargs.values()), Tensor)
        ):
            known = overridable_of(function)
            if known is not None and (answer := known.ask(args, kwargs)) is not GO_ON:
                return answer
    while handlers:
        handler, handlers = handlers[-1], handlers[:-1]
        what = handler.wanted(function)
        if what is not None:
            answer = handler.around(what, Call(function, args, kwargs, handlers))
            if answer is not GO_ON:
                return answer
    return GO_ON


def intercept_call(
    reader: ArgumentReader, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object], out: object
) -> Intercepted:
    """Return the result of :func:`intercept` for a call of the function of ``reader``.

    The parameters have the same meaning as for :meth:`ArgumentReader.given`, which is called only if a mode, a class or
    a handler may intercept the call.
    """
    function, going = reader.function, _going.get()
    if going is not None and going.function is function and not going.arrived:
        if going.rest:
            return intercept(function, going.args, going.kwargs)
        going.arrived = True
        return GO_ON
    level, modes, handlers, got, _ = _state()
    given: Given | None = (tuple(args), {}) if reader.exact else None
    if (
        level < NONE
        if modes
        else OVERRIDING and not level and overriding_arguments((*args, *rest, *unknown.values()), Tensor)
    ):
        known = overridable_of(function)
        if known is not None:
            if given is None:
                given = reader.given(args, rest, unknown, out, _getframe(2), got)
            answer = known.ask(given[0], given[1])
            if answer is not GO_ON:
                return answer
    while handlers:
        handler, handlers = handlers[-1], handlers[:-1]
        what = handler.wanted(function)
        if what is not None:
            if given is None:
                given = reader.given(args, rest, unknown, out, _getframe(2), got)
            answer = handler.around(what, Call(function, given[0], given[1], handlers))
            if answer is not GO_ON:
                return answer
    return GO_ON


def intercept_locals(function: Function, values: Locals) -> Intercepted:
    """Return the result of :func:`intercept` for a call of ``function`` that has just begun.

    ``values`` are the local variables of the function at its beginning, that is, its parameters.
    """
    args, rest, unknown = arguments_of(function, values)
    cursor = active_cursor()
    if cursor is not None:
        code = function.__code__
        count = code.co_argcount
        named = dict(zip(code.co_varnames[count : len(args)], args[count:], strict=True))
        answer = cursor.called(function, (*args[:count], *rest), {**named, **unknown})
        if answer is not GO_ON:
            return answer
    return intercept_call(reader_of(function), args, rest, unknown, None)


def ask_classes_of_call(
    form: PublicForm, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object]
) -> Intercepted:
    """Return the result of :func:`ask_classes` for a call of the public wrapper that ``form`` describes.

    ``args`` are the values of the wrapper's named parameters, and ``rest`` and ``unknown`` are further positional and
    keyword arguments of the call.
    """
    return ask_classes(form.space, form.name, form.reader, args, rest, unknown, None)


def ask_classes(
    space: str,
    name: str,
    reader: ArgumentReader,
    args: ArgumentList,
    rest: tuple[object, ...],
    unknown: dict[str, object],
    out: object,
) -> Intercepted:
    """Return the result of a call if the class of an argument overrides it, otherwise ``GO_ON``.

    The fallback of the public function ``name`` in the namespace ``space`` calls this function. The other parameters
    have the same meaning as for :meth:`ArgumentReader.given`.
    """
    found = [] if _state()[0] else overriding_arguments((*args, *rest, *unknown.values(), out), Tensor)
    if not found:
        return GO_ON
    known = overridable(space, name)
    if known is None or _skips(known):
        return GO_ON
    return known.ask(*reader.given(args, rest, unknown, out, _getframe(2)), found)


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
    found = [] if _state()[0] else overriding_arguments(operands, Tensor)
    if not found:
        return GO_ON
    known = overridable("Tensor", name)
    return GO_ON if known is None or _skips(known) else known.ask(operands, {}, found)


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
    "GO_ON", "HANDLERS", "OVERRIDING", "Call", "Handler", "ask_classes", "ask_classes_of", "go_on",
    "intercept", "intercept_call", "intercept_locals", "interceptable",
]  # fmt: skip
