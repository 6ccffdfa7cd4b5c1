"""Suppression of NumPy's floating-point warnings in retrograd's modules.

PyTorch computes ``log(0)`` without a warning; only the result, ``-inf``, shows the division by zero.

Note [Silenced modules]. NumPy attributes a warning (division by zero, overflow, NaN) to the Python frame that called
it, which is a frame of retrograd. A program with ``warnings.simplefilter("always")`` would see warnings about our
internals. Three remedies fail: a filter for our modules comes after the program's own filter, ``numpy.errstate`` costs
a quarter of each call, and a global setting would suppress warnings of the program's own NumPy calls. But Python drops
a warning from a frame whose globals have ``__name__ = None``, as those of a module have during interpreter shutdown
(see ``warn_explicit`` in CPython's ``_warnings.c``). So the modules that compute, and the generated functions, get
``__name__ = None`` in their globals once they are imported; the attribute ``__name__`` of the module still returns its
name.

    warnings.simplefilter("always")
    torch.log(torch.zeros(1))           # before: <log>:12: RuntimeWarning: divide by zero encountered in log
    numpy.log(numpy.zeros(1))           # before and after: RuntimeWarning: divide by zero encountered in log

PyTorch's own warnings are attributed to the user's line (``user_frame.warn``) and shown.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from .typing import ErrorHandling

#: Prefixes of the names of modules that call NumPy.
COMPUTING = tuple(
    f"retrograd.{folder}." for folder in ("runtime", "compat", "core", "kernels", "dispatch", "operations")
)
#: Modules compiled by Numba keep their name: they do not warn, and Numba's cache on disk is keyed by it. Those that call
#: CuPy keep it, because CuPy does not warn.
COMPILED = "retrograd.kernels.numba.", "retrograd.kernels.cuda."


class SilencedModule(ModuleType):
    """Module whose globals have None for ``__name__``.

    Python drops warnings from such a module (see Note [Silenced modules]).
    """

    __name__ = property(lambda module: module.__spec__.name)


def silence_numpy_warnings(executed: ModuleType | None = None) -> None:
    """Silence NumPy's warnings in the modules of retrograd that have been imported completely, and in ``executed``.

    ``executed`` is a module whose code has run, but whose import has not finished. Another module that is still being
    imported cannot be silenced, because class definitions in it need the module's name.
    """
    for name, module in list(sys.modules.items()):
        computes = name.startswith(COMPUTING) and not name.startswith(COMPILED)
        if computes and module is not None and (module is executed or not initializing(module)):
            module.__class__ = SilencedModule
            module.__dict__["__name__"] = None


def initializing(module: ModuleType) -> bool:
    """Return whether ``module`` is still being imported."""
    return getattr(module.__spec__, "_initializing", False)


class _Errstate:
    """Substitute for NumPy's private context variable of floating-point error handling, for a NumPy without it.

    The methods have the names of a context variable's methods, and call ``numpy.geterr`` and ``numpy.seterr``.
    """

    def get(self) -> ErrorHandling:
        return numpy.geterr()

    def set(self, kinds: ErrorHandling) -> None:
        numpy.seterr(**kinds)


def _error_handling() -> tuple[ContextVar[ErrorHandling] | _Errstate, ErrorHandling]:
    """Return an object that sets NumPy's floating-point error handling, and the setting that ignores all errors.

    ``object.get()`` returns the present setting, and ``object.set(setting)`` changes it. The object is NumPy's private
    context variable, or an :class:`_Errstate` if this NumPy has no such variable.
    """
    try:
        from numpy._core import umath

        return umath._extobj_contextvar, umath._make_extobj(all="ignore")
    except (ImportError, AttributeError):  # private names of NumPy, which may change
        return _Errstate(), dict.fromkeys(numpy.geterr(), "ignore")


#: ``errors.set(IGNORED)`` and ``errors.set(before)`` take a tenth of the time of ``with numpy.errstate(all="ignore")``.
errors, IGNORED = _error_handling()
#: NumPy's error handling when the package is imported; `errors.get() is USUAL` as long as the program changes nothing.
USUAL = errors.get()
