"""Type stubs of the public modules: ``.pyi`` files for type checkers and editors.

:func:`write` generates them from what the package states at run time: the public names of its modules, the
signatures that ``dispatch/signatures.txt`` records, the annotations and docstrings in the sources, and what PyTorch declares
where the sources say ``Any`` (``types.txt``). ``scripts/stubs.py`` writes them for a checkout, the build of the wheel puts
them beside the modules, and ``retrograd stubs`` writes the package ``torch-stubs``. The parts:

``names``           the public modules, their names, and the module in which each class and function is declared
``annotations``     the source of a module, and the text of an annotation in a stub
``functions``       the declarations of a function: signatures, overloads, docstring
``classes``         the declaration of a class: bases, attributes, methods
``recorded_types``  what ``types.txt`` and ``by_hand.txt`` record
"""

from __future__ import annotations

from pathlib import Path

from . import classes, functions, names, recorded_types
from .annotations import Stub


def write(folder: Path, package: str = "retrograd") -> list[Path]:
    """Write the stubs below ``folder / package`` and return the paths of the files.

    ``package`` is the name of the folder: ``retrograd``, or ``torch-stubs`` for programs that import ``torch``. The files
    import each other by relative names, so that they are the same for both.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = write(Path(folder))
    ...     root = (Path(folder) / "retrograd/__init__.pyi").read_text(encoding="utf-8")
    >>> "def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:" in root
    True
    """
    paths = []
    for module, text in texts().items():
        path = folder.joinpath(package, *module.split(".")[1:])
        path = path / "__init__.pyi" if names.is_package(module) else path.with_suffix(".pyi")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    marker = folder / package / "py.typed"
    marker.write_text("", encoding="utf-8")
    return [*paths, marker]


def texts() -> dict[str, str]:
    """Return the text of the stub of each public module, by the name of the module."""
    return {module: module_text(module) for module in names.modules()}


def module_text(module: str) -> str:
    """Return the text of the stub of the module called ``module``."""
    stub = Stub(module)
    lines: list[str] = []
    for name, value in names.contents(module).items():
        lines += declaration(stub, name, value)
    return stub.text(names.documentation(module), lines)


def declaration(stub: Stub, name: str, value: object) -> list[str]:
    """Return the lines that declare ``name``, whose value is ``value``, in a stub; an import is added to the stub."""
    home = names.home(value)
    if names.is_module(value):
        stub.export_module(name)
    elif home is not None and home != (stub.module, name):
        return stub.export(name, *home)
    elif isinstance(value, type) and home is not None:
        return classes.declare(stub, name, value)
    elif callable(value) and functions.is_function(value):
        return functions.declare(stub, name, value, f"{names.torch_name(stub.module)}.{name}")
    else:
        return stub.variable(name, value)
    return []


__all__ = ["recorded_types", "write"]
