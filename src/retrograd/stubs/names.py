"""The public modules, their names, and the module in which each class and function is declared."""

from __future__ import annotations

import builtins
import importlib
import inspect
import warnings
from functools import cache
from types import ModuleType

from ..compat.lazy_imports import INTERNAL

ROOT = __name__.partition(".")[0]
#: Public modules that are not attributes of the package: programs import them.
UNLISTED = ("extend", "import_hook", "distributed.checkpoint.format_utils", "distributed.checkpoint.state_dict")
#: Internal classes, and the public classes in their place.
STAND_INS = {"retrograd.core.graph.Node": "retrograd.autograd.graph.Node"}


def is_module(value: object) -> bool:
    """Whether ``value`` is a module of the package."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] == ROOT


@cache
def modules() -> dict[str, ModuleType]:
    """Return the public modules by name, each before its submodules: those with ``__all__`` that an attribute leads to."""
    found: dict[str, ModuleType] = {}

    def visit(name: str) -> None:
        module = importlib.import_module(name)
        if "__all__" not in vars(module) or name.split(".")[1:2] in [[each] for each in INTERNAL]:
            return
        found[name] = module
        for each in dir(module):
            value = _attribute(module, each)
            if each[:1] != "_" and is_module(value) and getattr(value, "__name__", "") == f"{name}.{each}":
                visit(f"{name}.{each}")

    visit(ROOT)
    for each in UNLISTED:
        found[f"{ROOT}.{each}"] = importlib.import_module(f"{ROOT}.{each}")
    return found


def _attribute(module: ModuleType, name: str) -> object:
    """Return an attribute of a module, without warnings about deprecated names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(module, name, None)


def is_package(module: str) -> bool:
    """Whether the stub of a module is a folder: the module has a submodule with a stub, or is a package."""
    return hasattr(modules()[module], "__path__") or any(each.startswith(f"{module}.") for each in modules())


@cache
def contents(module: str) -> dict[str, object]:
    """Return the public names of a module and their values, submodules without a stub left out."""
    space = modules()[module]
    listed = sorted({*dir(space), *vars(space)["__all__"]} if "__all__" in vars(space) else _defined(space))
    found = {name: _attribute(space, name) for name in listed if name[:1] != "_" or name == "__version__"}
    return {
        name: value
        for name, value in found.items()
        if not isinstance(value, ModuleType)
        or value.__name__ == f"{module}.{name}" in modules()
        or value.__name__ in modules()
    }


def _defined(module: ModuleType) -> list[str]:
    """Return the names of the functions and classes that a module defines."""
    return [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]


def documentation(module: str) -> str:
    """Return the docstring of a module."""
    return inspect.getdoc(modules()[module]) or ""


def torch_name(module: str) -> str:
    """Return the name of a module as PyTorch has it: ``torch.nn`` for ``retrograd.nn``."""
    return module.replace(ROOT, "torch", 1)


@cache
def _homes() -> dict[int, tuple[str, str]]:
    """Return the module and the name under which each public class and function is declared, by its id."""
    candidates: dict[int, list[tuple[str, str]]] = {}
    values: dict[int, object] = {}
    for module in modules():
        for name, value in contents(module).items():
            if isinstance(value, type) or inspect.isroutine(value):
                candidates.setdefault(id(value), []).append((module, name))
                values[id(value)] = value

    def rank(value: object, candidate: tuple[str, str]) -> tuple[object, ...]:
        module, name = candidate
        own = str(getattr(value, "__module__", ""))
        said = own.replace("torch", ROOT, 1) if own.partition(".")[0] == "torch" else own
        return (getattr(value, "__name__", "") != name, module != said, module.count("."), module, name)

    return {
        key: min(found, key=lambda each: rank(values[key], each))
        for key, found in candidates.items()
        if _owned(values[key])
    }


def _owned(value: object) -> bool:
    """Whether a class or function belongs to the package, rather than to Python or NumPy."""
    module, name = str(getattr(value, "__module__", None)), str(getattr(value, "__name__", ""))
    ours = module.partition(".")[0] in (ROOT, "torch", "None")
    return ours or (module == "builtins" and not hasattr(builtins, name))


def home(value: object) -> tuple[str, str] | None:
    """Return the module and the name under which a public class or function is declared, or None if it is neither."""
    return _homes().get(id(value)) if isinstance(value, type) or inspect.isroutine(value) else None


def stand_in(module: str, name: str) -> tuple[str, str] | None:
    """Return the module and the name of the public class in place of an internal class, or None."""
    full = STAND_INS.get(f"{module}.{name}")
    return (full.rpartition(".")[0], name) if full is not None else None
