"""The import hook: while it is installed, ``import torch`` and every ``torch.X.Y`` are answered by retrograd.

For a block of a program: ``with installed(): ...``; for a whole program: ``retrograd run`` (``retrograd.runner``).
Knows of retrograd only its name: what answers is found by importing it, so any module of the package may be asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import types
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path

from retrograd.compat.missing_names import MissingModules

PACKAGE = __name__.partition(".")[0]
TORCH = "torch"

# A folder whose only content is a module named torch. Children of multiprocessing inherit the path but no hook:
# this module, found on the path, installs the hook in them.
CHILDREN = str(Path(__file__).parent / "_as_torch")


def is_torch(name: str) -> bool:
    """Whether a module's name is ``torch`` or below it."""
    return name == TORCH or name.startswith(TORCH + ".")


def answer(name: str) -> types.ModuleType | None:
    """The module of retrograd that stands for a module of PyTorch, or None.

    It is the module of the same path where there is one; otherwise a module that is reached by attributes under that
    path (as ``torch.nn.functional`` may live in another file).
    """
    path = PACKAGE + name[len(TORCH) :]
    parent, _, last = path.rpartition(".")
    if not parent:
        return importlib.import_module(path)
    above = answer(name.rpartition(".")[0])
    if above is None:
        return None
    if hasattr(above, "__path__") and importlib.util.find_spec(f"{above.__name__}.{last}") is not None:
        return importlib.import_module(f"{above.__name__}.{last}")
    reached = getattr(above, last, None)
    ours = isinstance(reached, types.ModuleType) and reached.__name__.startswith(f"{PACKAGE}.")
    return reached if ours else None


class Alias(Loader):
    """Gives an import of ``torch.X`` the module of retrograd itself, not a copy of it."""

    def __init__(self, module: types.ModuleType, name: str) -> None:
        self.module = module
        self.name = name
        self.own_spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return self.module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self.own_spec  # the import system has just put the alias's in its place
        # The import system makes a submodule that it loads an attribute of its package. Where the package has a function or
        # a class of that name, as torch.autograd.gradcheck, the submodule is loaded already and is entered here, so that
        # it is found without being loaded once more.
        for name, value in list(vars(module).items()):
            submodule = sys.modules.get(f"{module.__name__}.{name}")
            if submodule is not None and submodule is not value:
                sys.modules.setdefault(f"{self.name}.{name}", submodule)


class Answers(MetaPathFinder):
    """Stands first among the finders: what retrograd has."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        module = answer(fullname) if is_torch(fullname) else None
        if module is None:
            return None
        return ModuleSpec(fullname, Alias(module, fullname), is_package=hasattr(module, "__path__"))


class Hook(AbstractContextManager[None]):
    """The process's one hook: blocks may be nested and may overlap in threads; the last to end puts everything back."""

    def __init__(self) -> None:
        self.finders = (Answers(), MissingModules(TORCH))
        self.hidden: dict[str, types.ModuleType] = {}
        self.blocks = 0
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        with self.lock:
            self.blocks += 1
            if self.blocks == 1:
                self.hidden = take_away_torch()
                sys.meta_path.insert(0, self.finders[0])
                sys.meta_path.append(self.finders[1])
                sys.path.insert(1, CHILDREN)  # the first place is the program's own folder

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.blocks -= 1
            if self.blocks == 0:
                sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in self.finders]
                if CHILDREN in sys.path:
                    sys.path.remove(CHILDREN)
                take_away_torch()
                sys.modules.update(self.hidden)
                self.hidden = {}


def take_away_torch() -> dict[str, types.ModuleType]:
    """Remove ``torch`` and all below it from the loaded modules; what was there."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if is_torch(name)}


HOOK = Hook()


def installed() -> AbstractContextManager[None]:
    """Have ``import torch`` answered by retrograd inside the block, in whatever module it stands.

    Everything is put back at the end of the block, also after an exception: a real PyTorch that was imported before
    comes back untouched. Inside the block it is hidden and should not be used, as it imports parts of itself late.
    Modules that were first imported inside the block keep the ``torch`` that they got. The hook is the process's,
    not the thread's; blocks may be nested.

    >>> from retrograd import import_hook
    >>> with import_hook.installed():
    ...     import torch
    >>> torch.__name__
    'retrograd'
    """
    return HOOK
