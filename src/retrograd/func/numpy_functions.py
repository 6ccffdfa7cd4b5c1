"""Derivatives of functions of NumPy arrays: ``retrograd.value_and_grad``, for SciPy's optimizers and similar programs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..autograd.backward import gradients_of_tensors
from ..compat.lazy_imports import load_part
from ..core.grad_mode import enable_grad
from ..core.tensor import Tensor, leaf_from_array, wrap

#: Computes (value, gradients) from the arrays of a call.
_Program = Callable[[Sequence[Any]], tuple[Any, list[Any]]]


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, pure: bool = False
) -> Callable[..., Any]:
    """Return a function of NumPy arrays that returns the value of ``f`` and its gradient, as a float and an array.

    ``f`` is written with tensors and returns a tensor with one element. The returned function converts NumPy arrays to
    tensors, which share their memory, and passes other arguments unchanged. ``argnums`` is the position of the argument of the gradient, an array
    of any shape, a number or a sequence of numbers; integers are converted to float64. The gradient has the shape and
    the dtype of this argument, and is a float for a number. ``argnums`` may be a sequence of positions: then a tuple of
    gradients is returned. A gradient is zero if ``f`` does not depend on the argument.

    ``pure=True`` is a promise that ``f`` calls the same operations for all elements of its arguments, and depends on
    nothing else that changes. Then ``f`` is called once for all arguments of the same shapes and dtypes (and the same
    numbers, for other arguments), and a compiled program computes value and gradient afterwards. If the promise is wrong,
    so are the results. A function that cannot be compiled is called each time, for example one that reads elements.

    Raises RuntimeError if the result of ``f`` has not one element, and TypeError if it is no tensor, or if the argument
    of the gradient is neither an array nor a number.

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
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    programs: dict[Any, _Program | None] = {}

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [_native(each) if isinstance(each, (numpy.ndarray, numpy.generic)) else each for each in args]
        chosen = [place + len(given) if place < 0 else place for place in places]
        for place in chosen:
            if not 0 <= place < len(given):
                raise TypeError(
                    f"value_and_grad: argnums is {argnums}, but the call has {len(given)} positional arguments"
                )
            given[place] = _floating(args[place])
        program = _program(f, given, chosen, programs) if pure and not kwargs else None
        if program is None:
            value, found = _eager(f, given, chosen, kwargs)
        else:
            value, found = program([each for each in given if each.__class__ is numpy.ndarray])
        gradients = [
            float(each) if isinstance(args[place], (float, int)) else numpy.array(each)
            for place, each in zip(chosen, found, strict=True)
        ]
        return value, gradients[0] if isinstance(argnums, int) else tuple(gradients)

    return call


#: The most programs of one pure function. Further calls with other shapes, or other numbers as arguments, are recorded.
MOST = 32
#: Dtypes of arrays whose memory a tensor shares; others are converted.
_SHARED = frozenset(map(numpy.dtype, ("f2", "f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "?")))


def _program(
    f: Callable[..., Any], given: Sequence[Any], chosen: Sequence[int], programs: dict[Any, _Program | None]
) -> _Program | None:
    """Return the program of the pure function ``f`` for arguments like ``given``, which is compiled if necessary.

    Return None if the function cannot be compiled, if an argument is not hashable, or for more than ``MOST`` programs.
    """
    key = tuple([(each.shape, each.dtype) if each.__class__ is numpy.ndarray else each for each in given])
    try:
        if key in programs:
            return programs[key]
    except TypeError:
        return None
    if len(programs) >= MOST:
        return None
    programs[key] = load_part("compiler.value_and_grad").program_of(f, given, chosen)
    return programs[key]


def _native(value: Any) -> Any:
    """Return a contiguous array of a supported dtype with the elements of ``value``, an array or a scalar."""
    array = value if value.__class__ is numpy.ndarray else numpy.asarray(value)
    if array.dtype not in _SHARED:
        if array.dtype.kind not in "fciub":
            raise TypeError(f"value_and_grad: an array of {array.dtype} cannot become a tensor")
        array = array.astype({"f": numpy.float64, "c": numpy.complex128}.get(array.dtype.kind, numpy.int64))
    return array if array.flags.c_contiguous else numpy.ascontiguousarray(array)


def _floating(given: Any) -> Any:
    """Return the argument of a gradient as an array of floating or complex numbers."""
    if not isinstance(given, (numpy.ndarray, numpy.generic, float, int, complex, list, tuple)):
        raise TypeError(f"value_and_grad: expected an array or a number, but got {type(given).__name__}")
    array = _native(given)
    return array.astype(numpy.float64) if array.dtype.kind in "iub" else array


def _eager(
    f: Callable[..., Any], given: Sequence[Any], chosen: Sequence[int], kwargs: dict[str, Any]
) -> tuple[Any, list[Any]]:
    """Return the value of ``f`` and the gradients of the arguments ``chosen``, by recording the call."""
    tensors = [wrap(each) if each.__class__ is numpy.ndarray else each for each in given]
    leaves = [leaf_from_array(given[place]) for place in chosen]
    for place, leaf in zip(chosen, leaves, strict=True):
        tensors[place] = leaf
    with enable_grad():
        result = f(*tensors, **kwargs)
        _check(result)
        if not result.requires_grad:
            return result._array.item(), [numpy.zeros_like(given[place]) for place in chosen]
        found = gradients_of_tensors([result], leaves, [None], False, False)
    return result._array.item(), [
        numpy.zeros_like(given[place]) if each is None else each._array
        for place, each in zip(chosen, found, strict=True)
    ]


def _check(result: Any) -> None:
    if not isinstance(result, Tensor):
        raise TypeError(f"value_and_grad: expected the function to return a tensor, but got {type(result).__name__}")
    if result.numel() != 1:
        raise RuntimeError(
            f"value_and_grad: expected the function to return one element, but got shape {tuple(result.shape)}"
        )


__all__ = ["value_and_grad"]
