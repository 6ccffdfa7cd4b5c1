"""A tensor's memory: where it lies, who may see it, how others get at it, and what its bits are."""

from __future__ import annotations

import mmap
from typing import Any

import numpy

from ...core import devices, dtypes
from ...core.tensor import Tensor, address, dimension, memory_of
from ...dispatch.declare import op, public
from ...runtime.user_frame import warn
from ..linalg.norms import matrix_norm
from ..reductions.sums import vector_norm
from ..shape.views import reshape


class UntypedStorage:
    """The memory of a tensor as bytes: ``Tensor.untyped_storage()``; or new memory, of so many bytes or with these.

    >>> import retrograd as torch
    >>> torch.UntypedStorage([1, 2]).nbytes(), torch.ones(3).untyped_storage().nbytes()
    (2, 12)
    """

    __module__ = "torch.storage"

    def __init__(self, source: Any = 0) -> None:
        if isinstance(source, int):
            source = numpy.zeros(source, numpy.uint8)
        elif not hasattr(source, "base"):
            source = numpy.array([int(each) & 255 for each in source], numpy.uint8)
        self._memory = memory_of(source)

    @property
    def _bytes(self) -> Any:
        memory = self._memory
        return memory.reshape(-1, order="A").view("uint8")

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return address(self._memory)

    def nbytes(self) -> int:
        """How many bytes the memory has."""
        return int(self._memory.nbytes)

    size = __len__ = nbytes

    def element_size(self) -> int:
        """1: the elements are bytes."""
        return 1

    def __getitem__(self, index: Any) -> Any:
        found = self._bytes[index]
        return UntypedStorage(found) if isinstance(index, slice) else int(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._bytes[index] = value

    def tolist(self) -> list[int]:
        """The bytes."""
        return list(self._bytes.tolist())

    def fill_(self, value: int) -> UntypedStorage:
        """Write ``value`` to every byte."""
        self._bytes[...] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Write the bytes of ``source``."""
        self._bytes[...] = source._bytes
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage(self._bytes.copy())

    def cpu(self) -> UntypedStorage:
        """The same memory, or a copy of it, on the CPU."""
        return UntypedStorage(devices.move(self._memory, devices.CPU))

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """A copy on a GPU."""
        place = devices.device("cuda", device) if isinstance(device, int) else devices.device(device or "cuda")
        return UntypedStorage(devices.move(self._memory, place))

    def is_shared(self) -> bool:
        """Whether processes that are forked from this one see what is written to the memory."""
        return isinstance(_buffer_of(self._memory), mmap.mmap)

    @property
    def device(self) -> devices.device:
        """Where the memory is."""
        return devices.device_of(self._memory)

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is a GPU's."""
        return self.device.type == "cuda"

    def __repr__(self) -> str:
        shown = "".join(f" {each}\n" for each in self.tolist())
        return f"{shown}[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


@public(function=False)
def untyped_storage(input: Tensor) -> UntypedStorage:
    """The memory in which the tensor lies."""
    return UntypedStorage(input._array)


public(function=False, name="storage")(untyped_storage)


@public(function=True)
def get_device(input: Tensor) -> int:
    """The number of the GPU on which the tensor lies; -1 on the CPU."""
    place = input.device
    return -1 if place.index is None else place.index


@public()
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return input._array.dtype.kind not in "bu"


@public(method=False)
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


@public(method=False)
def detach(input: Tensor) -> Tensor:
    """The same memory outside of the graph."""
    return input.detach()


@public(method=False)
def detach_(input: Tensor) -> Tensor:
    """Take the tensor itself out of the graph."""
    return input.detach_()


@public(method=False)
def is_storage(obj: Any) -> bool:
    """Whether ``obj`` is the memory of a tensor."""
    return isinstance(obj, UntypedStorage)


@public(function=False)
def const_data_ptr(input: Tensor) -> int:
    """The address of the first element, for who does not write there."""
    return input.data_ptr()


# -- Bits -------------------------------------------------------------------------------------------------------------


@op(name="hash_tensor_block", function=False, method=False)
def hash_block(np: Any, self: Any, /, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The bits of all numbers along ``dim``, as float64 or int64, added without carry."""
    wide = self.astype("float64" if dtypes.of(self.dtype).is_floating_point else "int64")
    return np.bitwise_xor.reduce(wide.view("uint64"), axis=dim, keepdims=keepdim)


@public()
def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0, out: Any = None) -> Tensor:
    """One uint64 for all numbers along ``dim`` (of all, if none is given): equal tensors have equal ones.

    It is the exclusive or of their bits, as float64 or int64.
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
    return hash_block(input, tuple(dimension(each, count) for each in dims), keepdim)


# -- Pinned and shared memory -----------------------------------------------------------------------------------------


@public(function=False)
def is_pinned(input: Tensor, device: Any = None) -> bool:
    """Whether the operating system keeps the memory where it is: False, as it is never asked to."""
    if device is not None:
        warn(
            "The argument 'device' of Tensor.is_pinned() is deprecated. Please do not pass this argument.",
            DeprecationWarning,
        )
    return False


@public(function=False)
def pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """The tensor itself, which a GPU reads where it is. Raises RuntimeError if there is no GPU, as PyTorch does."""
    if not devices.gpu_count():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return input


@public(function=False)
def is_shared(input: Tensor) -> bool:
    """Whether processes that are forked from this one see what is written to the tensor; so it is on GPUs."""
    return input.is_cuda or isinstance(_buffer_of(input._array), mmap.mmap)


def _buffer_of(array: Any) -> Any:
    base = memory_of(array).base
    return base.obj if isinstance(base, memoryview) else base


@public(function=False)
def share_memory_(input: Tensor) -> Tensor:
    """Move the numbers to memory that processes forked from this one share; the tensor itself.

    Views made before keep the old memory.
    """
    if not is_shared(input):
        old = input._array
        new = numpy.frombuffer(mmap.mmap(-1, max(old.nbytes, 1)), old.dtype, old.size).reshape(old.shape)
        new[...] = old
        input._array = new
    return input


@public(function=False)
def record_stream(input: Tensor, s: Any) -> None:
    """Nothing on a GPU, where CuPy looks after its memory; an error on the CPU, as in PyTorch."""
    if not input.is_cuda:
        raise NotImplementedError("Could not run 'aten::record_stream' with arguments from the 'CPU' backend.")


@public(function=False)
def module_load(input: Tensor, other: Any, assign: bool = False) -> Tensor:
    """What ``load_state_dict`` puts in the place of this tensor for ``other``, with ``swap_tensors`` on.

    It is the tensor itself with the numbers of ``other``, or (``assign``) ``other``, taken out of its graph.
    """
    return other.detach() if assign else input.copy_(other).detach()


# -- DLPack -----------------------------------------------------------------------------------------------------------


@public(name="__dlpack__", function=False)
def export(input: Tensor, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
    """A capsule of DLPack with the tensor's memory. Raises BufferError for what is in a graph."""
    if input.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if not input.is_cuda and stream not in (-1, None):
        raise AssertionError("stream should be None on cpu.")
    extra = {} if max_version is None and dl_device is None and copy is None else {
        "max_version": max_version, "dl_device": dl_device, "copy": copy,
    }  # fmt: skip
    return input._array.__dlpack__(**extra)


@public(name="__dlpack_device__", function=False)
def export_device(input: Tensor) -> tuple[int, int]:
    """The kind of device on which the memory is, by DLPack's number, and which of them."""
    return (2, input.get_device()) if input.is_cuda else (1, 0)


@public(method=False)
def to_dlpack(input: Tensor) -> Any:
    """A capsule of DLPack with the tensor's memory, which one taker may have."""
    return export(input.detach())


# -- Old names --------------------------------------------------------------------------------------------------------


@public(method=False)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all dimensions but ``dim`` (-1: over all), which stay with size 1."""
    if dim == -1:
        return vector_norm(v, pow)
    others = [each for each in range(v.dim()) if each != dim % v.dim()]
    return vector_norm(v, pow, dim=others, keepdim=True) if others else v.abs()


@public(method=False)
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False, *, out: Any = None) -> Tensor:
    """``linalg.vector_norm(input, 2, dim, keepdim)``, by its old name."""
    _warn_of_norm("frobenius", "vector_norm(A, 2., dim, keepdim)")
    return vector_norm(input, 2, dim, keepdim)


@public(method=False)
def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """``linalg.matrix_norm(input, "nuc", dim, keepdim)``, by its old name."""
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
    """``view``, by its old name."""
    warn("non-inplace resize is deprecated")
    return _resized(input, sizes)


@public(function=False)
def resize_as(input: Tensor, tensor: Tensor) -> Tensor:
    """``view_as``, by its old name."""
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
