"""Process groups: ``init_process_group``, ``new_group`` and others, and what is known about a group."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from itertools import count
from typing import Any, ClassVar
from zlib import crc32

from ..core import devices
from ..core.tensor import Tensor
from ..kernels.numba_startup import STARTUP
from ..runtime.user_frame import warn
from .engine import Engine, Operation, connect
from .reductions import ReduceOp, reduce_type
from .rendezvous import default_pg_timeout, rendezvous
from .stores import PrefixStore, Store
from .work import Work


class Backend(str):
    """Name of a backend, in lower case: ``"gloo"``, ``"nccl"``, ``"mpi"`` or another registered name."""

    __slots__ = ()
    __module__ = "torch.distributed.distributed_c10d"

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE = "undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}
    backend_capability: ClassVar[dict[str, list[str]]] = {
        GLOO: ["cpu", "cuda"], NCCL: ["cuda"], XCCL: ["xpu"], UCC: ["cpu", "cuda"], MPI: ["cpu", "cuda"]
    }  # fmt: skip

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())


class ProcessGroup:
    """Group of ranks that take part in a collective operation.

    ``ranks`` are the global ranks, in the order of the ranks of the group.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> group = dist.new_group([0])
    >>> group.rank(), group.size(), group.name()
    (0, 1, 'gloo')
    >>> dist.destroy_process_group()
    """

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(
        self, engine: Engine, backend: Backend, ranks: list[int], name: str, description: str, store: Store, timeout: timedelta
    ) -> None:  # fmt: skip
        self._engine, self._backend, self._ranks = engine, backend, ranks
        self.group_name = name
        self.group_desc = description
        self._store, self._timeout = store, timeout
        self.bound_device_id: Any = None

    def rank(self) -> int:
        """Return the rank of this process in the group."""
        return self._engine.rank

    def size(self) -> int:
        """Return the number of ranks of the group."""
        return self._engine.size

    def name(self) -> str:
        """Return the name of the backend."""
        return _for_cpu(self._backend)

    _get_backend_name = name

    @property
    def _device_types(self) -> list[devices.device]:
        return [devices.device(kind) for kind in _backends(self._backend)]

    def get_group_store(self) -> Store:
        """Return the store of the group."""
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the default timeout of the group's operations."""
        self._timeout = timeout

    def allreduce(self, tensors: Any, op: Any = ReduceOp.SUM, **options: Any) -> Work:
        """Start an all-reduction of ``tensors``, a tensor or a list of tensors, and return its Work."""
        values = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        kind = reduce_type(getattr(op, "reduceOp", op))
        return self._work([self._engine.all_reduce(each, kind) for each in values], values)

    def broadcast(self, tensors: Any, root: Any = 0, **options: Any) -> Work:
        """Start a broadcast of ``tensors``, a tensor or a list of tensors, and return its Work."""
        values = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        rank = getattr(root, "rootRank", root)
        return self._work([self._engine.broadcast(each, rank) for each in values], values)

    def allgather(self, output_tensors: Any, input_tensor: Any, **options: Any) -> Work:
        """Start the gathering of ``input_tensor`` of all ranks in ``output_tensors``, and return its Work."""
        single = isinstance(input_tensor, Tensor)
        pairs = [(output_tensors, input_tensor)] if single else list(zip(output_tensors, input_tensor, strict=True))
        values = [each for outputs, _ in pairs for each in outputs]
        return self._work([self._engine.all_gather(list(outputs), each) for outputs, each in pairs], values)

    def barrier(self, *options: Any, **named: Any) -> Work:
        """Start a barrier, and return its Work."""
        return self._work([self._engine.barrier()], [])

    def _work(self, operations: list[Operation], results: list[Tensor]) -> Work:
        """Return a Work for started ``operations``, whose result is the list ``results``."""
        for each in operations:
            each.detach()
        return Work(operations, results)

    def shutdown(self) -> None:
        """Release the resources of the group."""
        self._engine.close()

    abort = shutdown


class _State:
    """Groups of this process: the default group, all groups by name, and the numbers for new names.

    All ranks give a group the same name, because they share its part of the store.
    """

    default: ProcessGroup | None = None
    groups: ClassVar[dict[str, ProcessGroup]] = {}
    numbers = count()
    local_numbers: ClassVar[dict[tuple[int, ...], Any]] = {}


