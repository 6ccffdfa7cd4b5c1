"""``DataParallel`` and ``data_parallel`` for a single device: the module is called directly, without replicas."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module


class DataParallel(Module):
    """Module that passes each call on to ``module``, without distribution to several devices.

    The names of the parameters begin with ``module.``, as in PyTorch. ``device_ids``, ``output_device`` and ``dim``
    have no effect.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> model = nn.DataParallel(nn.Linear(2, 3))
    >>> model(torch.ones(4, 2)).shape
    torch.Size([4, 3])
    """

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
    """Return ``module(*inputs, **module_kwargs)``, computed on the device of ``module``.

    ``inputs`` is a tuple, or a single input. ``device_ids``, ``output_device`` and ``dim`` have no effect.
    """
    return module(*inputs if isinstance(inputs, tuple) else (inputs,), **(module_kwargs or {}))


DataParallel.__module__ = "torch.nn.parallel.data_parallel"
__all__ = ["DataParallel", "data_parallel"]
