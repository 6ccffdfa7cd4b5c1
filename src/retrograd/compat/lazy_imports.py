"""Loading of parts of retrograd on demand, and completion of its public modules.

The import finder ``ModuleCompletion`` gives every public module its ``__getattr__`` and ``__dir__`` once the module has been
executed.

Note [Loading on demand]. Importing retrograd loads what every program needs: tensors, operations, autograd. A module
lists its other names (``torch.nn``, ``torch.load``) in a table, and loads a part when a program first reads such a
name: as an attribute, by ``from torch import nn``, or by importing the module itself. From then on the name is an
ordinary attribute of the module.

    import retrograd as torch         # retrograd.nn is not loaded
    torch.nn.Linear(2, 3)             # the module's __getattr__ loads it
"""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..runtime import forks, fp_warnings, user_frame
from .annotations import show_annotations
from .missing_names import MissingModules, missing_name_error
from .pickle_names import name_constructors

#: For each module, the names that it loads on demand, and the module with which each comes.
_LATER: dict[str, dict[str, str]] = {}


def module_getattr(module_name: str, later: dict[str, str] | None = None) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a public module, which loads names on demand and raises errors for missing names.

    Args:
        module_name: Name of the module.
        later: Mapping from names to the submodules that define them, each loaded when the first of its names is read. A
            submodule maps to itself: ``{"nn": "nn", "load": "serialization"}``. A leading dot means a sibling module.

    >>> __getattr__ = module_getattr("retrograd.fft")
    >>> __getattr__("nothing")
    Traceback (most recent call last):
    AttributeError: module 'torch.fft' has no attribute 'nothing' (not in retrograd; see ...differences.md)
    """
    lazy_names = _LATER.setdefault(module_name, later or {})

    def __getattr__(name: str) -> Any:  # noqa: N807 - this is the name Python calls
        if name in lazy_names:
            return _load(module_name, name, lazy_names[name])
        raise missing_name_error(module_name, name, sys._getframe(1))

    return __getattr__


def _load(module_name: str, name: str, source: str) -> Any:
    """Import the submodule ``source`` of the module ``module_name``, and return its attribute ``name``.

    If ``name`` equals ``source``, the submodule itself is returned. The returned object also becomes an attribute of
    the module ``module_name``, so that this function is called only once for each name.
    """
    with nullcontext() if getattr(_thread, "executing", 0) else _loading:
        value: Any = importlib.import_module("." + source, module_name)
        if name != source:
            value = getattr(value, name)
            show_annotations([value])
            setattr(sys.modules[module_name], name, value)
    return value


def load_part(name: str) -> Any:
    """Return the submodule ``name`` of the package, which is imported if it is not loaded.

    Modules of the lower layers call this function to use a part that is loaded on demand. A later call takes 0.05 µs,
    ``importlib.import_module`` 0.6.
    """
    found = _parts.get(name)
    if found is None:
        found = _parts[name] = importlib.import_module(f"{__package__.partition('.')[0]}.{name}")
    return found


#: The modules that :func:`load_part` has returned, by name.
_parts: dict[str, ModuleType] = {}


class MethodOnDemand:
    """Descriptor for a method that the submodule ``part`` sets as an attribute of the class when it is imported.

    The submodule is imported when the method is called, or read from the class: libraries test any object for
    attributes such as ``values``.
    """

    def __init__(self, name: str, part: str) -> None:
        self.name, self.part = name, part

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            load_part(self.part)
            return getattr(owner, self.name)
        return partial(self, instance)

    def __call__(self, instance: Any, *args: Any, **kwargs: Any) -> Any:
        load_part(self.part)
        return getattr(instance, self.name)(*args, **kwargs)


#: Held while a part is loaded on demand. Python locks each module by itself; when two threads load modules that import
#: each other, it avoids the deadlock by giving one of them a module that is not complete. A thread that executes a
#: module already holds locks of modules, for which the holder of this lock may wait, so it does not wait for this one.
_loading = threading.RLock()
_thread = threading.local()

forks.replace_in_child(sys.modules[__name__], "_loading")


class ModuleCompletion:
    """Import finder for the modules of retrograd, which adds functions to public modules after their import.

    A public module with ``__all__`` gets a function ``__dir__``. It also gets a function ``__getattr__``, unless the
    module defines this function. In addition, each module is marked as part of retrograd before it is executed, so that
    tracebacks leave out its frames.

    This finder is the first in ``sys.meta_path``, and calls the other finders to locate the module. The loader keeps
    its class, so that source code and resources are found as usual.
    """

    def __init__(self, package: str) -> None:
        self.prefix = package + "."
        user_frame.mark_package()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the ModuleSpec of the module ``fullname``, as found by the other import finders.

        The method ``exec_module`` of its loader is replaced by :func:`_execute`. The result is None for a module that
        is not in retrograd, or that no finder locates.
        """
        if not fullname.startswith(self.prefix):
            return None
        others = [each for each in sys.meta_path if not isinstance(each, (ModuleCompletion, MissingModules))]
        specs = (each.find_spec(fullname, path, target) for each in others if hasattr(each, "find_spec"))
        spec = next((each for each in specs if each is not None), None)
        # Modules in a zip file share a loader.
        if spec is not None and "exec_module" not in getattr(spec.loader, "__dict__", {"exec_module": None}):
            spec.loader.exec_module = partial(_execute, spec.loader.exec_module)  # type: ignore[union-attr, method-assign]
        return spec


