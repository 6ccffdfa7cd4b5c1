"""Window functions: ``hann_window``, ``kaiser_window`` and others, and the functions of ``torch.signal.windows``.

The functions ``*_window`` compute a window in the same steps as PyTorch and round the elements to the dtype of the
window after each step. The results are therefore the same as PyTorch's, even in float16. The functions of
``torch.signal.windows`` call differentiable operations such as ``cos``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ...core import dtypes
from ...core.tensor import Tensor, strided
from ...dispatch.declare import public
from ..creation.factory import array_module_for, empty, new_leaf, ones
from ..creation.from_data import tensor
from ..creation.ranges import arange, linspace
from ..elementwise.elementary import cos, exp, sin, sqrt
from ..elementwise.rounding import minimum
from ..elementwise.special import i0
from ..reductions.sums import sum
from ..shape.views import unsqueeze

# -- torch.…_window --------------------------------------------------------------------------------------------------


def _checked(name: str, length: Any, dtype: Any) -> dtypes.dtype:
    """Return the dtype of a window: ``dtype``, or the default floating dtype if ``dtype`` is None.

    Raise PyTorch's error for the function ``name`` if ``length`` or the dtype is invalid.
    """
    kind: dtypes.dtype = dtypes.default.floating if dtype is None else dtype
    if not hasattr(length, "__index__"):
        raise TypeError(
            f"{name}(): argument 'window_length' (position 1) must be int, not {type(length).__name__}"
        )  # fmt: skip
    if kind.category < dtypes.FLOATING:
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={dtypes.cpp_name(kind)}, "
            "device=cpu, layout=Strided (default), requires_grad=false (default), pinned_memory=false, "
            "memory_format=(nullopt))"
        )
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if kind.is_complex:
        raise dtypes.unsupported("arange_cpu", kind.numpy)
    return kind


class _Steps:
    """Intermediate results in the computation of a window such as ``hann_window``, stored as an array.

    PyTorch rounds the results to the dtype of the window after each step. The method :meth:`then` computes one step: it
    applies a function to the array and rounds the result to the dtype of the array. A float16 or bfloat16 array is
    converted to float32 before the function is applied.
    """

    def __init__(self, np: Any, array: Any) -> None:
        self.np, self.array = np, array

    def then(self, step: Any) -> _Steps:
        """Return a new object with the array ``step(array)``, rounded to the dtype of ``array``.

        ``step`` is a function that takes and returns an array.
        """
        dtype = self.array.dtype
        wide = self.array.astype(self.np.float32) if dtype in dtypes.HALF_PRECISION else self.array
        return _Steps(self.np, self.np.asarray(step(wide)).astype(dtype))

    def scaled(self, factor: float, summand: float = 0.0) -> _Steps:
        """Return a new object with the array ``array * factor + summand``.

        The product and the sum are rounded separately. The sum is not computed if ``summand`` is 0.
        """
        product = self.then(lambda x: x * x.dtype.type(factor))
        return product.then(lambda x: x + x.dtype.type(summand)) if summand else product


def _window(name: str, shape: Any, length: Any, periodic: bool, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """Return a window of ``length`` elements, for a function such as ``hann_window``.

    ``name`` is the name of this function, for error messages. ``shape`` is a function that computes a symmetric window
    of ``size`` elements. Its arguments are a ``_Steps`` object with the indices from 0 to ``size - 1``, and ``size``.
    It returns a ``_Steps`` object with the elements. If ``periodic`` is true, the window is a symmetric window of
    ``length + 1`` elements without its last element.
    """
    kind = _checked(name, length, dtype)
    np = array_module_for(device)
    if length <= 1:
        return new_leaf(np.ones(length, kind.numpy), requires_grad)
    size = length + 1 if periodic else length
    elements = shape(_Steps(np, np.arange(size).astype(kind.numpy)), size).array
    return new_leaf(elements[:length], requires_grad)


@public(method=False)
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = strided, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return Bartlett's window of ``window_length`` elements, which has the shape of a triangle.

    ``periodic=True`` returns a periodic window, for spectral analysis: a symmetric window of ``window_length + 1``
    elements without its last element. ``periodic=False`` returns a symmetric window.

    >>> import retrograd as torch
    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """

    def triangle(indices: _Steps, size: int) -> _Steps:
        rising = indices.scaled(2 / (size - 1))
        falling = rising.scaled(-1, 2)
        middle = indices.array <= indices.array.dtype.type((size - 1) >> 1)
        return _Steps(indices.np, indices.np.where(middle, rising.array, falling.array))

    return _window("bartlett_window", triangle, window_length, periodic, dtype, device, requires_grad)


