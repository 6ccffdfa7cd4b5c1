"""``ndarray`` of the stand-in: a NumPy array that keeps CuPy's rules, and the count of synchronisations."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import Counter
from typing import Any

import ml_dtypes
import numpy

#: How often the host waited for the device: by what was called, and the line of the package that called it.
SYNCS: Counter[tuple[str, str]] = Counter()
#: How often a NumPy array was copied to the device, in the same way.
TRANSFERS: Counter[tuple[str, str]] = Counter()
BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
DTYPES = frozenset(map(numpy.dtype, "?bhilqBHILQefdFD")) | {BFLOAT16}
IMPLICIT = (
    "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
)


def place() -> str:
    """Return what called the stand-in: file, line and function, as ``retrograd/kernels/picking.py:85 place``."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if "cupy_stand_in" not in name and "/numpy/" not in name and "/scipy/" not in name:
            break
        frame = frame.f_back
    code = frame.f_code
    return f"{'/'.join(code.co_filename.split('/')[-3:])}:{frame.f_lineno} {code.co_name}"


def synchronise(what: str) -> None:
    """Count a synchronisation caused by ``what``, and call the function that CuPy calls before one."""
    SYNCS[what, place()] += 1
    module = sys.modules.get("cupy._core.syncdetect")
    if module is not None and not what.startswith(("Stream", "Event")):
        module._declare_synchronize()


# --- Memory ---------------------------------------------------------------------------------------------------------


class _Current(threading.local):
    device = 0


CURRENT = _Current()
#: The allocations that are alive, by the ``id`` of the NumPy array that owns the memory: (reference, device, memory).
ALLOCATIONS: dict[int, tuple[weakref.ref[Any], int, Any]] = {}
#: Bytes in use by device.
USED: Counter[int] = Counter()
#: The function ``cupy.cuda.alloc``, which ``cuda.py`` sets.
ALLOC: list[Any] = []


def owner(array: Any) -> Any:
    """Return the NumPy array that owns the memory of ``array``."""
    while isinstance(array.base, numpy.ndarray):
        array = array.base
    return array


def _allocated(array: numpy.ndarray[Any, Any]) -> int:
    """Return the device of the memory of ``array``; memory that is not yet known was allocated now."""
    base = owner(array)
    key = id(base)
    found = ALLOCATIONS.get(key)
    if found is not None:
        return found[1]
    device = CURRENT.device
    ALLOCATIONS[key] = (weakref.ref(base, lambda _: ALLOCATIONS.pop(key, None)), device, ALLOC[0](base.nbytes))
    return device


#: The arrays that own their memory, by the ``id`` of the NumPy array.
OWNERS: weakref.WeakValueDictionary[int, ndarray] = weakref.WeakValueDictionary()


class MemoryPointer:
    """``cupy.cuda.MemoryPointer``: the address of an element and what keeps the memory alive."""

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self._offset = mem, offset

    @property
    def ptr(self) -> int:
        return int(self.mem.ptr) + self._offset

    @property
    def device_id(self) -> int:
        return int(self.mem.device_id)

    @property
    def device(self) -> Any:
        return sys.modules["cupy"].cuda.Device(self.device_id)

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self._offset + offset)


class Memory:
    """One allocation, of the NumPy array ``base``."""

    def __init__(self, base: numpy.ndarray[Any, Any], device_id: int) -> None:
        self.base, self.device_id, self.size = base, device_id, base.nbytes
        self.ptr = base.__array_interface__["data"][0]


# --- Flags ------------------------------------------------------------------------------------------------------------


class Flags:
    """``ndarray.flags``: CuPy's have the layout and the owner, and no ``writeable``."""

    __slots__ = ("c_contiguous", "f_contiguous", "owndata")

    def __init__(self, flags: Any) -> None:
        self.c_contiguous, self.f_contiguous = bool(flags.c_contiguous), bool(flags.f_contiguous)
        self.owndata = bool(flags.owndata)

    @property
    def fnc(self) -> bool:
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        return self.f_contiguous or self.c_contiguous

    def __getitem__(self, name: str) -> bool:
        return bool(getattr(self, name.lower()))


# --- The array --------------------------------------------------------------------------------------------------------


