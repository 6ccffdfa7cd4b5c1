"""A module wrapped for several devices, as programs wrap it whether they have them or not."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module


class DataParallel(Module):
    """Calls ``module`` on the one device that it is on; its parameters are named ``module.…``."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """What the module gives for ``inputs`` (a tuple, or one input) on the one device that it is on."""
    return module(*inputs if isinstance(inputs, tuple) else (inputs,), **(module_kwargs or {}))


DataParallel.__module__ = "torch.nn.parallel.data_parallel"
__all__ = ["DataParallel", "data_parallel"]
