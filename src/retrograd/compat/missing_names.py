"""Errors for names of PyTorch that retrograd does not have.

``module_getattr`` (``compat/lazy_imports.py``) raises the errors for attributes of modules, ``MissingModules`` for
modules, and ``UnsupportedAttribute`` for methods of Tensor. The reasons are in ``compat/unsupported.py``.
"""

from __future__ import annotations

import importlib
import inspect
import opcode
import os
import sys
import warnings
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from types import FrameType
from typing import Any, NoReturn

from .unsupported import reason

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Note [Missing names in from-imports]. ``from torch import foo`` calls the module's ``__getattr__``. Python then
# discards an AttributeError and raises its own ImportError, without the pointer to the page. Any other exception passes
# through, so the module itself raises the ImportError for this statement, and an AttributeError for ``hasattr`` and
# ``getattr``. Only the bytecode instruction that the calling frame is executing tells the two apart: no other frame is
# between, and code passed to ``exec``, ``python -c`` or the prompt has no source. The instruction's number comes from
# the running Python's own table; without it, Python raises its own error, which has the same type.
#
#     from torch import onnx     # before: ImportError: cannot import name 'onnx' from 'retrograd' (.../__init__.py)
#                                # after: ImportError: cannot import name 'onnx' from 'torch' (left out of ...)
IMPORT_FROM = opcode.opmap.get("IMPORT_FROM")

#: The folder of the documentation: inside an installed package, beside ``src`` in a checkout.
DOCS_FOLDER = next(
    (
        folder
        for folder in (os.path.join(_PACKAGE, "docs"), os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "docs"))
        if os.path.isfile(os.path.join(folder, "differences.md"))
    ),
    "docs",
)
DIFFERENCES_PAGE = os.path.join(DOCS_FOLDER, "differences.md")


def torch_name(module_name: str) -> str:
    """Return PyTorch's name for the retrograd module ``module_name``.

    >>> torch_name("retrograd.nn.functional")
    'torch.nn.functional'
    """
    package, dot, rest = module_name.partition(".")
    return "torch" + dot + rest if package == "retrograd" else module_name


def why_missing(full_name: str) -> str:
    """Return the text that errors append to PyTorch's message for the missing name ``full_name``.

    The text has the reason and the address of the page about differences from PyTorch.

    >>> why_missing("torch.onnx.export")
    'left out of retrograd on purpose: compiling and exporting programs; see ...differences.md'
    >>> why_missing("torch.no_such_function")
    'not in retrograd; see ...differences.md'
    """
    what = reason(full_name.partition(".")[2])
    return (
        f"left out of retrograd on purpose: {what}; see {DIFFERENCES_PAGE}"
        if what
        else f"not in retrograd; see {DIFFERENCES_PAGE}"
    )


def missing_name_error(module_name: str, name: str, frame: FrameType) -> AttributeError | ImportError:
    """Return the error for the missing attribute ``name`` of the module ``module_name``.

    ``frame`` is the frame of the code that reads the attribute. For ``from module import name``, the error is an
    ImportError (see Note [Missing names in from-imports]), otherwise an AttributeError. The caller raises the error, so
    that tracebacks show only one frame of retrograd.
    """
    torch_module = torch_name(module_name)
    message = f"module {torch_module!r} has no attribute {name!r}"
    # Python and its libraries read __path__, __wrapped__ and the like from any module: such a name needs no
    # explanation.
    if name.startswith("__") and name.endswith("__"):
        return AttributeError(message)
    why = why_missing(f"{torch_module}.{name}")
    if frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == IMPORT_FROM:
        if f"{module_name}.{name}" in sys.modules:  # an internal package: Python takes it from there
            return AttributeError(message)
        text = f"cannot import name {name!r} from {torch_module!r}{_suggestion(module_name, name) or f' ({why})'}"
        return ImportError(text, name=torch_module)
    return AttributeError(f"{message}{_suggestion(module_name, name) or f' ({why})'}", name=name)


def _suggestion(module_name: str, name: str) -> str:
    """Return a hint with the most similar name in the module ``module_name``, or an empty string if there is none.

    A name that is left out on purpose is not misspelt, so it gets no hint. Python itself shows such a hint only for an
    uncaught AttributeError in a terminal, and not for an ImportError.
    """
    if reason(f"{torch_name(module_name)}.{name}".partition(".")[2]):
        return ""
    from difflib import get_close_matches  # only misspelt names need it

    similar = get_close_matches(name, dir(sys.modules.get(module_name)), 1, 0.8)
    return f". Did you mean: {similar[0]!r}?" if similar else ""


class MissingModules:
    """Last of the import finders, which raises an error for a module of PyTorch that retrograd does not have.

    The error message contains the address of the page about differences from PyTorch. ``package`` is the name of the
    package. ``table`` is the name of a module that defines those submodules of the package that have no file. Its
    function ``find`` returns the ModuleSpec of such a submodule, or None. The module ``table`` is imported at the first
    search.
    """

    def __init__(self, package: str, table: str = "") -> None:
        self.package, self.table = package, table

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the ModuleSpec of ``fullname``, if retrograd has this module without a file for it.

        If retrograd does not have the module, the result depends on the caller. An import raises ModuleNotFoundError. A
        search by ``importlib.util.find_spec`` returns None. The result is also None for modules of other packages.
        """
        if fullname.partition(".")[0] == self.package:
            spec: ModuleSpec | None = (self.table and importlib.import_module(self.table).find(fullname)) or None
            if spec is not None:
                return spec
            # The caller is importlib; its own caller tells an import from a search by importlib.util.find_spec.
            searching = getattr(sys.modules.get("importlib.util"), "find_spec", None)
            if sys._getframe(2).f_code is not getattr(searching, "__code__", None):
                raise ModuleNotFoundError(f"No module named {fullname!r} ({why_missing(fullname)})", name=fullname)
        return None


class UnsupportedAttribute:
    """Descriptor for an attribute that is left out on purpose: reading it raises an AttributeError with the reason.

    The descriptor has no ``__set__``, so a program may set an attribute of that name on its own tensors. A
    ``__getattr__`` on Tensor would have the same effect, but Python 3.11 reads every attribute of a class with
    ``__getattr__`` more slowly.

    >>> import retrograd as torch
    >>> torch.ones(2).dequantize()
    Traceback (most recent call last):
    AttributeError: 'Tensor' object has no attribute 'dequantize' (left out of retrograd on purpose: quantized tensors; ...
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        subject = f"type object {owner.__name__!r}" if instance is None else f"{owner.__name__!r} object"
        why = why_missing(f"torch.Tensor.{self.name}")
        obj = owner if instance is None else instance
        raise AttributeError(f"{subject} has no attribute {self.name!r} ({why})", name=self.name, obj=obj)


def without_unsupported(cls: type, names: Iterable[str]) -> list[str]:
    """Return ``names``, attributes of the class ``cls``, without those whose read raises (``UnsupportedAttribute``)."""
    return [name for name in names if not isinstance(inspect.getattr_static(cls, name, None), UnsupportedAttribute)]


def readable(value: object, names: Iterable[str]) -> list[str]:
    """Return ``names``, attributes of ``value``, without the properties whose read raises an exception."""
    found = []
    for name in names:
        if isinstance(inspect.getattr_static(type(value), name, None), property):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    getattr(value, name)
            except Exception:
                continue
        found.append(name)
    return found


__all__ = [
    "DIFFERENCES_PAGE",
    "UnsupportedAttribute",
    "missing_name_error",
    "readable",
    "torch_name",
    "why_missing",
    "without_unsupported",
]
