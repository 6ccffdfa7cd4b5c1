"""``torch.distributed.constants``: the default timeout of process groups."""

from .rendezvous import default_pg_timeout

default_pg_nccl_timeout = None

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]
