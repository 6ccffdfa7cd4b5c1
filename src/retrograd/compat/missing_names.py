"""What is said about a name of PyTorch that retrograd does not have, and which names a module shows.

The finder ``ModuleCompletion`` gives every public module its ``__getattr__`` and ``__dir__`` when it has been executed; the finder
``MissingModules`` raises the error for missing modules, and ``UnsupportedAttribute`` that for methods of Tensor. The reasons are in
``compat/unsupported.py``. Parts that most programs do not need are loaded when first asked for (Note [Later]). Knows no operation.
"""

from __future__ import annotations

import importlib
import opcode
import os
import sys
from collections.abc import Callable
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from ..runtime import fp_warnings, user_frame
from .annotations import show_annotations
from .pickle_names import name_constructors
from .unsupported import reason

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Note [Absent on import]
# ``from torch import foo`` asks the module for ``foo``, throws our AttributeError away and raises an ImportError of
# Python's own, without the pointer to the page. Any other exception goes through, so for this statement the module raises
# the ImportError itself; for ``hasattr`` and ``getattr`` it must raise an AttributeError. Only the instruction under way
# tells them apart: no frame stands between, and code given to ``exec``, ``python -c`` or the prompt has no source to
# read. Its number comes from this Python's own table. Were it not found, the error would be Python's own, of the same type.
IMPORT_FROM = opcode.opmap.get("IMPORT_FROM")

#: Where the pages are: an installed package brings them, in a checkout they stand beside ``src``.
PAGES = next(
    (
        folder
        for folder in (os.path.join(_PACKAGE, "docs"), os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "docs"))
        if os.path.isfile(os.path.join(folder, "differences.md"))
    ),
    "docs",
)
PAGE = os.path.join(PAGES, "differences.md")


def torch_name(module_name: str) -> str:
    """The name under which a PyTorch program knows a module of the package.

    >>> torch_name("retrograd.nn.functional")
    'torch.nn.functional'
    """
    package, dot, rest = module_name.partition(".")
    return "torch" + dot + rest if package == "retrograd" else module_name


def why_missing(full_name: str) -> str:
    """What follows PyTorch's own message where a name is missing: why, and the page to read.

    >>> why_missing("torch.onnx.export")
    'left out of retrograd on purpose: compiling and exporting programs; see ...differences.md'
    >>> why_missing("torch.no_such_function")
    'not in retrograd; see ...differences.md'
    """
    what = reason(full_name.partition(".")[2])
    return f"left out of retrograd on purpose: {what}; see {PAGE}" if what else f"not in retrograd; see {PAGE}"


# Note [Later]
# Importing the package loads what every program needs: tensors, operations, autograd. Whatever else a module shows
# (``torch.nn``, ``torch.load``) it names in ``later``, and gets it when somebody asks: by an attribute, by ``from torch
# import nn``, or by an import of the module itself. From then on it is an ordinary attribute, so nobody sees a difference.
#
#     import retrograd as torch         # retrograd.nn is not loaded
#     torch.nn.Linear(2, 3)             # the module's __getattr__ loads it
_LATER: dict[str, dict[str, str]] = {}


def module_getattr(module_name: str, later: dict[str, str] | None = None) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a public module, which names what is missing and points to the page of differences.

    Args:
        module_name: of the module.
        later: names that come with a module below it, loaded when the first of them is asked for; the module's own name
            stands for itself: ``{"nn": "nn", "load": "serialization"}``. One that begins with a dot stands beside it.

    >>> __getattr__ = module_getattr("retrograd.fft")
    >>> __getattr__("nothing")
    Traceback (most recent call last):
    AttributeError: module 'torch.fft' has no attribute 'nothing' (not in retrograd; see ...differences.md)
    """
    torch_module = torch_name(module_name)
    coming = _LATER.setdefault(module_name, later or {})

    def __getattr__(name: str) -> Any:  # noqa: N807 - this is the name Python calls
        if name in coming:
            return _loaded(module_name, name, coming[name])
        message = f"module {torch_module!r} has no attribute {name!r}"
        # Python and its libraries ask modules for __path__, __wrapped__ and the like: that is nobody's mistake.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(message)
        why = why_missing(f"{torch_module}.{name}")
        caller = sys._getframe(1)
        if caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] == IMPORT_FROM:
            text = f"cannot import name {name!r} from {torch_module!r} ({why}){_meant(module_name, name)}"
            raise ImportError(text, name=torch_module)
        raise AttributeError(f"{message} ({why}){_meant(module_name, name)}", name=name)

    return __getattr__


def _meant(module_name: str, name: str) -> str:
    """The nearest name, which Python itself would show in a terminal and nowhere else, and not for an import."""
    from difflib import get_close_matches  # for those only who have misspelt something

    found = get_close_matches(name, dir(sys.modules.get(module_name)), 1, 0.8)
    return f". Did you mean: {found[0]!r}?" if found else ""


def _loaded(module_name: str, name: str, source: str) -> Any:
    """What a module shows as ``name``, from a module below or beside it; it is an attribute of the module from now on."""
    found: Any = importlib.import_module("." + source, module_name)
    if name != source:
        found = getattr(found, name)
        show_annotations([found])
        setattr(sys.modules[module_name], name, found)
    return found


class ModuleCompletion:
    """The first finder: it has modules of the package found by the other finders, and completes them.

    A module is marked as the package's before it is executed. After that, one with ``__all__`` that is not for internal
    use gets ``__dir__``, and ``__getattr__`` unless it has its own because it loads names later. The loader keeps its class,
    so that source and resources are found as ever.
    """

    def __init__(self, package: str) -> None:
        self.prefix = package + "."
        user_frame.mark_package()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec that the next finder returns, with a loader that completes the module."""
        if not fullname.startswith(self.prefix):
            return None
        others = [each for each in sys.meta_path if not isinstance(each, (ModuleCompletion, MissingModules))]
        found = (each.find_spec(fullname, path, target) for each in others if hasattr(each, "find_spec"))
        spec = next((each for each in found if each is not None), None)
        # Modules in a zip file share a loader.
        if spec is not None and "exec_module" not in getattr(spec.loader, "__dict__", {"exec_module": None}):
            spec.loader.exec_module = partial(_execute, spec.loader.exec_module)  # type: ignore[union-attr, method-assign]
        return spec


