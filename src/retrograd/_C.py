"""``DisableTorchFunction`` and other names of ``torch._C`` that PyTorch's documentation uses.

They are context managers that disable ``__torch_function__``, and the settings of the profiler.
"""  # noqa: N999

from __future__ import annotations

from typing import Any

from .core import torch_function

_disabled_torch_function_impl = torch_function.disabled


class _OverridesOff:
    """Base class of the context managers below, which disable overrides by ``__torch_function__``.

    Inside the context, ``level`` is the state of ``core/torch_function.py``; it determines which overrides stay active.
    """

    __module__ = "torch._C"
    level: int

    def __enter__(self) -> None:
        self.block = torch_function.disabled_overrides(self.level)
        self.block.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.block.__exit__(*error)


class DisableTorchFunctionSubclass(_OverridesOff):
    """Context manager that disables ``__torch_function__`` of classes; modes (``TorchFunctionMode``) stay active."""

    __module__ = "torch._C"
    level = torch_function.MODES


class DisableTorchFunction(_OverridesOff):
    """Context manager that disables ``__torch_function__`` of classes and modes (``TorchFunctionMode``)."""

    __module__ = "torch._C"
    level = torch_function.NONE


def _is_torch_function_enabled() -> bool:
    """Whether ``__torch_function__`` of classes is enabled."""
    return torch_function.state()[0] == torch_function.ALL


def _len_torch_function_stack() -> int:
    """Return the number of active modes (``TorchFunctionMode``)."""
    return len(torch_function.state()[1])


class _profiler:
    """Namespace that replaces PyTorch's submodule ``torch._C._profiler``."""

    class _ExperimentalConfig:
        """Settings of PyTorch's profiler, which have no effect."""

        def __init__(self, **options: Any) -> None:
            self.__dict__.update(options)


__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass"]
