"""Calls of generated CUDA kernels: compilation, the cache of kernels, and the sizes of launches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any, NamedTuple

import numpy
from cupy import ndarray

from ..scalar_code import BOOL
from .elements import F32, F64, INT, DeviceElement, traced
from .source import Elementwise, NoKernel, Rows, all_nodes, divided, elementwise, preamble, read_at_every_element, rows

#: Threads of a block, and of one for a long row among few; blocks of a launch at most; the longest row for one warp.
THREADS, MOST_THREADS, BLOCKS, LONG = 256, 1024, 2**20, 1024
#: Rows below which each is divided into parts of at least PART elements, if it has DIVIDED elements.
FEW_ROWS, DIVIDED, PART = 1024, 2**15, 4096
#: Rows from which each gets a single thread, if its elements are not adjacent in memory.
MANY_ROWS = 4096
#: Plans of calls, and compiled kernels by their texts.
_plans: dict[Any, _Plan | None] = {}
_kernels: dict[Any, Any] = {}
#: Plans that are kept: one for each kernel, shape and number.
MOST_PLANS = 4096


class _Plan(NamedTuple):
    """Launch of a kernel: ``run(arrays)`` returns the list of the results; ``several`` is false for a single result."""

    run: Callable[[Sequence[Any]], list[Any]]
    several: bool


def computed(
    function: Callable[..., Any], name: str, args: Sequence[Any], named: dict[str, Any], least: int = 2
) -> Any:
    """Return ``function(np, *args, **named)`` for CuPy arrays among ``args`` by one CUDA kernel, or None.

    ``function`` is a NumPy kernel, and ``name`` its name. The result is None if there is no kernel for the arguments, or
    if the expressions have fewer than ``least`` functions: CuPy computes a single function by one kernel itself.
    """
    kind = ndarray
    try:
        operands = [
            (each.dtype.char, each.shape, each.strides)
            if each.__class__ is kind
            else None
            if each is None
            else key_of(each)
            for each in args
        ]
        key: Any = (function, *operands)
        if named:
            key = key, *named, *[key_of(each) for each in named.values()]
    except TypeError:
        return None
    plan = _plans.get(key, UNKNOWN)
    if plan is UNKNOWN:
        if len(_plans) >= MOST_PLANS:
            _plans.clear()
        plan = _plans[key] = _planned(function, name, args, named, least)
    if plan is None:
        return None
    results = plan.run([each for each in args if each.__class__ is kind])
    return tuple(results) if plan.several else results[0]


UNKNOWN: Any = object()


def key_of(value: Any) -> Any:
    """Return a key for an argument of a kernel: equal for values of which the kernel computes the same.

    Raises TypeError for arguments whose values may change, such as random number generators and lists of arrays.
    """
    kind = value.__class__
    if kind in _CONSTANT:
        return kind, value
    if kind is float:  # 0.0 equals -0.0, and nan does not equal itself
        return (kind, value) if value and value == value else repr(value)
    if isinstance(value, tuple):
        if not value:
            return kind
        # Layouts and plans are cached by their makers, so that most tuples have been met before.
        found = _tuple_keys.get(id(value))
        if found is not None and found[0] is value:
            return found[1]
        key = kind, tuple([key_of(each) for each in value])
        if len(_tuple_keys) >= MOST_PLANS:
            _tuple_keys.clear()
        _tuple_keys[id(value)] = value, key
        return key
    if kind is dict:
        return tuple([
            (name, each if each.__class__ is float and each and each == each else key_of(each))  # no call for numbers
            for name, each in value.items()
        ])  # fmt: skip
    if isinstance(value, (numpy.generic, numpy.dtype)):
        return kind, repr(value)
    raise TypeError("an argument whose value may change")


#: Tuples and their keys by the ``id`` of a tuple, which is alive as long as it is here.
_tuple_keys: dict[int, tuple[Any, Any]] = {}
_CONSTANT = frozenset({int, bool, complex, str, type(None), FunctionType})


def _planned(
    function: Callable[..., Any], name: str, args: Sequence[Any], named: dict[str, Any], least: int
) -> _Plan | None:
    kind = ndarray
    arrays = [each for each in args if each.__class__ is kind]
    elements = elements_for(arrays)
    if elements is None:
        return None
    places = iter(elements)
    given = [next(places) if each.__class__ is kind else each for each in args]
    roots = traced(function, given, named)
    if roots is None or any(each.dtype == INT for each in roots) or steps_of(roots) < least:
        return None
    if any(each.current is not each for each in elements):  # the kernel writes an operand
        return None
    run = plan_of(name, roots, arrays)
    return None if run is None else _Plan(run, len(roots) > 1)


def elements_for(arrays: Sequence[Any]) -> list[DeviceElement] | None:
    """Return an element for each of ``arrays``, or None if a kernel cannot read them.

    Kernels read arrays of bools and of one floating-point dtype. Those of half precision are read as float32.
    """
    floats = {each.dtype.char for each in arrays if each.dtype not in (BOOL, INT)}
    if len(floats) != 1 or not floats <= set("eEfd") or any(not each.size for each in arrays):
        return None
    found = []
    for place, each in enumerate(arrays):
        kind = each.dtype if each.dtype in (BOOL, INT) else F64 if floats == {"d"} else F32
        made = DeviceElement(kind, each.shape)
        made.place = place
        found.append(made)
    return found


def steps_of(roots: Sequence[DeviceElement]) -> int:
    """Return the number of functions in the expressions of ``roots``, which is the number of CuPy's kernels for them."""
    return sum(1 for node in all_nodes(roots) if node.operands and node.text != "{0}")


