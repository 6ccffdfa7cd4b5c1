"""``DataParallel`` for one device: PyTorch's wrapper and its parameter names, without replication."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module


class DataParallel(Module):
    """Wrapper that calls ``module`` on its one device; its parameters are named ``module.…``."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the output of the wrapped module."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """Call ``module`` with ``inputs`` (a tuple, or one input) on its one device and return the output."""
    return module(*inputs if isinstance(inputs, tuple) else (inputs,), **(module_kwargs or {}))


DataParallel.__module__ = "torch.nn.parallel.data_parallel"
__all__ = ["DataParallel", "data_parallel"]
