"""``Pickler`` of checkpoints, which writes the names of PyTorch's classes and functions instead of retrograd's."""

from __future__ import annotations

import importlib
import pickle
import sys
from types import FunctionType
from typing import Any, ClassVar

from ..compat.pickle_names import TorchNamed
from ..core.devices import device
from ..core.dtypes import dtype
from ..core.size import Size
from ..core.tensor import Tensor, layout, strided
from ..dispatch.transform_tensor import TransformTensor
from ..nn.parameter import Parameter, is_lazy
from ..operations.creation.random import Generator
from .storages import Call, StorageRef, StorageTable, TorchName, reduce_sparse, reduce_tensor

_PythonPickler: Any = pickle._Pickler  # its checker's description lacks the methods that may be overridden


class Pickler(_PythonPickler):  # type: ignore[misc]
    """Pickler of ``torch.save``, which writes a tensor as a reference to its storage.

    The argument ``memories`` is a :class:`StorageTable`, a table of the storages that the checkpoint must contain. The
    pickler adds the storage of each tensor to it.

    The base class is the pickler of the standard library that is written in Python. The one written in C cannot be
    used: it imports the module of every class and function whose name it writes. PyTorch's modules are not installed.
    """

    def __init__(self, file: Any, protocol: int, memories: StorageTable, tell: Any = None) -> None:
        super().__init__(file, protocol)
        self.memories = memories
        self.tell = tell or (lambda identity: identity)  # the persistent id of a storage in this file format
        self.names: dict[tuple[str, str], TorchName] = {}

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write ``obj`` and the objects that ``obj`` contains."""
        if isinstance(obj, TorchName):
            obj = self.names.setdefault((obj.module, obj.name), obj)
        elif isinstance(obj, TransformTensor):
            obj = obj.stored()
        if id(obj) in self.memo:
            super().save(obj)
        elif isinstance(obj, TorchName):
            self._write_name(obj)
        elif isinstance(obj, StorageRef):
            super().save(self.tell(obj.identity))
            self.write(pickle.BINPERSID)
        elif isinstance(obj, Call):
            self._write_call(obj, obj.function, obj.arguments)
        elif is_lazy(obj):
            self._write_call(obj, *obj.described())
        elif isinstance(obj, Tensor) and obj.layout is not strided:
            self._write_call(obj, *reduce_sparse(obj))
        elif isinstance(obj, Tensor) and type(obj).__reduce_ex__ in _TENSORS:
            self._write_call(obj, *reduce_tensor(obj, self.memories))
        elif isinstance(obj, dtype):
            self.save(TorchName("torch", obj.name))
        elif isinstance(obj, Size):
            self._write_call(obj, TorchName("torch", "Size"), (tuple(obj),))
        elif isinstance(obj, device):
            where = (obj.type,) if obj.index is None else (obj.type, obj.index)
            self._write_call(obj, TorchName("torch", "device"), where)
        elif isinstance(obj, layout):
            self._write_call(obj, TorchName("torch.serialization", "_get_layout"), (f"torch.{obj.name}",))
        elif isinstance(obj, Generator):
            self._write_call(obj, TorchName("torch._C", "Generator"), (obj.device,))
            self.save(obj.__getstate__())
            self.write(pickle.BUILD)
        elif type(obj).__module__ == "torch.return_types":
            self._write_call(obj, TorchName("torch.return_types", type(obj).__name__), (tuple(obj), {}))
        elif getattr(type(obj), "__reduce_ex__", None) is TorchNamed.__reduce_ex__:
            self.save_reduce(*object.__reduce_ex__(obj, self.proto), obj=obj)  # under PyTorch's name of its class
        else:
            super().save(obj, save_persistent_id)

    def _write_call(self, obj: Any, function: TorchName, arguments: tuple[Any, ...]) -> None:
        self.save(function)
        self.save(arguments)
        self.write(pickle.REDUCE)
        self.memoize(obj)

    def _write_name(self, obj: TorchName) -> None:
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write the name of the class or function ``obj``; PyTorch's name is written for an object of retrograd."""
        module = getattr(obj, "__module__", None) or ""
        package, _, rest = module.partition(".")
        qualified = name or getattr(obj, "__qualname__", obj.__name__)
        if package in ("retrograd", "torch") and "<" not in qualified:
            rest = _PYTORCH_PATHS.get(rest, rest)
            owner, _, last = qualified.rpartition(".")
            if owner:  # an attribute of a class
                self.save_reduce(getattr, (getattr(importlib.import_module(f"retrograd.{rest}"), owner), last), obj=obj)
                return
            if not rest and "." not in qualified:
                rest, qualified = _public_location(obj, qualified)
            self.write(pickle.GLOBAL + f"torch{'.' if rest else ''}{rest}\n{qualified}\n".encode())
            self.memoize(obj)
        else:
            super().save_global(obj, name)

    dispatch: ClassVar[dict[type, Any]] = {**_PythonPickler.dispatch, FunctionType: save_global}


#: Modules with another path in PyTorch.
_PYTORCH_PATHS = {"utils.data.collate": "utils.data._utils.collate", "optim.cycles": "optim.lr_scheduler"}


def _public_location(obj: Any, name: str) -> tuple[str, str]:
    """Return the submodule of ``torch`` that exports the operation ``obj``, and the name of ``obj`` in this submodule.

    ``name`` is the name of the operation in retrograd. For ``"linalg_inv"`` the result is ``("linalg", "inv")``. If no
    submodule exports ``obj``, the result is ``("", name)``.
    """
    for place in ("nn.functional", "special", "linalg", "fft"):
        short = name.removeprefix(f"{place}_")
        if getattr(sys.modules.get(f"retrograd.{place}"), short, None) is obj:
            return place, short
    return "", name


# A tensor class that overrides ``__reduce_ex__`` is pickled by its own method.
_TENSORS = (Tensor.__reduce_ex__, Parameter.__reduce_ex__)