def _execute(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Execute a module of the package and complete it."""
    namespace = vars(module)
    namespace[user_frame.MARK] = True
    execute(module)
    if "__all__" in namespace and module.__name__.split(".")[1] not in INSIDE:
        namespace.setdefault("__getattr__", module_getattr(module.__name__))
        namespace["__dir__"] = module_dir(namespace)


class MissingModules:
    """The last finder of the modules of a package: of those without a file in ``table``, and of those that are missing.

    The error for a missing module names the page. ``table``: the module with the others, loaded when the first is
    imported; its function ``find`` returns their specs.
    """

    def __init__(self, package: str, table: str = "") -> None:
        self.package, self.table = package, table

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module of the table; raise ModuleNotFoundError in an import of any other."""
        if fullname.partition(".")[0] == self.package:
            found: ModuleSpec | None = (self.table and importlib.import_module(self.table).find(fullname)) or None
            if found is not None:
                return found
            # importlib has called; whoever called it says whether this is an import or only a question.
            asking = getattr(sys.modules.get("importlib.util"), "find_spec", None)
            if sys._getframe(2).f_code is not getattr(asking, "__code__", None):
                raise ModuleNotFoundError(f"No module named {fullname!r} ({why_missing(fullname)})", name=fullname)
        return None


#: What stands in the package for its own use.
INSIDE = (
    "cli", "compat", "core", "dispatch", "import_hook", "inspection", "kernels", "namespaces", "operations", "runner",
    "runtime",
)  # fmt: skip


def module_dir(namespace: dict[str, Any]) -> Callable[[], list[str]]:
    """Return the ``__dir__`` of a public module: its ``__all__`` and its public modules, not what it imports for its own use.

    >>> import retrograd.linalg
    >>> "publish" in vars(retrograd.linalg), "publish" in dir(retrograd.linalg), "svd" in dir(retrograd.linalg)
    (True, False, True)
    """
    _belongs(namespace)
    name_constructors(namespace)
    show_annotations(map(namespace.get, namespace["__all__"]))

    def __dir__() -> list[str]:  # noqa: N807 - this is the name Python calls
        named = {*namespace["__all__"], *(name for name, value in namespace.items() if _is_part(name, value))}
        named.update(name for name in _LATER[namespace["__name__"]] if name[0] != "_")
        return sorted(named | {name for name in namespace if name.startswith("__") and name.endswith("__")})

    return __dir__


#: Called after a public module has been loaded.
ON_LOAD: list[Callable[[], None]] = []


def _belongs(namespace: dict[str, Any]) -> None:
    """Mark a module that has been loaded, and make quiet what was loaded for a package or a part of the front door."""
    namespace[user_frame.MARK] = True
    for call in ON_LOAD:
        call()
    if "__path__" in namespace or namespace["__name__"].count(".") == 1:
        fp_warnings.silence_numpy_warnings()


def _is_part(name: str, value: Any) -> bool:
    """Whether ``value`` is a public module, under its own name."""
    parts = value.__name__.split(".") if isinstance(value, ModuleType) else []
    return len(parts) > 1 and parts[0] == "retrograd" and parts[1] not in INSIDE and parts[-1] == name


class UnsupportedAttribute:
    """Stands on a class for an attribute that is left out on purpose: asking for it says why.

    It has no ``__set__``, so that a program may still give its own tensors an attribute of that name. (A ``__getattr__``
    on Tensor would do too, but Python 3.11 reads every attribute of such a class slower.)

    >>> import retrograd as torch
    >>> torch.ones(2).to_sparse()
    Traceback (most recent call last):
    AttributeError: 'Tensor' object has no attribute 'to_sparse' (left out of retrograd on purpose: sparse tensors; ...
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        whose = f"type object {owner.__name__!r}" if instance is None else f"{owner.__name__!r} object"
        why = why_missing(f"torch.Tensor.{self.name}")
        found = owner if instance is None else instance
        raise AttributeError(f"{whose} has no attribute {self.name!r} ({why})", name=self.name, obj=found)


__all__ = [
    "PAGE",
    "ModuleCompletion",
    "UnsupportedAttribute",
    "module_getattr",
    "module_dir",
    "torch_name",
    "why_missing",
]
