"""``DistributedDataParallel``: a module whose gradients are averaged over the ranks of a process group."""

from __future__ import annotations

import copy
import inspect
import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ..autograd.function import Function
from ..core.engine import queue_callback
from ..core.grad_mode import is_grad_enabled, no_grad
from ..core.pytree import tree_flatten, tree_unflatten
from ..core.tensor import Tensor
from ..futures import Future
from ..nn.modules.module import Module
from ..nn.modules.sparse import Embedding, EmbeddingBag
from ..nn.parallel.scatter_gather import gather, scatter_kwargs
from ..nn.parameter import is_lazy
from ..operations.creation.factory import ones, zeros
from ..operations.creation.from_data import tensor
from ..profiler.autograd_profiler import record_function
from ..runtime.user_frame import warn
from .algorithms.join import Join, Joinable, JoinHook
from .collectives import all_reduce
from .groups import ProcessGroup, _checked_group, _get_default_group
from .module_states import broadcast_coalesced, sync_module_states, verify_shapes
from .reducer import GradBucket, Hook, Reducer
from .reductions import ReduceOp

MEGABYTE = 1024 * 1024


class _DDPSink(Function):
    """Identity for the outputs of the module, whose backward is the beginning of the module's backward pass.

    All outputs of the module belong to one node. So parameters on which only unused outputs depend are visited too, with
    the gradient None.
    """

    @staticmethod
    def forward(ctx: Any, owner: Any, *values: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.owner = owner
        if not owner()._ddp_sink_clone:
            return values
        return tuple([each.clone() if isinstance(each, Tensor) else each for each in values])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        owner = ctx.owner()
        first = owner is not None and owner.static_graph and not owner._static_graph_delay_allreduce_enqueued
        if first and owner.reducer.expecting:
            queue_callback(owner.reducer.reduce_after_pass)
            owner._static_graph_delay_allreduce_enqueued = True
        return (None, *grads)


class _DDPJoinHook(JoinHook):
    """Operations of a rank without inputs that match those of one iteration of ``DistributedDataParallel``."""

    def __init__(self, ddp: DistributedDataParallel, divide_by_initial_world_size: bool) -> None:
        self.ddp = ddp
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self) -> None:
        ddp = self.ddp
        ddp._rebuild_buckets()
        if ddp._check_sync_bufs_pre_fwd():
            ddp._sync_module_buffers(ddp._find_common_rank(False))
        ddp.require_forward_param_sync = ddp._any_rank_reduces(False)
        if ddp.require_forward_param_sync:
            ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        ddp = self.ddp
        rank = ddp._find_common_rank(is_last_joiner)
        sync_module_states(ddp.module, ddp.process_group, rank, ddp.parameters_to_ignore, ddp.forward_sync_buffers)


class _BufferCommHookLocation(Enum):
    PRE_FORWARD = auto()
    POST_FORWARD = auto()


@dataclass
class _BufferCommHook:
    buffer_comm_hook: Callable[..., Any]
    buffer_comm_hook_state: Any
    buffer_comm_hook_location: _BufferCommHookLocation


