"""NumPy's warnings about what floats do (``log(0)``) are not shown: the result says it. Knows no operation.

# Note [Quiet modules]
NumPy warns of a division by zero, an overflow or a NaN in the name of the Python frame that called it. That would be
one of ours, and a program that asks for warnings (``warnings.simplefilter("always")``) would be told of our insides.
A filter for our modules is no help, as the program's own stands before it; ``numpy.errstate`` around every call would
cost a quarter of the call; and what NumPy says elsewhere in the program is the program's business. But Python drops a
warning given in a frame whose globals say ``__name__ = None``: so a module has no name at the end of its life (see
``warn_explicit`` in CPython's ``_warnings.c``). So the modules that compute, and the functions that are generated, have
that in their globals once they are imported; to everybody else a module's name is what it was.

    warnings.simplefilter("always")
    torch.log(torch.zeros(1))           # before: <log>:12: RuntimeWarning: divide by zero encountered in log
    numpy.log(numpy.zeros(1))           # before and after: RuntimeWarning: divide by zero encountered in log

PyTorch's own warnings are given in the name of the user's line (``where.warn``), and shown.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import numpy

#: The parts of the package that call NumPy.
COMPUTING = tuple(
    f"retrograd.{folder}." for folder in ("runtime", "compat", "core", "kernels", "dispatch", "operations")
)
#: What Numba compiles: it warns of nothing, and what is kept of it on disk is found again by the module's name.
COMPILED = "retrograd.kernels.numba."


class SilencedModule(ModuleType):
    """A module whose globals hold None where its name was."""

    __name__ = property(lambda module: module.__spec__.name)


def silence_numpy_warnings() -> None:
    """Make quiet what has been imported of the package, to its end (the classes of a module need its name)."""
    for name, module in list(sys.modules.items()):
        computes = name.startswith(COMPUTING) and not name.startswith(COMPILED)
        if computes and module is not None and not getattr(module.__spec__, "_initializing", False):
            module.__class__ = SilencedModule
            module.__dict__["__name__"] = None


class _Errstate:
    """How NumPy handles floating-point errors, by what it says of that in public."""

    def get(self) -> Any:
        return numpy.geterr()

    def set(self, kinds: Any) -> None:
        numpy.seterr(**kinds)


def _handling() -> tuple[ContextVar[Any] | _Errstate, Any]:
    """What holds how NumPy handles floating-point errors (``get``, ``set``), and the value with which it ignores them."""
    try:
        from numpy._core import umath

        return umath._extobj_contextvar, umath._make_extobj(all="ignore")
    except (ImportError, AttributeError):  # names that NumPy may change
        return _Errstate(), dict.fromkeys(numpy.geterr(), "ignore")


#: ``errors.set(IGNORED)`` and ``errors.set(before)``: a tenth of the time of ``with numpy.errstate(all="ignore")``.
errors, IGNORED = _handling()