@public(method=False)
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = strided, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return Blackman's window, whose elements are ``0.42 - 0.5 * cos(2πk/n) + 0.08 * cos(4πk/n)``.

    Here k is the index of the element, from 0 to ``window_length - 1``, and n is ``window_length`` for a periodic
    window, or ``window_length - 1`` for a symmetric window, which ``periodic=False`` selects.
    """

    def shape(indices: _Steps, size: int) -> _Steps:
        angle = indices.scaled(math.pi / (size - 1))
        fast, slow = (angle.scaled(each).then(indices.np.cos) for each in (4, 2))
        slow = slow.scaled(0.5)
        return fast.scaled(0.08).then(lambda x: x - slow.array.astype(x.dtype)).then(lambda x: x + x.dtype.type(0.42))

    return _window("blackman_window", shape, window_length, periodic, dtype, device, requires_grad)


def _raised_cosine(alpha: float, beta: float) -> Any:
    def shape(indices: _Steps, size: int) -> _Steps:
        return indices.scaled(2 * math.pi / (size - 1)).then(indices.np.cos).scaled(-beta, alpha)

    return shape


@public(method=False)
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = strided, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return von Hann's window, whose elements are ``0.5 - 0.5 * cos(2πk/n)``.

    Here k is the index of the element, from 0 to ``window_length - 1``, and n is ``window_length`` for a periodic
    window, or ``window_length - 1`` for a symmetric window, which ``periodic=False`` selects.

    >>> import retrograd as torch
    >>> torch.hann_window(5, periodic=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window("hann_window", _raised_cosine(0.5, 0.5), window_length, periodic, dtype, device, requires_grad)


@public(method=False)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None,
    layout: Any = strided, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return Hamming's window, whose elements are ``alpha - beta * cos(2πk/n)``.

    Here k is the index of the element, from 0 to ``window_length - 1``, and n is ``window_length`` for a periodic
    window, or ``window_length - 1`` for a symmetric window, which ``periodic=False`` selects.
    """
    shape = _raised_cosine(alpha, beta)
    return _window("hamming_window", shape, window_length, periodic, dtype, device, requires_grad)


