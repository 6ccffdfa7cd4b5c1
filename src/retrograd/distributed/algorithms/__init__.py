"""``torch.distributed.algorithms``: ``Join``, and the communication hooks of ``DistributedDataParallel``."""

from ...compat.lazy_imports import module_getattr
from .join import Join as Join

__all__: list[str] = []
__getattr__ = module_getattr(__name__, {"ddp_comm_hooks": "ddp_comm_hooks"})
