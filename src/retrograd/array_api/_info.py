"""Inspection of the array API: ``__array_namespace_info__``."""

from __future__ import annotations

from typing import Any

import retrograd as torch

from ._dtypes import STANDARD, Device, Dtype, isdtype


class NamespaceInfo:
    """Capabilities, devices and dtypes of the namespace, as ``__array_namespace_info__()`` returns them."""

    def capabilities(self) -> dict[str, Any]:
        """Return the optional features, and the largest number of dimensions, which is NumPy's."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> torch.device:
        """Return the device of tensors that are created without ``device``."""
        return torch.get_default_device()

    def default_dtypes(self, *, device: Device | None = None) -> dict[str, Dtype]:
        """Return the dtypes of tensors that are created without ``dtype``, which follow ``set_default_dtype``."""
        floating = torch.get_default_dtype()
        return {
            "real floating": floating,
            "complex floating": floating.to_complex(),
            "integral": torch.int64,
            "indexing": torch.int64,
        }

    def dtypes(self, *, device: Device | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Dtype]:
        """Return the dtypes of the standard by name; with ``kind``, those of this kind."""
        return {name: dtype for name, dtype in STANDARD.items() if kind is None or isdtype(dtype, kind)}

    def devices(self) -> tuple[torch.device, ...]:
        """Return the CPU and the GPUs."""
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        return (torch.device("cpu"), *(torch.device("cuda", index) for index in range(gpus)))


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 - the standard's name
    """Return an object whose methods describe the namespace: dtypes, devices and capabilities."""
    return NamespaceInfo()
