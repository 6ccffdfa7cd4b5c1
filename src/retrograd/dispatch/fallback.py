"""The call of the fallback of a function, as templates and errors use it."""

from __future__ import annotations

from typing import Any

from ..runtime.specialization import inlined

__retrograd_call__ = True  # see user_frame.CALL_MARK
#: Kind of a parameter that the caller passes.
PASSED = "passed"


@inlined
def parameters(form: Any, args: Any) -> Any:
    """Return the values of the operation's parameters."""
    return tuple([args[source] if kind == PASSED else source for _, kind, source, _ in form.parameters])


@inlined
def fall_back(form: Any, args: Any, rest: Any, unknown: Any, out: Any) -> Any:
    """Call the fallback of the function with the arguments of the call."""
    return (
        form.slow(*args[: form.positional], *rest, **dict(zip(form.keywords, args[form.positional :])), **unknown)
        if form.spec is not None
        else form.slow(form.op, tuple([args[i] for i in form.operands]), parameters(form, args), rest, out)
        if form.wrapped
        else form.slow(form.op, tuple([args[i] for i in form.operands]), parameters(form, args))
    )
