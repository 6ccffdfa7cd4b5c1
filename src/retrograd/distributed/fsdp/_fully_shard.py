"""``fully_shard``: a module whose parameters, gradients and optimiser state are split over the ranks of a mesh.

Each call of ``fully_shard`` forms a group of parameters. Between steps a rank has its part of each parameter, a DTensor.
Before the module's forward, the group's whole parameters are gathered into memory of the group, and the module gets
parameters that are views of it; after the forward, the memory is given back to the system. Its addresses stay, so that
the arrays that the graph has saved are valid again when the memory is filled before the module's backward. When the
gradients of all parameters of a group have arrived, they are summed, and each rank gets its part.

Source: Y. Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", 2023.
https://arxiv.org/abs/2304.11277
"""

from __future__ import annotations

import functools
import math
import mmap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy

from ...compat.module_names import ModuleName
from ...core.dtypes import dtype
from ...core.engine import queue_callback, running_frame
from ...core.grad_mode import no_grad
from ...core.pytree import tree_leaves, tree_map_only
from ...core.tensor import Tensor, wrap
from ...core.views import bump_version
from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module
from ...nn.parameter import Parameter, is_lazy
from ...operations.creation.factory import empty
from .. import groups
from ..collectives import all_gather_single, all_reduce, reduce_scatter_single
from ..device_mesh import DeviceMesh, init_device_mesh
from ..reductions import ReduceOp
from ..tensor import DTensor, Replicate, Shard, distribute_tensor
from ..tensor._api import _wrap


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of a group.

    ``param_dtype`` is that of the whole parameters, and of the inputs with ``cast_forward_inputs``; ``reduce_dtype``
    that in which gradients are summed, by default ``param_dtype``; ``output_dtype`` that of the outputs. The parts, their
    gradients and the optimiser keep the dtype of the parameters.
    """

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Policy that keeps parameters on their device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Policy that keeps the parts on the CPU, where they are in any case."""

    pin_memory: bool = True


class _Memory:
    """Memory for arrays whose contents can be dropped, while the arrays stay valid."""

    def __init__(self, size: int) -> None:
        self._map: mmap.mmap | None = None
        if size and hasattr(mmap, "MADV_DONTNEED"):
            self._map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            self._bytes: Any = numpy.frombuffer(self._map, numpy.uint8)
        else:
            self._bytes = numpy.empty(size, numpy.uint8)

    def array(self, begin: int, shape: tuple[int, ...], kind: dtype) -> Any:
        """Return the array of ``shape`` that begins at byte ``begin``."""
        return self._bytes[begin : begin + math.prod(shape) * kind.itemsize].view(kind.numpy).reshape(shape)

    def drop(self) -> None:
        """Give the memory back to the system; the elements are then undefined."""
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)


