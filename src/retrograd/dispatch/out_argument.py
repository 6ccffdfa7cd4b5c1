"""The ``out=`` argument of public functions.

Operations do not implement ``out=``: the function is called without it, and its result is copied into the outputs after
their dtypes and shapes are checked. The checks and the error texts of each function are recorded from PyTorch in
``outs.txt``, which is read at the first call with ``out=``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from ..core import dtypes, promotion
from ..core.grad_mode import recording, restore_recording, set_recording
from ..core.saved_tensor_hooks import before_modification
from ..core.tensor import Tensor, share_memory, wrap
from ..core.views import assign, check_in_place, check_partial_overlap
from ..runtime.user_frame import warn
from .generic_path import resized
from .intercept import HANDLERS
from .op import MISSING
from .return_types import RESULTS, named
from .transform_tensor import innermost

if TYPE_CHECKING:
    from ..core.typing import Array, ArrayDType, Function, Kwargs
    from .typing import OperandSequence, OutTable, Result

#: Reductions that compute in the dtype of ``out`` (except for ``mean``); an argument ``dtype`` must agree with it.
REDUCING = frozenset(["sum", "prod", "cumsum", "cumprod", "nansum", "nanmean", "mean"])
#: Functions that create a tensor in the dtype of ``out``.
CREATING = frozenset((
    "zeros", "ones", "full", "empty", "eye", "linspace", "logspace", "range", "arange", "rand", "randn", "randint",
    "randperm", "fft.fftfreq", "fft.rfftfreq",
))  # fmt: skip
#: Functions that accept a number for any tensor argument, including ``out``.
TAKE_NUMBERS = frozenset(["add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide"])


def call_into_out(call: Function, space: str, name: str, args: OperandSequence, named: Kwargs) -> Result:
    """Run ``call`` without ``out``, write its result into the output ``named["out"]``, and return the output.

    ``args`` and ``named`` are the arguments of the call. ``space`` and ``name`` identify the public function in
    ``outs.txt`` and in errors.
    """
    key = name if space == "torch" else f"{space}.{name}"
    rest, out = dict(named), named["out"]
    del rest["out"]
    flat = [each for one in (*args, *rest.values()) for each in (one if isinstance(one, (tuple, list)) else (one,))]
    read = [each for each in flat if isinstance(each, Tensor)]
    found = MISSING
    if key not in CREATING and out.__class__ is Tensor and _is_usual(out, flat, key in REDUCING):
        found = call(*args, **rest)
        if found.__class__ is Tensor and found._array.shape == out._array.shape:
            overload = _overload(key, read, rest.get("dim", args[1] if len(args) > 1 else None), False)
            if _mismatch(overload, 0, found._array.dtype, out._array.dtype) is None:
                assign(out, found._array)
                return out
    if name in TAKE_NUMBERS and isinstance(out, (bool, int, float, complex)):
        out = wrap(dtypes.number_to_array(out, promotion.dtype_of_number(out).numpy))
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    if not all(isinstance(each, Tensor) for each in outs):
        raise TypeError(f"{name}(): argument 'out' must be Tensor")
    special = innermost((*read, *outs))
    if special is not None:
        raise special.refuse_out(name)
    _refuse_graded(key, read, outs)
    if key in REDUCING or key in CREATING:
        _check_dtype_argument(key, rest.setdefault("dtype", None), outs[0].dtype)
        if key != "mean":
            rest["dtype"] = outs[0].dtype
    if found is MISSING:
        before = set_recording(False)
        try:
            found = call(*args, **rest)
        finally:
            restore_recording(before)
    several = isinstance(found, (tuple, list))
    results = tuple(found) if several else (found,)
    if several is (outs[0] is out):
        raise TypeError(f"{name}(): argument 'out' must be {'tuple of Tensors' if several else 'Tensor'}")
    if len(outs) != len(results):
        raise _wrong_number(key, len(results), len(outs))
    overload = _overload(key, read, rest.get("dim", args[1] if len(args) > 1 else None), several)
    for index, (result, target) in enumerate(zip(results, outs, strict=True)):
        _check(key, overload, index, result, target, read)
    for result, target in zip(results, outs, strict=True):
        _write(key, target, result._array)
    if rest.get("requires_grad"):
        out._set_requires_grad()
    return _returned(key, found, outs) if several else out


def _returned(key: str, found: object, outs: tuple[Tensor, ...]) -> object:
    """Return the object that PyTorch returns for a call with several outputs ``outs``.

    For functions that copy views, such as ``split_copy``, this is None. For other functions it is a named tuple of
    ``outs`` if ``found``, the result of the call without ``out=``, is a named tuple, and otherwise a tuple. ``key`` is
    the function's name in ``outs.txt``.
    """
    kind = type(found)
    if kind.__module__ != "torch.return_types":
        return None if key.endswith("_copy") else outs
    name = f"{kind.__name__}_out"
    if name not in RESULTS:
        named(name, [each for each, value in vars(kind).items() if isinstance(value, property)])
    return RESULTS[name](outs)


#: Classes of arguments besides tensors with which a call can be a usual one.
SIMPLE = frozenset((bool, int, float, str, type(None)))


def _is_usual(out: Tensor, values: OperandSequence, reducing: bool) -> bool:
    """Whether only the shape and the dtype of the result need to be checked before it is written into ``out``.

    This is the case if ``out`` is a plain tensor that shares no memory with ``values``, and no tensor requires
    gradients. ``values`` are the other arguments of the call, with the items of lists. If ``reducing`` is true, ``out``
    must also be floating-point or complex, and the operands must have its dtype, so that the result has it, too.
    """
    array = out._array
    if (
        out._view is not None
        or out._grad_edge is not None
        or out._counter == ()  # an inference tensor
        or array.__class__ is not ndarray
        or array.base is not None
        or (reducing and array.dtype.kind not in "fc")
        or HANDLERS
        or before_modification
    ):
        return False
    for each in values:
        if each.__class__ is Tensor:
            if (
                each is out
                or each._grad_edge is not None
                or each._view is not None
                or each._array.__class__ is not ndarray
                or (reducing and each._array.dtype is not array.dtype)
                or share_memory(each._array, array)
            ):
                return False
        elif each.__class__ not in SIMPLE:
            return False
    return True


# --- Checks of the outputs ------------------------------------------------------------------------------------------


def _wrong_number(key: str, wanted: int, given: int) -> Exception:
    if not key.endswith("_copy"):
        return TypeError(f"expected tuple of {wanted} elements but got {given}")
    form = {"unbind_copy": "unbind_copy_int_out", "split_copy": "split_copy_Tensor_out()"}.get(key, f"{key}_out")
    return RuntimeError(f"{form} expected an out= argument of size {wanted}, got size {given}")


def _check_dtype_argument(key: str, dtype: object, out: dtypes.dtype) -> None:
    """Raise RuntimeError if ``dtype``, an argument of the call, differs from ``out``, the dtype of the output tensor.

    ``key`` is the function's name in ``outs.txt``.
    """
    if dtype is None or not isinstance(dtype, dtypes.dtype) or dtype is out:
        return
    if key in CREATING:
        scalars = f"{dtypes.scalar_name(dtype)} does not match dtype of out parameter ({dtypes.scalar_name(out)})"
        raise RuntimeError(f"dtype {scalars}")
    if key == "nansum":
        scalars = f"Got {dtypes.scalar_name(out)} and {dtypes.scalar_name(dtype)}."
        raise RuntimeError(f"nansum: provided dtype must match dtype of result. {scalars}")
    raise RuntimeError(
        f"Expected out tensor to have dtype {dtypes.cpp_name(dtype)}, but got {dtypes.cpp_name(out)} instead"
    )


def _refuse_graded(key: str, read: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
    """Raise RuntimeError if gradients are recorded and an operand or an output requires a gradient.

    ``key`` is the function's name in ``outs.txt``, ``read`` are the operands, and ``outs`` the outputs.
    """
    if not recording():
        return
    name = _table()["graded inputs"].get(key, "itself")
    if not any(each.requires_grad for each in read):
        if not any(each.requires_grad for each in outs):
            return
        name = _table()["graded out"].get(key, name)
    if name and name != "in-place":
        shown = key.replace(".", "_") if name == "itself" else name
        raise RuntimeError(
            f"{shown}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad. Remedy: take the result as it is returned, or call it under torch.no_grad()."
        )


def _overload(key: str, read: Sequence[Tensor], dim: object, several: bool) -> str:
    """Return the name in ``outs.txt`` of the overload of PyTorch's function that the call uses.

    The result is ``key``, the function's name, if all overloads have the same checks. ``read`` are the operands of the
    call, ``dim`` is its argument ``dim``, and ``several`` is true if there are several outputs.
    """
    if key in ("max", "min") and several:
        return "aminmax"
    if key in ("max", "min", "clamp", "clip", "clamp_min", "clamp_max") and len(read) > 1:
        return "maximum"
    if key in ("nansum", "nanmean") and read[0].dtype.category < dtypes.FLOATING:
        return "sum"
    if key == "mean" and dim is not None:
        return "std"
    if key in ("matmul", "linalg.matmul"):
        ranks = tuple(each._array.ndim for each in read)
        return {(1, 1): "dot", (2, 1): "mv"}.get(ranks, "mm")  # type: ignore[arg-type]
    return key


def _check(key: str, overload: str, index: int, result: Tensor, target: Tensor, read: Sequence[Tensor]) -> None:
    """Raise PyTorch's error if ``result`` may not be written into ``target``, the output at ``index``.

    The function checks the dtype, gradients, and overlap in memory with the operands ``read``. ``key`` and ``overload``
    are names in ``outs.txt`` of the function and of the overload.
    """
    text = _mismatch(overload, index, result._array.dtype, target._array.dtype)
    if text is not None:
        raise _error(text, result.dtype, target.dtype)
    graded = target.requires_grad and recording() and _table()["graded out"].get(key) == "in-place"
    if graded and key in CREATING:
        raise RuntimeError("cannot resize variables that require grad")
    check_in_place(target, graded)
    if key in _table()["apart"]:
        if any(share_memory(each._array, target._array) for each in read):
            raise RuntimeError(OVERLAP)
        return
    if target._array.shape != result._array.shape and any(each is target for each in read):
        if _tests(overload, index) is USUAL or key in _table()["broadcast"]:
            shapes = f"{list(target._array.shape)} doesn't match the broadcast shape {list(result._array.shape)}"
            raise RuntimeError(f"output with shape {shapes}")
    elif key not in _table()["may overlap"]:
        check_partial_overlap(target, read)


def _tests(overload: str, index: int) -> Sequence[tuple[str, str]]:
    """Return the tests of an output's dtype that ``outs.txt`` lists, as pairs of the test's name and an error text.

    ``overload`` is the name of the overload in this file, and ``index`` the index of the output.
    """
    tests = _table()["tests"]
    found: Sequence[tuple[str, str]] = tests.get(f"{overload}#{index}") or tests.get(overload, USUAL)
    return found


@cache
def _mismatch(overload: str, index: int, result: ArrayDType, out: ArrayDType) -> str | None:
    """Return the error text in ``outs.txt`` if a result may not be written into an output, otherwise None.

    ``result`` and ``out`` are their NumPy dtypes, and ``index`` is the index of the output.
    """
    dtypes_ = dtypes.dtype_of(result), dtypes.dtype_of(out)
    return next((text for test, text in _tests(overload, index) if not TESTS[test](*dtypes_)), None)


OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)
USUAL = (("cast", "result type {result} can't be cast to the desired output type {out}"),)
#: The tests named in outs.txt: whether a result of one dtype may be written into an output of another.
TESTS: dict[str, Callable[[dtypes.dtype, dtypes.dtype], bool]] = {
    "any": lambda result, out: True,
    "same": lambda result, out: result is out,
    "cast": promotion.can_cast,
    "floating": lambda result, out: out.is_floating_point,
    "complex": lambda result, out: out.is_complex,
    "inexact": lambda result, out: out.is_complex or out.is_floating_point,
    "real": lambda result, out: not out.is_complex,
    "number": lambda result, out: out is not dtypes.named("bool"),
    "real number": lambda result, out: out is not dtypes.named("bool") and not out.is_complex,
    "bytes": lambda result, out: out in (dtypes.named("bool"), dtypes.named("uint8")),
}


def _error(recorded: str, result: dtypes.dtype, out: dtypes.dtype) -> Exception:
    """Return the error whose text is ``recorded``, a template in ``outs.txt`` with fields for dtype names.

    The names of the dtypes ``result`` and ``out`` are inserted. The template begins with the class of the error, unless
    this is RuntimeError.
    """
    kind, _, text = recorded.rpartition("Error: ")
    names = {"result": dtypes.scalar_name(result), "out": dtypes.scalar_name(out)}
    names |= {"c_result": dtypes.cpp_name(result), "c_out": dtypes.cpp_name(out)}
    names |= {"int32": str(result.name == "int32")}
    names |= {"type_result": dtypes.legacy_type_name(result), "type_out": dtypes.legacy_type_name(out)}
    kinds: dict[str, Any] = {"": RuntimeError, "Type": TypeError, "NotImplemented": NotImplementedError}
    error: Exception = kinds[kind](text.format(**names))
    return error


@cache
def _table() -> OutTable:
    """Return the contents of ``outs.txt``: for each section, a dictionary whose keys are function names.

    The values of the inner dictionaries are texts. In the section ``tests`` they are lists of pairs (test, error text).
    """
    table: dict[str, Any] = {each: {} for each in SECTIONS}
    tests: dict[str, list[tuple[str, str]]] = {}
    with open(os.path.join(os.path.dirname(__file__), "outs.txt"), encoding="utf-8") as file:
        lines = [each for each in file.read().splitlines() if not each.startswith("#")]
    for head, names in zip(lines[::2], lines[1::2], strict=True):
        section, _, text = head[1:].partition("]")
        for name in names.split():
            if section in TESTS:
                tests.setdefault(name, []).append((section, text.strip()))
            else:
                table[section][name] = text.strip()
    return {**table, "tests": tests}


SECTIONS = ("apart", "broadcast", "graded inputs", "graded out", "may overlap", "resized silently")


# --- Writing --------------------------------------------------------------------------------------------------------


#: Like linalg's and elementwise functions, these give a resized output the strides of the result, not C order.
BY_COLUMNS = frozenset((
    "cholesky", "cholesky_inverse", "cholesky_solve", "geqrf", "inverse", "lu_solve", "orgqr", "ormqr", "qr", "svd",
    "triangular_solve",
))  # fmt: skip


def _write(key: str, target: Tensor, array: Array) -> None:
    """Write ``array`` into ``target`` and increment its version counter; resize ``target`` first if the shapes differ.

    ``key`` is the function's name in ``outs.txt``, which decides whether resizing issues a warning.
    """
    if target._array.shape != array.shape:
        if target._array.size and key not in _table()["resized silently"]:
            _warn_of_resizing(target, array.shape)
        target._array = resized(target._array, array.shape)
        if not array.flags.c_contiguous and (
            key.startswith("linalg.") or key in BY_COLUMNS or key not in _table()["tests"]
        ):
            target._array = array.astype(target._array.dtype, order="K")
        target._renew_leaf()
    assign(target, array)


def _warn_of_resizing(target: Tensor, shape: tuple[int, ...]) -> None:
    """Issue PyTorch's warning that an output ``target`` with elements is resized to ``shape``."""
    warn(
        f"An output with one or more elements was resized since it had shape {list(target._array.shape)}, which does not "
        f"match the required output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch release "
        "outputs will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing "
        "it, inplace, to zero elements with t.resize_(0).",
    )
