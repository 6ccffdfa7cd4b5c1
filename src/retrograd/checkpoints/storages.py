"""Representation of tensors in a checkpoint: storages, and the functions that a pickle calls to rebuild tensors.

This module depends on the memory layout of tensors and on PyTorch's pickle format, but not on the format of files.
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import numpy

from ..compat.lazy_imports import load_part
from ..core import devices, dtypes
from ..core.devices import device
from ..core.dtypes import dtype
from ..core.size import Size
from ..core.tensor import (
    Tensor,
    address,
    element_strides,
    memory_owner,
    offset_in_memory,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
    wrap,
)
from ..nn.parameter import Parameter
from ..operations.engine_ops import as_strided_of
from .formatting import shortened
from .unpickler import Refused, check_attributes


class TorchName:
    """Name of a PyTorch class or function in a pickle.

    ``module`` is the path of the module, such as ``torch._utils``, and ``name`` is the name in the module.
    """

    module: str
    name: str

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


#: PyTorch's storage types by name. uint16, uint32 and uint64 have none.
STORAGES = {
    "Float": dtypes.float32, "Double": dtypes.float64, "Half": dtypes.float16, "BFloat16": dtypes.bfloat16,
    "Long": dtypes.int64, "Int": dtypes.int32, "Short": dtypes.int16, "Char": dtypes.int8, "Byte": dtypes.uint8,
    "Bool": dtypes.bool_, "ComplexFloat": dtypes.complex64, "ComplexDouble": dtypes.complex128,
}  # fmt: skip
_STORAGE_OF = {kind: TorchName("torch", f"{name}Storage") for name, kind in STORAGES.items()}
_UNTYPED = TorchName("torch.storage", "UntypedStorage")
_COPIES = 4  # maximum memory of conjugated and negated tensors, as a multiple of the memory of their storage


class StorageType:
    """Object used for a storage class, such as ``torch.FloatStorage``, when a checkpoint is loaded.

    ``kind`` is the dtype of the elements, or None for ``torch.UntypedStorage``.
    """

    def __init__(self, kind: dtype | None) -> None:
        self.kind = kind  # None: bytes, whose dtype is an argument of the tensor's rebuild function


class TensorType:
    """Object used for the tensor class ``cls``, such as ``torch.Tensor``, when a checkpoint is loaded.

    Unlike the class, a pickle cannot call this object to create a tensor.
    """

    def __init__(self, cls: type[Tensor]) -> None:
        self.cls = cls


class Storage:
    """Storage read from a checkpoint: the array of its elements, and their dtype ``kind``.

    The array of an untyped storage contains bytes, and ``kind`` is None. ``root`` is the storage of which this storage is
    a part, or None.

    If the elements are read after the tensors are rebuilt, as in the legacy format, ``pending`` is a list of functions
    that are called afterwards, otherwise None. They compute the tensors that are no views of the storage.
    """

    array: Any
    kind: dtype | None

    def __init__(self, array: Any, kind: dtype | None, root: Storage | None = None) -> None:
        self.array, self.kind = array, kind
        self.root = root or self
        self.pending: list[Callable[[], None]] | None = None
        self.computed = 0  # bytes of the tensors that are no views

    def add_computed(self, size: int) -> None:
        """Record that a tensor of ``size`` bytes is computed from this storage; raise RuntimeError for too many."""
        root = self.root
        root.computed += size
        if root.computed > _COPIES * root.array.nbytes:
            raise RuntimeError("too many tensors with the same storage are marked as conjugated or negated")


def parse_persistent_id(found: Any, legacy: bool = False) -> tuple[StorageType, str, str, int, Any]:
    """Return the parts of the persistent id ``found``, the tuple by which a pickle refers to a storage.

    The result has five items, in this order: the type of the storage, the key that identifies the storage, the name of
    the device, the number of elements, and the view. The view is None in most files. If ``legacy`` is true, it can be a
    tuple (key, offset, size) for a tensor that uses only a part of the storage. Raises Refused for an invalid
    persistent id.
    """
    if (
        not isinstance(found, tuple)
        or len(found) != (6 if legacy else 5)
        or type(found[0]) is not str
        or found[0] != "storage"
    ):
        raise Refused(f"Unknown persistent id: {shortened(found)}")
    kind, key, place, count = found[1:5]
    named = isinstance(kind, StorageType) and isinstance(key, str) and isinstance(place, str)
    if not named or type(count) is not int or not 0 <= count < 2**63:
        raise Refused(f"Unknown persistent id: {shortened(found)}")
    view = found[5] if legacy else None
    if view is not None and (
        not isinstance(view, tuple)
        or len(view) != 3
        or any(type(each) is not int or each < 0 for each in view[1:])
        or view[1] + view[2] > count
    ):
        raise Refused(f"Unknown persistent id: {shortened(found)}")
    return kind, key, place, count, view


def element_dtype(kind: StorageType) -> Any:
    """Return NumPy's dtype of the elements of a storage of type ``kind``; uint8 for an untyped storage."""
    return numpy.dtype(numpy.uint8) if kind.kind is None else kind.kind.numpy


