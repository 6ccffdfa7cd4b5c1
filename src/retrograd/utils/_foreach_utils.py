"""``torch.utils._foreach_utils``: groups of tensors for functions of lists; on the CPU, optimizers need none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import devices
from ..core.tensor import Tensor

Groups = dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]


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


def _group_tensors_by_device_and_dtype(tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False) -> Groups:
    """Return the columns of lists of equal length in groups, by the device and dtype of the tensor in the first list.

    >>> import retrograd as torch
    >>> groups = _group_tensors_by_device_and_dtype([[torch.ones(1), torch.ones(2)], [None, None]], with_indices=True)
    >>> [(key[1], indices) for key, (lists, indices) in groups.items()]
    [(torch.float32, [0, 1])]
    """
    found: Groups = {}
    for index, first in enumerate(tensorlistlist[0]):
        key = (first.device, first.dtype)
        lists, indices = found.setdefault(key, ([[] for _ in tensorlistlist], []))
        for each, group in zip(tensorlistlist, lists, strict=True):
            if each:
                group.append(each[index])
        if with_indices:
            indices.append(index)
    return found


__all__: list[str] = []
