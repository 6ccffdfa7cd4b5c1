"""The choice among the variants of a kernel by the number of elements and the available libraries.

A kernel is declared once. The decorated function is its NumPy implementation; the variants before it are tried in
order::

    @at_most(SMALL)
    def _softmax_small(np, x, axis):
        ...

    @at_least(LARGE, NUMBA)
    def _softmax_loop(np, x, axis):
        ...

    @kernel(_softmax_small, _softmax_loop)
    def softmax(np, x, axis):
        ...

The result of ``kernel``, the dispatcher, is a plain function with the parameters of the implementation. The first
argument is the array module. The ``size`` of the second, or another number that the kernel states with ``count=``, is
compared with the limits of the variants. A variant that does not support its arguments (by dtype, layout, memory order
or value) returns None; then the next one is tried. The NumPy implementation supports all arguments. All limits are in
``kernels/thresholds.py``.

Note [Specialised dispatchers]. Small arrays are computed in less than a microsecond, so a choice must take nanoseconds.
The dispatcher is a copy of the function ``choose``, specialised for the variants of the kernel at its 32nd call
(``runtime/specialization.py``): it adds 20 to 40 ns to a call, where the function itself would add 300. With
``RETROGRAD_CODEGEN=0`` it runs the function itself.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from ..runtime.lazy_functions import generated, lazy_function, set_code
from ..runtime.specialization import EXPRESSIONS, as_expression, specialize
from .numba_dispatch import available, looped
from .thresholds import LARGE

#: Libraries that a variant may need, and the functions of the size that return whether they may be used.
NUMBA = "numba"
LIBRARIES: dict[str, Callable[[int], bool]] = {NUMBA: available}


#: The highest number of elements of a variant for large arrays.
UNLIMITED = sys.maxsize


class Variant(NamedTuple):
    """Implementation of a kernel for a range of sizes: from ``low`` to ``high`` elements, both included.

    ``function`` returns None for arguments that it does not support. ``library`` is the name of a library that the
    implementation needs, or None.
    """

    function: Callable[..., Any]
    low: int
    high: int
    library: str | None

    @property
    def installed(self) -> Callable[[int], bool] | None:
        """Function of the size that returns whether the library may be used; None if none is needed."""
        return LIBRARIES[self.library] if self.library else None


class Kernel(NamedTuple):
    """Declaration of a kernel: the NumPy implementation and the variants that are tried before it, in order."""

    name: str
    numpy: Callable[..., Any]
    variants: tuple[Variant, ...]


#: All kernels with variants, by their dispatching functions.
KERNELS: dict[Callable[..., Any], Kernel] = {}


def at_most(limit: int) -> Callable[[Callable[..., Any]], Variant]:
    """Return a decorator that makes a function a kernel's variant (implementation) for at most ``limit`` elements."""
    return lambda function: Variant(function, 0, limit, None)


def at_least(limit: int, library: str | None = None) -> Callable[[Callable[..., Any]], Variant]:
    """Return a decorator that makes a function a kernel's variant (implementation) for ``limit`` elements or more.

    The variant is used only if ``library`` is None, or installed and enabled.
    """
    return lambda function: Variant(function, limit, UNLIMITED, library)


def elementwise_loop(name: str, arrays: int = 1, *constants: float, least: int = LARGE) -> Variant:
    """Return a variant of a kernel that calls the elementwise Numba loop ``name`` (see :func:`looped`) on large arrays.

    These are arrays of at least ``least`` elements.

    The first ``arrays`` arguments of the kernel are arrays. The others are numbers, which are passed to the loop
    together with ``constants``.
    """

    def loop(np: Any, *given: Any) -> Any:
        if len(given) == arrays:
            return looped(name, *given, numbers=constants)
        return looped(name, *given[:arrays], numbers=(*given[arrays:], *constants))

    return Variant(loop, least, UNLIMITED, NUMBA)