def to_native_byteorder(array: Any, order: str) -> Any:
    """Return ``array``, whose elements were stored in byte order ``order``, converted to this machine's byte order."""
    if order == sys.byteorder or array.itemsize == 1:
        return array
    if array.dtype == dtypes.complex32.numpy:
        return array.view(numpy.uint16).byteswap().view(array.dtype)
    if array.dtype.kind == "V":  # bfloat16, which NumPy does not swap
        return array.view(numpy.uint16).byteswap().view(array.dtype)
    return array.byteswap()


# -- Rebuilding ------------------------------------------------------------------------------------------------------


def _check_integers(values: Any) -> tuple[int, ...]:
    if not isinstance(values, tuple) or not all(type(each) is int for each in values):
        raise RuntimeError(f"sizes and strides must be tuples of ints, but got {shortened(values)}")
    if any(not -(2**63) <= each < 2**63 for each in values):
        raise RuntimeError(f"sizes and strides must be integers of 64 bits, but got {shortened(values)}")
    return values


def _view(storage: Any, offset: Any, size: Any, stride: Any, kind: dtype | None = None) -> Any:
    """Return a view of the array of ``storage`` with the given ``offset``, ``size`` and ``stride``, in elements.

    ``kind`` is the dtype of the view if the storage is untyped. Raises RuntimeError if the view would exceed the
    storage.
    """
    if not isinstance(storage, Storage):
        raise RuntimeError(f"a tensor must lie in a storage, but got {type(storage).__name__}")
    size, stride = _check_integers(size), _check_integers(stride)
    (offset,) = _check_integers((offset,))
    array = storage.array
    if kind is not None and array.dtype != kind.numpy:
        array = array[: array.nbytes // kind.itemsize * kind.itemsize].view(kind.numpy)
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if len(size) != len(stride) or any(each < 0 for each in (*size, *stride)):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={shortened(list(size))} and strides={shortened(list(stride))}"
        )
    needed = 0
    if 0 not in size:
        needed = offset + sum((count - 1) * step for count, step in zip(size, stride, strict=True)) + 1
    if needed > array.size:
        item = array.itemsize
        raise RuntimeError(
            f"setStorage: sizes {shortened(list(size))}, strides {shortened(list(stride))}, storage offset {offset}, "
            f"and itemsize {item} requiring a storage size of {needed * item} are out of bounds for storage of size "
            f"{array.size * item}"
        )
    if not needed:
        return array[:0].reshape(size)
    steps = [step * array.itemsize for step in stride]
    with devices.selected(devices.device_of(array)):
        return as_strided_of(devices.array_module_of(array))(array[offset:], size, steps)


