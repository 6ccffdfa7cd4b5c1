"""``assert_close`` and ``assert_allclose``: compare tensors, numbers, and nested sequences and mappings of these."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ..core import dtypes
from ..core.promotion import promote_types
from ..core.tensor import Tensor
from ..operations.creation.from_data import as_tensor
from ..operations.elementwise.comparison import isclose
from ..runtime.user_frame import warn

#: Default relative and absolute tolerance for each dtype; values of other dtypes must be equal.
TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7), dtypes.complex64: (1.3e-6, 1e-5), dtypes.complex128: (1e-7, 1e-7),
}  # fmt: skip
_NUMBERS = (bool, int, float, complex, numpy.number)


@dataclass
class Criteria:
    """Criteria by which two values are considered equal: the options of :func:`assert_close`.

    ``check`` maps the name of each checked property, such as ``"dtype"``, to a bool.
    """

    rtol: float | None
    atol: float | None
    equal_nan: bool
    check: dict[str, bool]
    allow_subclasses: bool

    def tolerances(self, *kinds: Any) -> tuple[float, float]:
        """Return the relative tolerance and the absolute tolerance for values of the dtypes ``kinds``.

        These are the tolerances passed to :func:`assert_close` or, without these, the greatest default tolerances of
        the dtypes.
        """
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        found = [TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        return max(each[0] for each in found), max(each[1] for each in found)


class Mismatch(Exception):
    """Internal exception of :func:`assert_close` for two different values; the message describes the difference.

    ``place`` is the path of the values in nested containers, such as ``[0]['a']``.
    """

    place = ""


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` for every element.

    ``actual`` and ``expected`` may be tensors, NumPy arrays, numbers, None, and sequences and mappings of these.
    ``rtol`` and ``atol`` must be passed together; their defaults depend on the dtype. If ``equal_nan`` is true, two nan
    elements are considered equal. If ``check_device``, ``check_dtype``, ``check_layout`` or ``check_stride`` is true,
    the property in its name must also be equal. If ``allow_subclasses`` is false, the types must be the same. ``msg``
    replaces the error message; it is a string, or a function that is called with the original message.

    >>> import retrograd as torch
    >>> torch.testing.assert_close(torch.ones(2), torch.ones(2) + 1e-7)
    >>> torch.testing.assert_close([1, 2], [1, 3])
    Traceback (most recent call last):
    AssertionError: Scalars are not equal!
    ...

    See https://docs.pytorch.org/docs/stable/testing.html.
    """
    __tracebackhide__ = True  # pytest does not show this frame
    if (rtol is None) != (atol is None):
        raise ValueError(
            "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{'rtol' if rtol is None else 'atol'}."
        )
    check = {"layout": check_layout, "device": check_device, "stride()": check_stride, "dtype": check_dtype}
    try:
        _compare(actual, expected, Criteria(rtol, atol, equal_nan, check, allow_subclasses), "")
    except Mismatch as error:
        text = str(error) + (f"\n\nThe failure occurred for item {error.place}" if error.place else "")
        raise AssertionError((msg(text) if callable(msg) else msg) if msg else text) from None


def _compare(actual: Any, expected: Any, wanted: Criteria, place: str) -> None:
    """Raise :class:`Mismatch` unless ``actual`` and ``expected`` are equal by the criteria ``wanted``.

    If they are sequences or mappings, their items are compared recursively. ``place`` is the path of the two values in
    the outermost container, such as ``[0]['a']``.
    """
    try:
        if _both(actual, expected, Sequence) and not _either(actual, expected, str):
            if len(actual) != len(expected):
                raise Mismatch(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
            for index, (a, b) in enumerate(zip(actual, expected, strict=True)):
                _compare(a, b, wanted, f"{place}[{index}]")
        elif _both(actual, expected, Mapping):
            _same_keys(actual, expected)
            for key in _ordered(actual):
                _compare(actual[key], expected[key], wanted, f"{place}[{key!r}]")
        else:
            _compare_values(actual, expected, wanted)
    except Mismatch as error:
        error.place = error.place or place
        raise


def _both(a: Any, b: Any, kind: Any) -> bool:
    return isinstance(a, kind) and isinstance(b, kind)


def _either(a: Any, b: Any, kind: Any) -> bool:
    return isinstance(a, kind) or isinstance(b, kind)


def _ordered(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        return list(mapping)


def _same_keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any]) -> None:
    missing, more = set(expected) - set(actual), set(actual) - set(expected)
    if missing or more:
        raise Mismatch(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {_ordered(dict.fromkeys(missing))}\n"
            f"Additional keys in the actual mapping: {_ordered(dict.fromkeys(more))}"
        )


def _compare_values(actual: Any, expected: Any, wanted: Criteria) -> None:
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if actual is None or expected is None:
        if actual is not expected:
            raise Mismatch(f"None mismatch: {actual} is not {expected}")
    elif _both(actual, expected, (bool, numpy.bool_)):
        if bool(actual) is not bool(expected):
            raise Mismatch(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}")
    elif _both(actual, expected, _NUMBERS):
        _compare_numbers(actual, expected, wanted)
    elif _both(actual, expected, (Tensor, numpy.ndarray)) and (
        related if wanted.allow_subclasses else type(actual) is type(expected)
    ):
        _compare_tensors(as_tensor(actual).detach(), as_tensor(expected).detach(), wanted)
    else:
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")