class DistributedDataParallel(Module, Joinable):
    """Module that calls ``module``, and whose gradients are averages over the ranks of ``process_group``.

    Each rank has a copy of the module and computes with its own part of the data. The constructor copies the parameters
    and buffers of rank 0 to all ranks. During the backward pass, the gradients are reduced in buckets
    (:class:`~retrograd.distributed.reducer.Reducer`), so every rank has the same gradients, and equal optimizers keep the
    parameters equal. The names of the parameters begin with ``module.``.

    All ranks must construct the object, and call it and run backward passes equally often.

    Args:
        module: Module with at least one parameter that requires a gradient; all parameters on devices of one type.
        device_ids: None, or a list with the GPU of the module, to which inputs are moved.
        output_device: Device of the output; only with ``device_ids``.
        dim: Dimension along which :meth:`scatter` and :meth:`gather` split.
        broadcast_buffers: Deprecated name of ``forward_sync_buffers``; if false, buffers are not copied by the constructor
            either.
        init_sync: Whether the constructor compares the shapes of the parameters of all ranks and copies the values of
            rank 0.
        process_group: Process group, by default the default group.
        bucket_cap_mb: Size of the buckets in megabytes, by default 25, and 1 for the first bucket.
        find_unused_parameters: Whether parameters that receive no gradient are found by a traversal of the graph after
            each forward pass. Otherwise such parameters are an error.
        gradient_as_bucket_view: Whether gradients are views of the buckets, which saves their memory and copies.
        static_graph: Whether all iterations use the same parameters, equally often. Unused parameters, and parameters
            used by several nested backward passes, are then accepted.
        delay_all_reduce_named_params: Accepted with ``param_to_hook_all_reduce``; these parameters are reduced in buckets,
            as all others.
        device_mesh: Mesh of one dimension, whose group is used instead of ``process_group``.
        skip_all_reduce_unused_params: Whether buckets without a used parameter are not reduced; all ranks must have the
            same unused parameters.
        bucket_cap_mb_list: Sizes of the successive buckets in megabytes; the last holds for further buckets.
        forward_sync_buffers: Whether the buffers of rank 0 are copied to all ranks before each forward pass.

    Raises:
        RuntimeError: At construction, if no parameter requires a gradient or the ranks have different parameters; in the
            forward pass, if parameters received no gradient in the backward pass before.
        ValueError: If parameters are on devices of several types, or ``device_ids`` do not fit.

    Source: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020.

    >>> import retrograd as torch
    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    >>> list(model.state_dict())
    ['module.weight', 'module.bias']
    >>> model(torch.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """

    dim: int
    module: Module
    find_unused_parameters: bool
    gradient_as_bucket_view: bool
    batched_grad_copy: bool
    skip_all_reduce_unused_params: bool
    require_backward_grad_sync: bool
    require_forward_param_sync: bool

    _active_ddp_module = None

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False, check_reduction: bool = False,
        gradient_as_bucket_view: bool = False, static_graph: bool = False, delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None, mixed_precision: Any = None, device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False, bucket_cap_mb_list: list[float] | None = None,
        batched_grad_copy: bool = False, forward_sync_buffers: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        Joinable.__init__(self)
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time."
            )
        self.parameters_to_ignore: set[str] = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.process_group: ProcessGroup = _group(process_group, device_mesh)
        parameters = [each for name, each in module.named_parameters() if name not in self.parameters_to_ignore]
        self._module_parameters = parameters
        if not any(each.requires_grad for each in parameters):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        self._set_devices(parameters, device_ids, output_device)
        self.static_graph, self.module, self.dim = False, module, dim
        self._set_buffer_sync(broadcast_buffers, forward_sync_buffers)
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.skip_all_reduce_unused_params, self.batched_grad_copy = skip_all_reduce_unused_params, batched_grad_copy
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        if mixed_precision is not None:
            raise ValueError(
                "mixed_precision is not supported; use autocast, and a communication hook such as fp16_compress_hook"
            )
        self.mixed_precision: None = None
        if check_reduction:
            warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. Please avoid using it.",
                FutureWarning,
            )
        if any(map(is_lazy, parameters)):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy forward pass "
                "to correctly initialize the modules"
            )
        self.bucket_bytes_cap_list: list[int] = [int(each * MEGABYTE) for each in bucket_cap_mb_list or ()]
        cap = max(bucket_cap_mb_list) if bucket_cap_mb_list else 25 if bucket_cap_mb is None else bucket_cap_mb
        self.bucket_bytes_cap: int = int(cap * MEGABYTE)
        self.bucket_bytes_cap_default: bool = bucket_cap_mb is None and not bucket_cap_mb_list
        if init_sync:
            trained = self._trained()
            verify_shapes(self.process_group, [each for _, each, _ in trained], [name for name, _, _ in trained])
            sync_module_states(module, self.process_group, 0, self.parameters_to_ignore, self._init_sync_buffers)
        self._comm_hooks: list[tuple[Hook, Any]] = []
        self._static_graph_delay_allreduce_enqueued = self._has_rebuilt_buckets = False
        self._divide_by_initial_world_size, self._ddp_sink_clone = True, True
        self._build_reducer(static_graph)
        if static_graph:
            self._set_static_graph()

    # -- Construction --------------------------------------------------------------------------------------------------

    def _set_devices(self, parameters: list[Any], device_ids: Any, output_device: Any) -> None:
        """Check and store the devices of the parameters, of inputs and of outputs."""
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        places = {each.device for each in parameters}
        self.is_multi_device_module: bool = len(places) > 1
        kinds = {each.type for each in places}
        if len(kinds) != 1:
            raise ValueError(
                "DistributedDataParallel's input module must be on the same type of devices, but input module parameters locate "
                f"in {kinds}."
            )
        if kinds == {"meta"}:
            raise RuntimeError(
                "DistributedDataParallel can not copy parameters on the meta device to other ranks. Remedy: give them memory, as "
                "by module.to_empty(device='cpu'), and initialize them"
            )
        self.device: Any = parameters[0].device
        self.device_type: Any = self.device.type
        self.device_ids = self.output_device = None
        if not device_ids or self.device_type == "cpu" or self.is_multi_device_module:
            if device_ids or output_device:
                raise ValueError(
                    "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device "
                    f"GPU modules or CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module "
                    f"parameters {places}."
                )
            return
        self.device_ids = [device_ids[0] if isinstance(device_ids[0], int) else device_ids[0].index]
        self.output_device = self.device_ids[0] if output_device is None else output_device

    def _set_buffer_sync(self, broadcast_buffers: bool | None, forward_sync_buffers: bool | None) -> None:
        """Store whether buffers are copied by the constructor and before each forward pass; warn of the old name."""
        if broadcast_buffers is not None and forward_sync_buffers is not None:
            warn(
                "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated and its "
                "value is ignored when `forward_sync_buffers` is provided.",
                FutureWarning,
            )
        elif broadcast_buffers is not None:
            warn(
                "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike "
                "`broadcast_buffers=False`, `forward_sync_buffers=False` still syncs buffers at init. If you rely on buffers NOT "
                "being synced at init (e.g. rank-local buffers), keep using `broadcast_buffers=False` until "
                "`init_sync_buffers` is available.",
                FutureWarning,
            )
        self._init_sync_buffers = forward_sync_buffers is not None or broadcast_buffers is not False
        self.forward_sync_buffers: bool = (
            broadcast_buffers is not False if forward_sync_buffers is None else forward_sync_buffers
        )

    def _trained(self) -> list[tuple[str, Any, bool]]:
        """Return the name, the parameter, and whether its gradient is sparse, of all parameters with a gradient."""
        found: dict[int, tuple[str, Any, bool]] = {}
        for prefix, module in self.module.named_modules():
            sparse = isinstance(module, (Embedding, EmbeddingBag)) and module.sparse
            for name, each in module.named_parameters(recurse=False):
                full = f"{prefix}.{name}" if prefix else name
                if each.requires_grad and not {full, f"{prefix}.{name}"} & self.parameters_to_ignore:
                    found.setdefault(id(each), (full, each, sparse))
        return list(found.values())

    def _build_reducer(self, static_graph: bool) -> None:
        """Create the reducer, which registers hooks of the parameters."""
        names, parameters, sparse = (list(each) for each in zip(*self._trained(), strict=True))
        later: list[float] = [MEGABYTE] if self.bucket_bytes_cap_default else []
        later = [*self.bucket_bytes_cap_list] or [*later, self.bucket_bytes_cap]
        first: list[float] = [math.inf]  # one bucket: the order of the gradients is not known yet
        if self.bucket_bytes_cap_list or (self.find_unused_parameters and not static_graph):
            first = later
        self.reducer: Reducer = Reducer(
            parameters, names, sparse, self.process_group, first, later, self.find_unused_parameters,
            self.gradient_as_bucket_view, self.skip_all_reduce_unused_params,
        )  # fmt: skip
        self._assign_modules_buffers()

    def _assign_modules_buffers(self) -> None:
        """Store the buffers, which the module may have replaced since the last call."""
        self.named_module_buffers: dict[str, Tensor] = {
            name: each for name, each in self.module.named_buffers() if name not in self.parameters_to_ignore
        }
        self.modules_buffers: list[Tensor] = list(self.named_module_buffers.values())

    def _check_default_group(self) -> None:
        if self.process_group is not _get_default_group():
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, when you "
                "have called init_process_group and have not passed process_group argument to DDP constructor"
            )

    def __getstate__(self) -> dict[str, Any]:
        self._check_default_group()
        state = copy.copy(self.__dict__)
        del state["process_group"], state["reducer"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = _get_default_group()
        super().__setstate__(state)
        self._build_reducer(self.static_graph)
        self.reducer.static_graph = self.static_graph
        self._static_graph_delay_allreduce_enqueued = False

    @property
    def broadcast_buffers(self) -> bool:
        """Whether buffers are copied before each forward pass."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    # -- The forward pass ----------------------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the output of the wrapped module."""
        with record_function("DistributedDataParallel.forward"):
            inputs, kwargs = self._pre_forward(*inputs, **kwargs)
            return self._post_forward(self.module(*inputs, **kwargs))

    def _pre_forward(self, *inputs: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Prepare a forward pass: check the last iteration, rebuild buckets, copy buffers, move inputs."""
        recording = is_grad_enabled()
        if recording and self.require_backward_grad_sync:
            self.reducer.prepare_for_forward()
        work = Join.notify_join_context(self)
        if work is not None:
            self.reducer.joined = work, self._divide_by_initial_world_size
        if recording:
            self._rebuild_buckets()
        if self._check_sync_bufs_pre_fwd():
            self._sync_buffers()
        if self._join_config.enable:
            self._any_rank_reduces(self.require_backward_grad_sync)
        if self.device_ids:
            moved_inputs, moved_kwargs = scatter_kwargs(inputs, kwargs, self.device_ids, self.dim)
            return moved_inputs[0], moved_kwargs[0]
        return inputs, kwargs

    def _post_forward(self, output: Any) -> Any:
        """Return ``output`` of the module, prepared for a backward pass."""
        if self._check_sync_bufs_post_fwd():
            self._sync_buffers()
        self.require_forward_param_sync = is_grad_enabled() and self.require_backward_grad_sync
        if self.require_forward_param_sync:
            self.reducer.prepare_for_backward(output)
        if self.static_graph:
            sinks = not self._static_graph_delay_allreduce_enqueued
        else:
            sinks = self.find_unused_parameters
        if sinks:
            values, structure = tree_flatten(output)
            passed = _DDPSink.apply(weakref.ref(self), *values)
            kept = [isinstance(each, Tensor) and each.grad_fn is None for each in values]
            values = [old if keep else new for old, new, keep in zip(values, passed, kept, strict=True)]
            output = tree_unflatten(values, structure)
        return output

    def _rebuild_buckets(self) -> None:
        if self.reducer._rebuild_buckets():
            self._has_rebuilt_buckets = True

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Return a context manager in which gradients are accumulated in each rank, without averaging.

        The accumulated gradients are averaged by the next backward pass outside. The forward pass must be inside, too.
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # -- Buffers -------------------------------------------------------------------------------------------------------

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward pass copies buffers."""
        return self.require_forward_param_sync and self.forward_sync_buffers and len(self.modules_buffers) > 0

    def _check_sync_bufs_pre_fwd(self) -> bool:
        return self.will_sync_module_buffers() and not self._has_buffer_hook(_BufferCommHookLocation.POST_FORWARD)

    def _check_sync_bufs_post_fwd(self) -> bool:
        return self.will_sync_module_buffers() and self._has_buffer_hook(_BufferCommHookLocation.POST_FORWARD)

    def _has_buffer_hook(self, location: _BufferCommHookLocation) -> bool:
        return hasattr(self, "buffer_hook") and self.buffer_hook.buffer_comm_hook_location == location

    def _sync_buffers(self) -> None:
        """Copy the buffers of rank 0, or of a rank that has inputs, to all ranks."""
        rank = self._find_common_rank(True) if self._join_config.enable else 0
        self._assign_modules_buffers()
        self._sync_module_buffers(rank)

    def _sync_module_buffers(self, rank: int) -> None:
        if not hasattr(self, "buffer_hook"):
            broadcast_coalesced(self.process_group, self.modules_buffers, src=rank)
            return
        with no_grad():
            futures = self.buffer_hook.buffer_comm_hook(
                self.buffer_hook.buffer_comm_hook_state, self.named_module_buffers
            )
        if futures is not None:
            self.reducer.futures += futures

    def _register_buffer_comm_hook(
        self, state: Any, hook: Callable[..., Any],
        comm_hook_location: _BufferCommHookLocation = _BufferCommHookLocation.POST_FORWARD,
    ) -> None:  # fmt: skip
        """Register ``hook(state, buffers)``, called with a dictionary of the buffers instead of copying those of rank 0.

        A list of futures that it returns is awaited at the end of the backward pass.
        """
        if not callable(hook):
            raise AssertionError(f"hook must be callable, got {type(hook).__name__}")
        self.buffer_hook: _BufferCommHook = _BufferCommHook(hook, state, comm_hook_location)

    # -- Ranks with different numbers of inputs ------------------------------------------------------------------------

    def _any_rank_reduces(self, reduces: bool) -> bool:
        """Return whether a rank with an input reduces gradients in this iteration; called by all ranks."""
        number = (ones if reduces else zeros)(1, device=self.device)
        all_reduce(number, group=self.process_group)
        return bool(number.item())

    def _find_common_rank(self, candidate: bool) -> int:
        """Return the greatest of the ranks that call this method with ``candidate`` true; called by all ranks."""
        chosen = tensor([self.process_group.rank() if candidate else -1], device=self.device)
        all_reduce(chosen, op=ReduceOp.MAX, group=self.process_group)
        return int(chosen.item())

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:  # fmt: skip
        """Return a context manager in which ranks may have different numbers of inputs.

        A rank without further inputs adds zeros to the gradients of the other ranks. At the end, all ranks have the
        parameters of the last rank with inputs.

        Args:
            divide_by_initial_world_size: Whether gradients are divided by the number of all ranks, or only by the number
                of ranks that still have inputs.
            enable: If false, the context manager has no effect.
            throw_on_early_termination: If true, all ranks raise RuntimeError as soon as one has no further inputs.
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook for :class:`~retrograd.distributed.algorithms.Join`."""
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """Device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> ProcessGroup:
        """Process group of the reductions."""
        return self.process_group

    # -- Communication hooks -------------------------------------------------------------------------------------------

    def register_comm_hook(self, state: Any, hook: Hook) -> None:
        """Register ``hook(state, bucket)``, which reduces the gradients of one bucket instead of an all-reduce.

        The ``bucket`` is a ``dist.GradBucket``. The hook returns a ``torch.futures.Future`` of a tensor of the size of
        ``bucket.buffer()``, which is copied to the gradients at the end of the backward pass. The gradients are not
        divided by the number of ranks. ``torch.distributed.algorithms.ddp_comm_hooks`` has such hooks.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        signature = inspect.signature(hook)
        unknown = inspect.Signature.empty
        annotation = signature.parameters["bucket"].annotation
        if annotation not in (unknown, GradBucket) and str(annotation).rpartition(".")[2] != "GradBucket":
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        annotation = signature.return_annotation
        if annotation not in (unknown, Future[Tensor]) and "Future[" not in str(annotation):
            raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._comm_hooks.append((hook, state))
        self.reducer.hook = hook, state

    _register_comm_hook = register_comm_hook

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        """Register the communication hook that a ``dist.BuiltinCommHookType`` names."""
        self.register_comm_hook(self.process_group, comm_hook_type.hook)

    # -- Other methods -------------------------------------------------------------------------------------------------

    def _set_static_graph(self) -> None:
        """Set that all iterations use the same parameters, equally often."""
        if self.static_graph:
            warn("You've set static_graph to be True, no need to set it again.")
            return
        self.static_graph = self.reducer.static_graph = True
        self._static_graph_delay_allreduce_enqueued = False
        if self.find_unused_parameters:
            warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, `_set_static_graph` will detect unused "
                "parameters automatically, so you do not need to set find_unused_parameters=true, just be sure these unused "
                "parameters will not change during training loop while calling `_set_static_graph`."
            )

    def _set_ddp_sink_clone(self, val: bool) -> None:
        """Set whether outputs are copied with ``find_unused_parameters``, so that they may be modified in place."""
        self._ddp_sink_clone = val

    def _remove_autograd_hooks(self) -> None:
        """Remove the hooks of the parameters, so that gradients are not reduced any more."""
        self.reducer._remove_autograd_hooks()

    def _check_reducer_finalized(self) -> None:
        """Raise RuntimeError if the last backward pass has left gradients without a reduction."""
        self.reducer._check_reducer_finalized()

    @property
    def _distributed_rank(self) -> int:
        return self.process_group.rank()

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Any) -> Any:
        """Return parts of ``inputs`` and ``kwargs`` for each device."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """Return the ``outputs`` of several devices, joined on ``output_device``."""
        return gather(outputs, output_device, self.dim)

    @staticmethod
    def _get_data_parallel_params(module: Module, named_params: bool = False) -> Iterator[Any]:
        """Yield the parameters of ``module`` that are not ignored, or pairs of their names and them."""
        for name, each in module.named_parameters():
            if not hasattr(each, "_ddp_ignored"):
                yield (name, each) if named_params else each

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        """Set the names of parameters and buffers of ``module`` that are neither copied nor reduced."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore
        for name, each in (*module.named_parameters(), *module.named_buffers()):
            if name in params_and_buffers_to_ignore:
                each._ddp_ignored = True  # type: ignore[attr-defined]


def _group(process_group: ProcessGroup | None, device_mesh: Any) -> ProcessGroup:
    """Return the group of the constructor's arguments."""
    if device_mesh is None:
        return _checked_group(process_group)
    if process_group is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if device_mesh.ndim != 1:
        raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
    group: ProcessGroup = device_mesh.get_group(mesh_dim=0)
    return group


for _each in (DistributedDataParallel, _DDPSink):
    _each.__module__ = "torch.nn.parallel.distributed"
__all__ = ["DistributedDataParallel"]
