"""``UntypedStorage``, pinned and shared memory, DLPack export, ``hash_tensor``, and deprecated functions."""

from __future__ import annotations

import sys
from typing import Any

import numpy

from ...compat.lazy_imports import load_part
from ...compat.module_names import shown_in
from ...core import devices, dtypes
from ...core.deferral import end_segment
from ...core.shared_memory import share
from ...core.tensor import Tensor, address, memory_owner, normalize_dim, wrap
from ...dispatch.declare import op, public
from ...kernels import pinned_memory
from ...runtime.user_frame import warn
from ..linalg.norms import matrix_norm
from ..reductions.sums import vector_norm
from ..shape.views import reshape
from .dlpack_device_types import DLDeviceType


def map_file(filename: Any, dtype: Any, shared: bool | None, size: int) -> Any:
    """Return a 1-d array of ``size`` elements of ``dtype`` that is a memory map of the file ``filename``.

    If ``shared`` is true, the file is created or extended if necessary, and writes to the array change the file.
    """
    if shared:
        with open(filename, "ab") as file:  # extended to the required length
            file.truncate(max(file.tell(), size * dtype.itemsize))
    return numpy.asarray(numpy.memmap(filename, dtype, "r+" if shared else "c", shape=(size,)))


class UntypedStorage:
    """Memory of a tensor as a sequence of bytes. ``Tensor.untyped_storage()`` returns an object of this class.

    ``UntypedStorage(n)`` allocates ``n`` zero bytes. ``UntypedStorage(sequence)`` stores a sequence of ints as bytes.

    >>> import retrograd as torch
    >>> torch.UntypedStorage([1, 2]).nbytes(), torch.ones(3).untyped_storage().nbytes()
    (2, 12)
    """

    __module__ = shown_in("torch.storage", __name__)

    def __init__(self, source: Any = 0) -> None:
        if isinstance(source, int):
            source = numpy.zeros(source, numpy.uint8)
        elif not hasattr(source, "base"):
            source = numpy.array([int(each) & 255 for each in source], numpy.uint8)
        self._memory = memory_owner(source)
        #: The bytes of the memory that belong to a slice of a storage; None for all.
        self._part: slice | None = None

    @staticmethod
    def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Return a storage of ``nbytes`` bytes that is a memory map of the file ``filename``.

        With ``shared=True``, the file is created or extended if necessary, and writes to the storage change the file.
        Otherwise writes to the storage do not change the file.
        """
        return UntypedStorage(map_file(filename, numpy.dtype(numpy.uint8), shared, nbytes))

    @property
    def _bytes(self) -> Any:
        memory = self._memory
        whole = memory.reshape(-1, order="A").view("uint8")
        return whole if self._part is None else whole[self._part]

    def data_ptr(self) -> int:
        """Return the address of the first byte of this storage."""
        return address(self._memory) + (0 if self._part is None else self._part.start)

    def nbytes(self) -> int:
        """Return the number of bytes of this storage."""
        return int(self._memory.nbytes if self._part is None else self._part.stop - self._part.start)

    size = __len__ = nbytes

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def untyped(self) -> UntypedStorage:
        """Return this storage."""
        return self

    def element_size(self) -> int:
        """Return 1, the size of an element in bytes, because the elements are bytes."""
        return 1

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return int(self._bytes[index])
        start, stop, step = index.indices(self.nbytes())
        if step != 1:
            raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
        first, part = 0 if self._part is None else self._part.start, UntypedStorage(self._memory)
        part._part = slice(first + start, first + max(start, stop))
        return part

    def __setitem__(self, index: Any, value: Any) -> None:
        end_segment("a storage is written")
        self._bytes[index] = value

    def tolist(self) -> list[int]:
        """Return the bytes of this storage as a list of ints."""
        return list(self._bytes.tolist())

    def fill_(self, value: int) -> UntypedStorage:
        """Write the int ``value`` to every byte of this storage, and return this storage."""
        end_segment("a storage is written")
        self._bytes[...] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Copy the bytes of ``source`` into this storage, and return this storage.

        ``non_blocking`` has no effect.
        """
        end_segment("a storage is written")
        self._bytes[...] = source._bytes
        return self

    def clone(self) -> UntypedStorage:
        """Return a copy of this storage."""
        return UntypedStorage(self._bytes.copy())

    def cpu(self) -> UntypedStorage:
        """Return a storage on the CPU with the bytes of this storage.

        If this storage is on the CPU, the result shares its memory. Otherwise the result is a copy.
        """
        return UntypedStorage(devices.to_device(self._memory, devices.CPU))

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Return a storage on the GPU ``device``, an index or a device, with the bytes of this storage.

        If this storage is on this GPU, the result shares its memory. Otherwise the result is a copy. ``non_blocking``
        has no effect.
        """
        place = devices.device("cuda", device) if isinstance(device, int) else devices.device(device or "cuda")
        return UntypedStorage(devices.to_device(self._memory, place))

    def is_shared(self) -> bool:
        """Whether child processes that are created by ``fork`` share the memory of this storage."""
        return _is_mapped(self._memory)

    @property
    def device(self) -> devices.device:
        """Device on which the memory of this storage is allocated."""
        return devices.device_of(self._memory)

    @property
    def is_cuda(self) -> bool:
        """Whether the memory of this storage is on a GPU."""
        return self.device.type == "cuda"

    def __repr__(self) -> str:
        shown = "...\n" if self.device.type == "meta" else "".join(f" {each}\n" for each in self.tolist())
        return f"{shown}[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


@public(function=False)
def untyped_storage(input: Tensor) -> UntypedStorage:
    """Return the storage of ``input``: the memory that ``input`` shares with its views, as bytes.

    >>> import retrograd as torch
    >>> torch.tensor([1.0, 2.0]).untyped_storage().nbytes()
    8
    """
    return UntypedStorage(input._array)


@public(function=True)
def get_device(input: Tensor) -> int:
    """Return the index of the GPU on which ``input`` is, or -1 if ``input`` is on the CPU.

    >>> import retrograd as torch
    >>> torch.get_device(torch.zeros(2))
    -1
    """
    place = input.device
    return -1 if place.index is None else place.index


@public()
def is_signed(input: Tensor) -> bool:
    """Whether the dtype of ``input`` can represent negative numbers.

    >>> import retrograd as torch
    >>> torch.is_signed(torch.tensor([1, 2])), torch.is_signed(torch.tensor([1, 2], dtype=torch.uint8))
    (True, False)
    """
    return input._array.dtype.kind not in "bu"


@public(method=False)
def is_inference(input: Tensor) -> bool:
    """Whether ``input`` was created in inference mode.

    >>> import retrograd as torch
    >>> with torch.inference_mode():
    ...     x = torch.zeros(2)
    >>> torch.is_inference(x)
    True
    """
    return input.is_inference()


@public(method=False)
def detach(input: Tensor) -> Tensor:
    """Return a view of ``input`` that is detached from the graph and does not require gradients.

    >>> import retrograd as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.detach(x * 2).requires_grad
    False
    """
    return input.detach()


@public(method=False)
def detach_(input: Tensor) -> Tensor:
    """Detach ``input`` from the graph in place, and return ``input``."""
    return input.detach_()


@public(method=False)
def is_storage(obj: Any) -> bool:
    """Whether ``obj`` is an ``UntypedStorage``.

    >>> import retrograd as torch
    >>> torch.is_storage(torch.zeros(2).untyped_storage())
    True
    """
    return isinstance(obj, UntypedStorage)


@public(function=False)
def const_data_ptr(input: Tensor) -> int:
    """Return the address of the first element of ``input``, as ``data_ptr`` does.

    In PyTorch, the caller may only read the memory at this address.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> x.const_data_ptr() == x.data_ptr()
    True
    """
    return input.data_ptr()


# -- Hashes -----------------------------------------------------------------------------------------------------------


@op(name="hash_tensor_block", function=False, method=False)
def hash_block(np: Any, self: Any, /, dim: tuple[int, ...], keepdim: bool) -> Any:
    """Return the bitwise exclusive OR of the elements of ``self`` over the dimensions ``dim``, as uint64.

    Floating-point elements are first converted to float64, other elements to int64, and the operation is applied to
    the 64 bits of each number. If ``keepdim`` is true, the reduced dimensions are kept with size 1.
    """
    wide = self.astype("float64" if dtypes.dtype_of(self.dtype).is_floating_point else "int64")
    return np.bitwise_xor.reduce(wide.view("uint64"), axis=dim if self.ndim else (), keepdims=keepdim)


@public()
def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0, out: Any = None) -> Tensor:
    """Return a uint64 hash of the elements of ``input`` along ``dim``, by default along all dimensions.

    Floating-point elements are first converted to float64, other elements to int64. The hash is the bitwise exclusive
    OR of the 64 bits of these numbers. If ``keepdim`` is true, the reduced dimensions are kept with size 1. ``mode``
    must be 0. Raise RuntimeError for complex dtypes.

    >>> import retrograd as torch
    >>> torch.hash_tensor(torch.tensor([1, 2, 3])) == torch.hash_tensor(torch.tensor([1, 2, 3]))
    tensor(True)
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if input.is_complex():
        raise dtypes.unsupported("xor_sum_cpu", input._array.dtype)
    count = input._array.ndim
    dims = (dim,) if isinstance(dim, int) else tuple(dim or range(count))
    if not dim and dim != 0 and not input._array.size:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    return hash_block(input, tuple(normalize_dim(each, count) for each in dims), keepdim)


