"""``use_deterministic_algorithms``, ``set_float32_matmul_precision`` and other settings of the process.

Most of these settings have no effect, because every operation on the CPU is deterministic and float32 products are
computed in float32. The values are stored, returned by the getters, and checked with PyTorch's error messages.
"""

from __future__ import annotations

from typing import Any

from .compat.type_names import type_name
from .core import devices
from .kernels.numba_startup import STARTUP
from .runtime import user_frame
from .runtime.user_frame import warn

_PRECISIONS = ("highest", "high", "medium")
_DEBUG = {"default": 0, "warn": 1, "error": 2}


class _State:
    deterministic = False
    warn_only = False
    precision = "highest"


_state = _State()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Set whether operations must be deterministic; ``warn_only=True`` requests warnings instead of errors.

    All operations on the CPU are deterministic. The setting only excludes that a program which runs while compiled loops
    are not on the disk yet begins to use them, which may change the last bits of its results (``retrograd warmup``). On a
    GPU, sums at equal indices (``index_add``, gradients of ``embedding``) are added in any order, also with it. See
    https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html.

    >>> import retrograd as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.are_deterministic_algorithms_enabled()
    True
    >>> torch.use_deterministic_algorithms(False)
    """
    for name, place, value in (("mode", " (position 1)", mode), ("warn_only", "", warn_only)):
        if value.__class__ is not bool:
            raise TypeError(
                f"_set_deterministic_algorithms(): argument '{name}'{place} must be bool, not {type_name(value)}"
            )
    _state.deterministic, _state.warn_only = mode, warn_only
    STARTUP.deterministic = mode


def are_deterministic_algorithms_enabled() -> bool:
    """Whether :func:`use_deterministic_algorithms` was last called with ``mode=True``.

    >>> import retrograd as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.are_deterministic_algorithms_enabled()
    True
    >>> torch.use_deterministic_algorithms(False)
    """
    return _state.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether :func:`use_deterministic_algorithms` was last called with ``warn_only=True``.

    >>> import retrograd as torch
    >>> torch.use_deterministic_algorithms(True, warn_only=True)
    >>> torch.is_deterministic_algorithms_warn_only_enabled()
    True
    >>> torch.use_deterministic_algorithms(False)
    """
    return _state.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set the determinism mode to ``debug_mode``: 0 or "default", 1 or "warn", 2 or "error".

    >>> import retrograd as torch
    >>> torch.set_deterministic_debug_mode("warn")
    >>> torch.get_deterministic_debug_mode()
    1
    >>> torch.set_deterministic_debug_mode("default")
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _DEBUG[debug_mode]
    if debug_mode not in _DEBUG.values():
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """Return the determinism mode: 0, 1 or 2.

    >>> import retrograd as torch
    >>> torch.get_deterministic_debug_mode()
    0
    """
    return (1 if _state.warn_only else 2) if _state.deterministic else 0


def get_float32_matmul_precision() -> str:
    """Return the precision set by :func:`set_float32_matmul_precision`; the default is "highest".

    >>> import retrograd as torch
    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    return _state.precision


def set_float32_matmul_precision(precision: str) -> None:
    """Set the precision of float32 matrix products to ``precision``: "highest", "high" or "medium".

    The setting has no effect, because products are always computed in float32.

    >>> import retrograd as torch
    >>> torch.set_float32_matmul_precision("high")
    >>> torch.get_float32_matmul_precision()
    'high'
    >>> torch.set_float32_matmul_precision("highest")
    """
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type_name(precision)}")
    if precision in _PRECISIONS:
        _state.precision = precision
    else:
        warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
        )


def set_flush_denormal(mode: bool) -> bool:
    """Return False, because NumPy cannot flush denormal numbers to zero; ``mode`` has no effect.

    >>> import retrograd as torch
    >>> torch.set_flush_denormal(True)
    False
    """
    if mode.__class__ is not bool:
        raise RuntimeError(f"flush_denormal expects a bool, but got {type_name(mode)}")
    return False


def set_warn_always(b: bool) -> None:
    """Set whether warnings that are issued once in a process, such as that of a deprecated signature, are repeated.

    >>> import retrograd as torch
    >>> torch.set_warn_always(True)
    >>> torch.is_warn_always_enabled()
    True
    >>> torch.set_warn_always(False)
    """
    if b.__class__ is not bool:
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type_name(b)}")
    user_frame.warn_always = b


def is_warn_always_enabled() -> bool:
    """Return the value set by :func:`set_warn_always`; the default is False.

    >>> import retrograd as torch
    >>> torch.is_warn_always_enabled()
    False
    """
    return user_frame.warn_always


def get_device_module(device: Any = None) -> Any:
    """Return the module of the type of ``device``, such as ``torch.cuda`` or ``torch.cpu``.

    If ``device`` is None, the result is ``torch.cuda`` if a GPU is available, and ``torch.cpu`` otherwise.

    >>> import retrograd as torch
    >>> torch.get_device_module("cpu") is torch.cpu
    True
    """
    from . import cpu, cuda, mps, mtia, xpu

    if not (device is None or isinstance(device, (str, devices.device))):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    kind = "cuda" if device is None and cuda.is_available() else devices.device(device or "cpu").type
    found = {"cpu": cpu, "cuda": cuda, "mps": mps, "mtia": mtia, "xpu": xpu}.get(kind)
    if found is None:
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return found


__all__ = [
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "get_device_module",
    "get_float32_matmul_precision", "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
    "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal", "set_warn_always",
    "use_deterministic_algorithms",
]  # fmt: skip
