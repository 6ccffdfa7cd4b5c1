"""Exchange of tensors with other libraries by DLPack, as in ``torch.utils.dlpack``."""

from __future__ import annotations

from ..operations.creation.dlpack_device_types import DLDeviceType
from ..operations.creation.from_data import from_dlpack
from ..operations.creation.storage import to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