class _WorldProperty(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group, or None before ``init_process_group``."""
        return _State.default

    @WORLD.setter
    def WORLD(cls, group: ProcessGroup | None) -> None:
        _State.default = group


class group(metaclass=_WorldProperty):
    """Namespace of the default process group, ``group.WORLD``.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.get_process_group_ranks(dist.group.WORLD)
    [0]
    >>> dist.destroy_process_group()
    >>> dist.group.WORLD is None
    True
    """


class GroupMember(metaclass=_WorldProperty):
    """Namespace of the default process group and of the value that ``new_group`` returns to other ranks.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> group = dist.new_group([0])
    >>> group is dist.GroupMember.NON_GROUP_MEMBER
    False
    >>> dist.destroy_process_group()
    """

    NON_GROUP_MEMBER = -100


class DebugLevel(Enum):
    """Amount of checks that ``TORCH_DISTRIBUTED_DEBUG`` selects.

    The value has no effect: each collective operation compares what the ranks have called.

    >>> from retrograd import distributed as dist
    >>> [level.name for level in dist.DebugLevel]
    ['OFF', 'INFO', 'DETAIL']
    """

    OFF = 0
    INFO = 1
    DETAIL = 2


_debug_level = DebugLevel.__members__.get(os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper(), DebugLevel.OFF)


def get_debug_level() -> DebugLevel:
    """Return the value set by :func:`set_debug_level`."""
    return _debug_level


def set_debug_level(level: DebugLevel) -> None:
    """Store the debug level.

    >>> from retrograd import distributed as dist
    >>> before = dist.get_debug_level()
    >>> dist.set_debug_level(dist.DebugLevel.DETAIL)
    >>> dist.get_debug_level().name
    'DETAIL'
    >>> dist.set_debug_level(before)
    """
    global _debug_level
    _debug_level = level


def set_debug_level_from_env() -> None:
    """Set the debug level to that of the environment variable ``TORCH_DISTRIBUTED_DEBUG``.

    >>> import os
    >>> from retrograd import distributed as dist
    >>> os.environ["TORCH_DISTRIBUTED_DEBUG"] = "INFO"
    >>> dist.set_debug_level_from_env()
    >>> dist.get_debug_level().name
    'INFO'
    >>> del os.environ["TORCH_DISTRIBUTED_DEBUG"]
    >>> dist.set_debug_level_from_env()
    >>> dist.get_debug_level().name
    'OFF'
    """
    set_debug_level(DebugLevel[os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()])


# -- Availability ------------------------------------------------------------------------------------------------------


def is_available() -> bool:
    """Whether the module works: True."""
    return True


def is_initialized() -> bool:
    """Whether ``init_process_group`` has created the default group."""
    return _State.default is not None


def is_gloo_available() -> bool:
    """Whether the backend "gloo" works: True, by retrograd's own implementation."""
    return True


def is_mpi_available() -> bool:
    """Whether the backend "mpi" works: whether mpi4py is installed. It is the same engine as "gloo"."""
    return importlib.util.find_spec("mpi4py") is not None


def is_nccl_available() -> bool:
    """Whether the backend "nccl" works: if there is a GPU."""
    return devices.gpu_count() > 0


def is_ucc_available() -> bool:
    """Whether the backend "ucc" works: False."""
    return False


def is_xccl_available() -> bool:
    """Whether the backend "xccl" works: False."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether ``backend``, such as "gloo", works."""
    available = globals().get(f"is_{backend.lower()}_available")
    return bool(available()) if available else False


def is_torchelastic_launched() -> bool:
    """Whether ``torchrun`` started this process: whether ``TORCHELASTIC_RUN_ID`` is set."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the environment variable ``LOCAL_RANK``, or ``fallback_rank`` if it is not set.

    >>> from retrograd import distributed as dist
    >>> import os
    >>> dist.get_node_local_rank(fallback_rank=0)
    0
    >>> os.environ["LOCAL_RANK"] = "3"
    >>> dist.get_node_local_rank()
    3
    >>> del os.environ["LOCAL_RANK"]
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def get_default_backend_for_device(device: Any) -> str:
    """Return the name of the default backend for ``device``: "gloo" for the CPU and "nccl" for a GPU."""
    kind = devices.device(device).type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def _backends(backend: str) -> dict[str, str]:
    """Return a dict from each type of device to the name of its backend, for the argument of ``init_process_group``."""
    if backend == Backend.UNDEFINED:
        return {"cpu": "gloo", **({"cuda": "nccl"} if is_nccl_available() else {})}
    if ":" in backend:
        return dict(each.split(":") for each in backend.split(","))
    return dict.fromkeys(Backend.backend_capability.get(backend, ["cpu", "cuda"]), backend)


def _for_cpu(backend: str) -> str:
    found = _backends(backend)
    return found.get("cpu", next(iter(found.values())))


def _check_backend(backend: str) -> None:
    """Raise PyTorch's error if one of the names in ``backend`` does not name a backend that works."""
    for name in _backends(backend).values():
        if name not in Backend.backend_list:
            raise AssertionError(f"Unknown backend type {name}")
        if not is_backend_available(name):
            raise RuntimeError(
                f"Distributed package doesn't have {name.upper()} built in"
                + (
                    ". MPI is only included if you build PyTorch from source on a host that has MPI installed."
                    * (name == "mpi")
                )
            )


# -- Creation of groups ------------------------------------------------------------------------------------------------


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None, world_size: int = -1,
    rank: int = -1, store: Store | None = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:  # fmt: skip
    """Create the default process group, of ``world_size`` ranks, of which this process is ``rank``.

    All ranks call the function. They find each other by ``init_method``, a URL (by default ``env://``), or by ``store``.
    Several ranks exchange data through MPI; the backends "gloo", "mpi" and None are the same engine. docs/distributed.md
    describes the ways of starting ranks. Raises DistStoreError, with the missing ranks, if they are not there before
    ``timeout``, DistNetworkError if the address of the store cannot be used, and RuntimeError without mpi4py.

    >>> import retrograd as torch
    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> total = torch.ones(2)
    >>> dist.all_reduce(total)
    >>> total, dist.get_world_size()
    (tensor([1., 1.]), 1)
    >>> dist.destroy_process_group()
    """
    if _State.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if timeout is None:
        timeout = default_pg_timeout
    elif not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    chosen = Backend(backend or Backend.UNDEFINED)
    _check_backend(chosen)
    if store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
    engine = connect(_for_cpu(chosen), PrefixStore("default_pg", store), rank, world_size, timeout)
    if world_size > 1:
        STARTUP.settle()
    default = _register(engine, chosen, list(range(world_size)), group_name, "default_pg", store, timeout)
    if device_id is not None:
        default.bound_device_id = devices.device(device_id)
    _State.default = default


def _register(
    engine: Engine, backend: Backend, ranks: list[int], name: str, description: str, store: Store, timeout: timedelta
) -> ProcessGroup:  # fmt: skip
    """Return a new ProcessGroup, which is added to the groups of this process."""
    name = name or str(next(_State.numbers))
    made = ProcessGroup(engine, backend, ranks, name, description or "undefined", PrefixStore(name, store), timeout)
    _State.groups[name] = made
    return made


def destroy_process_group(group: Any = None) -> None:
    """Destroy ``group``, or all groups by default."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    chosen: ProcessGroup | None = group if group is not None else _State.default
    if chosen is None:
        raise AssertionError("Process group cannot be None")
    name = chosen.group_name
    if chosen is _State.default:
        _close_groups()
        _State.default, _State.numbers = None, count()
        _State.local_numbers.clear()
    elif _State.groups.get(name) is not chosen:
        raise ValueError("Invalid process group specified")
    else:
        _State.groups.pop(name).shutdown()


def _close_groups() -> None:
    """Release the resources of all groups."""
    for each in _State.groups.values():
        each.shutdown()
    _State.groups.clear()


def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None, pg_options: Any = None,
    use_local_synchronization: bool = False, group_desc: str | None = None, device_id: Any = None, sort_ranks: bool = True,
) -> Any:  # fmt: skip
    """Return a new group of the global ``ranks``, by default of all ranks; all ranks call this function.

    The result is ``GroupMember.NON_GROUP_MEMBER`` in other ranks.
    """
    default = _get_default_group()
    size = default.size()
    chosen = list(range(size)) if ranks is None else list(ranks)
    if sort_ranks:
        chosen.sort()
    if len(chosen) > size:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for each in chosen:
        if not 0 <= each < size:
            raise ValueError(f"Rank {each} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    name = Backend(backend) if backend is not None else default._backend
    _check_backend(name)
    if use_local_synchronization:  # only the members call this function
        label = f"{crc32(repr(chosen).encode()):08x}_{next(_State.local_numbers.setdefault(tuple(chosen), count()))}"
    else:
        label = str(next(_State.numbers))
    engine = default._engine.subgroup(chosen, timeout or default._timeout)
    if engine is None:
        return GroupMember.NON_GROUP_MEMBER
    return _register(engine, name, chosen, label, group_desc or "", default._store, timeout or default._timeout)


def new_subgroups(
    group_size: int | None = None, group: ProcessGroup | None = None, timeout: timedelta | None = None,
    backend: str | None = None, pg_options: Any = None, group_desc: str | None = None,
) -> tuple[ProcessGroup, list[ProcessGroup]]:  # fmt: skip
    """Create groups of ``group_size`` successive ranks; return the group of this process, and a list of all groups.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> group, groups = dist.new_subgroups(group_size=1)
    >>> dist.get_process_group_ranks(group), len(groups)
    ([0], 1)
    >>> dist.destroy_process_group()
    """
    chosen = _checked_group(group)._ranks
    size = len(chosen)
    if group_size is None:
        if not devices.gpu_count():
            raise ValueError(
                "Default group size only takes effect when CUDA is available.If your subgroup using a backend that does not "
                "depend on CUDA,please pass in 'group_size' correctly."
            )
        group_size = devices.gpu_count()
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    blocks = [chosen[first : first + group_size] for first in range(0, size, group_size)]
    return new_subgroups_by_enumeration(blocks, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[ProcessGroup, list[ProcessGroup]]:  # fmt: skip
    """Create a group for each list of global ranks; return the group of this process, and a list of all groups.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> group, groups = dist.new_subgroups_by_enumeration([[0]])
    >>> dist.get_process_group_ranks(group), len(groups)
    ([0], 1)
    >>> dist.destroy_process_group()
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, list[int]] = {}
    for each in ranks_per_subgroup_list:
        for rank in each:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {list(each)}")
            seen[rank] = list(each)
    made = [new_group(each, timeout, backend, pg_options, group_desc=group_desc) for each in ranks_per_subgroup_list]
    mine = [each for each, ranks in zip(made, ranks_per_subgroup_list, strict=True) if get_rank() in ranks]
    return (mine[0] if mine else None), made  # type: ignore[return-value]


