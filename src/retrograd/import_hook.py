"""Import hook: while it is installed, ``import torch`` and ``import torch.X.Y`` import modules of retrograd.

``with installed(): ...`` installs the hook for a part of a program; ``retrograd run`` (``runner.py``) runs a whole
program with the hook. The hook finds modules by name through the import system, so that every module of retrograd is
available.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from retrograd.compat.missing_names import MissingModules

PACKAGE = __name__.partition(".")[0]
TORCH = "torch"
FUNCTORCH = "functorch"  # PyTorch's second package, whose names torch.func has

# Folder that contains only a module named torch. Child processes of multiprocessing inherit sys.path but no hook:
# importing this module installs the hook in them.
CHILDREN = str(Path(__file__).parent / "_as_torch")
COMMANDS = str(Path(CHILDREN) / "commands")  # folder with the command torchrun
COMMANDS_ENVIRONMENT = ("PYTHONPATH", "PATH", "RETROGRAD_PYTHON")


def environment_of_commands(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables, changed from ``given``, with which commands find retrograd as ``torch``.

    ``PYTHONPATH`` makes ``python`` and ``python -m torch.distributed.run`` import it, and ``PATH`` has the command
    ``torchrun``, which runs the Python of ``RETROGRAD_PYTHON``.
    """
    changed = {"RETROGRAD_PYTHON": sys.executable}
    for name, folder in (("PYTHONPATH", CHILDREN), ("PATH", COMMANDS)):
        before = given.get(name) or ("" if name == "PYTHONPATH" else os.defpath)
        entries = [each for each in before.split(os.pathsep) if each != folder] if before else []
        changed[name] = os.pathsep.join([folder, *entries])
    return changed


@contextmanager
def commands_find_retrograd() -> Iterator[None]:
    """Return a context manager in which commands that the process starts find retrograd as ``torch``.

    The environment is restored afterwards.
    """
    before = {name: os.environ.get(name) for name in COMMANDS_ENVIRONMENT}
    os.environ.update(environment_of_commands(os.environ))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def is_torch_name(name: str) -> bool:
    """Whether the module name ``name`` is ``torch`` or ``functorch``, or begins with ``torch.`` or ``functorch.``."""
    return name.partition(".")[0] in (TORCH, FUNCTORCH)


def own_name(module: types.ModuleType) -> str:
    """Return the name of ``module`` in retrograd; the name of the package is ``torch`` while the hook is installed."""
    return PACKAGE if module.__name__ == TORCH else module.__name__


def find_module(name: str) -> types.ModuleType | None:
    """Return the module of retrograd for ``name``, the name of a PyTorch module, or None if there is no such module.

    For the name ``torch.X.Y``, the result is the module ``retrograd.X.Y`` if there is such a file or folder, otherwise
    the attribute ``Y`` of ``retrograd.X`` if it is a module.
    """
    if name == FUNCTORCH:
        return importlib.import_module(f"{PACKAGE}.func")
    path = PACKAGE + name[len(TORCH) :] if name.startswith(TORCH) else name
    parent, _, last = path.rpartition(".")
    if not parent:
        return importlib.import_module(path)
    above = find_module(name.rpartition(".")[0])
    if above is None:
        return None
    package = own_name(above)
    if hasattr(above, "__path__") and importlib.util.find_spec(f"{package}.{last}") is not None:
        return importlib.import_module(f"{package}.{last}")
    reached = getattr(above, last, None)
    ours = isinstance(reached, types.ModuleType) and reached.__name__.startswith(f"{PACKAGE}.")
    return reached if ours else None


class Alias(Loader):
    """Loader for ``import torch.X`` that returns the existing module of retrograd instead of loading a copy."""

    def __init__(self, module: types.ModuleType, name: str) -> None:
        self.module = module
        self.name = name
        self.own_spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return self.module

    def get_code(self, name: str) -> types.CodeType | None:
        """Return the code of the module, for ``python -m torch.X``, which runs it once more as ``__main__``."""
        return (
            getattr(self.own_spec.loader, "get_code", lambda name: None)(self.own_spec.name) if self.own_spec else None
        )

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self.own_spec  # the import system has replaced it by the alias's spec
        # The import system sets a submodule that it loads as an attribute of its package, which would overwrite a
        # function or class of that name, such as torch.autograd.gradcheck. Such submodules are loaded already; they
        # are registered here so that they are not loaded again.
        for name, value in list(vars(module).items()):
            submodule = sys.modules.get(f"{own_name(module)}.{name}")
            if submodule is not None and submodule is not value:
                sys.modules.setdefault(f"{self.name}.{name}", submodule)


class TorchFinder(MetaPathFinder):
    """Finder in ``sys.meta_path`` that returns modules of retrograd for PyTorch's names, and the metadata of torch.

    ``functorch`` is ``torch.func``.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        module = find_module(fullname) if is_torch_name(fullname) else None
        if module is None:
            return None
        file = getattr(module, "__file__", None)
        return ModuleSpec(fullname, Alias(module, fullname), origin=file, is_package=hasattr(module, "__path__"))

    def find_distributions(self, context: Any = None) -> list[Any]:
        """Return a list of the distribution torch, if ``context`` names it or no distribution."""
        if getattr(context, "name", None) not in (None, TORCH):
            return []
        from retrograd.compat.distribution_metadata import TorchDistribution  # imports the parser of e-mails

        return [TorchDistribution(str(importlib.import_module(f"{PACKAGE}.version").__version__))]


class Hook(AbstractContextManager[None]):
    """Context manager that installs the import hook in the process.

    Meanwhile the package's ``__name__`` is ``torch``, because libraries tell PyTorch by this name.

    Contexts may be nested, and may overlap in threads; the hook is removed at the end of the last context.
    """

    def __init__(self) -> None:
        self.finders = (TorchFinder(), MissingModules(TORCH))
        self.hidden: dict[str, types.ModuleType] = {}
        self.blocks = 0
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        with self.lock:
            self.blocks += 1
            if self.blocks == 1:
                self.hidden = remove_torch()
                sys.meta_path.insert(0, self.finders[0])
                sys.meta_path.append(self.finders[1])
                sys.path.insert(1, CHILDREN)  # index 0 is the program's folder
                importlib.import_module(PACKAGE).__name__ = TORCH  # packages compare it

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.blocks -= 1
            if self.blocks == 0:
                sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in self.finders]
                if CHILDREN in sys.path:
                    sys.path.remove(CHILDREN)
                remove_torch()
                importlib.import_module(PACKAGE).__name__ = PACKAGE
                sys.modules.update(self.hidden)
                self.hidden = {}


def remove_torch() -> dict[str, types.ModuleType]:
    """Remove ``torch`` and its submodules from ``sys.modules``; return the removed modules by name."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if is_torch_name(name)}


HOOK = Hook()


def installed() -> AbstractContextManager[None]:
    """Return a context manager in which ``import torch`` imports retrograd, in every module of the process.

    PyTorch, if it was imported before, is hidden inside the context, and available again afterwards, also after an
    exception. Do not use PyTorch inside the context, because it imports some of its modules on first use. Modules that
    are first imported inside the context keep retrograd as their ``torch``. The hook applies to all threads; contexts
    may be nested.

    >>> from retrograd import import_hook
    >>> with import_hook.installed():
    ...     import torch
    ...     print(torch.__name__)
    torch
    """
    return HOOK
