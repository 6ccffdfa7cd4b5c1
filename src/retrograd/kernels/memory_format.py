"""How images lie in memory, and in which precision short floats are calculated. Knows arrays only."""

from __future__ import annotations

from typing import Any


def is_channels_last(x: Any) -> bool:
    """Whether ``x`` (batch, channels, …) lies in memory with its channels innermost, and in no other way."""
    if x.ndim not in (4, 5) or x.flags.c_contiguous:
        return False
    return bool(numpy_order(x).flags.c_contiguous)


def numpy_order(x: Any) -> Any:
    """A view of ``x`` (batch, channels, …) with the channels at the end."""
    return x.transpose(0, *range(2, x.ndim), 1)


def in_memory_format_of(np: Any, result: Any, *models: Any) -> Any:
    """``result`` with its channels innermost in memory if one of the ``models`` has them there."""
    for each in models:
        if not each.flags.c_contiguous:
            break
    else:
        return result
    if not any(map(is_channels_last, models)) or is_channels_last(result):
        return result
    return np.ascontiguousarray(numpy_order(result)).transpose(0, result.ndim - 1, *range(1, result.ndim - 1))


def zero_padded(np: Any, x: Any, padding: Any) -> Any:
    """``x`` with zeros around its last dimensions."""
    if not any(padding):
        return x
    lead = x.ndim - len(padding)
    wide = np.zeros((*x.shape[:lead], *(n + 2 * p for n, p in zip(x.shape[lead:], padding, strict=True))), x.dtype)
    wide[(..., *(slice(p, p + n) for n, p in zip(x.shape[lead:], padding, strict=True)))] = x
    return wide


def windows(np: Any, x: Any, kernel: Any, stride: Any, dilation: Any, out: Any) -> Any:
    """A view of ``x`` (…, *space) as (…, *kernel, *out): what each place of the kernel sees for each output."""
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
