"""``torch.distributed``: process groups and collective operations; docs/distributed.md describes the supported part.

A process group consists of ranks, one for each process. ``engine.py`` defines the interface of what moves data between
processes. Its only implementation, ``SingleProcess``, serves groups of one process.
"""

# ruff: noqa: F403 - each module defines ``__all__``

from ..compat.lazy_imports import module_getattr
from . import collectives as _collectives
from . import errors as _errors
from . import groups as _groups
from . import object_collectives as _object_collectives
from . import reductions as _reductions
from . import rendezvous as _rendezvous
from . import stores as _stores
from . import work as _work
from .collectives import *
from .errors import *
from .groups import *
from .object_collectives import *
from .reductions import *
from .rendezvous import *
from .stores import *
from .work import *

__all__ = [
    _name
    for _module in (
        _collectives, _errors, _groups, _object_collectives, _reductions, _rendezvous, _stores, _work
    )
    for _name in _module.__all__
]  # fmt: skip
for _name in ("collectives", "engine", "errors", "groups", "object_collectives", "reductions", "stores", "work"):
    del globals()[_name]  # PyTorch has no modules of these names

__getattr__ = module_getattr(
    __name__,
    {
        **dict.fromkeys(("_all_gather_base", "_coalescing_manager", "_reduce_scatter_base"), "former_names"),
        "DeviceMesh": "device_mesh", "init_device_mesh": "device_mesh",
        "BuiltinCommHookType": "ddp_names", "GradBucket": "reducer", "Reducer": "reducer",
        **dict.fromkeys((
            "_DEFAULT_FIRST_BUCKET_BYTES", "_broadcast_coalesced", "_compute_bucket_assignment_by_size",
            "_register_builtin_comm_hook", "_register_comm_hook", "_verify_params_across_processes",
        ), "ddp_names"),
        **{name: name for name in (
            "_composable", "_functional_collectives", "_tensor", "algorithms", "checkpoint", "constants", "device_mesh",
            "distributed_c10d", "elastic", "fsdp", "launch", "launcher", "nn", "optim", "rpc", "run", "tensor",
        )},
    },
)  # fmt: skip