def _execute(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Execute ``module``, a module of retrograd, and add ``__getattr__`` and ``__dir__`` if it is public.

    ``execute`` is the function ``exec_module`` of the module's loader. The garbage collector is off meanwhile, because
    an import creates many objects and hardly any garbage: 100 collections would make ``import retrograd`` 20 % slower.
    """
    namespace = vars(module)
    namespace[user_frame.MARK] = True
    collecting = gc.isenabled()  # not in an import that another one has caused
    gc.disable()
    _thread.executing = getattr(_thread, "executing", 0) + 1
    try:
        execute(module)
    finally:
        _thread.executing -= 1
        if collecting:
            gc.enable()
    if "__all__" in namespace and module.__name__.split(".")[1] not in INTERNAL:
        namespace.setdefault("__getattr__", module_getattr(module.__name__))
        namespace["__dir__"] = module_dir(namespace)
    # The package silences the modules that it imports at its end, because the scan takes 0.2 ms.
    if not (_thread.executing or fp_warnings.initializing(sys.modules[__package__.partition(".")[0]])):
        fp_warnings.silence_numpy_warnings(module)


#: Folders of the package for internal use. They are no attributes of the package.
FOLDERS = ("compat", "core", "dispatch", "inspection", "kernels", "operations", "runtime")
#: Everything in the package for internal use.
INTERNAL = (
    *FOLDERS,
    "cli",
    "import_hook",
    "ipython_extension",
    "libraries",
    "namespaces",
    "private_names",
    "runner",
    "stubs",
)


def hide_folders(package: ModuleType) -> None:
    """Remove the internal folders (:data:`FOLDERS`) from the attributes of the package.

    Python's import system has added these attributes. PyTorch has no ``torch.core`` or ``torch.kernels``, and programs
    test for names with ``hasattr``. Imports of modules in these folders still work, because Python finds a loaded
    package in ``sys.modules``.
    """
    for folder in FOLDERS:
        importlib.import_module(f"{package.__name__}.{folder}")  # if a program loaded it later, it would be set again
        vars(package).pop(folder, None)


def module_dir(namespace: dict[str, Any]) -> Callable[[], list[str]]:
    """Return the ``__dir__`` function of the public module whose namespace is ``namespace``.

    The function lists the names in ``__all__`` and public submodules, but not the names that the module imports.

    >>> import retrograd.linalg
    >>> "publish" in vars(retrograd.linalg), "publish" in dir(retrograd.linalg), "svd" in dir(retrograd.linalg)
    (True, False, True)
    """
    lazy_names = _LATER[namespace["__name__"]]
    _complete(namespace)
    name_constructors(namespace)
    show_annotations(map(namespace.get, namespace["__all__"]))

    def __dir__() -> list[str]:  # noqa: N807 - this is the name Python calls
        names = {*namespace["__all__"], *(name for name, value in namespace.items() if _is_part(name, value))}
        names.update(name for name in lazy_names if name[0] != "_")
        return sorted(names | {name for name in namespace if name.startswith("__") and name.endswith("__")})

    return __dir__


#: Functions called after a public module has been loaded.
ON_LOAD: list[Callable[[], None]] = []


def _complete(namespace: dict[str, Any]) -> None:
    """Mark a module that has been loaded as part of retrograd; if it is the package, silence NumPy's warnings.

    ``namespace`` is the namespace of the module. Tracebacks leave out the frames of marked modules.
    """
    namespace[user_frame.MARK] = True
    for call in ON_LOAD:
        call()
    if "." not in namespace["__name__"]:
        fp_warnings.silence_numpy_warnings()


def _is_part(name: str, value: Any) -> bool:
    """Whether ``value`` is a public module of retrograd whose full name ends in ``.`` and ``name``."""
    parts = value.__name__.split(".") if isinstance(value, ModuleType) else []
    return len(parts) > 1 and parts[0] == "retrograd" and parts[1] not in INTERNAL and parts[-1] == name


__all__ = ["MethodOnDemand", "ModuleCompletion", "hide_folders", "load_part", "module_dir", "module_getattr"]
