"""Let the n-th allocation of an array fail: NumPy's memory handler is replaced by one that returns no memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy

_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t
_MALLOC = ctypes.PYFUNCTYPE(_POINTER, _POINTER, _SIZE)
_CALLOC = ctypes.PYFUNCTYPE(_POINTER, _POINTER, _SIZE, _SIZE)


class _Handler(ctypes.Structure):
    """``PyDataMem_Handler`` of ``numpy/ndarraytypes.h``."""

    _fields_ = [
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", _POINTER), ("malloc", _POINTER),
        ("calloc", _POINTER), ("realloc", _POINTER), ("free", _POINTER),
    ]  # fmt: skip


def _function(index: int, *arguments: Any) -> Any:
    """Return the function at ``index`` of NumPy's C API."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.POINTER(_POINTER), (ctypes.py_object, ctypes.c_char_p)
    table = get(numpy._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    return ctypes.PYFUNCTYPE(ctypes.py_object, *arguments)(table[index])


class FailingAllocation:
    """Context manager in which allocation number ``n`` of an array fails with MemoryError; ``count`` counts them."""

    def __init__(self, n: int) -> None:
        self.n, self.count = n, 0
        self.set, get = _function(304, ctypes.py_object), _function(305)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = _POINTER, (ctypes.py_object, ctypes.c_char_p)
        usual = ctypes.cast(pointer(get(), b"mem_handler"), ctypes.POINTER(_Handler)).contents
        malloc, calloc = _MALLOC(usual.malloc), _CALLOC(usual.calloc)
        self.callbacks = (
            _MALLOC(lambda context, size: None if self.fails() else malloc(context, size)),
            _CALLOC(lambda context, count, size: None if self.fails() else calloc(context, count, size)),
        )
        self.handler = _Handler(
            b"failing",
            1,
            usual.context,
            *[ctypes.cast(each, _POINTER) for each in self.callbacks],
            usual.realloc,
            usual.free,
        )
        KEPT.append(self)  # an array refers to its handler as long as it lives
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (_POINTER, ctypes.c_char_p, _POINTER)
        self.capsule = make(ctypes.addressof(self.handler), b"mem_handler", None)

    def fails(self) -> bool:
        self.count += 1
        return self.count == self.n

    def run(self, act: Callable[[], Any]) -> bool:
        """Call ``act``; return whether it raised MemoryError."""
        before = self.set(self.capsule)
        try:
            act()
        except MemoryError:
            return True
        except RuntimeError as error:
            if "memory" in str(error):
                return True
            raise
        finally:
            self.set(before)
        return False


KEPT: list[FailingAllocation] = []