class _Param:
    """A parameter of a group: the places in modules where it is, its part, and the whole parameter."""

    def __init__(self, param: Any, owners: list[tuple[Module, str]], mesh: DeviceMesh, placement: Any) -> None:
        name = owners[0][1]
        if not param.shape:
            raise ValueError(
                f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with numel equal to 1."
            )
        if param.device.type not in ("cpu", "meta"):
            raise RuntimeError(f"fully_shard() supports parameters on the CPU, but {name} is on {param.device}")
        if isinstance(param, DTensor):
            raise ValueError(f"fully_shard() does not support parameters that are DTensors, such as {name}")
        self.owners, self.mesh = owners, mesh
        chosen = placement(param) if placement is not None else None
        shard = chosen if chosen is not None else Shard(0)
        self.dim = shard.dim % param.ndim
        self.count = mesh.shape[-1]
        if self.dim and param.shape[self.dim] % self.count:
            raise NotImplementedError(
                f"FSDP does not support uneven sharding on dim {self.dim}: {param.shape} (world size: {self.count})"
            )
        placements = [*[Replicate()] * (mesh.ndim - 1), Shard(self.dim)]
        part = distribute_tensor(param.detach(), mesh, placements, src_data_rank=None)
        self.shape = tuple(param.shape)
        #: Shape of the part of each rank, with rows of padding in the last ones.
        self.padded = list(self.shape)
        self.padded[self.dim] = -(-self.shape[self.dim] // self.count)
        self.size = math.prod(self.padded)
        self.whole: Any = None
        #: Identity and version of the part from which the whole parameter was last filled.
        self.filled: tuple[int, int] | None = None
        self.put(Parameter(part, requires_grad=param.requires_grad))
        self.part.__dict__.update({key: each for key, each in param.__dict__.items() if key != "_is_param"})

    def put(self, param: Any) -> None:
        """Make ``param`` the parameter of the modules."""
        for module, name in self.owners:
            module._parameters[name] = param

    @property
    def part(self) -> Any:
        """The part of this rank: a program may have replaced it in the module."""
        found = self.owners[0][0]._parameters[self.owners[0][1]]
        if found is not self.whole:
            self._part = found
        return self._part

    def write_part(self, line: Tensor) -> None:
        """Write the elements of the part, and zeros for the padding, to ``line``."""
        local = self.part._local_tensor
        target = line.view(self.padded)
        if local.shape[self.dim] < self.padded[self.dim]:
            line.zero_()
            target = target.narrow(self.dim, 0, local.shape[self.dim])
        target.copy_(local)

    def read_whole(self, lines: Tensor) -> None:
        """Fill the whole parameter from ``lines``, the padded parts of all ranks.

        For graphs that have saved it, that is a modification only if the part has been modified.
        """
        wrap(self.whole._array).copy_(self._joined(lines))
        filled = id(self._part), self._part._version
        if self.filled not in (None, filled):
            bump_version(self.whole)
        self.filled = filled

    def _joined(self, lines: Tensor) -> Tensor:
        if self.dim == 0:
            return lines.reshape(self.count * self.padded[0], *self.shape[1:])[: self.shape[0]]
        return lines.view(self.count, *self.padded).movedim(0, self.dim).reshape(self.shape)

    def write_gradient(self, lines: Tensor) -> None:
        """Write the gradient of the whole parameter to ``lines``, the padded parts for all ranks."""
        grad = self.whole.grad
        if grad is None:
            lines.zero_()
            return
        if self.dim:
            split = [*self.shape[: self.dim], self.count, self.padded[self.dim], *self.shape[self.dim + 1 :]]
            lines.view(self.count, *self.padded).copy_(grad.reshape(split).movedim(self.dim, 0))
            return
        row = math.prod(self.shape[1:])
        for rank, line in enumerate(lines.unbind(0)):
            rows = grad[rank * self.padded[0] : (rank + 1) * self.padded[0]]
            line[: rows.shape[0] * row].copy_(rows.reshape(-1))
            line[rows.shape[0] * row :].zero_()

    def take_gradient(self, line: Tensor) -> None:
        """Add ``line``, the padded part of this rank of the summed gradient, to the gradient of the part."""
        part = self.part
        grad = line.view(self.padded).narrow(self.dim, 0, part._array.shape[self.dim]).to(part.dtype)
        if part.grad is None:
            part.grad = _wrap(grad.clone(), part._spec)
        else:
            part.grad._local_tensor.add_(grad)


class _Group:
    """Parameters that are gathered, and whose gradients are summed, together."""

    def __init__(
        self, state: _State, found: list[tuple[Parameter, list[tuple[Module, str]]]], mesh: DeviceMesh, placement: Any,
        policy: MixedPrecisionPolicy,
    ) -> None:  # fmt: skip
        self.state, self.mesh, self.policy = state, mesh, policy
        self.group, self.count = mesh.get_group(mesh.ndim - 1), mesh.shape[-1]
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self.params = [_Param(param, owners, mesh, placement) for param, owners in found]
        self.memory: _Memory | None = None
        self.layout: Any = None
        self.is_whole = self.in_backward = False
        self.arrived = 0
        #: Identity and version of each part at the time of the last gathering.
        self.gathered: list[tuple[int, int]] = []
        self.gathering: list[tuple[Any, Tensor, list[_Param]]] = []
        self.reducing: list[tuple[Any, Tensor, list[_Param]]] = []
        self.reduce_gradients = self.reduce_replicas = True
        self.reshard_after_backward = True
        self.divisor: float | None = None

    # -- parameters

    def _kind(self, param: _Param) -> dtype:
        kind: dtype = param.part.dtype
        return self.policy.param_dtype if self.policy.param_dtype is not None and kind.is_floating_point else kind

    def _prepare(self) -> None:
        """Create the memory and the whole parameters, if the dtypes are new."""
        layout = [(self._kind(each), each.part.requires_grad) for each in self.params]
        if layout == self.layout:
            return
        self.layout = layout
        begins, position = [], 0
        for param, (kind, _) in zip(self.params, layout, strict=True):
            begins.append(position)
            position += -(-math.prod(param.shape) * kind.itemsize // 64) * 64
        self.memory = _Memory(position)
        for param, begin, (kind, wanted) in zip(self.params, begins, layout, strict=True):
            part = param.part  # before `whole` changes
            param.whole = Parameter(wrap(self.memory.array(begin, param.shape, kind)), requires_grad=wanted)
            param.whole.__dict__.update(
                {key: each for key, each in part.__dict__.items() if key not in ("_spec", "_is_param")}
            )
            if wanted:
                param.whole.register_post_accumulate_grad_hook(self._gradient_arrived)

    def start_gathering(self) -> None:
        """Start to gather the whole parameters."""
        parts = [(id(each.part), each.part._version) for each in self.params]
        if (self.is_whole or self.gathering) and parts != self.gathered and not self.in_backward:
            self.reshard()  # the parts have been modified since
        if self.is_whole or self.gathering or not self.params:
            return
        self.gathered = parts
        with no_grad():
            self._prepare()
            for params in self._by_kind(lambda each: each.whole.dtype):
                sizes = [each.size for each in params]
                line = empty(sum(sizes), dtype=params[0].whole.dtype)
                for param, part in zip(params, line.split(sizes), strict=True):
                    param.write_part(part)
                lines = empty(self.count * sum(sizes), dtype=line.dtype)
                work = all_gather_single(lines, line, self.group, async_op=True)
                self.gathering.append((work, lines, params))

    def finish_gathering(self) -> None:
        """Wait until the parameters are whole, and give them to the modules."""
        if self.is_whole:
            return
        with no_grad():
            gathering, self.gathering = self.gathering, []
            for work, lines, params in gathering:
                work.wait()
                sizes = [each.size for each in params]
                for param, part in zip(params, lines.view(self.count, -1).split(sizes, 1), strict=True):
                    param.read_whole(part)
        for param in self.params:
            param.part  # noqa: B018 - notes the part that is replaced now
            param.put(param.whole)
        self.is_whole = True

    def unshard(self) -> None:
        """Make the parameters whole."""
        self.start_gathering()
        self.finish_gathering()

    def reshard(self) -> None:
        """Give the parts to the modules, and drop the whole parameters."""
        if self.gathering:
            self.finish_gathering()
        if not self.is_whole:
            return
        for param in self.params:
            param.put(param._part)
        self.is_whole = False
        if self.memory is not None:
            self.memory.drop()

    def _by_kind(self, kind: Callable[[_Param], Any], params: Iterable[_Param] | None = None) -> list[list[_Param]]:
        found: dict[Any, list[_Param]] = {}
        for each in self.params if params is None else params:
            found.setdefault(kind(each), []).append(each)
        return list(found.values())

    # -- gradients

    def begin_backward(self) -> None:
        """Prepare for the backward pass of the module, which begins now."""
        if not self.in_backward:
            self.in_backward, self.arrived = True, 0
        self.unshard()

    def _gradient_arrived(self, whole: Tensor) -> None:
        if not self.in_backward:  # no output of the module has a gradient: a parameter is used elsewhere
            self.in_backward, self.arrived = True, 0
            self.state.queue_end()
        self.arrived += 1
        if self.arrived == sum(wanted for _, wanted in self.layout) and self.reduce_gradients:
            self.start_reducing()

    def start_reducing(self) -> None:
        """Start to sum the gradients, and drop the whole parameters."""
        trainable = [each for each in self.params if each.whole.requires_grad]
        reduced = self.policy.reduce_dtype
        with no_grad():
            for params in self._by_kind(lambda each: reduced or each.whole.dtype, trainable):
                sizes = [each.size for each in params]
                lines = empty(self.count, sum(sizes), dtype=reduced or params[0].whole.dtype)
                for param, part in zip(params, lines.split(sizes, 1), strict=True):
                    param.write_gradient(part)
                    param.whole.grad = None
                line = empty(sum(sizes), dtype=lines.dtype)
                work = reduce_scatter_single(line, lines.view(-1), ReduceOp.SUM, self.group, async_op=True)
                self.reducing.append((work, line, params))
        if self.reshard_after_backward:
            self.reshard()

    def end_backward(self) -> None:
        """Complete the gradients of the parts at the end of the backward pass."""
        if not self.in_backward:
            return
        if self.reduce_gradients and any(
            each.whole is not None and each.whole.grad is not None for each in self.params
        ):
            self.start_reducing()  # some parameters were not used
        with no_grad():
            reducing, self.reducing = self.reducing, []
            for work, line, params in reducing:
                work.wait()
                ranks = self.count
                if self.replicas is not None and self.reduce_replicas:
                    all_reduce(line, ReduceOp.SUM, self.replicas)
                    ranks *= self.mesh.shape[0]
                line.div_(self.divisor if self.divisor is not None else ranks)
                for param, part in zip(params, line.split([each.size for each in params]), strict=True):
                    param.take_gradient(part)
        self.in_backward = False
        if self.reshard_after_backward:
            self.reshard()


class _State:
    """State of ``fully_shard`` for a module, or for several modules that form a group."""

    def __init__(self, modules: list[Module], policy: MixedPrecisionPolicy, reshard_after_forward: bool | None) -> None:
        self.modules, self.policy, self.reshard_after_forward = modules, policy, reshard_after_forward
        self.group: _Group | None = None
        self.root: _State | None = None
        self.members: list[_State] = []
        self.end_is_queued = False
        self.forward_prefetch: list[_State] = []
        self.backward_prefetch: list[_State] = []
        for module in modules:
            module.register_forward_pre_hook(self.before_forward, prepend=True, with_kwargs=True)
            module.register_forward_hook(self.after_forward, prepend=False)
            module.register_state_dict_pre_hook(self._before_state)
            module._register_load_state_dict_pre_hook(self._before_state)

    def _before_state(self, *args: Any) -> None:
        assert self.group is not None
        self.group.reshard()

    def before_forward(self, module: Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Gather the parameters, and cast the inputs."""
        assert self.group is not None
        if self.root is None:
            self.members = [state for each in self.modules for inner in each.modules() if (state := _state_of(inner))]
            self.members = list(dict.fromkeys(self.members))
            for each in self.members:
                each.root = self
        if self.root is self and self.end_is_queued and running_frame() is None:  # a backward pass has failed
            self.reset()
        self.group.start_gathering()
        for each in self.forward_prefetch:
            assert each.group is not None
            each.group.start_gathering()
        kind = self.policy.param_dtype
        if kind is not None and self.policy.cast_forward_inputs:
            args, kwargs = tree_map_only(Tensor, lambda x: x.to(kind) if x.is_floating_point() else x, (args, kwargs))
        self.group.finish_gathering()
        return args, kwargs

    def after_forward(self, module: Module, args: Any, output: Any) -> Any:
        """Drop the whole parameters, and watch for the gradients of the outputs."""
        assert self.group is not None
        kind = self.policy.output_dtype
        if kind is not None:
            output = tree_map_only(Tensor, lambda x: x.to(kind) if x.is_floating_point() else x, output)
        if self.group.in_backward:  # the forward is repeated within the backward pass
            return output
        for each in tree_leaves(output):
            if isinstance(each, Tensor) and each.requires_grad:
                each.register_hook(self._before_backward)
        drop = self.reshard_after_forward if self.reshard_after_forward is not None else self.root is not self
        if drop and module is self.modules[-1]:
            self.group.reshard()
        return output

    def _before_backward(self, grad: Tensor) -> None:
        assert self.group is not None
        self.queue_end()
        self.group.begin_backward()
        for each in self.backward_prefetch:
            assert each.group is not None
            each.group.start_gathering()

    def queue_end(self) -> None:
        """Arrange that the gradients are complete at the end of this backward pass."""
        root = self.root or self
        if not root.end_is_queued:
            root.end_is_queued = True
            queue_callback(root.end_backward, outermost=True)

    def end_backward(self) -> None:
        """Complete the gradients of all groups."""
        self.end_is_queued = False
        for each in self.members or [self]:
            assert each.group is not None
            each.group.end_backward()

    def reset(self) -> None:
        """Forget a forward or backward pass that has failed, and its gradients."""
        for each in self.members or [self]:
            group = each.group
            assert group is not None
            each.end_is_queued = group.in_backward = False
            for work, *_ in [*group.reducing, *group.gathering]:
                work.wait()
            group.reducing = []
            for param in group.params:
                if param.whole is not None:
                    param.whole.grad = None
            group.reshard()


def _state_of(module: Any) -> _State | None:
    found: _State | None = module.__dict__.get("_fsdp_state")
    return found


class UnshardHandle:
    """Result of ``unshard(async_op=True)``."""

    def __init__(self, group: _Group | None) -> None:
        self._group = group

    def wait(self) -> None:
        """Wait until the module has the whole parameters."""
        if self._group is not None:
            self._group.finish_gathering()
            self._group = None


class FSDPModule:
    """Class of the modules that :func:`fully_shard` has changed."""

    __module__ = ModuleName("torch.distributed.fsdp", __name__)

    def _groups(self, recurse: bool) -> list[_Group]:
        modules: Iterable[Any] = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        states = dict.fromkeys(state for each in modules if (state := _state_of(each)))
        return [each.group for each in states if each.group is not None]

    def reshard(self) -> None:
        """Drop the whole parameters of the module's group; the module then has the parts."""
        for group in self._groups(False):
            group.reshard()

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Give the module its whole parameters; with ``async_op``, when ``wait()`` of the result is called."""
        (group,) = self._groups(False)
        group.start_gathering()
        if async_op:
            return UnshardHandle(group)
        group.finish_gathering()
        return None

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Set whether gradients are summed over the ranks; without, the whole gradients are accumulated."""
        for group in self._groups(recurse):
            group.reduce_gradients = group.reduce_replicas = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Set whether gradients are summed over the replicas of a mesh with two dimensions."""
        for group in self._groups(recurse):
            group.reduce_replicas = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Set whether the whole parameters are dropped after the forward."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for group in self._groups(recurse):
            group.state.reshard_after_forward = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Set whether the whole parameters are dropped after the backward pass."""
        for group in self._groups(recurse):
            group.reshard_after_backward = reshard_after_backward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Set the number by which the summed gradients are divided, by default the number of ranks."""
        for group in self._groups(False):
            group.divisor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Set the modules whose parameters are gathered while the forward of this module runs."""
        _own_state(self).forward_prefetch = [_own_state(each) for each in modules]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Set the modules whose parameters are gathered while the backward of this module runs."""
        _own_state(self).backward_prefetch = [_own_state(each) for each in modules]

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Do nothing: gradients are complete at the end of each backward pass."""

    def set_post_optim_event(self, event: Any) -> None:
        """Do nothing: there are no streams."""

    def reset_iter_state(self) -> None:
        """Forget a forward or backward pass that has raised an error, and its gradients."""
        _own_state(self).reset()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        for group in self._groups(True):
            group.reshard()

        def of_part(tensor: Tensor) -> Tensor:
            return _wrap(fn(tensor._local_tensor), tensor._spec) if isinstance(tensor, DTensor) else fn(tensor)

        return super()._apply(of_part, recurse)  # type: ignore[misc]


def _own_state(module: Any) -> _State:
    found = _state_of(module)
    if found is None:
        raise AssertionError(f"No FSDP state found on {module}")
    return found


def _refuse_copy(self: Any, memo: Any) -> NoReturn:
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


def fully_shard(
    module: Any, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Parameter], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),
    offload_policy: OffloadPolicy = OffloadPolicy(), ignored_params: set[Parameter] | None = None,  # noqa: B008
    dp_mesh_dims: Any = None,
) -> Any:  # fmt: skip
    """Split the parameters of ``module`` over the ranks of ``mesh``, by default all; return ``module``.

    The parameters of a group become DTensors with ``Shard(0)``; the group has the parameters that no earlier call on a
    submodule has taken, so that programs call ``fully_shard`` for each layer first, and for the model last. The forward
    and the backward pass of the module gather the whole parameters, and gradients are averaged over the ranks. The
    optimiser is created after ``fully_shard``; its state is split as well.

    With a mesh of two dimensions, parameters are split along the second, and replicated along the first. With
    ``reshard_after_forward``, by default for all modules but the outermost, the whole parameters are dropped between the
    forward and the backward of the module. ``shard_placement_fn`` chooses another dimension to split. A list of modules
    forms one group. The initial values are those of each rank, which must be the same.

    >>> import retrograd as torch
    >>> from retrograd import distributed as dist
    >>> from retrograd.distributed.fsdp import fully_shard
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = fully_shard(torch.nn.Linear(2, 3))
    >>> type(model).__name__, model.weight.placements
    ('FSDPLinear', (Shard(dim=0),))
    >>> model(torch.ones(1, 2)).sum().backward()
    >>> model.weight.grad.to_local()
    tensor([[1., 1.],
            [1., 1.],
            [1., 1.]])
    >>> dist.destroy_process_group()
    """
    modules: list[Module] = list(module) if isinstance(module, (list, tuple)) else [module]
    for each in modules:
        if isinstance(each, (ModuleList, ModuleDict)) and type(each).forward is Module.forward:
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {each}")
        if _state_of(each) is not None:
            raise AssertionError(f"fully_shard has already been applied to {type(each).__name__}")
    if dp_mesh_dims is not None:
        raise RuntimeError("fully_shard() does not support dp_mesh_dims: pass a mesh of one or two dimensions")
    if reshard_after_forward is not None and not isinstance(reshard_after_forward, (bool, int)):
        raise ValueError(
            "reshard_after_forward should be a bool or an int representing the group size to reshard to, not "
            f"{reshard_after_forward}"
        )
    if mesh is None:
        if not groups.is_initialized():
            groups.init_process_group()
        mesh = init_device_mesh("cpu", (groups.get_world_size(),))
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    found: dict[int, tuple[Parameter, list[tuple[Module, str]]]] = {}
    for each in modules:
        _collect(each, found, {id(param) for param in ignored_params or ()}, each)
    reshard = None if reshard_after_forward is None else bool(reshard_after_forward)
    state = _State(modules, mp_policy, reshard)
    state.group = _Group(state, list(found.values()), mesh, shard_placement_fn, mp_policy)
    for each in modules:
        each.__dict__["_fsdp_state"] = state
        kind = type(each)
        each.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__deepcopy__": _refuse_copy})
    return module


def _collect(module: Module, found: dict[int, Any], ignored: set[int], top: Module) -> None:
    """Add the parameters of ``module`` that belong to no group to ``found``."""
    if module is not top and _state_of(module) is not None:
        return
    for name, param in module._parameters.items():
        if param is None or id(param) in ignored:
            continue
        if is_lazy(param):
            raise RuntimeError("fully_shard() needs initialized parameters: call the lazy module once before")
        found.setdefault(id(param), (param, []))[1].append((module, name))
    for each in module._modules.values():
        if each is not None:
            _collect(each, found, ignored, top)


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Treat the method ``method_name`` of ``module`` as its forward: the whole parameters are gathered for it."""
    state = _state_of(module)
    if state is None:
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    method = getattr(module, method_name)

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before_forward(module, args, kwargs)
        return state.after_forward(module, args, method(*args, **kwargs))

    setattr(module, method_name, wrapped)


__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard",
    "register_fsdp_forward_method",
]  # fmt: skip
