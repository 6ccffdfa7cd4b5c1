"""``ZeroRedundancyOptimizer``: each rank has the optimiser state of a part of the parameters, and updates this part.

Source: S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020 (the stage
``P_os``). https://arxiv.org/abs/1910.02054
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.grad_mode import no_grad
from ...core.tensor import Tensor, strided
from ...core.views import bump_version
from ...operations.creation.conversion import typename
from ...operations.creation.factory import empty
from ...optim import Optimizer
from .. import groups
from ..algorithms.join import Join, Joinable, JoinHook
from ..collectives import broadcast
from ..object_collectives import gather_object

#: Bytes from which a parameter is sent by itself; smaller ones are copied into a common buffer.
_LARGE = 2**16


class _ZeROJoinHook(JoinHook):
    """Takes part in the steps of the other ranks."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        """Update the part of this rank, and exchange the parts."""
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Optimiser that splits the state of ``optimizer_class(params, **defaults)`` over the ranks of ``process_group``.

    All ranks have the same parameters with the same gradients, as with DistributedDataParallel. A parameter belongs to
    one rank: the largest first, to the rank with the fewest elements. :meth:`step` updates the parameters of this rank,
    and each rank then sends its parameters to the others. The parameters are those of the plain optimiser, bit for bit.

    With ``parameters_as_bucket_view``, the parameters of each rank are views of one buffer, which is sent without
    copying. ``overlap_with_ddp=True`` raises RuntimeError.

    >>> import retrograd as torch
    >>> from retrograd import distributed as dist
    >>> from retrograd.distributed.optim import ZeroRedundancyOptimizer
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> optimizer = ZeroRedundancyOptimizer([w], torch.optim.SGD, lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.5000, 0.5000])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
        parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any,
    ) -> None:  # fmt: skip
        listed = _checked(params)
        if overlap_with_ddp:
            raise RuntimeError(
                "ZeroRedundancyOptimizer with `overlap_with_ddp=True` is not supported: call step() in the training loop"
            )
        self.process_group = process_group if process_group is not None else groups._get_default_group()
        self.world_size = groups.get_world_size(self.process_group)
        self.rank = groups.get_rank(self.process_group)
        self.global_rank = groups.get_global_rank(self.process_group, self.rank)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._owner: dict[int, int] = {}  # the rank of each parameter, by the parameter's identity
        self._sizes = [0] * self.world_size  # elements of each rank
        self._local: Optimizer | None = None
        self._consolidated: list[dict[int, Any]] = []
        Optimizer.__init__(self, listed, defaults)
        Joinable.__init__(self)
        self._default_device = self.param_groups[0]["params"][0].device
        self._local = optimizer_class([self._own_part(group) for group in self.param_groups], **defaults)
        self.state = self._local.state
        self._copy_options(self._local.param_groups, self.param_groups)
        self._build_buckets()

    @property
    def optim(self) -> Optimizer:
        """The optimiser of the parameters of this rank."""
        assert self._local is not None
        return self._local

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a parameter group, and assign its parameters to the ranks."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for param in sorted(group["params"], key=lambda each: -each.numel()):
            rank = self._sizes.index(min(self._sizes))
            self._owner[id(param)] = rank
            self._sizes[rank] += param.numel()
        if self._local is not None:
            self._local.add_param_group(self._own_part(group))
            self._build_buckets()

    def _own_part(self, group: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of ``group`` with the parameters of this rank."""
        kept = [position for position, each in enumerate(group["params"]) if self._owner[id(each)] == self.rank]
        part = {**group, "params": [group["params"][position] for position in kept]}
        if "param_names" in group:
            part["params"] = [(group["param_names"][position], group["params"][position]) for position in kept]
            del part["param_names"]
        return part

    @staticmethod
    def _copy_options(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
        for old, new in zip(source, target, strict=True):
            new.update({name: value for name, value in old.items() if name not in ("params", "param_names")})

    # -- steps

    def _build_buckets(self) -> None:
        """Group the parameters that change by owner and dtype; with bucket views, move them to common buffers."""
        found: dict[tuple[int, Any, Any], list[Tensor]] = {}
        alone: list[Tensor] = []
        for group in self.param_groups:
            for param in group["params"]:
                if not param.requires_grad:
                    continue
                if param.nbytes >= _LARGE and not self.parameters_as_bucket_view and param.is_contiguous():
                    alone.append(param)
                else:
                    found.setdefault((self._owner[id(param)], param.dtype, param.device), []).append(param)
        self._trainable = self._mask()
        self._alone = alone
        self._buckets: list[tuple[int, list[Tensor], Tensor | None]] = []
        for (owner, kind, place), params in sorted(found.items(), key=lambda item: (item[0][0], str(item[0][1]))):
            buffer = None
            if self.parameters_as_bucket_view:
                buffer = empty(sum(each.numel() for each in params), dtype=kind, device=place)
                with no_grad():
                    for param, part in zip(params, _parts(buffer, params), strict=True):
                        part.copy_(param.detach())
                        param.data = part
            self._buckets.append((owner, params, buffer))

    def _mask(self) -> list[bool]:
        return [param.requires_grad for group in self.param_groups for param in group["params"]]

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update the parameters of this rank, and exchange the parameters of all ranks; return the result of ``closure``.

        All ranks of the group call this method.
        """
        Join.notify_join_context(self)
        if self._trainable != self._mask():
            self._build_buckets()
        self._copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        self._copy_options(self.optim.param_groups, self.param_groups)
        self._exchange()
        return loss

    def _exchange(self) -> None:
        """Send the parameters of each rank to the others."""
        if self.world_size == 1:
            return
        with no_grad():
            running: list[tuple[Any, int, list[Tensor], Tensor, bool]] = []
            for param in self._alone:
                owner, whole = self._owner[id(param)], param.detach()
                work = broadcast(whole, group=self.process_group, group_src=owner, async_op=True)
                running.append((work, owner, [param], whole, False))
            for owner, params, buffer in self._buckets:
                if buffer is None:
                    flat = empty(sum(each.numel() for each in params), dtype=params[0].dtype, device=params[0].device)
                    if owner == self.rank:
                        for param, part in zip(params, _parts(flat, params), strict=True):
                            part.copy_(param.detach())
                else:
                    flat = buffer
                work = broadcast(flat, group=self.process_group, group_src=owner, async_op=True)
                running.append((work, owner, params, flat, buffer is None))
            for work, owner, params, flat, copied in running:
                work.wait()
                if owner == self.rank:
                    continue
                if copied:
                    for param, part in zip(params, _parts(flat, params), strict=True):
                        param.detach().copy_(part)
                else:
                    for param in params:
                        bump_version(param)

    # -- joining

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook for :class:`Join`."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> Any:
        """Device of the first parameter."""
        return self._default_device

    @property
    def join_process_group(self) -> Any:
        """Process group whose ranks share the state."""
        return self.process_group

    # -- state

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the state of all ranks on the rank ``to``, where :meth:`state_dict` then returns it.

        All ranks of the group call this method.
        """
        own = self.local_state_dict()["state"]
        if self.world_size == 1:
            self._consolidated = [own]
            return
        gathered: list[Any] | None = [None] * self.world_size if self.rank == to else None
        gather_object(_on_cpu(own), gathered, group=self.process_group, group_dst=to)
        self._consolidated = [] if gathered is None else gathered

    def local_state_dict(self) -> dict[str, Any]:
        """Return the state of the parameters of this rank, and all parameter groups."""
        return super().state_dict()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all ranks, as of the last call of :meth:`consolidate_state_dict` with this rank.

        Raises RuntimeError on other ranks.
        """
        if not self._consolidated:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        packed = self.local_state_dict()
        merged = {key: value for each in self._consolidated for key, value in each.items()}
        packed["state"] = dict(sorted(merged.items()))
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the part of ``state_dict`` that concerns the parameters of this rank."""
        order = [param for group in self.param_groups for param in group["params"]]
        own = {
            number: each
            for number, each in state_dict["state"].items()
            if not isinstance(number, int) or (number < len(order) and self._owner[id(order[number])] == self.rank)
        }
        super().load_state_dict({**state_dict, "state": own})
        self.optim.state = self.state
        self._copy_options(self.param_groups, self.optim.param_groups)


def _parts(flat: Tensor, params: list[Tensor]) -> list[Tensor]:
    """Return consecutive views of ``flat`` with the shapes of ``params``."""
    parts = flat.split([each.numel() for each in params])
    return [part.view(each.shape) for part, each in zip(parts, params, strict=True)]


def _on_cpu(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: _on_cpu(each) for key, each in value.items()}
    return value


def _checked(params: Any) -> list[Any]:
    """Return ``params`` as a list; raise PyTorch's errors."""
    if isinstance(params, Tensor):
        raise TypeError(f"`params` argument should be an iterable of Tensors, but got {typename(params)}")
    try:
        listed = list(params)
    except TypeError as error:
        raise TypeError(
            f"`params` argument should be an iterable of Tensors or dicts, but got {typename(params)}"
        ) from error
    if not listed:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    if not all(isinstance(each, Tensor) for each in listed) and not all(isinstance(each, dict) for each in listed):
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    for each in listed:
        if isinstance(each, dict) and "params" not in each:
            raise ValueError(
                "Each parameter group passed-in via `params` must have a 'params' key mapping to the parameters in the group"
            )
        for param in each["params"] if isinstance(each, dict) else [each]:
            if isinstance(param, Tensor) and param.layout is not strided:
                raise ValueError(
                    "ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got "
                    f"{typename(param)}"
                )
    return listed


__all__ = ["ZeroRedundancyOptimizer"]
