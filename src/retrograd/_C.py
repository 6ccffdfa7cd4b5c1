"""What PyTorch's documentation has programs take from ``torch._C``: to switch off the asking of overrides, and the
settings of a profiler.
"""  # noqa: N999

from __future__ import annotations

from typing import Any

from .core import torch_function

_disabled_torch_function_impl = torch_function.disabled


class _Off:
    """Within a block what ``level`` says is not asked."""

    __module__ = "torch._C"
    level: int

    def __enter__(self) -> None:
        self.block = torch_function.disabled_overrides(self.level)
        self.block.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.block.__exit__(*error)


class DisableTorchFunctionSubclass(_Off):
    """Within a block ``__torch_function__`` of classes is not asked; modes are."""

    __module__ = "torch._C"
    level = torch_function.MODES


class DisableTorchFunction(_Off):
    """Within a block neither classes nor modes are asked."""

    __module__ = "torch._C"
    level = torch_function.NONE


def _is_torch_function_enabled() -> bool:
    """Whether classes are asked."""
    return torch_function.state()[0] == torch_function.ALL


def _len_torch_function_stack() -> int:
    """How many modes have been entered."""
    return len(torch_function.state()[1])


class _profiler:
    """What stands for the module of this name."""

    class _ExperimentalConfig:
        """Settings of PyTorch's profiler, which are accepted and have no effect."""

        def __init__(self, **options: Any) -> None:
            self.__dict__.update(options)


__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass"]
