"""``DTensor``: a tensor that is distributed over the ranks of a mesh, and the functions that create such tensors.

A DTensor has the shape of the whole tensor; its array is the part of this rank, and so are its gradient and the arrays
of the graph. Operations on DTensors arrive at ``__torch_function__``: elementwise operations are computed on the parts,
and other operations on the whole tensors, which are collected from the ranks first. An optimiser reads the arrays of its
parameters, so that the step of an elementwise optimiser runs on the parts without communication.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn
from weakref import ref

from ...compat.module_names import ModuleName
from ...core import torch_function
from ...core.grad_mode import no_grad, recording
from ...core.pytree import tree_map
from ...core.size import Size
from ...core.tensor import Tensor, at_edge, contiguous_strides, new, normalize_dim, strided
from ...operations.creation import factory
from ...operations.shape.views import broadcast_shapes
from ..collectives import broadcast, scatter
from ..device_mesh import DeviceMesh
from ._functions import ELEMENTWISE, OF_PARTS, SUMS, WHOLE_IN_PLACE
from ._redistribute import redistributed, with_summed_gradient
from ._utils import compute_local_shape_and_global_offset, shard_extent
from .placement_types import Partial, Placement, Replicate, Shard


@dataclass(frozen=True)
class DTensorSpec:
    """Mesh, placements and shape of a distributed tensor."""

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    shape: Size

    def chunk(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the shape of the part of this rank, and its position in the whole tensor."""
        return compute_local_shape_and_global_offset(self.shape, self.mesh, self.placements)


def _property_of(func: Any) -> str:
    """Return the name of the property of Tensor whose getter or setter ``func`` is."""
    return str(func.__self__.fget.__name__)