# -- Pinned and shared memory -----------------------------------------------------------------------------------------


@public(function=False)
def is_pinned(input: Tensor, device: Any = None) -> bool:
    """Whether the memory of ``input`` is pinned (page-locked), by :meth:`pin_memory`; False without a GPU.

    >>> import retrograd as torch
    >>> torch.ones(2).is_pinned()
    False
    """
    if device is not None:
        warn(
            "The argument 'device' of Tensor.is_pinned() is deprecated. Please do not pass this argument.",
            DeprecationWarning,
        )
    return pinned_memory.is_pinned(input._array)


@public(function=False)
def pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """Return a copy of ``input`` in pinned (page-locked) memory, or ``input`` itself if it is there.

    A copy from pinned memory to a GPU with ``non_blocking=True`` goes on while the program does. Raise RuntimeError if
    ``input`` is not on the CPU, or if there is no GPU.
    """
    if not input.is_cpu:
        name = dtypes.scalar_name(input.dtype)
        shown = f"Meta{name}Type" if input.is_meta else f"torch.cuda.{name}Tensor"
        raise RuntimeError(f"cannot pin '{shown}' only dense CPU tensors can be pinned")
    if not devices.gpu_count():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if pinned_memory.is_pinned(input._array):
        return input
    return wrap(pinned_memory.pinned(input._array))