def rebuild_tensor(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Tensor:
    """Return a tensor that is a view of ``storage``; pickles of PyTorch 0.3 and earlier call this function."""
    return wrap(_view(storage, storage_offset, size, stride, storage.kind if isinstance(storage, Storage) else None))


def rebuild_tensor_v2(
    storage: Any, storage_offset: Any, size: Any, stride: Any, requires_grad: Any, backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:  # fmt: skip
    """Return a tensor that is a view of ``storage``; pickles call this function ``torch._utils._rebuild_tensor_v2``.

    ``storage`` has a dtype. ``backward_hooks`` is ignored. ``metadata`` may contain the flags ``"conj"`` and ``"neg"``
    for conjugation and negation, which are applied to the elements.
    """
    return _apply_metadata(rebuild_tensor(storage, storage_offset, size, stride), storage, requires_grad, metadata)


def rebuild_tensor_v3(
    storage: Any, storage_offset: Any, size: Any, stride: Any, requires_grad: Any, backward_hooks: Any, kind: Any,
    metadata: Any = None,
) -> Tensor:  # fmt: skip
    """Return a tensor of dtype ``kind`` that is a view of ``storage``, an untyped storage (of bytes).

    The other arguments are the same as in :func:`rebuild_tensor_v2`.
    """
    if not isinstance(kind, dtype):
        raise RuntimeError(f"expected a dtype, but got {type(kind).__name__}")
    return _apply_metadata(wrap(_view(storage, storage_offset, size, stride, kind)), storage, requires_grad, metadata)


def rebuild_meta_tensor(kind: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """Return a tensor on the device ``meta``, which has no storage."""
    if not isinstance(kind, dtype) or type(requires_grad) is not bool:
        raise RuntimeError("a meta tensor is saved with its dtype, sizes, strides and requires_grad")
    for each in (size, stride):
        if not isinstance(each, tuple) or any(type(number) is not int or not 0 <= number < 1 << 62 for number in each):
            raise RuntimeError("sizes and strides must be tuples of non-negative ints")
    if len(size) != len(stride):
        raise RuntimeError("there must be as many strides as sizes")
    np = devices.meta()
    strides = tuple(each * kind.numpy.itemsize for each in stride)
    out = wrap(np.lib.stride_tricks.as_strided(np.empty((), kind.numpy), size, strides))
    return out._set_requires_grad() if requires_grad else out


def _apply_metadata(tensor: Tensor, storage: Storage, requires_grad: Any, metadata: Any) -> Tensor:
    # PyTorch saves lazy conjugation and negation as flags; they are applied here.
    if type(requires_grad) is not bool:
        raise RuntimeError("requires_grad must be a bool")
    if metadata and not isinstance(metadata, dict):
        raise RuntimeError(f"expected dict, got {type(metadata).__name__}")
    metadata = metadata or {}
    conjugated, negated = bool(metadata.get("conj")), bool(metadata.get("neg"))
    if conjugated or negated:
        if tensor.numel() > memory_owner(tensor._array).size:
            raise RuntimeError("a tensor that repeats its elements is marked as conjugated or negated")
        storage.add_computed(tensor.numel() * tensor.dtype.itemsize)
        view = tensor

        def compute() -> Tensor:
            value = view.conj_physical() if conjugated else view
            return -value if negated else value.clone() if value is view else value

        tensor = compute()
        if storage.root.pending is not None:
            target = tensor._array

            def update() -> None:
                target[...] = compute()._array

            storage.root.pending.append(update)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Tensor:
    """Return an ``nn.Parameter`` with the elements of the tensor ``data``; ``backward_hooks`` is ignored."""
    if not isinstance(data, Tensor):
        raise RuntimeError(f"a parameter must be a tensor, but got {type(data).__name__}")
    return Parameter(data, bool(requires_grad))


def rebuild_parameter_with_state(data: Any, requires_grad: Any, backward_hooks: Any, state: Any) -> Tensor:
    """Return an ``nn.Parameter`` with the elements of ``data`` and the additional attributes in the dict ``state``."""
    return _with_attributes(rebuild_parameter(data, requires_grad, backward_hooks), state)


def rebuild_from_type(function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
    """Return ``function(*arguments)``, a tensor, as an instance of ``kind`` with the attributes in the dict ``state``.

    ``kind`` is a subclass of Tensor, or a :class:`TensorType` placeholder for one. Raises RuntimeError if ``function``
    is not one of the ``rebuild_tensor`` functions.
    """
    if function not in REBUILDERS or not isinstance(arguments, tuple):
        raise RuntimeError("a tensor can only be rebuilt by the functions that rebuild tensors")
    tensor = function(*arguments)
    kind = kind.cls if isinstance(kind, TensorType) else kind
    if not isinstance(kind, type):
        raise RuntimeError(f"cls must be a type (got {type(kind).__name__})")
    if not issubclass(kind, Tensor):
        raise RuntimeError(f"{kind.__name__} does not inherit from Tensor")
    if kind is not Tensor:
        tensor = tensor.detach().as_subclass(kind).requires_grad_(tensor.requires_grad)
    return _with_attributes(tensor, state)


def _with_attributes(tensor: Tensor, state: Any) -> Tensor:
    attributes = state[0] if isinstance(state, tuple) and state else state
    if isinstance(attributes, dict):
        tensor.__dict__.update(check_attributes(attributes))
    return tensor


REBUILDERS = (rebuild_tensor, rebuild_tensor_v2, rebuild_tensor_v3)


def _encode(text: Any, encoding: Any) -> bytes:
    """Return ``text.encode(encoding)``.

    Pickles of protocol 2 contain bytes as text and call this function to rebuild them. Raises RuntimeError unless
    ``encoding`` is ``"latin1"``.
    """
    if encoding != "latin1" or not isinstance(text, str):
        raise RuntimeError("only bytes written as text in latin1 can be read")
    return text.encode(encoding)


def _bytearray(*arguments: Any) -> bytearray:
    """Return ``bytearray(*arguments)``.

    Raises TypeError for an integer argument, because ``bytearray(n)`` could allocate any amount of memory.
    """
    data = _encode(*arguments) if len(arguments) == 2 else b"".join(arguments)
    return bytearray(data)


def rebuild_sparse(layout: Any, data: Any) -> Tensor:
    """Return a sparse tensor; pickles call this function ``torch._utils._rebuild_sparse_tensor``.

    ``data`` has the indices, the values, the shape, and for ``sparse_coo`` whether the indices are coalesced. They are
    checked, so that a damaged file cannot create a tensor with indices outside of its shape.
    """
    count = 3 if layout is sparse_coo else 4
    if not isinstance(data, tuple) or len(data) not in (count, 4):
        raise RuntimeError("a sparse tensor must have indices, values and a shape")
    tensors, size = data[: count - 1], data[count - 1]
    if not all(type(each) is Tensor for each in tensors) or not all(type(each) is int and each >= 0 for each in size):
        raise RuntimeError("a sparse tensor must have tensors of indices and values, and a shape of integers")
    create = load_part("sparse.creation")
    made: Tensor
    if layout is sparse_coo:
        known = bool(data[3]) if len(data) == 4 else None
        made = create.sparse_coo_tensor(*tensors, size, check_invariants=True, is_coalesced=known)
    elif layout in (sparse_csr, sparse_csc):
        made = create.sparse_compressed_tensor(*tensors, size, layout=layout, check_invariants=False)
    else:
        raise RuntimeError(f"unknown layout: {layout}")
    return made


_LAYOUTS = {f"torch.{each.name}": each for each in (strided, sparse_coo, sparse_csr, sparse_csc)}


def _layout(name: Any) -> Any:
    if not isinstance(name, str) or name not in _LAYOUTS:
        raise RuntimeError(f"unknown layout: {shortened(name)}")
    return _LAYOUTS[name]


def allowed_names() -> dict[str, Any]:
    """Return a dict from PyTorch's names of classes and functions to the objects that a checkpoint may use.

    A key such as ``"torch.Size"`` is the name of the module and the name in the module. Users can allow further names.
    """
    names: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict, "collections.Counter": Counter, "builtins.set": set,
        "builtins.bytearray": _bytearray, "builtins.complex": complex, "_codecs.encode": _encode,
        "__builtin__.set": set, "__builtin__.bytearray": _bytearray, "__builtin__.complex": complex,
        "torch.Size": Size, "torch.Tensor": TensorType(Tensor), "torch.device": device,
        "torch.nn.parameter.Parameter": TensorType(Parameter),
        "torch.serialization._get_layout": _layout,
        "torch.storage.UntypedStorage": StorageType(None), "torch.UntypedStorage": StorageType(None),
        "torch._utils._rebuild_tensor": rebuild_tensor, "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
        "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3, "torch._utils._rebuild_parameter": rebuild_parameter,
        "torch._utils._rebuild_parameter_with_state": rebuild_parameter_with_state,
        "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta_tensor,
        "torch._tensor._rebuild_from_type_v2": rebuild_from_type, "torch._utils._rebuild_sparse_tensor": rebuild_sparse,
    }  # fmt: skip
    names |= {f"torch.{kind.name}": kind for kind in (*dtypes.ALL, *dtypes.STORED)}
    for name, kind in STORAGES.items():
        names |= {f"torch.{name}Storage": StorageType(kind), f"torch.cuda.{name}Storage": StorageType(kind)}
    return names


# -- Describing ------------------------------------------------------------------------------------------------------


class StorageTable:
    """Table of the storages that ``torch.save`` writes to one checkpoint.

    If several tensors share a storage, the storage is written once.
    """

    def __init__(self) -> None:
        self.found: dict[int, tuple[str, Any, dtype | None]] = {}  # by identity of the owner

    def persistent_id(self, array: Any) -> tuple[tuple[Any, ...], int]:
        """Add the storage of ``array`` to the table, and return its persistent id and the offset of ``array`` in it.

        The persistent id is a tuple by which a pickle refers to the storage. The offset is a number of elements. Raises
        RuntimeError if arrays of different dtypes share the storage.
        """
        owner = memory_owner(array)
        offset = offset_in_memory(array)
        if not (owner.flags.c_contiguous or owner.flags.f_contiguous) or address(owner) > address(array):
            owner, offset = array, 0  # memory of another library: only this array of it is saved
        kind = dtypes.dtype_of(array.dtype)
        key, _, known = self.found.setdefault(id(owner), (str(len(self.found)), owner, kind))
        if known is not kind:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        place = str(devices.device_of(array))
        if kind in _STORAGE_OF:
            return ("storage", _STORAGE_OF[kind], key, place, owner.nbytes // array.itemsize), offset
        return ("storage", _UNTYPED, key, place, owner.nbytes), offset

    def records(self) -> list[tuple[str, Any]]:
        """Return a list of pairs ``(key, data)``, one for each storage; ``data`` is a uint8 array on the CPU."""
        records = []
        for key, owner, _ in self.found.values():
            line = owner if owner.flags.c_contiguous else owner.T
            if devices.device_of(owner) is not devices.CPU:
                line = devices.to_device(line, devices.CPU)
            records.append((key, numpy.ascontiguousarray(line).reshape(-1).view(numpy.uint8)))
        return records


def reduce_tensor(tensor: Tensor, memories: StorageTable) -> tuple[TorchName, tuple[Any, ...]]:
    """Return the function that a pickle calls to rebuild ``tensor``, and a tuple of its arguments.

    The function is represented by its name in PyTorch, a :class:`TorchName`. The storage of ``tensor`` is added to
    ``memories``, the table of storages in the checkpoint.
    """
    array = tensor._array
    layout = (tuple(array.shape), element_strides(array))
    graded = tensor.requires_grad and not isinstance(tensor, Parameter)
    identity: Any
    identity, offset = (None, 0) if tensor.is_meta else memories.persistent_id(array)
    place = (StorageRef(identity), offset, *layout)
    recorded: tuple[Any, ...] = (graded, OrderedDict())
    arguments: tuple[Any, ...]
    if identity is None:
        function, arguments = _META, (tensor.dtype, *layout, graded)
    elif identity[1] is _UNTYPED:
        function, arguments = _V3, (*place, *recorded, tensor.dtype)
    else:
        function, arguments = _V2, (*place, *recorded)
    attributes = tensor.__dict__
    if isinstance(tensor, Parameter):
        attributes = {key: value for key, value in attributes.items() if key != "_is_param"}
        rest: tuple[Any, ...] = (Call(function, arguments), tensor.requires_grad, OrderedDict())
        return (_STATEFUL_PARAMETER, (*rest, attributes)) if attributes else (_PARAMETER, rest)
    if attributes or type(tensor) is not Tensor:
        kind = _TENSOR if type(tensor) is Tensor else type(tensor)
        return _SUBCLASS, (function, kind, arguments, attributes)
    return function, arguments


def reduce_sparse(tensor: Tensor) -> tuple[TorchName, tuple[Any, ...]]:
    """Return the function that a pickle calls to rebuild the sparse tensor ``tensor``, and a tuple of its arguments.

    As in PyTorch, ``requires_grad`` is not saved, except that a parameter is one again.
    """
    names = ("_indices",) if tensor.layout is sparse_coo else _COMPRESSED[tensor.layout.name]
    data: tuple[Any, ...] = (*(getattr(tensor, name)() for name in names), tensor._values(), tensor.shape)
    call = _SPARSE, (tensor.layout, (*data, tensor.is_coalesced()) if tensor.layout is sparse_coo else data)
    if getattr(tensor, "_is_param", False):
        return _PARAMETER, (Call(*call), tensor.requires_grad, OrderedDict())
    return call


_COMPRESSED = {
    "sparse_csr": ("crow_indices", "col_indices"), "sparse_csc": ("ccol_indices", "row_indices")
}  # fmt: skip


class StorageRef:
    """Reference to a storage in a pickle.

    ``identity`` is the persistent id, the tuple by which a pickle refers to the storage.
    """

    def __init__(self, identity: tuple[Any, ...]) -> None:
        self.identity = identity


class Call:
    """Call of a PyTorch function that is written to a pickle, and that is executed when the pickle is loaded.

    ``function`` is the name of the function, and ``arguments`` are its positional arguments.
    """

    arguments: tuple[Any, ...]
    function: TorchName

    def __init__(self, function: TorchName, arguments: tuple[Any, ...]) -> None:
        self.function, self.arguments = function, arguments


_V2, _V3 = (TorchName("torch._utils", f"_rebuild_tensor_v{number}") for number in (2, 3))
_META = TorchName("torch._utils", "_rebuild_meta_tensor_no_storage")
_PARAMETER = TorchName("torch._utils", "_rebuild_parameter")
_SPARSE = TorchName("torch._utils", "_rebuild_sparse_tensor")
_STATEFUL_PARAMETER = TorchName("torch._utils", "_rebuild_parameter_with_state")
_SUBCLASS, _TENSOR = TorchName("torch._tensor", "_rebuild_from_type_v2"), TorchName("torch", "Tensor")