class DTensor(Tensor):
    """Tensor that is distributed over the ranks of a mesh; created by :func:`distribute_tensor` and :meth:`from_local`.

    >>> import retrograd as torch
    >>> from retrograd import distributed as dist
    >>> from retrograd.distributed.tensor import DTensor, Shard, distribute_tensor
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1,))
    >>> x = distribute_tensor(torch.ones(4, 2), mesh, [Shard(0)])
    >>> x.shape, x.placements, (x + 1).to_local().sum()
    (torch.Size([4, 2]), (Shard(dim=0),), tensor(16.))
    >>> dist.destroy_process_group()
    """

    __slots__ = ()
    __module__ = ModuleName("torch.distributed.tensor", __name__)
    _spec: DTensorSpec

    def __new__(cls, local_tensor: Any = None, spec: Any = None, *, requires_grad: bool = False) -> DTensor:
        if not isinstance(local_tensor, Tensor) or not isinstance(spec, DTensorSpec):
            raise TypeError(
                "DTensor() takes a local tensor and a spec; use distribute_tensor() or DTensor.from_local()"
            )
        created = _wrap(local_tensor.detach(), spec)
        if requires_grad:
            created.requires_grad_()
        return created

    # -- what is known about the tensor

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh of the ranks that have parts of this tensor."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The placement for each dimension of the mesh."""
        return self._spec.placements

    @property
    def _local_tensor(self) -> Tensor:
        local = at_edge(self._array, self._version_counter, None)
        return local

    @property
    def shape(self) -> Size:
        """Shape of the whole tensor."""
        return self._spec.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._spec.shape)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self._spec.shape)

    ndimension = dim

    def size(self, dim: int | None = None, **names: int) -> Any:
        """Return the shape of the whole tensor, or the size of dimension ``dim``."""
        dim = names.get("axis", dim)
        return self._spec.shape if dim is None else self._spec.shape[normalize_dim(dim, self.ndim)]

    def numel(self) -> int:
        """Return the number of elements of the whole tensor."""
        return self._spec.shape.numel()

    nelement = numel

    @property
    def nbytes(self) -> int:
        """Number of bytes of the whole tensor."""
        return self.numel() * self._array.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides of the whole tensor, which is contiguous, or the stride of dimension ``dim``."""
        strides = contiguous_strides(self._spec.shape)
        return strides if dim is None else strides[normalize_dim(dim, self.ndim)]

    def is_contiguous(self, *, memory_format: Any = None) -> bool:
        """Whether the elements are in the order of a contiguous tensor: True."""
        return True

    def __len__(self) -> int:
        if not self._spec.shape:
            raise TypeError("len() of a 0-d tensor")
        return self._spec.shape[0]

    def __repr__(self, **contents: Any) -> str:
        return f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._spec.mesh}, placements={self._spec.placements})"

    # -- parts and the whole

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
        run_check: bool = False, shape: Any = None, stride: Any = None, grad_placements: Any = None,
    ) -> DTensor:  # fmt: skip
        """Return the distributed tensor of which ``local_tensor`` is the part of this rank.

        By default, the tensor is replicated. Its ``shape`` is by default that of ``local_tensor``, with the sizes of
        split dimensions multiplied by the number of ranks: a tensor whose parts differ in size needs ``shape``. With
        ``run_check``, a replicated tensor is copied from the first rank to the others. The derivative is recorded.
        """
        mesh = _mesh(device_mesh)
        chosen = _normalized(placements, mesh, local_tensor.dim())
        if shape is None:
            sizes = list(local_tensor.shape)
            for count, placement in zip(mesh.shape, chosen, strict=True):
                if isinstance(placement, Shard):
                    sizes[placement.dim] *= count
            shape = sizes
        spec = DTensorSpec(mesh, chosen, Size(shape))
        if run_check:
            with no_grad():
                for index, placement in enumerate(chosen):
                    if isinstance(placement, Replicate):
                        broadcast(local_tensor.detach(), group=mesh.get_group(index), group_src=0)
        return _wrap(local_tensor.view_as(local_tensor) if local_tensor.requires_grad else local_tensor.detach(), spec)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Return the part of this rank; the derivative is recorded.

        The gradient of the part has the placements ``grad_placements``, by default those of this tensor. With
        ``Partial()``, it is summed over the ranks.
        """
        local = _part(self)
        if not local.requires_grad:
            return local
        if grad_placements is None:
            return local.view_as(local)
        spec = self._spec
        there = _normalized(grad_placements, spec.mesh, self.ndim)
        local = local.view_as(local)
        local.register_hook(lambda grad: redistributed(grad, spec.shape, spec.mesh, there, spec.placements))
        return local

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Return the whole tensor, collected from all ranks, as a Tensor; the derivative is recorded."""
        whole = self.redistribute(placements=[Replicate()] * self._spec.mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
        async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None,
    ) -> DTensor:  # fmt: skip
        """Return this tensor with other ``placements``; all ranks of the mesh call this method.

        The operation is complete when the method returns. The derivative is recorded.
        """
        spec = self._spec
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if device_mesh is not None and device_mesh != spec.mesh:
            raise RuntimeError("redistribute() can not change the device_mesh of a DTensor")
        chosen = _normalized(placements, spec.mesh, self.ndim)
        for before, after in zip(spec.placements, chosen, strict=True):
            if isinstance(after, Partial) and before != after:
                raise RuntimeError(
                    f"Can not redistribute from {before} to {after}, redistributing to Partial is for internal use only!"
                )
        source = self.to(forward_dtype) if forward_dtype is not None else self
        return _changed(source, chosen)

    # -- the graph

    @property
    def data(self) -> DTensor:
        """Tensor that shares the memory of this tensor, outside the graph and with its own version counter."""
        return _wrap(self._local_tensor.data, self._spec)

    @data.setter
    def data(self, value: object) -> None:
        if not isinstance(value, DTensor):
            raise RuntimeError(
                "Attempted to set the data of a DTensor to a Tensor; use distribute_tensor() or DTensor.from_local() first"
            )
        self._array, self._spec = value._array, value._spec
        self._renew_leaf()

    def detach(self) -> DTensor:
        """Return a tensor that shares the memory of this tensor and is not part of the graph."""
        return _wrap(self._local_tensor, self._spec)

    @property
    def grad(self) -> DTensor | None:
        """Gradient of this tensor, with its placements."""
        held = self._grad
        if held is not None and not isinstance(held, DTensor):
            local = held if isinstance(held, Tensor) else at_edge(held, [0, None], None)
            held = self._grad = _wrap(local, self._spec)
        return held

    @grad.setter
    def grad(self, value: object) -> None:
        if value is not None and not (isinstance(value, DTensor) and value.shape == self.shape):
            raise RuntimeError("the gradient of a DTensor must be None or a DTensor of the same shape")
        if isinstance(value, DTensor) and value.placements != self.placements:
            value = value.redistribute(placements=self.placements)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copied: Any = _wrap(self._local_tensor.clone(), self._spec)
            copied.requires_grad_(self.requires_grad)
            copied.__dict__.update({name: value for name, value in self.__dict__.items() if name != "_spec"})
            memo[id(self)] = copied
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise RuntimeError(
            "a DTensor can not be pickled: save it with torch.distributed.checkpoint, or save its full_tensor()"
        )

    # -- operations

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute the operation ``func`` on the parts of its arguments, or on the whole tensors."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in ("__get__", "__set__", "__delete__"):
            name = _property_of(func)
            if name not in ("T", "mT", "H", "mH", "real", "imag"):
                return torch_function.call_without_overrides(func, args, kwargs)
            return _on_whole(lambda x: getattr(x, name), name, args, kwargs)
        if name in OF_PARTS:
            return torch_function.call_without_overrides(func, args, kwargs)
        if name in _REFUSED:
            raise RuntimeError(_REFUSED[name])
        if name == "backward":
            return _backward(func, *args, **kwargs)
        _check_mixed(name, args, kwargs)
        base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        if base in ELEMENTWISE and kwargs.get("out") is None:
            return _on_parts(func, args, kwargs, args[0] if name != base else None)
        if name in SUMS and isinstance(args[0], DTensor) and not any(map(isinstance, args[1:], [Tensor] * 9)):
            return _sum(func, *args, **kwargs)
        if name in ("norm", "vector_norm") and (norm := _norm(func, *args, **kwargs)) is not None:
            return norm
        return _on_whole(func, name, args, kwargs)


_REFUSED = {
    "numpy": ".numpy() is not supported for tensor subclasses.",
    "__array__": ".numpy() is not supported for tensor subclasses.",
    "tolist": ".tolist() is not supported for tensor subclasses, got DTensor",
    "set_": "set_() is not supported for DTensor",
}


def _wrap(local: Tensor, spec: DTensorSpec) -> DTensor:
    """Return the DTensor whose part of this rank is ``local``, at the same place of the graph."""
    if _CLASS not in torch_function.OVERRIDING:
        torch_function.register_class(DTensor)
    out: Any = new(DTensor)
    out._array, out._grad_edge, out._counter = local._array, local._grad_edge, local._counter
    out._grad = out._view = None
    out._spec = spec
    found: DTensor = out
    return found


#: Calls of public functions test all arguments for this class only after the first instance has been created.
_CLASS = ref(DTensor)
torch_function.OVERRIDING.discard(_CLASS)


def _part(x: DTensor) -> Tensor:
    """Return the part of this rank as a Tensor at the place of ``x`` in the graph."""
    return at_edge(x._array, x._version_counter, x._grad_edge)


def _mesh(mesh: DeviceMesh | None) -> DeviceMesh:
    if mesh is None:
        raise RuntimeError("No device mesh is currently active!")
    return mesh


def _normalized(placements: Sequence[Placement] | None, mesh: DeviceMesh, ndim: int) -> tuple[Placement, ...]:
    """Return ``placements``, by default replicated, with non-negative dimensions; raise PyTorch's errors."""
    if placements is None:
        return (Replicate(),) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(placements)}, "
            f"and device_mesh.ndim: {mesh.ndim}."
        )
    found: list[Placement] = []
    for each in placements:
        if isinstance(each, Shard):
            dim = each.dim + ndim if each.dim < 0 else each.dim
            if not 0 <= dim < ndim:
                raise AssertionError(f"Sharding dim {each.dim} greater than tensor ndim {ndim}")
            each = Shard(dim)
        found.append(each)
    return tuple(found)