def kernel(*variants: Variant, count: Callable[..., int] | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a NumPy implementation a kernel, which tries ``variants`` first, in order.

    A variant is another implementation, for a range of sizes. ``count`` is a function of the kernel's first arguments
    after the array module. It returns the number that is compared with the size limits of the variants. By default,
    this number is the ``size`` of the first argument. If ``count`` is a lambda expression, its body is copied into the
    dispatcher, so that it costs no call.
    """

    def declare(function: Callable[..., Any]) -> Any:
        choose = _dispatcher(Form(function, variants, count or _SIZE)) if variants else function
        KERNELS[choose] = Kernel(f"{function.__module__}.{function.__name__}", function, variants)
        return choose

    return declare


_SIZE: Callable[[Any], int] = lambda x: x.size  # noqa: E731  (inserted into the dispatchers)


class Form:
    """Description of the dispatcher of a kernel, the function that selects an implementation of the kernel.

    ``kernel`` is the NumPy implementation, and ``variants`` are the implementations that are tried before it. ``count``
    is a function of the arguments 1 to ``counted - 1``, which returns the number of elements. An implementation that
    consists of one ``return`` statement is copied into the dispatcher, because its name here is ``kernel``
    (``runtime/specialization.py``).
    """

    tree: Callable[[], ast.FunctionDef]
    replace: Callable[[Any], None] | None = None  # see lazy_functions.Form

    def __init__(self, kernel: Any, variants: tuple[Variant, ...], count: Callable[..., int]) -> None:
        self.kernel, self.variants, self.count = kernel, variants, count
        self.counted = 1 + count.__code__.co_argcount
        self.function: FunctionType | None = None  # the dispatcher, once it is generated
        self.names = [*kernel.__code__.co_varnames[: kernel.__code__.co_argcount]]

    def signature(self) -> ast.arguments:
        """Return the parameters of the dispatcher."""
        return ast.arguments([], [ast.arg(name) for name in self.names], None, [], [], None, [])

    def parts(self) -> dict[str, Any]:
        """Return the names of the kernel's parameters, which replace the parameter ``args`` of :func:`choose`."""
        return {"args": list(self.names)}

    def default_values(self) -> dict[str, Any]:
        """Return no default values, because :func:`_dispatcher` copies those of the NumPy implementation."""
        return {}


def choose(form: Form, args: Any) -> Any:
    """Return the result of the first variant of a kernel that supports ``args``, else of the NumPy implementation.

    ``args`` are the array module and the operands. This function is the template of the dispatchers: a dispatcher is a
    copy of it with one ``if`` statement for each variant, which has only the conditions that the variant needs.
    """
    size = form.count(*args[1 : form.counted])
    for variant in form.variants:
        if (
            (not variant.low or size >= variant.low)
            and (variant.high == UNLIMITED or size <= variant.high)
            and (variant.installed is None or variant.installed(size))
            and (found := variant.function(*args)) is not None
        ):
            return found
    return form.kernel(*args)


def _dispatcher(form: Form) -> Any:
    """Return the dispatcher of a kernel: a copy of :func:`choose` that is generated when it is first called.

    It has the parameters of ``form.kernel``. A generated function that calls the kernel can contain the dispatcher's
    body as an expression instead of the call.
    """
    numpy = form.kernel

    def write(function: FunctionType) -> None:
        form.function = function
        made = generated(choose, form, function.__name__, space)
        made.__defaults__ = numpy.__defaults__
        set_code(function, made)

    def expression() -> Any:
        space["UNLIMITED"] = UNLIMITED
        tree = specialize(choose, form, made.__name__, form.signature(), form.parts(), space)
        return form.names, as_expression(tree.body)

    space: dict[str, Any] = {}
    made = lazy_function(numpy.__name__, write, space)
    made.__module__, made.__qualname__, made.__doc__ = numpy.__module__, numpy.__qualname__, numpy.__doc__
    EXPRESSIONS[made] = expression
    for function in (numpy, *[variant.function for variant in form.variants]):
        EXPRESSIONS.setdefault(function, None)
    return made
