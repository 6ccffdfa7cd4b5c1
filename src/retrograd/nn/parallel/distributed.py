"""``torch.nn.parallel.distributed``: the module of ``DistributedDataParallel``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.tensor import Tensor
from ...distributed.data_parallel import DistributedDataParallel as DistributedDataParallel
from ...distributed.data_parallel import _BufferCommHook as _BufferCommHook
from ...distributed.data_parallel import _BufferCommHookLocation as _BufferCommHookLocation
from ...distributed.data_parallel import _DDPSink as _DDPSink
from ...distributed.unused_parameters import tensors_in


def _find_tensors(obj: Any) -> Iterator[Tensor]:
    """Yield the tensors in ``obj``, nested lists, tuples, dictionaries and data classes."""
    for _, each in tensors_in(obj):
        yield each


__all__ = ["DistributedDataParallel"]