def _changed(x: DTensor, placements: Sequence[Placement]) -> DTensor:
    """Return ``x`` with ``placements``, or ``x`` itself if it has them."""
    spec = x._spec
    if tuple(placements) == spec.placements:
        return x
    local = redistributed(_part(x), spec.shape, spec.mesh, spec.placements, placements)
    return _wrap(local, DTensorSpec(spec.mesh, tuple(placements), spec.shape))


def _tensors(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for each in values:
        if isinstance(each, Tensor):
            found.append(each)
        elif isinstance(each, (list, tuple)):
            found += _tensors(each)
    return found


def _check_mixed(name: str, args: Any, kwargs: dict[str, Any]) -> None:
    """Raise PyTorch's error if a plain tensor with dimensions is among the arguments."""
    for each in _tensors((*args, *kwargs.values())):
        if not isinstance(each, DTensor) and each._array.ndim > 0:
            raise RuntimeError(
                f"aten.{name.strip('_')}.default got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to "
                "DTensor before calling distributed operators!"
            )


def _on_parts(func: Callable[..., Any], args: Any, kwargs: Any, target: Any) -> Any:
    """Return the result of the elementwise function ``func``, computed on the parts of its arguments.

    ``target`` is the tensor that ``func`` modifies, or None.
    """
    members = [each for each in _tensors((*args, *kwargs.values())) if isinstance(each, DTensor)]
    shape = Size(broadcast_shapes(*[each._spec.shape for each in members]))
    mesh = members[0]._spec.mesh
    if target is not None:
        placements = target._spec.placements
    else:
        whole = [each._spec.placements for each in members if each._spec.shape == shape]
        split = [each for each in whole if any(isinstance(one, Shard) for one in each)]
        placements = tuple(Replicate() if isinstance(each, Partial) else each for each in (split or whole or [()])[0])
        placements = placements or (Replicate(),) * mesh.ndim

    def local(x: Any) -> Any:
        if not isinstance(x, DTensor):
            return x
        if x is target:
            return part
        behind = len(shape) - x.ndim
        wanted = [
            Replicate()
            if isinstance(each, Shard)
            and (each.dim < behind or (x.shape[each.dim - behind] == 1 and shape[each.dim] != 1))
            else Shard(each.dim - behind)
            if isinstance(each, Shard)
            else each
            for each in placements
        ]
        used_in_parts = [
            mesh.get_group(index)
            for index, (here, there) in enumerate(zip(wanted, placements, strict=True))
            if isinstance(here, Replicate) and isinstance(there, Shard) and mesh.shape[index] > 1
        ]
        return with_summed_gradient(_part(_changed(x, wanted)), used_in_parts)

    part = None if target is None else _part(target)
    result = func(*tree_map(local, args), **tree_map(local, kwargs))
    if target is not None:
        target._array, target._grad_edge = part._array, part._grad_edge  # type: ignore[union-attr]
        return target
    spec = DTensorSpec(mesh, placements, shape)
    return tree_map(lambda each: _wrap(each, spec) if isinstance(each, Tensor) else each, result)


def _sum(func: Callable[..., Any], x: DTensor, dim: Any = None, keepdim: bool = False, **named: Any) -> Any:
    """Return the sum of ``x`` along ``dim``: a partial sum where a dimension is split."""
    spec = x._spec
    named_dims = [dim] if isinstance(dim, int) else dim
    dims = {normalize_dim(each, x.ndim) for each in named_dims} if named_dims else set(range(x.ndim))
    x = _changed(x, [Replicate() if isinstance(each, Partial) else each for each in spec.placements])
    given = {} if dim is None else {"dim": dim, "keepdim": keepdim}
    local = func(_part(x), **given, **named)
    placements: list[Placement] = []
    for each in x._spec.placements:
        if isinstance(each, Shard) and each.dim in dims:
            placements.append(Partial())
        elif isinstance(each, Shard):
            placements.append(each if keepdim else Shard(each.dim - sum(one < each.dim for one in dims)))
        else:
            placements.append(each)
    kept = [1 if index in dims else size for index, size in enumerate(spec.shape) if keepdim or index not in dims]
    return _wrap(local, DTensorSpec(spec.mesh, tuple(placements), Size(kept)))


def _norm(func: Callable[..., Any], x: Any, p: Any = 2, *args: Any, **named: Any) -> Any:
    """Return the norm of order ``p`` of all elements of ``x``, from the norms of the parts; None for other norms."""
    p = named.pop("ord", p)
    p = 2.0 if p == "fro" else p
    if args or named or not isinstance(x, DTensor) or not isinstance(p, (int, float)) or not 0 < p < math.inf:
        return None
    local = func(_part(_changed(x, [Replicate() if each.is_partial() else each for each in x._spec.placements])), p)
    mesh, everywhere = x._spec.mesh, (Replicate(),) * x._spec.mesh.ndim
    split = [Partial() if each.is_shard() else Replicate() for each in x._spec.placements]
    if tuple(split) != everywhere:
        local = redistributed(local.pow(p), (), mesh, split, everywhere).pow(1 / p)
    return _wrap(local, DTensorSpec(mesh, everywhere, Size(())))


def _on_whole(func: Callable[..., Any], name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return the result of ``func``, computed by every rank on the whole tensors; tensors in it are replicated.

    If ``func`` modifies its first argument, the part of this rank is written back.
    """
    members = [each for each in _tensors((*args, *kwargs.values())) if isinstance(each, DTensor)]
    if kwargs.get("out") is not None or any(kwargs.get(each) is True for each in ("inplace",)):
        raise RuntimeError(f"{name}(): out= and inplace=True are not supported for DTensor")
    mesh = members[0]._spec.mesh
    everywhere = (Replicate(),) * mesh.ndim
    changed = (name.endswith("_") and not name.endswith("__")) or name in WHOLE_IN_PLACE
    whole: dict[int, Tensor] = {}

    def full(x: Any) -> Any:
        if not isinstance(x, DTensor):
            return x
        if id(x) not in whole:
            local = _part(_changed(x, everywhere))
            whole[id(x)] = local.detach().clone() if changed and x is members[0] and local._array is x._array else local
        return whole[id(x)]

    if changed:
        target = members[0]
        if recording() and target.requires_grad:
            raise RuntimeError(f"{name}(): modifying a DTensor that requires gradients is not recorded; use no_grad()")
        with no_grad():
            func(*tree_map(full, args), **tree_map(full, kwargs))
            back = redistributed(full(target), target._spec.shape, mesh, everywhere, target._spec.placements)
            target._local_tensor.copy_(back)
        return target
    result = func(*tree_map(full, args), **tree_map(full, kwargs))
    return tree_map(
        lambda each: (
            _wrap(each, DTensorSpec(mesh, everywhere, Size(each._array.shape))) if each.__class__ is Tensor else each
        ),
        result,
    )


def _backward(func: Callable[..., Any], x: DTensor, gradient: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Compute the gradients of ``x``, a DTensor; the gradient of a partial sum is that of the sum."""
    if gradient is None and x.numel() != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if isinstance(gradient, DTensor):
        there = [Replicate() if isinstance(each, Partial) else each for each in x._spec.placements]
        gradient = _part(_changed(gradient, there))
    return func(_part(x), gradient, *args, **kwargs)


# -- Creation ----------------------------------------------------------------------------------------------------------


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
    src_data_rank: int | None = 0,
) -> DTensor:  # fmt: skip
    """Distribute ``tensor`` over the ranks of ``device_mesh``; all of them call this function.

    The elements are those of the rank ``src_data_rank`` of each dimension of the mesh; with None, each rank takes its
    part of its own ``tensor``, without communication. Parts along a dimension of ``n`` elements have the length
    ``ceil(n / ranks)``, except for the last ones. The result is a leaf.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1,))
    >>> x = dist.tensor.distribute_tensor(torch.ones(4, 2), mesh, [dist.tensor.Shard(0)])
    >>> x.shape, x.placements, x.to_local().shape
    (torch.Size([4, 2]), (Shard(dim=0),), torch.Size([4, 2]))
    >>> dist.destroy_process_group()
    """
    mesh = _mesh(device_mesh)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}."
            )
        if tensor.placements != _normalized(placements, mesh, tensor.ndim):
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {placements}. do "
                "you want to call `redistribute` instead?"
            )
        return tensor
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    chosen = _normalized(placements, mesh, tensor.dim())
    local = tensor.detach()
    with no_grad():
        for index, placement in enumerate(chosen):
            group, count = mesh.get_group(index), mesh.shape[index]
            if isinstance(placement, Shard):
                local = _scattered(local, placement.dim, group, count, src_data_rank)
            elif isinstance(placement, Replicate):
                local = local.clone()
                if src_data_rank is not None and count > 1:
                    broadcast(local, group=group, group_src=src_data_rank)
            elif isinstance(placement, Partial):
                local = local.clone() if group.rank() == 0 else factory.zeros_like(local)
            else:
                raise RuntimeError(f"Trying to distribute tensor with unsupported placements {placement}!")
    made = _wrap(local, DTensorSpec(mesh, chosen, Size(tensor.shape)))
    if tensor.requires_grad:
        made.requires_grad_()
    return made