def plan_of(name: str, roots: Sequence[DeviceElement], arrays: Sequence[Any]) -> Callable[[Sequence[Any]], Any] | None:
    """Return a function that computes ``roots`` for arrays of the shapes and dtypes of ``arrays``, or None."""
    stored = [stored_dtype(each, arrays) for each in roots]
    if any(node.over is not None for node in all_nodes(roots)):
        name = f"retrograd_{name}"
        made = rows(name, roots, arrays, stored)
        if made is None:
            return None
        if made.rows < FEW_ROWS and made.length >= DIVIDED:
            parts = min(-(-made.length // PART), -(-FEW_ROWS // made.rows))
            both = divided(name, roots, arrays, stored, parts)
            if both is not None:
                kinds = [F64 if "typedef double F;" in made.text else F32] * len(both[0].results)
                of_parts, whole = row_launch(both[0], name, kinds), row_launch(both[1], f"{name}_of_parts", stored)
                return lambda given: whole(of_parts(given))
        return row_launch(made, name, stored)
    if any(each.shape != roots[0].shape for each in roots):
        return None
    try:
        return elementwise_launch(name, roots, arrays, stored)
    except NoKernel:
        return None


def stored_dtype(root: DeviceElement, arrays: Sequence[Any]) -> Any:
    """Return the dtype of the result ``root``: bool, or the floating-point dtype of ``arrays``."""
    return BOOL if root.dtype == BOOL else next(each.dtype for each in arrays if each.dtype not in (BOOL, INT))


def elementwise_launch(
    name: str, roots: Sequence[DeviceElement], arrays: Sequence[Any], stored: Sequence[Any]
) -> Callable[[Sequence[Any]], Any]:
    """Return a function that computes ``roots`` by one ElementwiseKernel; the results are in C order, as CuPy's."""
    cupy = sys.modules["cupy"]
    made = elementwise(roots, stored, [each.dtype for each in arrays])
    kernel, shape = elementwise_kernel(made, name), roots[0].shape
    sources = [(each.place, each.value if each.place is None else each.shape) for each in made.arguments]
    counted = [(k, each) for k, each in enumerate(made.arguments) if each.positions is not None]
    seen = read_at_every_element(roots)
    broadcast = numpy.broadcast_shapes(*[each.shape for each in made.arguments if id(each) in seen]) != shape

    def run(given: Sequence[Any]) -> list[Any]:
        values = [_viewed(given[place], what) if place is not None else what for place, what in sources]
        for k, each in counted:
            values[k] = _integers(each.positions, given[0].device.id).reshape(each.shape)
        out = [cupy.empty(shape, kind) for kind in stored] if broadcast else ()
        found = kernel(*values, *out)
        return list(found) if isinstance(found, tuple) else [found]

    return run


def elementwise_kernel(made: Elementwise, name: str) -> Any:
    """Return the ElementwiseKernel ``made``, compiled once."""
    key = made[:4]
    if key not in _kernels:
        _kernels[key] = sys.modules["cupy"].ElementwiseKernel(
            made.inputs, made.outputs, made.body, f"retrograd_{name}", preamble=preamble(made.double, "math.cuh")
        )
    return _kernels[key]


@lru_cache(64)
def _integers(count: int, device: int) -> Any:
    """Return an array of the integers below ``count`` on the GPU with the index ``device``."""
    cupy = sys.modules["cupy"]
    with cupy.cuda.Device(device):
        return cupy.arange(count)


def _viewed(array: Any, shape: Any) -> Any:
    return array if array.shape == shape else array.reshape(shape)


def raw_kernel(text: str, name: str) -> Any:
    """Return the RawKernel ``name`` of the source ``text``, compiled once."""
    if text not in _kernels:
        _kernels[text] = sys.modules["cupy"].RawKernel(text, name)
    return _kernels[text]


def row_launch(made: Rows, name: str, stored: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
    """Return a function that computes the results of the kernel ``made`` that reduces rows."""
    cupy, kernel = sys.modules["cupy"], raw_kernel(made.text, name)
    if not made.adjacent and made.rows >= MANY_ROWS:
        width = 1
    elif made.adjacent and made.length <= LONG:
        width = 32
    else:
        width = THREADS if made.length < DIVIDED or made.rows >= FEW_ROWS else MOST_THREADS
    block = width, max(1, THREADS // width)
    grid = (min(-(-made.rows // block[1]), BLOCKS),)
    number = F64.type if "typedef double F;" in made.text else F32.type
    sizes = numpy.int64(made.rows), numpy.int64(made.length)

    def run(given: Sequence[Any]) -> list[Any]:
        results = [cupy.empty(shape, kind) for shape, kind in zip(made.results, stored, strict=True)]
        values = [
            each if not isinstance(each, DeviceElement)
            else number(each.value) if each.place is None
            else _viewed(given[each.place], each.shape)
            for each in made.parameters
        ]  # fmt: skip
        kernel(grid, block, (*results, *sizes, *values))
        return results

    return run


__all__ = ["computed", "elements_for", "elementwise_launch", "plan_of"]