def split_group(
    parent_pg: ProcessGroup | None = None, split_ranks: list[list[int]] | None = None, timeout: timedelta | None = None,
    pg_options: Any = None, group_desc: str | None = None, backend: str | None = None,
) -> ProcessGroup | None:  # fmt: skip
    """Split ``parent_pg``, by default the default group, into groups; return that of this process, or None.

    ``split_ranks`` are lists of ranks of ``parent_pg``. The default group must have been created with ``device_id``.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group(
    ...     "gloo", store=dist.HashStore(), rank=0, world_size=1, device_id=torch.device("cpu")
    ... )
    >>> dist.get_process_group_ranks(dist.split_group(split_ranks=[[0]]))
    [0]
    >>> dist.destroy_process_group()
    """
    default = _get_default_group()
    if default.bound_device_id is None:
        raise RuntimeError("No device associated with the default pg, not safe to split any process groups")
    parent = _checked_group(parent_pg)
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    mine = None
    for each in split_ranks:
        if len(each) > parent.size() or len(set(each)) != len(each):
            raise ValueError("the split group must have different ranks of the parent group")
        if parent.rank() in each:
            mine = sorted(each)
    if mine is None:
        return None
    engine = parent._engine.subgroup(mine, timeout or parent._timeout)
    assert engine is not None
    name = Backend(backend) if backend is not None else parent._backend
    ranks = [parent._ranks[each] for each in mine]
    description = group_desc or f"{parent.group_desc}:split"
    return _register(engine, name, ranks, "", description, parent._store, timeout or parent._timeout)


