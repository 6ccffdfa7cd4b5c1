"""Memory formats of images (contiguous, channels last), zero padding, and window views for convolution and pooling."""

from __future__ import annotations

from typing import Any


def is_channels_last(x: Any) -> bool:
    """Whether ``x`` (batch, channels, *space) is stored with the channels as the innermost axis, and not in C order."""
    if x.ndim not in (4, 5) or x.flags.c_contiguous:
        return False
    return bool(channels_last_view(x).flags.c_contiguous)


def channels_last_view(x: Any) -> Any:
    """Return a view of ``x`` (batch, channels, …) with the channels as its last axis."""
    return x.transpose(0, *range(2, x.ndim), 1)


def in_memory_format_of(np: Any, result: Any, *models: Any) -> Any:
    """Return ``result`` in the channels-last format if one of the arrays ``models`` has that format, else unchanged."""
    for each in models:
        if not each.flags.c_contiguous:
            break
    else:
        return result
    if not any(map(is_channels_last, models)) or is_channels_last(result):
        return result
    return np.ascontiguousarray(channels_last_view(result)).transpose(0, result.ndim - 1, *range(1, result.ndim - 1))


def zero_padded(np: Any, x: Any, padding: Any) -> Any:
    """Return ``x`` with ``padding[k]`` zeros at both ends of dimension k of the last ``len(padding)`` dimensions.

    ``x`` itself is returned if all paddings are 0.
    """
    if not any(padding):
        return x
    lead = x.ndim - len(padding)
    wide = np.zeros((*x.shape[:lead], *(n + 2 * p for n, p in zip(x.shape[lead:], padding, strict=True))), x.dtype)
    wide[(..., *(slice(p, p + n) for n, p in zip(x.shape[lead:], padding, strict=True)))] = x
    return wide


def window_view(np: Any, x: Any, kernel: Any, stride: Any, dilation: Any, out: Any) -> Any:
    """Return a view of shape (…, *kernel, *out) of the windows of ``x`` (…, *space).

    A window is the set of elements that one output position reads. Element ``[…, *k, *o]`` of the view is the element
    that kernel element k reads for output position o.
    """
    lead = x.ndim - len(kernel)
    steps = x.strides[lead:]
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:lead], *kernel, *out),
        (
            *x.strides[:lead],
            *(step * d for step, d in zip(steps, dilation, strict=True)),
            *(step * s for step, s in zip(steps, stride, strict=True)),
        ),
    )