@public(method=False)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, layout: Any = strided,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return Kaiser's window of ``window_length`` elements; a greater ``beta`` makes the window narrower.

    The elements are ``I(beta * sqrt(1 - x²)) / I(beta)``, where I is the modified Bessel function of order 0, and x
    increases linearly from -1 at the first element to 1 at the last element of a symmetric window.

    ``periodic=True`` returns a periodic window, for spectral analysis: a symmetric window of ``window_length + 1``
    elements without its last element. ``periodic=False`` returns a symmetric window.
    """

    def shape(indices: _Steps, size: int) -> _Steps:
        def element(x: Any) -> Any:
            across = x.astype(indices.np.float64) * (2 / (size - 1)) - 1
            inside = indices.np.maximum(1 - across * across, 0)
            return indices.np.i0(beta * indices.np.sqrt(inside)) / indices.np.i0(beta)

        return indices.then(element)

    return _window("kaiser_window", shape, window_length, periodic, dtype, device, requires_grad)


# -- torch.signal.windows --------------------------------------------------------------------------------------------


def _element_type(name: str, M: int, dtype: Any, layout: Any) -> Any:
    kind = dtypes.default.floating if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if kind not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")
    return kind


def _centre(M: int, sym: bool) -> float:
    """Return the index of the centre of a window of ``M`` elements, which may be halfway between two elements.

    If ``sym`` is false, the window is periodic: it is a symmetric window of ``M + 1`` elements without its last
    element. The result is then the centre of this symmetric window.
    """
    return (M if not sym and M > 1 else M - 1) / 2.0


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
    layout: Any = strided, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return the window with the elements ``exp(-abs(k - center) / tau)`` for k from 0 to ``M - 1``.

    By default, ``center`` is the index of the middle of the window. ``sym=False`` returns a periodic window, for
    spectral analysis. ``center`` can only be passed together with ``sym=False``.

    >>> import retrograd as torch
    >>> torch.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    options = {
        "dtype": _element_type("exponential", M, dtype, layout),
        "device": device,
        "requires_grad": requires_grad,
    }
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return empty(0, **options)
    middle = _centre(M, sym) if center is None else center
    k = linspace(-middle * (1 / tau), (-middle + (M - 1)) * (1 / tau), M, **options)
    return exp(-abs(k))


def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return the window of ``M`` elements that has the shape of half a period of the sine.

    The elements are ``sin(π * (k + 0.5) / n)`` for k from 0 to ``M - 1``, where n is ``M``, or ``M + 1`` for the
    periodic window that ``sym=False`` selects.

    >>> import retrograd as torch
    >>> torch.signal.windows.cosine(5)
    tensor([0.3090, 0.8090, 1.0000, 0.8090, 0.3090])
    """
    options = {"dtype": _element_type("cosine", M, dtype, layout), "device": device, "requires_grad": requires_grad}
    if M == 0:
        return empty(0, **options)
    step = math.pi / (M + 1 if not sym and M > 1 else M)
    return sin(linspace(0.5 * step, (0.5 + (M - 1)) * step, M, **options))


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return a Gaussian window of ``M`` elements with the standard deviation ``std``.

    The elements are ``exp(-((k - c) / std)² / 2)`` for k from 0 to ``M - 1``, where c is the index of the centre.

    ``sym=False`` returns a periodic window, for spectral analysis: a symmetric window of ``M + 1`` elements without its
    last element.

    >>> import retrograd as torch
    >>> torch.signal.windows.gaussian(5, std=1.0)
    tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """
    options = {"dtype": _element_type("gaussian", M, dtype, layout), "device": device, "requires_grad": requires_grad}
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return empty(0, **options)
    start, step = -_centre(M, sym), 1 / (std * math.sqrt(2))
    k = linspace(start * step, (start + (M - 1)) * step, M, **options)
    return exp(-(k**2))


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return Kaiser's window of ``M`` elements; a greater ``beta`` makes the window narrower.

    The elements are ``I(beta * sqrt(1 - x²)) / I(beta)``, where I is the modified Bessel function of order 0, and x
    increases linearly from -1 at the first element to 1 at the last element of a symmetric window.

    ``sym=False`` returns a periodic window, for spectral analysis: a symmetric window of ``M + 1`` elements without its
    last element.

    >>> import retrograd as torch
    >>> torch.signal.windows.kaiser(5, beta=4.0)
    tensor([0.0885, 0.6334, 1.0000, 0.6334, 0.0885])
    """
    kind = _element_type("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    options = {"dtype": kind, "device": device, "requires_grad": requires_grad}
    if M <= 1:
        return ones(M, **options)
    width = tensor(beta, dtype=kind, device=device)
    step = 2.0 * width / (M - 1 if sym else M)
    k = linspace(-width, minimum(width, -width + (M - 1) * step), M, **options)
    return i0(sqrt(width * width - k**2)) / i0(width)


def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return Bartlett's window of ``M`` elements, which has the shape of a triangle.

    ``sym=False`` returns a periodic window, for spectral analysis: a symmetric window of ``M + 1`` elements without its
    last element.

    >>> import retrograd as torch
    >>> torch.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    options = {"dtype": _element_type("bartlett", M, dtype, layout), "device": device, "requires_grad": requires_grad}
    if M <= 1:
        return ones(M, **options)
    return 1 - abs(linspace(-1, -1 + (M - 1) * (2 / (M - 1 if sym else M)), M, **options))


def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return the window whose elements are the sum of ``(-1)**i * a[i] * cos(2πik/n)`` over i.

    Here k is the index of the element, from 0 to ``M - 1``, and n is ``M - 1``, or ``M`` for the periodic window that
    ``sym=False`` selects.

    >>> import retrograd as torch
    >>> torch.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    options = {
        "dtype": _element_type("general_cosine", M, dtype, layout), "device": device, "requires_grad": requires_grad,
    }  # fmt: skip
    if M <= 1:
        return ones(M, **options)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    k = linspace(0, (M - 1) * (2 * math.pi / (M - 1 if sym else M)), M, **options)
    weights = tensor([(-1) ** i * weight for i, weight in enumerate(a)], **options)
    waves = arange(weights.shape[0], **options)
    return sum(unsqueeze(weights, -1) * cos(unsqueeze(waves, -1) * k), 0)


def _cosines(name: str, a: list[float], doc: str) -> Any:
    def window(
        M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:  # fmt: skip
        if name == "blackman":  # PyTorch's others name general_cosine in errors
            _element_type(name, M, dtype, layout)
        return general_cosine(
            M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
        )  # fmt: skip

    window.__name__ = window.__qualname__ = name
    window.__doc__ = doc
    return window


hamming = _cosines("hamming", [0.54, 1.0 - 0.54], "Return Hamming's window of ``M`` elements.")
hann = _cosines("hann", [0.5, 0.5], "Return von Hann's window of ``M`` elements.")
blackman = _cosines("blackman", [0.42, 0.5, 0.08], "Return Blackman's window of ``M`` elements.")
nuttall = _cosines(
    "nuttall",
    [0.3635819, 0.4891775, 0.1365995, 0.0106411],
    "Return Nuttall's window of ``M`` elements, a sum of a constant and three cosines.",
)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return the window whose elements are ``alpha - (1 - alpha) * cos(2πk/n)``.

    Here k is the index of the element, from 0 to ``M - 1``, and n is ``M - 1``, or ``M`` for the periodic window that
    ``sym=False`` selects.

    >>> import retrograd as torch
    >>> torch.signal.windows.general_hamming(5, alpha=0.6)
    tensor([0.2000, 0.6000, 1.0000, 0.6000, 0.2000])
    """
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming",
    "hann", "kaiser", "nuttall",
]  # fmt: skip