# -- Questions about groups --------------------------------------------------------------------------------------------


def _get_default_group() -> ProcessGroup:
    """Return the default group; raise ValueError before ``init_process_group``."""
    if _State.default is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _State.default


def _checked_group(group: Any) -> ProcessGroup:
    """Return ``group``, or the default group for None; raise ValueError if the group does not exist."""
    default = _get_default_group()
    if group is None:
        return default
    if not isinstance(group, ProcessGroup) or _State.groups.get(group.group_name) is not group:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return group


def _rank_not_in_group(group: Any) -> bool:
    """Whether this process is not one of the ranks of ``group``."""
    return bool(group == GroupMember.NON_GROUP_MEMBER)


def _warn_not_in_group(name: str) -> Any:
    """Warn that this process is not a member of the group of the operation ``name``; return None."""
    rank = get_rank() if is_initialized() else -1
    warn(f"Running {name} on global rank {rank} which does not belong to the given group.")


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the rank of this process in ``group``, by default in the default group; -1 if it is not a member."""
    return -1 if _rank_not_in_group(group) else _checked_group(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of ranks of ``group``, by default of the default group; -1 if this process is not a member."""
    return -1 if _rank_not_in_group(group) else _checked_group(group).size()


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """Return the name of the backend that the program has chosen for ``group``, or "undefined"."""
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    return _checked_group(group)._backend


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Return the backend for each type of device, such as ``"cpu:gloo,cuda:gloo"``."""
    return ",".join(f"{kind}:{name}" for kind, name in _backends(get_backend(group)).items())


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return a list of the global ranks of ``group``."""
    return list(_checked_group(group)._ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the global rank of the rank ``group_rank`` of ``group``."""
    ranks = _checked_group(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in ``group`` of the global rank ``global_rank``."""
    ranks = _checked_group(group)._ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_pg_count() -> int:
    """Return the number of groups."""
    return len(_State.groups)


__all__ = [
    "Backend", "DebugLevel", "GroupMember", "ProcessGroup", "destroy_process_group", "get_backend", "get_backend_config",
    "get_debug_level", "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank",
    "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group",
    "is_available", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "new_group",
    "new_subgroups", "new_subgroups_by_enumeration", "set_debug_level", "set_debug_level_from_env", "split_group",
]  # fmt: skip