class ndarray:
    """``cupy.ndarray``: its methods are added by ``functions.py``, from the names and signatures recorded from CuPy."""

    __module__ = "cupy"
    __slots__ = ("__weakref__", "_a", "_base", "_device")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]
    _a: numpy.ndarray[Any, Any]
    _base: ndarray | None
    _device: int

    def __new__(
        cls, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> ndarray:
        checked(numpy.dtype(dtype))
        if memptr is None:
            made = numpy.empty(shape, dtype, order) if strides is None else numpy.ndarray(shape, dtype, strides=strides)
            made = owner(made) if owner(made).shape == made.shape else made
            return wrap(made)
        whole = memptr.mem.base.reshape(-1).view(numpy.uint8) if memptr.mem.base.flags.c_contiguous else None
        if whole is None:
            whole = numpy.lib.stride_tricks.as_strided(memptr.mem.base.view(numpy.uint8), (memptr.mem.size,), (1,))
        start = memptr.ptr - whole.__array_interface__["data"][0]
        return wrap(numpy.ndarray(shape, dtype, whole, start, strides, order))  # type: ignore[arg-type]

    def __array__(self, *args: Any, **named: Any) -> Any:
        raise TypeError(IMPLICIT)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """CuPy takes over NumPy's ufuncs; a NumPy array among the arguments raises there."""
        cupy = sys.modules["cupy"]
        function = getattr(cupy, ufunc.__name__, None) or getattr(
            sys.modules["cupyx.scipy.special"], ufunc.__name__, None
        )
        if function is None:
            return NotImplemented
        out = named.get("out")
        if out is not None:
            if len(out) != 1:
                raise ValueError("The 'out' parameter must have exactly one array value")
            named["out"] = out[0]
        if method != "__call__":
            function = getattr(function, method)
        if ufunc.__name__ in ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"):
            inputs = tuple(
                each.item() if isinstance(each, numpy.ndarray) and each.ndim == 0 else each for each in inputs
            )
        return function(*inputs, **named)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        module: Any = sys.modules["cupy"]
        for part in function.__module__.split(".")[1:]:
            module = getattr(module, part, None)
        mine = getattr(module, function.__name__, None)
        if mine is None or not all(issubclass(each, (ndarray, numpy.ndarray)) for each in types):
            return NotImplemented
        return mine(*args, **named)

    # Conversions: each waits for the device.

    def __bool__(self) -> bool:
        synchronise("bool")
        return bool(self._a)

    def __int__(self) -> int:
        synchronise("int")
        return int(self._a)

    def __float__(self) -> float:
        synchronise("float")
        return float(self._a)

    def __complex__(self) -> complex:
        synchronise("complex")
        return complex(self._a)

    def item(self, *args: Any) -> Any:
        synchronise("item")
        return self._a.item(*args)

    def tolist(self) -> Any:
        synchronise("tolist")
        return self._a.tolist()

    def tobytes(self, order: str = "C") -> bytes:
        synchronise("tobytes")
        return self._a.tobytes(order)  # type: ignore[arg-type]

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        if blocking:
            synchronise("get")
        if out is None:
            return self._a.copy(order)  # type: ignore[call-overload]
        if self.dtype != out.dtype:
            raise TypeError(f"{out.dtype} array cannot be obtained from {self.dtype} array")
        if self.shape != out.shape:
            raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {out.shape}")
        out[...] = self._a
        return out

    def set(self, arr: Any, stream: Any = None) -> None:
        if not isinstance(arr, numpy.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if self.dtype != arr.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if self.shape != arr.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not (self._a.flags.c_contiguous or self._a.flags.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        TRANSFERS["set", place()] += 1
        self._a[...] = arr

    def __repr__(self) -> str:
        synchronise("repr")
        return repr(self._a)

    def __str__(self) -> str:
        synchronise("str")
        return str(self._a)

    def __format__(self, spec: str) -> str:
        synchronise("format")
        return format(self._a, spec)

    def __reduce__(self) -> Any:
        synchronise("pickle")
        return _rebuild, (self._a.copy(),)

    def __copy__(self) -> ndarray:
        return wrap(self._a.copy())

    def __deepcopy__(self, memo: Any) -> ndarray:
        return wrap(self._a.copy())

    def __len__(self) -> int:
        return len(self._a)

    def __iter__(self) -> Any:
        if not self._a.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self._a)))

    # Properties.

    shape = property(lambda self: self._a.shape, lambda self, value: setattr(self._a, "shape", value))
    dtype = property(lambda self: self._a.dtype)
    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    strides = property(lambda self: self._a.strides)
    itemsize = property(lambda self: self._a.itemsize)
    nbytes = property(lambda self: self._a.nbytes)
    flags = property(lambda self: Flags(self._a.flags))
    T = property(lambda self: wrap(self._a.T))
    mT = property(lambda self: wrap(self._a.mT))  # noqa: N815

    @property
    def real(self) -> ndarray:
        return wrap(self._a.real) if self._a.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        wrap(self._a.real)[...] = value

    @property
    def imag(self) -> ndarray:
        return wrap(self._a.imag if self._a.dtype.kind == "c" else numpy.zeros_like(self._a))

    @imag.setter
    def imag(self, value: Any) -> None:
        if self._a.dtype.kind != "c":
            raise TypeError("cupy.ndarray does not have imaginary part to set")
        wrap(self._a.imag)[...] = value

    @property
    def base(self) -> ndarray | None:
        """The array that owns the memory: one object for all its views, as in CuPy."""
        return self._base

    @property
    def device(self) -> Any:
        return sys.modules["cupy"].cuda.Device(self._device)

    @property
    def data(self) -> MemoryPointer:
        base = owner(self._a)
        memory = Memory(base, self._device)
        return MemoryPointer(memory, self._a.__array_interface__["data"][0] - memory.ptr)

    @property
    def flat(self) -> Any:
        return self._a.flat

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        found = dict(self._a.__array_interface__)
        return {**found, "version": 3, "stream": 1, "data": (found["data"][0], False)}

    # Exchange.

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        if dl_device is None or tuple(dl_device) == self.__dlpack_device__():
            if copy is True:
                raise BufferError("copy=True only supported for copy to CPU.")
        elif tuple(dl_device) == (1, 0):
            if copy is False:
                raise ValueError("GPU memory cannot be exported to CPU without copy.")
            synchronise("__dlpack__")
            return self._a.copy().__dlpack__(max_version=max_version)
        else:
            raise BufferError("unsupported device requested.")
        if isinstance(stream, int) and stream < -1:
            raise ValueError(
                "On CUDA, the valid stream for the DLPack protocol is -1, 1, 2, or any larger value, but "
                f"{stream} was provided"
            )
        return self._a.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self._device

    # Indices.

    def __getitem__(self, key: Any) -> ndarray:
        advanced = prepared(key, self._a.shape)
        if advanced is None:
            parts = key if isinstance(key, tuple) else (key,)
            whole = any(each is Ellipsis for each in parts)
            return wrap(self._a[parts if whole else (*parts, ...)])  # a view, also of one element
        if advanced.masks:
            synchronise("boolean index")
        return wrap(numpy.asarray(self._a[advanced.key]))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, numpy.ndarray):
            raise TypeError(f"Unsupported type {type(value)}")
        advanced = prepared(key, self._a.shape)
        if advanced is not None and advanced.masks:
            synchronise("boolean index")  # the number of true elements is read, also to write one number
        if isinstance(value, (list, tuple)):
            raise TypeError(f"Unsupported type {type(value)}")
        given = value._a if isinstance(value, ndarray) else value
        if not isinstance(value, (ndarray, bool, int, float, complex, numpy.generic)):
            raise TypeError(f"Unsupported type {type(value)}")
        if isinstance(given, (complex, numpy.complexfloating)) and self._a.dtype.kind != "c":
            raise TypeError(f"Cannot cast scalar from complex128 to {self._a.dtype}")
        if isinstance(value, ndarray) and given.dtype.kind == "c" and self._a.dtype.kind != "c":
            given = given.real
        with numpy.errstate(all="ignore"):
            if advanced is not None and isinstance(given, numpy.ndarray) and given.ndim and advanced.masks:
                # CuPy broadcasts the value to the shape of what is selected.
                given = numpy.broadcast_to(given, self._a[advanced.key].shape)
            self._a[key if advanced is None else advanced.key] = given

    def __delitem__(self, key: Any) -> None:
        raise ValueError("cannot delete array elements")

    def __contains__(self, value: Any) -> bool:
        synchronise("in")
        return bool((self._a == unwrap(value)).any())


