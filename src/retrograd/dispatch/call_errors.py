"""Errors of calls: PyTorch's exception, which a public function raises in place of an exception of NumPy or Python.

The exception is derived from the arguments after the call has failed. The original exception stays available as
``__context__``. ``RETROGRAD_TRACEBACK=full`` shows both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from operator import index, is_
from typing import TYPE_CHECKING, Any

import numpy

from ..core import dtypes
from ..core.tensor import Tensor
from ..runtime import user_frame
from ..runtime.fp_warnings import IGNORED, errors
from ..runtime.lazy_functions import UNWRITTEN
from ..runtime.specialization import INLINED_CODE
from ..runtime.user_frame import FINAL, mark_final
from .argument_errors import GIVEN_ON, explain, retry_with_override
from .fallback import fall_back
from .generic_path import check_cast, check_shape
from .given_arguments import as_given
from .intercept import ask_classes_of_call, intercept_call
from .op import MISSING
from .operand_promotion import broadcast_error
from .signatures import USUAL_NAMES, call_by_name, fitting, numpy_names, passed_by_name, signatures

if TYPE_CHECKING:
    from types import CodeType

    from ..core.typing import Array
    from .form import Form, PublicForm
    from .typing import ArgumentList, CallForm, Result

__retrograd_call__ = True  # see user_frame.CALL_MARK


def finish_error(error: Exception, original: Exception) -> Exception | None:
    """Return the exception ``error`` without retrograd's frames in its traceback.

    ``original`` is the exception that the call raised, and ``error`` is this exception or a translation of it. The
    frames are kept in the cases that :func:`user_frame.strip_frames` lists. Then the result is None if ``error`` is
    ``original``. A translation is returned with ``original`` as its cause, so that Python prints both.
    """
    stripped = user_frame.strip_frames(error)
    if stripped is None and error is not original:
        error.__cause__ = error.__cause__ or original
        return error
    return stripped


def _raised_in(error: Exception) -> CodeType | None:
    """Return the code object of the function that a generated function called when ``error`` was raised.

    The error was raised by that function, or by one that it called. The result is None if the generated function itself
    raised the error.
    """
    entry = error.__traceback__
    entry = None if entry is None else entry.tb_next
    while entry is not None and entry.tb_frame.f_code in INLINED_CODE:  # called without specialisation
        entry = entry.tb_next
    return None if entry is None else entry.tb_frame.f_code


def _is_of_user_code(form: CallForm, error: Exception) -> bool:
    """Whether ``error`` was raised by code of the program that the call ran, such as a hook, or by a handler.

    A handler is an object that intercepts calls, such as a mode. A kernel that the program declares does not count as
    code of the program.
    """
    kernel = form.op.kernel.__code__ if hasattr(form, "op") else None
    return user_frame.passed_user_code(error, kernel) or _raised_in(error) in (
        intercept_call.__code__,
        ask_classes_of_call.__code__,
    )


def _is_of_fallback(form: Form, error: Exception) -> bool:
    """Whether ``error`` was raised by the fallback, which runs the calls that the fast path does not support."""
    code = _raised_in(error)
    return code is not None and (code is getattr(form.slow, "__code__", None) or code.co_filename == UNWRITTEN)


def _is_checked(form: Form, error: Exception) -> bool:
    """Whether ``error`` is already PyTorch's error, so that it is not translated.

    This is the case for every error of the fallback. An error of the kernel is PyTorch's if it is a RuntimeError,
    unless the operation is in place.
    """
    if _raised_in(error) is form.op.kernel.__code__:
        return isinstance(error, RuntimeError) and not form.over  # NumPy raises no RuntimeError
    return _is_of_fallback(form, error)


def is_of_numpy(form: Form, error: Exception) -> bool:
    """Whether ``error``, a FloatingPointError, was raised by NumPy in the kernel.

    NumPy raises it only if the program has changed the error handling, for example by ``numpy.seterr(all="raise")``.
    """
    return not _is_of_user_code(form, error) and not _is_of_fallback(form, error)


def repeated(
    form: CallForm, error: Exception, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object],
    out: object,
) -> Callable[[], Result] | None:  # fmt: skip
    """Return a function that repeats a failed call in a way in which it can succeed, or None if there is none.

    A call is repeated so that ``__torch_function__`` can override it: a class with this method that does not derive
    from Tensor is registered only after a call with an instance of it has failed. A call with NumPy's names of
    parameters is repeated with PyTorch's names, a deprecated call such as ``x.add_(2, y)`` as ``x.add_(y, alpha=2)``, one
    with other objects than ints where ints are expected with ints, one with a 0-d tensor on the CPU and a tensor on
    another device by the generic path, and one in which NumPy has raised a FloatingPointError while these errors are
    ignored. ``form`` describes the called function, and ``error`` is the exception that was raised. The other parameters
    are the arguments of the call, as for :func:`fall_back`.
    """
    if hasattr(form, "slow") and (hasattr(error, "_on_two_devices") or _on_two_devices([*args, *rest])):
        called: Any = form  # not that of a public wrapper
        return None if _is_of_fallback(called, error) else partial(fall_back, called, args, rest, unknown, out)
    if not form.wrapped or hasattr(error, FINAL) or _is_of_user_code(form, error):
        return None
    if isinstance(error, RuntimeError) and "modified inplace" in str(error) and _may_return_operand(form):
        called = form
        return partial(fall_back, called, args, rest, unknown, out)  # the result may be the stale view itself
    if isinstance(error, FloatingPointError) and errors.get() is not IGNORED:
        return partial(_without_numpy_errors, form, args, rest, unknown)
    values, named, defaults = form.given(args, unknown, out)
    again = retry_with_override(form.space, form.name, values, rest, named, defaults)
    if again is None and unknown and not USUAL_NAMES.keys().isdisjoint(unknown):
        return _with_usual_names(form, values, rest, named, defaults)
    if again is None and rest and passed_by_name(form.space, form.name):
        again = _by_name(form, values, rest, named, defaults)
    return again or _with_ints(form, args, rest, unknown)


def _on_two_devices(values: Sequence[object]) -> bool:
    """Whether ``values`` contains a tensor on the CPU and one on a GPU, also in tuples and lists."""
    if "cupy" not in sys.modules:
        return False
    kinds = set()
    for each in values:
        kinds |= {part._array.__class__ for part in (each if isinstance(each, (tuple, list)) else (each,))
                  if isinstance(part, Tensor) and type(part._array).__module__ != "retrograd.kernels.meta.array"}  # fmt: skip
    return len(kinds) > 1 and numpy.ndarray in kinds


def _may_return_operand(form: CallForm) -> bool:
    """Whether the function of ``form`` returns its operand, without using its edge, if nothing is to be changed."""
    return getattr(form, "identity_if", None) is not None or form.name == "flatten"


def _with_ints(
    form: CallForm, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object]
) -> Callable[[], Result] | None:  # fmt: skip
    """Return a function that repeats a call with ints in place of other objects with ``__index__``, or None.

    None is returned if there are no such objects, or if PyTorch does not accept them. See :func:`repeated` for the
    parameters.
    """
    converted = [*map(_int_of, args)], tuple(map(_int_of, rest)), {key: _int_of(each) for key, each in unknown.items()}
    same = all(map(is_, (*args, *rest, *unknown.values()), (*converted[0], *converted[1], *converted[2].values())))
    if same or (form.space == "Tensor" and not (args and isinstance(args[0], Tensor))):
        return None
    values, named, defaults = form.given(args, unknown, None)
    free, named = as_given(values, rest, named, defaults, defaulted=False)
    if not signatures(form.space, form.name):
        if form.name not in GIVEN_ON:
            return None
    elif fitting(form.space, form.name, free[1:] if form.space == "Tensor" else free, named) is None:
        return None
    values, named, _ = form.given(converted[0], converted[2], None)
    named = {key: each for key, each in named.items() if each is not defaults.get(key, MISSING)}
    return partial(form.function, *[each for each in values.values() if each is not MISSING], *converted[1], **named)


def _int_of(value: object) -> object:
    """Return an int in place of ``value``, an object with ``__index__``; in a list or tuple, for its elements."""
    if isinstance(value, (tuple, list)):
        found = [each if isinstance(each, (tuple, list)) else _int_of(each) for each in value]
        return value if all(map(is_, found, value)) else found
    if isinstance(value, (int, Tensor, numpy.integer)) or not hasattr(type(value), "__index__"):
        return value  # an attribute of the instance does not count: a proxy has all of them
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:  # an array with several elements
        return value


def _without_numpy_errors(
    form: CallForm, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object]
) -> Result:
    """Return the result of a repeated call, while NumPy's floating-point errors are ignored.

    The program has changed NumPy's error handling, for example by ``numpy.seterr(all="raise")``. See :func:`repeated` for
    the parameters.
    """
    before = errors.get()
    try:
        errors.set(IGNORED)
        return form.function(*[each for each in args if each is not MISSING], *rest, **unknown)
    finally:
        errors.set(before)


def _with_usual_names(
    form: CallForm, values: dict[str, object], rest: tuple[object, ...], named: dict[str, object],
    defaults: dict[str, object],
) -> Callable[[], Result] | None:  # fmt: skip
    """Return a function that repeats a call with PyTorch's names of parameters in place of NumPy's, or None.

    Only functions of operations, and those of any number of arguments, need it; other public wrappers rename the
    arguments (``argument_checks.use_numpy_names``).
    ``values`` are the positional arguments by parameter name, ``rest`` and ``named`` further positional and keyword
    arguments, and ``defaults`` the default values. None is returned if PyTorch does not accept the names, or if an
    argument is passed by both names.
    """
    names = numpy_names(form.space, form.name)
    given = {key: value for key, value in values.items() if value is not defaults.get(key, MISSING)}
    for key, value in named.items():
        usual = names.get(key, key)
        if usual in given or (usual is key and key in USUAL_NAMES):
            return None
        given[usual] = value
    if form.space == "Tensor" and "axis" in named and given.get("out", MISSING) is None:
        return _as_numpy_calls(form, given)
    return partial(form.function, *[each for each in rest if each is not MISSING], **given)


def _as_numpy_calls(form: CallForm, given: dict[str, object]) -> Callable[[], Result]:
    """Return a function that repeats a call by NumPy: ``numpy.sum(x)`` calls ``x.sum(axis=None, out=None)``.

    PyTorch refuses such calls. ``given`` are the arguments by PyTorch's names; NumPy passes None for those that its
    caller has left out. ``numpy.max`` of some dimensions is ``amax``, because ``max`` also returns indices.
    """
    x, *others = given.items()
    passed = {"correction" if key == "ddof" else key: value for key, value in others if value is not None}
    return partial(getattr(Tensor, {"max": "amax", "min": "amin"}.get(form.name, form.name)), x[1], **passed)


def _by_name(
    form: CallForm, values: dict[str, object], rest: tuple[object, ...], named: dict[str, object],
    defaults: dict[str, object],
) -> Callable[[], Result] | None:  # fmt: skip
    """Return a function that repeats a call with its arguments passed by name, or None.

    None is returned if the arguments fit no signature for which this is necessary. PyTorch's warning about a deprecated
    signature is issued once. See :func:`_with_usual_names` for the
    parameters.
    """
    args, named = as_given(values, rest, named, defaults, defaulted=False)
    method = form.space == "Tensor"
    found = call_by_name(form.space, form.name, args[1:] if method else args, named)
    if found is None:
        return None
    given, text = found
    if text and (not _warned_of or user_frame.warn_always):
        _warned_of.append(text)
        user_frame.warn(text)
    return partial(form.function, *args[:method], **given)


#: The warning about a deprecated signature, which is issued once for all functions.
_warned_of: list[str] = []


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
    """Return the exception for a failed call: PyTorch's argument error, or ``error`` if the arguments are valid.

    Valid arguments match one of PyTorch's signatures. The frames of retrograd are removed from the traceback by
    :func:`finish_error`, which also explains ``original``. See :func:`call_error` for the other parameters and for the
    result None.
    """
    values, named, defaults = form.given(args, unknown, out)
    found = explain(error, form.target, form.space, form.name, values, rest, named, defaults)
    return finish_error(mark_final(error if found is None else found), original)


def shape_error(form: Form, args: ArgumentList) -> RuntimeError | None:
    """Return PyTorch's error if the shapes of the operands do not fit, otherwise None.

    The shapes fit if they can be broadcast together. For an in-place operation, they must be broadcast to the shape of
    the first operand. ``form`` describes the called function, and ``args`` are the values of its named parameters.
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


def public_error(
    form: PublicForm, error: Exception, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object]
) -> Exception | None:
    """Return the exception that a failed call of a public wrapper raises instead of ``error``, or None.

    A public wrapper is the generated function that users call in place of a Python function of the package. The
    parameters and the result None have the same meaning as for :func:`call_error`.
    """
    if hasattr(error, FINAL) or _is_of_user_code(form, error):
        return finish_error(error, error)
    return _explained(form, error, error, args, rest, unknown, None)
