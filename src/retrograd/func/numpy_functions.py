"""Derivatives of functions of NumPy arrays, for SciPy's optimizers: ``retrograd.value_and_grad`` and ``hessian``."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from operator import index
from typing import Any

import numpy

from ..autograd.backward import gradients_of_tensors
from ..compat.lazy_imports import load_part
from ..core import devices, dtypes
from ..core.grad_mode import enable_grad
from ..core.tensor import Tensor, leaf_from_array, wrap
from ..dispatch.transform_tensor import active_levels, innermost
from .jacobians import hessian as of_tensors
from .transforms import outside_inference

#: Computes the arrays of the results from those of the arguments.
_Program = Callable[[Sequence[Any]], list[Any] | None]


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, pure: bool = False
) -> Callable[..., Any]:
    """Return a function of NumPy arrays that returns the value of ``f``, a float, and its gradient.

    ``f`` is written with tensors and returns a real tensor with one element. The returned function converts NumPy arrays
    to tensors, which share their memory, and passes other arguments unchanged. ``f`` must convert other arrays that it
    uses, by ``torch.from_numpy``. ``argnums`` is the position of the argument of the gradient, an array of any shape, a
    number or a sequence of numbers; integers are converted to float64. The gradient has the shape and the dtype of this
    argument, and is a number for a number. ``argnums`` may be a sequence of positions: then a tuple of gradients is
    returned. A gradient is zero if ``f`` does not depend on the argument.

    ``pure=True`` is a promise that the result depends on the elements of the array arguments and on what never changes:
    constants, but no global variable or attribute that changes, and no random numbers. Then ``f`` is called once for all
    arguments of the same shapes and dtypes (and the same numbers, for other arguments), and a compiled program computes
    value and gradient afterwards. If the promise is wrong, so are the results, but changes of tensors that ``f`` uses are
    noticed. A function that cannot be compiled is called each time, for example one that reads elements (``if x > 0``),
    registers hooks, or takes other arguments than arrays, numbers and texts.

    Raises RuntimeError if the result of ``f`` does not have one real element, and TypeError if it is not a tensor, or if
    the argument of the gradient is neither an array nor a number.

    >>> import numpy as np
    >>> import scipy.optimize
    >>> import retrograd as torch
    >>> def distance(x):
    ...     return ((x - torch.tensor([1.0, 2.0])) ** 2).sum()
    >>> torch.value_and_grad(distance)(np.zeros(2))
    (5.0, array([-2., -4.]))
    >>> scipy.optimize.minimize(torch.value_and_grad(distance), np.zeros(2), jac=True).x.round(6)
    array([1., 2.])

    Name and ``argnums`` are those of JAX. Gradients of complex arguments follow PyTorch's convention: the direction of
    steepest ascent.
    """
    return _of_arrays(f, argnums, pure, "value_and_grad")


def hessian(f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, pure: bool = False) -> Callable[..., Any]:
    """Return a function of NumPy arrays that returns the Hessian (the second derivatives) of ``f``.

    ``f``, its arguments, ``argnums`` and the promise ``pure=True`` are those of :func:`value_and_grad`, but the arguments
    ``argnums`` must be real. For an argument of shape ``s`` the result has the shape ``(*s, *s)``, and it is a number for
    a number. If ``argnums`` is a sequence of positions, the result is a tuple of tuples: item ``[i][j]`` has the
    derivatives with respect to the arguments ``argnums[i]`` and ``argnums[j]``.

    The Hessian is computed as by ``torch.func.hessian``. If ``f`` does what transforms do not support (it reads elements,
    or calls an ``autograd.Function`` without ``setup_context``), it is called again, and a backward pass for each element
    of the gradient computes the Hessian.

    Raises the errors of :func:`value_and_grad`, and RuntimeError if one of the arguments ``argnums`` is complex.

    >>> import numpy as np
    >>> import scipy.optimize
    >>> import retrograd as torch
    >>> def f(x):
    ...     return (x**4).sum() + (x[0] - x[1] - 1) ** 2
    >>> torch.hessian(f)(np.array([1.0, 2.0]))
    array([[14., -2.],
           [-2., 50.]])
    >>> value, second = torch.value_and_grad(f, pure=True), torch.hessian(f, pure=True)
    >>> scipy.optimize.minimize(value, np.zeros(2), jac=True, hess=second, method="trust-exact").x.round(3)
    array([ 0.424, -0.424])
    """
    return _of_arrays(f, argnums, pure, "hessian")


def _of_arrays(f: Callable[..., Any], argnums: int | Sequence[int], pure: bool, name: str) -> Callable[..., Any]:
    """Return the function of arrays that ``name``, value_and_grad or hessian, returns for ``f``."""
    single = not isinstance(argnums, (list, tuple))
    places = (index(argnums),) if single else tuple(map(index, argnums))  # type: ignore[arg-type]
    programs: dict[Any, _Program | None] = {}
    known: dict[Any, tuple[_Program, list[int]]] = {}  # of calls with arrays only, by shapes and dtypes
    renewals: Counter[Any] = Counter()  # how often the program of a key was compiled again

    def results(found: list[Any], args: Sequence[Any], chosen: Sequence[int]) -> Any:
        """Return what the caller gets: ``found`` in the structure of ``chosen``, and numbers for numbers."""
        different = list(dict.fromkeys(chosen))
        if name == "hessian":
            size = len(different)
            rows = [found[k * size : (k + 1) * size] for k in range(size)]
            pairs = [
                [_like(rows[different.index(a)][different.index(b)], args[a], args[b]) for b in chosen] for a in chosen
            ]
            if len(different) < len(chosen):
                pairs = [list(map(copy, each)) for each in pairs]
            return pairs[0][0] if single else tuple(map(tuple, pairs))
        gradients = [_like(found[1 + different.index(place)], args[place]) for place in chosen]
        if len(different) < len(chosen):
            gradients = list(map(copy, gradients))
        return found[0].item(), gradients[0] if single else tuple(gradients)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if known and not kwargs:
            key = (
                dtypes.default.floating,
                *[(each.shape, each.dtype) if each.__class__ is numpy.ndarray else None for each in args],
            )
            if key in known and not active_levels():
                program, chosen = known[key]
                found = program(args)
                if found is not None:
                    return results(found, args, chosen)
                del known[key]
        return general(args, kwargs)

    @outside_inference
    def general(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        chosen = [place + len(args) if place < 0 else place for place in places]
        if not all(0 <= place < len(args) for place in chosen):
            remedy = "; pass the argument by position" if kwargs else ""
            raise TypeError(f"{name}: argnums is {argnums}, but the call has {len(args)} positional arguments{remedy}")
        given = [
            _floating(each, name) if place in chosen else _native(each, name) if isinstance(each, _ARRAYS) else each
            for place, each in enumerate((*args, *kwargs.values()))
        ]
        called = functools.partial(_call, f, len(args), tuple(kwargs))
        different = list(dict.fromkeys(chosen))
        found = None
        if pure and not active_levels() and (part := _key(given, tuple(kwargs))) is not None:
            key = dtypes.default.floating, *part
            program = _program(name, called, given, different, programs, key)
            if program is not None:
                found = program([each for each in given if each.__class__ is numpy.ndarray])
                if found is None:  # a tensor that f uses has been modified
                    renewals[key] += 1
                    programs[key] = None
                    if renewals[key] <= RENEWALS:
                        del programs[key]
                elif not kwargs and all(
                    each is old and each.__class__ is numpy.ndarray for each, old in zip(given, args, strict=True)
                ):
                    known[key[0], *[(each.shape, each.dtype) for each in args]] = program, chosen
        if found is None:
            try:
                found = _EAGER[name](called, given, different)
            except (RuntimeError, TypeError) as error:
                _advise(error, name)
                raise
        return results(found, args, chosen)

    return call


_ARRAYS = (numpy.ndarray, numpy.generic)
#: Maximum number of programs of one pure function. Further calls with other shapes, or other numbers as arguments, run in
#: eager mode.
MAX_PROGRAMS = 32
#: How often a program is compiled again because a tensor that the function uses was modified.
RENEWALS = 3
#: Classes of arguments that are constants of a program. They are compared by their text: 1, 1.0 and True are equal, as
#: are 0.0 and -0.0, but nan is not equal to itself.
_CONSTANTS = (int, float, complex, bool, str, bytes, type(None), dtypes.dtype, devices.device)


def _call(f: Callable[..., Any], count: int, names: tuple[str, ...], *values: Any) -> Any:
    """Call ``f`` with the first ``count`` of ``values`` as positional arguments, and the others by ``names``."""
    return f(*values[:count], **dict(zip(names, values[count:], strict=True)))


def _key(given: Sequence[Any], names: tuple[str, ...]) -> Any:
    """Return the key of the program for arguments like ``given``; None if an argument is neither array nor constant."""
    parts: list[Any] = [names]
    for each in given:
        if each.__class__ is numpy.ndarray:
            parts.append((each.shape, each.dtype))
        elif each.__class__ in _CONSTANTS:
            parts.append((each.__class__, repr(each)))
        elif each.__class__ is tuple:
            inner = _key(each, ())
            if inner is None or any(one.__class__ is numpy.ndarray for one in each):
                return None
            parts.append(inner)
        else:
            return None
    return tuple(parts)


def _program(
    name: str,
    f: Callable[..., Any],
    given: Sequence[Any],
    chosen: Sequence[int],
    programs: dict[Any, _Program | None],
    key: Any,
) -> _Program | None:
    """Return the program of the pure function ``f`` for arguments like ``given``, which is compiled if necessary.

    Return None if the function cannot be compiled, or for more than ``MAX_PROGRAMS`` programs.
    """
    if key not in programs:
        if len(programs) >= MAX_PROGRAMS:
            return None
        programs[key] = getattr(load_part("compiler.pure_gradients"), name)(f, given, chosen)
    return programs[key]


#: Dtypes of arrays whose memory a tensor shares; others are converted.
_SHARED = frozenset(map(numpy.dtype, ("f2", "f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "?")))


def _native(value: Any, name: str) -> Any:
    """Return a contiguous array of a supported dtype with the elements of ``value``, an array or a scalar."""
    if isinstance(value, numpy.ma.MaskedArray):
        raise TypeError(f"{name}: a masked array cannot become a tensor")
    array = value if value.__class__ is numpy.ndarray else numpy.asarray(value)
    if array.dtype not in _SHARED:
        if array.dtype.kind not in "fciu":
            raise TypeError(f"{name}: an array of {array.dtype} cannot become a tensor")
        if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
            raise OverflowError(f"{name}: an element of an array of uint64 is too large for int64")
        array = array.astype({"f": numpy.float64, "c": numpy.complex128}.get(array.dtype.kind, numpy.int64))
    return array if array.flags.c_contiguous else numpy.ascontiguousarray(array)


def _floating(given: Any, name: str) -> Any:
    """Return the argument of a gradient as an array of floating or complex numbers."""
    if not isinstance(given, (*_ARRAYS, float, int, complex, list, tuple)):
        raise TypeError(f"{name}: expected an array or a number, but got {type(given).__name__}")
    array = given if isinstance(given, numpy.ndarray) else numpy.asarray(given)
    if name == "hessian" and array.dtype.kind == "c":
        raise RuntimeError("hessian: expected a real argument, but got a complex one")
    return _native(array.astype(numpy.float64) if array.dtype.kind in "iub" else array, name)


def _like(found: Any, *given: Any) -> Any:
    """Return ``found`` as a number if all of the arguments ``given`` are numbers."""
    return found.item() if all(isinstance(each, (float, int, complex)) for each in given) else found


def _value_and_gradients(f: Callable[..., Any], given: Sequence[Any], chosen: Sequence[int]) -> list[Any]:
    """Return the value of ``f`` and the gradients of the arguments ``chosen``, by recording the call."""
    with enable_grad():
        result, leaves = _recorded(f, given, chosen, "value_and_grad")
        found = _gradients(result, leaves)
    gradients = [
        numpy.zeros_like(given[place]) if each is None else numpy.array(each._array)
        for place, each in zip(chosen, found, strict=True)
    ]
    return [result._array, *gradients]


def _recorded(f: Callable[..., Any], given: Sequence[Any], chosen: Sequence[int], name: str) -> tuple[Any, list[Any]]:
    """Return the result of ``f``, and leaves with the arguments ``chosen``, of which it was computed."""
    tensors = [wrap(each) if each.__class__ is numpy.ndarray else each for each in given]
    leaves = [leaf_from_array(given[place]) for place in chosen]
    for place, leaf in zip(chosen, leaves, strict=True):
        tensors[place] = leaf
    result = f(*tensors)
    _check(result, name)
    return result, leaves


def _gradients(result: Any, leaves: list[Any], grad: Any = None, keep: bool = False, record: bool = False) -> list[Any]:
    """Return the gradients of ``result``, which may be None, with respect to each of ``leaves``; None for zeros.

    The other parameters are those of :func:`gradients_of_tensors`.
    """
    if result is None or not result.requires_grad:
        return [None] * len(leaves)
    return gradients_of_tensors([result], leaves, [grad], keep, record)


def second_derivatives(f: Callable[..., Any], tensors: Sequence[Any], chosen: Sequence[int]) -> list[Any]:
    """Return the second derivatives of ``f`` with respect to each pair of the arguments ``chosen``, row by row."""

    def element(*given: Any) -> Any:
        result = f(*given)
        _check(result, "hessian", within=True)
        return result.reshape(())

    rows = of_tensors(element, tuple(chosen))(*tensors)
    return [each for row in rows for each in row]


def _hessian(f: Callable[..., Any], given: Sequence[Any], chosen: Sequence[int]) -> list[Any]:
    """Return the second derivatives of ``f`` as arrays."""
    tensors = [wrap(each) if each.__class__ is numpy.ndarray else each for each in given]
    try:
        found = second_derivatives(f, tensors, chosen)
    except (RuntimeError, TypeError):  # transforms do not support f, or it has an error, which is raised again
        return _hessian_by_rows(f, given, chosen)
    for each in found:
        _check_plain(each, "hessian")
    return [numpy.array(each._array) for each in found]


def _hessian_by_rows(f: Callable[..., Any], given: Sequence[Any], chosen: Sequence[int]) -> list[Any]:
    """Return the second derivatives of ``f`` as arrays, by a backward pass for each element of the gradients.

    ``f`` may read elements, and call any ``autograd.Function``.
    """
    blocks = []
    with enable_grad():
        result, leaves = _recorded(f, given, chosen, "hessian")
        for leaf, gradient in zip(leaves, _gradients(result, leaves, keep=True, record=True), strict=True):
            units = numpy.eye(leaf.numel(), dtype=leaf._array.dtype).reshape(-1, *leaf.shape)
            rows = [_gradients(gradient, leaves, wrap(unit), keep=True) for unit in units]
            for column, other in enumerate(leaves):
                block = numpy.zeros((len(units), *other.shape), leaf._array.dtype)
                for k, row in enumerate(rows):
                    if row[column] is not None:
                        block[k] = row[column]._array
                blocks.append(block.reshape(*leaf.shape, *other.shape))
    return blocks


REMEDY = (
    "Remedy: the function computes with tensors; convert its arrays by torch.from_numpy, and call functions such as "
    "torch.sin instead of numpy.sin."
)


def _advise(error: Exception, name: str) -> None:
    """Add how to convert arrays to the message of ``error``, if it is that of NumPy's use with tensors."""
    text, _, detach = str(error).partition(" Use tensor.detach()")
    if error.__class__ in (RuntimeError, TypeError) and (detach or "ndarray" in text) and REMEDY not in text:
        error.args = (f"{name}: {text.removeprefix(f'{name}: ').strip().rstrip('.')}. {REMEDY}",)


_EAGER = {"value_and_grad": _value_and_gradients, "hessian": _hessian}


def _check(result: Any, name: str, within: bool = False) -> None:
    """Raise an error if ``result`` is not a real tensor with one element; ``within`` is true in a transform."""
    if not isinstance(result, Tensor):
        raise TypeError(f"{name}: expected the function to return a tensor, but got {type(result).__name__}")
    if not within:
        _check_plain(result, name)
    if result.numel() != 1:
        raise RuntimeError(f"{name}: expected the function to return one element, but got shape {tuple(result.shape)}")
    if result.is_complex():
        raise RuntimeError(f"{name}: expected the function to return a real number, but got a complex one")


def _check_plain(result: Tensor, name: str) -> None:
    """Raise an error if ``result`` belongs to a transform inside of which the function of arrays is called."""
    if innermost([result]) is not None:
        inside = {"value_and_grad": "grad_and_value"}.get(name, name)
        raise RuntimeError(
            f"{name}: the function uses a tensor of a transform such as vmap, inside of which it is called; "
            f"use torch.func.{inside} there"
        )


__all__ = ["hessian", "value_and_grad"]