@public(function=False)
def is_shared(input: Tensor) -> bool:
    """Whether child processes that are created by ``fork`` share the memory of ``input``.

    The result for a tensor on a GPU is always True.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> x.is_shared(), x.share_memory_().is_shared()
    (False, True)
    """
    return input.is_cuda or _is_mapped(input._array)


def _is_mapped(array: Any) -> bool:
    """Whether the memory of ``array`` was allocated by ``mmap``."""
    base = memory_owner(array).base
    owner = base.obj if isinstance(base, memoryview) else base
    if isinstance(owner, numpy.ndarray):  # a block of a DataLoader's worker
        return _is_mapped(owner)
    mmap = sys.modules.get("mmap")
    return mmap is not None and isinstance(owner, mmap.mmap)


@public(function=False)
def share_memory_(input: Tensor) -> Tensor:
    """Move the elements of ``input`` to memory that is shared with child processes; return ``input``.

    Child processes must be created by ``fork``. Existing views of ``input`` keep the old memory.

    >>> import retrograd as torch
    >>> torch.ones(2).share_memory_()
    tensor([1., 1.])
    """
    if input.is_meta:
        raise RuntimeError("_share_fd_: only available on CPU")
    if not is_shared(input):
        import mmap  # not in Pyodide

        array = input._array
        shared = numpy.frombuffer(mmap.mmap(-1, max(array.nbytes, 1)), array.dtype, array.size).reshape(array.shape)
        shared[...] = array
        input._array = shared
    return input


@public(function=False)
def record_stream(input: Tensor, s: Any) -> None:
    """Keep the memory of ``input``, after it is deleted, until the CUDA stream ``s`` has done the work submitted by then.

    This is necessary if ``input`` was created while another stream was current, because its memory is given to the next
    tensor of that stream. Raise NotImplementedError if ``input`` is on the CPU, as PyTorch does.
    """
    if not input.is_cuda:
        raise NotImplementedError("Could not run 'aten::record_stream' with arguments from the 'CPU' backend.")
    load_part("cuda.memory").hold_for_stream(input._array, s._stream)


@public(function=False)
def module_load(input: Tensor, other: Any, assign: bool = False) -> Tensor:
    """Return the tensor that replaces ``input``, a parameter or buffer of a module.

    ``other`` is the tensor for ``input`` in the state dict that ``load_state_dict`` loads. If ``assign`` is true,
    return ``other.detach()``. Otherwise copy ``other`` into ``input``, and return ``input.detach()``.

    >>> import retrograd as torch
    >>> torch.zeros(2).module_load(torch.ones(2))
    tensor([1., 1.])
    """
    return other.detach() if assign else input.copy_(other).detach()


# -- DLPack -----------------------------------------------------------------------------------------------------------