def _rebuild(array: Any) -> ndarray:
    return wrap(numpy.asarray(array).copy())


class Advanced:
    """An index with arrays: NumPy's key for it, whether it has masks, and the number of its arrays."""

    __slots__ = ("count", "key", "masks")

    def __init__(self, key: Any, masks: bool, count: int) -> None:
        self.key, self.masks, self.count = key, masks, count


def prepared(key: Any, shape: tuple[int, ...]) -> Advanced | None:
    """Return the key with arrays of ``self._a``; None if it has none.

    Indices beyond the bounds do not raise: CuPy takes them modulo the size.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    arrays = 0
    for at, each in enumerate(parts):
        if each is None or each is Ellipsis or isinstance(each, slice):
            if isinstance(each, slice) and any(
                isinstance(part, ndarray) for part in (each.start, each.stop, each.step)
            ):
                raise TypeError("slice indices must be integers or None or have an __index__ method")
            continue
        if isinstance(each, (int, numpy.integer)) and not isinstance(each, bool):
            continue
        if isinstance(each, ndarray):
            parts[at] = each._a
        else:
            if isinstance(each, numpy.ndarray):
                TRANSFERS["index", place()] += 1
            parts[at] = numpy.asarray(each)
            if not parts[at].size and isinstance(each, (list, tuple)):
                parts[at] = parts[at].astype(numpy.int32)
        if parts[at].dtype.kind not in "biu":
            raise IndexError(
                f"arrays used as indices must be of integer or boolean type (actual: {parts[at].dtype.type})"
            )
        arrays += 1
    if not arrays:
        return None
    used = sum(
        (each.ndim if isinstance(each, numpy.ndarray) and each.dtype.kind == "b" else each is not None)
        for each in parts
        if each is not Ellipsis
    )
    axis, masks = 0, False
    for at, each in enumerate(parts):
        if each is Ellipsis:
            axis = len(shape) - used + axis
        elif isinstance(each, numpy.ndarray):
            if each.dtype.kind == "b":
                masks = True
                axis += each.ndim
            else:
                if axis < len(shape) and shape[axis]:
                    parts[at] = each % numpy.int64(shape[axis])
                axis += 1
        elif each is not None:
            axis += 1
    return Advanced(tuple(parts), masks, arrays)


def checked(dtype: Any) -> None:
    """Raise ValueError for a dtype that CuPy does not have."""
    if dtype not in DTYPES:
        raise ValueError(f"Unsupported dtype {dtype}")


def wrap(array: Any) -> ndarray:
    """Return the stand-in's array on the memory of the NumPy array ``array``."""
    if type(array) is not numpy.ndarray:
        array = numpy.asarray(array)
    checked(array.dtype)
    if not array.flags.writeable:
        array = writable(array)
    self = object.__new__(ndarray)
    self._a = array
    self._device = _allocated(array)
    self._base = None
    if isinstance(array.base, numpy.ndarray):
        own = owner(array)
        found = OWNERS.get(id(own))
        self._base = wrap(own) if found is None else found
    else:
        OWNERS[id(array)] = self
    return self


def writable(array: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Return a view that may be written to, as CuPy has no other."""
    try:
        view = array.view()
        view.setflags(write=True)
    except ValueError:  # memory of another owner
        return array.copy()
    return view


def unwrap(value: Any) -> Any:
    """Return ``value`` with the stand-in's arrays in it replaced by their NumPy arrays."""
    kind = type(value)
    if kind is ndarray:
        if value._device != CURRENT.device:
            raise ValueError(
                f"The device where the array resides ({value._device}) is different from the current device "
                f"({CURRENT.device}). Peer access is unavailable between these devices."
            )
        return value._a
    if kind is tuple or kind is list:
        return kind([unwrap(each) for each in value])
    return value


def rewrap(result: Any) -> Any:
    """Return a result of NumPy with the stand-in's arrays; 0-d results stay arrays."""
    if isinstance(result, (numpy.ndarray, numpy.generic)):
        return wrap(result)
    if isinstance(result, tuple):
        return type(result)(*map(rewrap, result)) if hasattr(result, "_fields") else tuple(map(rewrap, result))
    if isinstance(result, list):
        return [rewrap(each) for each in result]
    return result