def _allowed_text(tolerance: float) -> str:
    return f" (up to {tolerance} allowed)" if tolerance else ""


def _scalar_mismatch(actual: Any, expected: Any, rtol: float, atol: float) -> Mismatch:
    """Return a :class:`Mismatch` whose message describes the difference of the numbers ``actual`` and ``expected``.

    ``rtol`` and ``atol`` are the relative and the absolute tolerance.
    """
    difference = abs(actual - expected)
    relative = float("inf") if expected == 0 else difference / abs(expected)
    return Mismatch(
        f"Scalars are not {'equal' if rtol == atol == 0 else 'close'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed_text(atol)}\n"
        f"Relative difference: {relative}{_allowed_text(rtol)}"
    )


def _compare_numbers(actual: Any, expected: Any, wanted: Criteria) -> None:
    a, b = (x.item() if isinstance(x, numpy.generic) else x for x in (actual, expected))
    kinds = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
    rtol, atol = wanted.tolerances(kinds[type(a)], kinds[type(b)])
    if a == b or (wanted.equal_nan and cmath.isnan(a) and cmath.isnan(b)):
        return
    difference = abs(a - b)
    if not (cmath.isfinite(difference) and difference <= atol + rtol * abs(b)):
        raise _scalar_mismatch(a, b, rtol, atol)


def _compare_tensors(actual: Tensor, expected: Tensor, wanted: Criteria) -> None:
    _same_attribute("shape", actual.shape, expected.shape)
    for name, asked in wanted.check.items():
        if asked:
            values = (x.stride() if name == "stride()" else getattr(x, name) for x in (actual, expected))
            _same_attribute(name, *values)
    rtol, atol = wanted.tolerances(actual.dtype, expected.dtype)
    common = promote_types(actual.dtype, expected.dtype)
    a, b = actual.to(expected.device, common), expected.to(common)
    matches = isclose(a, b, rtol=rtol, atol=atol, equal_nan=wanted.equal_nan)
    if not bool(matches.all()):
        raise (
            _scalar_mismatch(a.item(), b.item(), rtol, atol)
            if not a.shape
            else _tensor_mismatch(a, b, matches, rtol, atol)
        )


def _same_attribute(name: str, actual: Any, expected: Any) -> None:
    if actual != expected:
        raise Mismatch(f"The values for attribute '{name}' do not match: {actual} != {expected}.")


def _tensor_mismatch(a: Tensor, b: Tensor, matches: Tensor, rtol: float, atol: float) -> Mismatch:
    """Return a :class:`Mismatch` whose message describes the difference of the tensors ``a`` and ``b``.

    ``matches`` is a bool tensor that is true where the elements are close. The message contains the number of elements
    that differ, the greatest absolute and relative differences, and the tolerances ``atol`` and ``rtol``.
    """
    if not a.is_floating_point() and not a.is_complex():
        a, b = a.to(dtypes.int64), b.to(dtypes.int64)
    count, total = int(matches.logical_not().sum()), matches.numel()
    absolute = (a - b).abs().flatten()
    relative = absolute / b.abs().flatten()
    lines = [
        f"Tensor-likes are not {'equal' if rtol == atol == 0 else 'close'}!\n",
        f"Mismatched elements: {count} / {total} ({count / total:.1%})",
    ]
    for name, found, tolerance in (("absolute", absolute, atol), ("relative", relative, rtol)):
        found[matches.flatten()] = 0
        greatest, at = found.max(0)
        index = tuple(int(each) for each in numpy.unravel_index(int(at), a.shape))
        lines.append(f"Greatest {name} difference: {greatest.item()} at index {index}{_allowed_text(tolerance)}")
    return Mismatch("\n".join(lines))


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Raise AssertionError unless ``actual`` and ``expected`` are close (deprecated; see :func:`assert_close`).

    The dtypes may differ. The default tolerances are those of earlier versions of PyTorch.

    >>> import retrograd as torch
    >>> torch.testing.assert_allclose(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7])) is None
    True
    """
    __tracebackhide__ = True  # pytest does not show this frame
    warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please use "
        "`torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
    )
    a, b = (x if isinstance(x, Tensor) else as_tensor(x) for x in (actual, expected))
    if rtol is None and atol is None:
        older = {dtypes.float16: (1e-3, 1e-3), dtypes.float32: (1e-4, 1e-5), dtypes.float64: (1e-5, 1e-8)}
        found = [older.get(x.dtype, (0.0, 0.0)) for x in (a, b)]
        rtol, atol = max(each[0] for each in found), max(each[1] for each in found)
    assert_close(
        a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, check_stride=False,
        msg=msg or None,
    )  # fmt: skip
