"""``torch.nn.parallel.distributed``: the module of ``DistributedDataParallel``."""

from ...distributed.data_parallel import DistributedDataParallel as DistributedDataParallel
from ...distributed.data_parallel import _BufferCommHook as _BufferCommHook
from ...distributed.data_parallel import _BufferCommHookLocation as _BufferCommHookLocation
from ...distributed.data_parallel import _DDPSink as _DDPSink

__all__ = ["DistributedDataParallel"]
