"""Public wrappers: functions that call a Python function and raise PyTorch's argument errors.

A wrapper accepts any arguments (``*rest, **unknown``), so that PyTorch's error and not Python's is raised for wrong
ones. It implements ``out=`` and converts NumPy scalars to Python numbers where PyTorch expects numbers. Its code is
``templates.public``, specialised at the first call.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..core import torch_function
from ..runtime.lazy_functions import lazy_function
from . import templates
from .argument_checks import KEPT, UNCERTAIN, check_arguments
from .fast_path import install
from .form import PublicForm
from .given_arguments import ArgumentReader
from .intercept import GO_ON, HANDLERS, OVERRIDING, ask_classes
from .introspection import RecordedSignature, with_first_parameter
from .op import MISSING
from .out_argument import call_into_out

if TYPE_CHECKING:
    from types import FunctionType

    from ..core.typing import Function
    from .op import Op
    from .typing import DeclaredFunction, Operands, Params, Result

__retrograd_call__ = True  # see user_frame.CALL_MARK
EMPTY: Mapping[str, object] = MappingProxyType({})


def public_wrapper(target: Function, space: str, name: str, fallback: bool = False) -> FunctionType:
    """Return the public wrapper of ``target``, called ``name`` in the namespace ``space``, such as ``torch``.

    The first call of the wrapper generates its code. If ``fallback`` is true, the wrapper is the fallback of a
    generated function of this name. The generated function has already passed the call to the active handlers (objects
    that intercept calls), so that the wrapper passes it only to the classes of its arguments.
    """
    made = lazy_function(name, partial(_install, target, space, name, fallback), {"target": target})
    made.__doc__, made.__module__, made.__qualname__ = target.__doc__, "retrograd", name
    loose = target.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if loose and not hasattr(target, "__wrapped__"):
        made.__wrapped__ = RecordedSignature(target, space, name)  # type: ignore[attr-defined]
        if space == "Tensor":
            made.__doc__ = with_first_parameter(target.__doc__, "input", "self")
    else:
        made.__wrapped__ = target  # type: ignore[attr-defined]
    return made


def _install(target: Function, space: str, name: str, fallback: bool, function: FunctionType) -> None:
    """Generate the code of ``function``, the public wrapper of ``target``, and assign it to ``function``."""
    install(templates.public, PublicForm(target, space, name, fallback), function)


def public_fallback(apply: Function, function: DeclaredFunction, space: str, name: str) -> Function:
    """Return the fallback of the public function ``name`` of an operation in the namespace ``space``.

    The fallback passes the call to ``__torch_function__`` of an argument's class, if there is one, and raises an error
    if an argument is missing. Otherwise it calls ``apply(op, operands, parameters)``. For ``out=`` it calls
    ``function``, the package's function of the operation.
    """
    op = function.op
    free = (*("input" if each == "self" else each for each in op.tensors), *op.params[: op.positional])
    only = op.params[op.positional :]
    fitting: dict[object, bool] = {}
    usual: set[tuple[type, ...]] = set()

    @cache
    def reader() -> ArgumentReader:
        return ArgumentReader(function, (*free, *only), len(free), op.defaults, space == "Tensor")

    def slow(
        op: Op, given: Operands, params: Params, rest: tuple[object, ...] = (),
        unknown: Mapping[str, object] = EMPTY, out: object = None,
    ) -> Result:  # fmt: skip
        if OVERRIDING and not torch_function.state()[0]:
            answer = ask_classes(space, name, reader(), [*given, *params], rest, dict(unknown), out)
            if answer is not GO_ON:
                return answer
        for each in (*given, *params):
            if each is MISSING:
                raise TypeError
        if rest or unknown:
            raise TypeError
        classes = (*map(type, given), *map(type, params), out.__class__)
        if classes not in usual:
            values = dict(zip(free, (*given, *params), strict=False))
            named = dict(zip(only, params[op.positional :], strict=True))
            if space != "Tensor":
                named["out"] = out
            found = check_arguments(space, name, values, (), named, {"out": None, **op.defaults}, fitting)
            if found:
                params = tuple([found.get(id(each), each) for each in params])
            elif KEPT.issuperset(classes) and UNCERTAIN.isdisjoint(classes[len(given) :]):
                usual.add(classes)
        if out is not None:
            named = dict(zip(only, params[op.positional :], strict=True))
            # Handlers, which have got this call already, would get that of ``function``, too.
            call = (lambda *_, **__: apply(op, given, params)) if HANDLERS else function
            return call_into_out(call, space, name, (*given, *params[: op.positional]), {**named, "out": out})
        return apply(op, given, params)

    return slow
