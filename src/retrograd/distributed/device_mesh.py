"""``DeviceMesh``: the ranks of the default group as an array, each of whose dimensions has a process group."""

from __future__ import annotations

import math
from typing import Any

from ..core import dtypes
from ..core.tensor import Tensor
from ..operations.creation.from_data import as_tensor
from .groups import (
    GroupMember,
    ProcessGroup,
    _get_default_group,
    get_process_group_ranks,
    get_rank,
    init_process_group,
    is_initialized,
    new_group,
)


class DeviceMesh:
    """Array of ranks, ``mesh``, whose dimensions may have names.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    >>> mesh["data"].size(), mesh.get_coordinate()
    (1, (0, 0))
    >>> dist.destroy_process_group()
    """

    __module__ = "torch.distributed.device_mesh"

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: tuple[str, ...] | None = None, _groups: Any = None,
        _stride: Any = None, _root: Any = None,
    ) -> None:  # fmt: skip
        self.device_type = device_type
        self.mesh: Tensor = as_tensor(mesh, dtype=dtypes.int32)
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        if not is_initialized():
            init_process_group()
        size = _get_default_group().size()
        if self.mesh.numel() > size:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {size}, but found {self.mesh.numel()} ranks!"
            )
        shape = self.shape
        strides = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))] if _stride is None else _stride
        self._stride = tuple(step if length > 1 else () for step, length in zip(strides, shape, strict=True))
        self._root: DeviceMesh = self if _root is None else _root
        self._flattened: dict[str, DeviceMesh] = {}
        found = self.mesh.eq(get_rank()).nonzero().tolist()
        self._coordinate: tuple[int, ...] | None = tuple(found[0]) if found else None
        self._groups: list[Any] = _groups or [self._new_group(dim) for dim in range(self.mesh.dim())]

    def _new_group(self, dim: int) -> Any:
        """Create a group for each row of ranks along ``dim``; return that of this process, or the one for non-members."""
        if self.mesh.numel() == _get_default_group().size() == self.mesh.shape[dim]:
            return _get_default_group()
        rows = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.shape[dim]).tolist()
        name = f"mesh_{self.mesh_dim_names[dim] if self.mesh_dim_names else f'dim_{dim}'}"
        made = [new_group(row, group_desc=name) for row in rows]
        mine = (each for each, row in zip(made, rows, strict=True) if get_rank() in row)
        return next(mine, GroupMember.NON_GROUP_MEMBER)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.mesh.dim()

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of ranks along each dimension."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """Return the number of ranks along ``mesh_dim``, by default of all ranks."""
        return self.mesh.numel() if mesh_dim is None else self.shape[mesh_dim]

    def _dim(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions",
                    "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                    "If you want to get the list of all the ProcessGroups in the DeviceMesh,please use `get_all_groups()` "
                    "instead.",
                )
            return 0
        if isinstance(mesh_dim, int):
            return mesh_dim
        if mesh_dim not in (self.mesh_dim_names or ()):
            raise KeyError(
                f"Mesh dimension '{mesh_dim}' does not exist.",
                f"Available mesh dimensions are: mesh_dim_names={self.mesh_dim_names}",
            )
        return (self.mesh_dim_names or ()).index(mesh_dim)

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Return the process group of this process along ``mesh_dim``, which may be the name of a flattened mesh."""
        if isinstance(mesh_dim, str) and mesh_dim in self._root._flattened:
            return self._root._flattened[mesh_dim]._groups[0]
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """Return a list of the process groups of this process, one for each dimension."""
        return list(self._groups)

    def get_rank(self) -> int:
        """Return the global rank of this process."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return the rank of this process in the group along ``mesh_dim``."""
        return self.get_group(mesh_dim).rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Return the indices of this process in the mesh, or None if it is not in the mesh."""
        return self._coordinate

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """Return the mesh of the ranks of this process along the dimensions of these names."""
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self.mesh_dim_names:
            return self
        if len(names) == 1 and names[0] in self._root._flattened:
            return self._root._flattened[names[0]]
        for each in names:
            if each not in self.mesh_dim_names:
                raise KeyError(
                    f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are "
                    f"{[*self.mesh_dim_names, *self._root._flattened]}."
                )
        kept = [self.mesh_dim_names.index(each) for each in names]
        if kept != sorted(set(kept)):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")
        coordinate = self._coordinate or (0,) * self.ndim
        part = self.mesh[tuple(slice(None) if dim in kept else coordinate[dim] for dim in range(self.ndim))]
        return DeviceMesh(
            self.device_type, part, mesh_dim_names=names, _groups=[self._groups[dim] for dim in kept],
            _stride=[self._stride[dim] for dim in kept], _root=self._root,
        )  # fmt: skip

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """Return the mesh of one dimension, named ``mesh_dim_name``, of all ranks of this mesh; all ranks call it."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ("flattened",))
        root = self._root
        if name in root._flattened:
            return root._flattened[name]
        if self.ndim == 1 and name == (self.mesh_dim_names or ("",))[0]:
            return self
        others = [
            dim for dim in range(root.ndim) if root.mesh_dim_names and root.mesh_dim_names[dim] not in self._names()
        ]
        order = [*others, *(dim for dim in range(root.ndim) if dim not in others)]
        rows = root.mesh.permute(*order).reshape(-1, self.mesh.numel()).tolist()
        size = _get_default_group().size()
        whole = len(rows) == 1 and len(rows[0]) == size
        made = [_get_default_group() if whole else new_group(row, group_desc=f"mesh_{name}") for row in rows]
        mine = [(row, each) for row, each in zip(rows, made, strict=True) if get_rank() in row] or [
            (rows[0], GroupMember.NON_GROUP_MEMBER)
        ]
        flat = DeviceMesh(self.device_type, mine[0][0], mesh_dim_names=(name,), _groups=[mine[0][1]], _root=root)
        root._flattened[name] = flat
        return flat

    def _names(self) -> tuple[str, ...]:
        return self.mesh_dim_names or self._root.mesh_dim_names or ()

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup], device_type: str, mesh: Any = None, *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:  # fmt: skip
        """Return the mesh of one dimension of ``group``, or the mesh ``mesh`` with a list of groups, one a dimension."""
        if isinstance(group, ProcessGroup):
            ranks = get_process_group_ranks(group)
            if mesh is not None and as_tensor(mesh).tolist() != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _groups=[group])
        if not group:
            raise ValueError("Expect at least one ProcessGroup to be specified")
        if mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        if as_tensor(mesh).dim() != len(group):
            raise ValueError("Expects mesh with ndim equal to number of ProcessGroups")
        return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _groups=list(group))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeviceMesh)
            and (self.device_type, self.mesh_dim_names) == (other.device_type, other.mesh_dim_names)
            and self.mesh.tolist() == other.mesh.tolist()
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.mesh_dim_names, self.shape, tuple(self.mesh.flatten().tolist())))

    def __repr__(self) -> str:
        if self.mesh_dim_names:
            shown = ", ".join(f"{name}={size}" for name, size in zip(self.mesh_dim_names, self.shape, strict=True))
        else:
            shown = ", ".join(map(str, self.shape)) + "," * (self.ndim == 1)
        return f"DeviceMesh(({shown}), {self.device_type!r}, stride={self._stride})"


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...] | None = None, backend_override: Any = None
) -> DeviceMesh:  # fmt: skip
    """Return a mesh of the first ranks in the shape ``mesh_shape``; create the default group if there is none.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    >>> mesh.shape, mesh.mesh_dim_names, mesh["data"].size()
    ((1, 1), ('data', 'model'), 1)
    >>> dist.destroy_process_group()
    """
    if mesh_dim_names is not None and len(mesh_dim_names) != len(mesh_shape):
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
            f"{len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
        )
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
        raise RuntimeError(
            f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}"
        )
    ranks = as_tensor(list(range(math.prod(mesh_shape)))).reshape(*mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)


__all__ = ["DeviceMesh", "init_device_mesh"]
