"""``torch.utils._foreach_utils``: groups of tensors for functions of lists; on the CPU, optimizers need none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import devices
from ..core.tensor import Tensor
from ..optim.private_names import _group_tensors_by_device_and_dtype as _group_tensors_by_device_and_dtype


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the kinds of devices on which PyTorch has functions of lists by default."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the kinds of devices on which PyTorch has optimizers of one function."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _device_has_foreach_support(device: devices.device) -> bool:
    """Whether functions of lists are implemented on ``device``."""
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: Sequence[Any], device: devices.device) -> bool:
    """Whether ``tensors`` are tensors or None, and functions of lists are implemented on ``device``."""
    return _device_has_foreach_support(device) and all(each is None or isinstance(each, Tensor) for each in tensors)


__all__: list[str] = []
