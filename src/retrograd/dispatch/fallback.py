"""Call of the fallback: the slower function that runs the calls which a generated function does not support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..runtime.specialization import inlined

if TYPE_CHECKING:
    from .form import Form
    from .typing import ArgumentList, Params, Result

__retrograd_call__ = True  # see user_frame.CALL_MARK
#: Kind of a parameter that the caller passes.
PASSED = "passed"


@inlined
def parameters(form: Form, args: ArgumentList) -> Params:
    """Return the tuple of the operation's parameters (its arguments that are not operands) in a call.

    ``form`` describes the called function, and ``args`` are the values of its named parameters.
    """
    return tuple([args[source] if kind == PASSED else source for _, kind, source, _ in form.parameters])


@inlined
def fall_back(
    form: Form, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object], out: object
) -> Result:
    """Call the fallback of a generated function with the arguments of a call, and return its result.

    The fallback runs the calls that the generated code does not support. ``form`` describes the generated function, and
    ``args`` are the values of its named parameters. ``rest`` and ``unknown`` are further positional and keyword
    arguments of the call, and ``out`` is its argument ``out=``.
    """
    return (
        form.slow(*args[: form.positional], *rest, **dict(zip(form.keywords, args[form.positional :])), **unknown)
        if form.spec is not None
        else form.slow(form.op, tuple([args[i] for i in form.operands]), parameters(form, args), rest, unknown, out)
        if form.wrapped
        else form.slow(form.op, tuple([args[i] for i in form.operands]), parameters(form, args))
    )