@public(name="__dlpack__", function=False)
def export(input: Tensor, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
    """Return a DLPack capsule that shares the memory of ``input``: the method ``Tensor.__dlpack__``.

    The other arguments are those of the DLPack protocol; for a tensor on the CPU, ``stream`` must be None or -1. For a
    tensor on a GPU, it is the address of the stream of the consumer, which then waits for the current stream. Raise
    BufferError if ``input`` requires gradients.
    """
    if input.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if input.is_meta:
        raise BufferError("Cannot pack tensors on meta")
    if not input.is_cuda and stream not in (-1, None):
        raise AssertionError("stream should be None on cpu.")
    extra = {} if max_version is None and dl_device is None and copy is None else {
        "max_version": max_version, "dl_device": dl_device, "copy": copy,
    }  # fmt: skip
    if not input.is_cuda:
        return share(input._array).__dlpack__(**extra)
    if stream == 0:
        raise AssertionError("unsupported stream on CUDA: 0")
    with devices.selected(input.device):
        return input._array.__dlpack__(stream=stream, **extra)


@public(name="__dlpack_device__", function=False)
def export_device(input: Tensor) -> tuple[Any, int]:
    """Return the device of ``input`` in DLPack's format: the method ``Tensor.__dlpack_device__``.

    The result is the tuple (:class:`DLDeviceType`, index of the device).
    """
    return (DLDeviceType.kDLCUDA, input.get_device()) if input.is_cuda else (DLDeviceType.kDLCPU, 0)


@public(method=False)
def to_dlpack(input: Tensor) -> Any:
    """Return a DLPack capsule that shares the memory of ``input``. A capsule can be consumed only once.

    >>> import retrograd as torch
    >>> torch.from_dlpack(torch.to_dlpack(torch.tensor([1.0, 2.0])))
    tensor([1., 2.])
    """
    return export(input.detach())


# -- Deprecated names -------------------------------------------------------------------------------------------------


@public(method=False)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return the ``pow``-norm of ``v`` over all dimensions except ``dim``.

    The reduced dimensions are kept with size 1. ``dim=-1`` returns the norm over all dimensions as a 0-d tensor.

    >>> import retrograd as torch
    >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0], [6.0, 8.0]]), 2, 0)
    tensor([[ 5.],
            [10.]])
    """
    if dim == -1:
        return vector_norm(v, pow)
    others = [each for each in range(v.dim()) if each != dim % v.dim()]
    return vector_norm(v, pow, dim=others, keepdim=True) if others else v.abs()


@public(method=False)
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False, *, out: Any = None) -> Tensor:
    """Return ``linalg.vector_norm(input, 2, dim, keepdim)``. The function is deprecated.

    >>> import retrograd as torch
    >>> torch.frobenius_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]), dim=(0, 1))
    tensor(5.)
    """
    _warn_of_norm("frobenius", "vector_norm(A, 2., dim, keepdim)")
    return vector_norm(input, 2, dim, keepdim)


@public(method=False)
def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """Return ``linalg.matrix_norm(input, "nuc", dim, keepdim)``. The function is deprecated.

    >>> import retrograd as torch
    >>> torch.nuclear_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(7.)
    """
    _warn_of_norm("nuclear", "matrix_norm(A, 'nuc', dim, keepdim)")
    dim, keepdim = ((-2, -1), dim) if isinstance(dim, bool) else (dim, keepdim)
    return matrix_norm(input, "nuc", dim, keepdim)


def _warn_of_norm(name: str, new: str) -> None:
    warn(
        f"at::{name}_norm is deprecated and it is just left for JIT compatibility. It will be removed in a future PyTorch "
        f"release. Please use `linalg.{new}` instead",
    )


@public(function=False)
def resize(input: Tensor, *sizes: Any) -> Tensor:
    """Return ``input`` reshaped to ``sizes``, as :func:`reshape` does. The method is deprecated.

    >>> import retrograd as torch
    >>> torch.arange(4).resize(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    warn("non-inplace resize is deprecated")
    return _resized(input, sizes)


@public(function=False)
def resize_as(input: Tensor, tensor: Tensor) -> Tensor:
    """Return ``input`` reshaped to the shape of ``tensor``, as :func:`reshape` does. The method is deprecated.

    >>> import retrograd as torch
    >>> torch.arange(4).resize_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    warn("non-inplace resize_as is deprecated")
    return _resized(input, tuple(tensor.size()))


def _resized(input: Tensor, sizes: tuple[Any, ...]) -> Tensor:
    count = 1
    for each in sizes:
        count = count * each
    if count != input.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, sizes))} ({count} elements in total), but the given tensor has a size "
            f"of {'x'.join(map(str, input.size()))} ({input.numel()} elements). autograd's resize can only change the shape "
            "of a given tensor, while preserving the number of elements. "
        )
    return reshape(input, sizes)