def _scattered(whole: Tensor, dim: int, group: Any, count: int, source: int | None) -> Tensor:
    """Return the part of this rank of ``whole`` along ``dim``, sent by the rank ``source`` if it is not None."""
    size, rank = whole.shape[dim], group.rank()
    start, length = shard_extent(size, count, rank)
    if source is None or count == 1:
        return whole.narrow(dim, start, length).clone()
    shape = list(whole.shape)
    shape[dim] = -(-size // count)
    pieces = None
    if rank == source:
        pieces = []
        for position in range(count):
            begin, extent = shard_extent(size, count, position)
            piece = factory.zeros(shape, dtype=whole.dtype, device=whole.device)
            piece.narrow(dim, 0, extent).copy_(whole.narrow(dim, begin, extent))
            pieces.append(piece)
    received = factory.empty(shape, dtype=whole.dtype, device=whole.device)
    scatter(received, pieces, group=group, group_src=source)
    return received if length == shape[dim] else received.narrow(dim, 0, length).clone()


def _created(name: str) -> Callable[..., DTensor]:
    make = getattr(factory, name)

    def create(
        *size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = strided,
        device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, **named: Any,
    ) -> DTensor:  # fmt: skip
        mesh = _mesh(device_mesh)
        value = ()
        if name == "full":
            value, size = size[1:] or (named.pop("fill_value"),), size[:1]
        shape = Size(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
        spec = DTensorSpec(mesh, _normalized(placements, mesh, len(shape)), shape)
        made = _wrap(make(spec.chunk()[0], *value, dtype=dtype, device=mesh.device_type), spec)
        if requires_grad:
            made.requires_grad_()
        return made

    create.__name__ = create.__qualname__ = name
    create.__doc__ = (
        f"Return the distributed tensor that ``torch.{name}`` returns as a whole; each rank creates its part."
    )
    return create


empty, full, ones, zeros = map(_created, ("empty", "full", "ones", "zeros"))

__all__ = ["DTensor", "distribute_tensor", "empty", "full", "ones", "zeros"]
