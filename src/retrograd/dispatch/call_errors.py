"""Errors of calls: PyTorch's exception, which a public function raises in place of an exception of NumPy or Python.

The exception is derived from the arguments after the call has failed. The original exception stays available as
``__context__``. ``RETROGRAD_TRACEBACK=full`` shows both.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy

from ..core import dtypes
from ..core.tensor import Tensor
from ..runtime import user_frame
from ..runtime.lazy_functions import UNWRITTEN
from ..runtime.specialization import INLINED
from .argument_errors import explain, retry_with_override
from .fallback import fall_back
from .generic_path import INFERENCE_SAVED, NO_INFERENCE, check_cast, check_shape
from .intercept import ask_classes_of_call, intercept_call
from .operand_promotion import broadcast_error

if TYPE_CHECKING:
    from types import CodeType

    from ..core.typing import Array
    from .form import Form, PublicForm
    from .op import Op
    from .typing import ArgumentList, CallForm, DeclaredNode, Result

__retrograd_call__ = True  # see user_frame.CALL_MARK
#: Attribute of exceptions that are final: an outer function must not translate them again.
FINAL = "__retrograd_final__"


def finish_error(error: Exception, original: Exception) -> Exception | None:
    """Return the exception ``error`` with retrograd's frames removed from its traceback.

    The result is None if ``error`` is ``original``, the exception that the call raised, and its traceback must be kept.
    With ``RETROGRAD_TRACEBACK=full``, ``original`` becomes the cause of ``error``, so that Python prints both.
    """
    stripped = user_frame.strip_frames(error)
    if stripped is None and error is not original:
        error.__cause__ = error.__cause__ or original
        return error
    return stripped


def _mark_final(error: Exception) -> Exception:
    with suppress(AttributeError):  # an exception class with __slots__
        setattr(error, FINAL, True)
    return error


def _raised_in(error: Exception) -> CodeType | None:
    """Return the code of the function that the template called when ``error`` was raised, or None: the template itself."""
    entry = error.__traceback__
    entry = None if entry is None else entry.tb_next
    helpers = {each.__code__ for each in INLINED}  # without specialisation, these are called
    while entry is not None and entry.tb_frame.f_code in helpers:
        entry = entry.tb_next
    return None if entry is None else entry.tb_frame.f_code


def _is_of_user_code(form: CallForm, error: Exception) -> bool:
    """Whether ``error`` was raised by code of the program that the call ran (a hook, a handler), or by a handler.

    A kernel that the program declares does not count.
    """
    kernel = form.op.kernel.__code__ if hasattr(form, "op") else None
    return user_frame.passed_user_code(error, kernel) or _raised_in(error) in (
        intercept_call.__code__,
        ask_classes_of_call.__code__,
    )


def _is_of_fallback(form: Form, error: Exception) -> bool:
    """Whether ``error`` was raised by the fallback of the function."""
    code = _raised_in(error)
    return code is not None and (code is getattr(form.slow, "__code__", None) or code.co_filename == UNWRITTEN)


def _is_checked(form: Form, error: Exception) -> bool:
    """Whether ``error`` is PyTorch's, raised by the fallback of the function or by the kernel."""
    if _raised_in(error) is form.op.kernel.__code__:
        return isinstance(error, RuntimeError) and not form.over  # NumPy raises no RuntimeError
    return _is_of_fallback(form, error)


def is_of_numpy(form: Form, error: Exception) -> bool:
    """Whether a FloatingPointError was raised by the kernel, as ``numpy.seterr`` requires."""
    return not _is_of_user_code(form, error) and not _is_of_fallback(form, error)


def repeat_with_override(
    form: CallForm, error: Exception, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object],
    out: object,
) -> Callable[[], Result] | None:  # fmt: skip
    """Return a function that repeats a failed call with ``__torch_function__`` of the class of an argument, or None.

    The class is one that does not derive from Tensor and was not registered before the call; None means that there is
    no such class. ``form`` describes the called function, and ``error`` is the exception that was raised. The other
    parameters are the arguments of the call, as for :func:`fall_back`.
    """
    if not form.wrapped or hasattr(error, FINAL) or _is_of_user_code(form, error):
        return None
    values, named, defaults = form.given(args, unknown, out)
    return retry_with_override(form.space, form.name, values, rest, named, defaults)


def call_error(
    form: Form, error: Exception, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object], out: object,
    computed: bool,
) -> Exception | None:  # fmt: skip
    """Return the exception that a failed call raises instead of ``error``, or None to raise ``error`` as it is.

    ``form`` describes the called function. ``args``, ``rest``, ``unknown`` and ``out`` are the arguments of the call,
    as for :func:`fall_back`. If ``computed`` is true, the kernel has succeeded, and a later part of the call has
    failed.
    """
    original = error
    if computed or hasattr(error, FINAL) or _is_of_user_code(form, error):
        return finish_error(error, error)
    if form.pointwise and isinstance(error, ValueError):
        error = shape_error(form, args) or error
    elif (form.spec is not None or form.inline is not None) and not _is_checked(form, error):
        # A variant of the kernel does not check its arguments: the fallback raises PyTorch's error.
        try:
            fall_back(form, args, rest, unknown, out)
        except Exception as checked:
            error = checked
    if not form.wrapped or hasattr(error, FINAL):
        return finish_error(error, original)
    return _explained(form, error, original, args, rest, unknown, out)


def _explained(
    form: CallForm, error: Exception, original: Exception, args: ArgumentList, rest: tuple[object, ...],
    unknown: dict[str, object], out: object,
) -> Exception | None:  # fmt: skip
    """Return PyTorch's argument error if the arguments match no signature, otherwise ``error``; both finished.

    See :func:`finish_error` for ``original``, and :func:`call_error` for the other parameters and the result.
    """
    values, named, defaults = form.given(args, unknown, out)
    found = explain(error, form.target, form.space, form.name, values, rest, named, defaults)
    return finish_error(_mark_final(error if found is None else found), original)


def shape_error(form: Form, args: ArgumentList) -> RuntimeError | None:
    """Return PyTorch's error if the shapes of the operands do not fit, otherwise None.

    The shapes must be broadcastable, for an in-place operation to the shape of the first operand. ``form`` describes
    the called function, and ``args`` are the values of its named parameters.
    """
    operands = [args[i] for i in form.operands]
    error = broadcast_error(operands)
    if error is None and form.over and isinstance(operands[0], Tensor):
        shapes = [each._array.shape for each in operands if isinstance(each, Tensor)]
        try:
            check_shape(operands[0], numpy.broadcast_shapes(*shapes))
        except RuntimeError as raised:
            return raised
    return error


def check_result(x: Tensor, result: Array) -> None:
    """Raise RuntimeError if the array ``result`` cannot be written into ``x`` because of its shape or dtype."""
    check_shape(x, result.shape)
    check_cast(dtypes.dtype_of(result.dtype), x.dtype)


def inference_error(op: Op, name: str, node: DeclaredNode) -> RuntimeError:
    """Return the error for an inference tensor that a graph node would have to save for the backward pass.

    ``name`` is the name of the tensor in the derivative rules of ``op``, and ``node`` is the graph node.
    """
    return RuntimeError(f"{INFERENCE_SAVED} It is {name} of {op.shown}, kept for {type(node).__name__}. {NO_INFERENCE}")


def public_error(
    form: PublicForm, error: Exception, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object]
) -> Exception | None:
    """Return the same as :func:`call_error`, for the public wrapper of a Python function."""
    if _is_of_user_code(form, error):
        return finish_error(error, error)
    return _explained(form, error, error, args, rest, unknown, None)
