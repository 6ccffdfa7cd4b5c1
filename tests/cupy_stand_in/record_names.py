"""Record CuPy's names, signatures and ufunc loops in ``names.json``, from which the stand-in is built.

Run it with an interpreter that has CuPy; no GPU and no driver are needed::

    python -m venv cupyenv && cupyenv/bin/pip install cupy-cuda13x ml_dtypes scipy
    cupyenv/bin/python tests/cupy_stand_in/record_names.py
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = (
    "cupy", "cupy.linalg", "cupy.fft", "cupy.lib.stride_tricks", "cupy.cuda", "cupy.cuda.runtime", "cupy.random",
    "cupyx", "cupyx.scipy.special", "cupyx.scipy.fft", "cupyx.scipy.linalg",
)  # fmt: skip
#: Classes whose attributes are recorded.
CLASSES = (
    "cupy.ndarray", "cupy.cuda.Device", "cupy.cuda.Stream", "cupy.cuda.Event", "cupy.cuda.MemoryPool",
    "cupy.cuda.MemoryPointer", "cupy.cuda.UnownedMemory", "cupy.cuda.Graph",
)  # fmt: skip
#: A signature in the first line of a docstring of compiled code.
SIGNATURE = re.compile(r"^[\w.]+\((.*)\)")


def parameters(function: Any) -> list[str] | None:
    """Return the parameters as ``name``, ``name=`` with a default, ``*name`` or ``**name``; None if they are unknown.

    ``/`` and ``*`` stand as in a signature.
    """
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        match = SIGNATURE.match((function.__doc__ or "").strip().partition("\n")[0])
        if not match or "\\" in match[1]:
            return None
        parts = [each.strip() for each in re.sub(r"\([^()]*\)", "", match[1]).split(",") if each.strip()]
        return [
            re.split(r"[ ]", each.partition("=")[0].strip())[-1].strip() + ("=" if "=" in each else "")
            for each in parts
            if each != "self" and not each.endswith(" self")
        ]
    names, star = [], False
    for each in found:
        if each.kind is each.VAR_POSITIONAL:
            names.append("*" + each.name)
            star = True
        elif each.kind is each.VAR_KEYWORD:
            names.append("**" + each.name)
        else:
            if each.kind is each.KEYWORD_ONLY and not star:
                names.append("*")
                star = True
            names.append(each.name + ("" if each.default is each.empty else "="))
    return [each for each in names if each != "self"]


def described(value: Any) -> Any:
    """Return the entry of one object: a list of parameters, a dictionary of a ufunc's properties, or a word."""
    if type(value).__name__ == "ufunc":
        return {"nin": value.nin, "nout": value.nout, "types": value.types, "name": value.name}
    if isinstance(value, ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    if callable(value):
        return parameters(value) or ("function" if parameters(value) is None else [])
    return "value"


def from_source(path: str) -> dict[str, Any]:
    """Return the functions that a package imports into its ``__init__.py``, read without running the package."""
    names: dict[str, Any] = {}
    for base in importlib.import_module(path.partition(".")[0]).__path__:
        folder = Path(base).parent / path.replace(".", "/")
        for statement in ast.parse((folder / "__init__.py").read_text(encoding="utf-8")).body:
            if not isinstance(statement, ast.ImportFrom) or not (statement.module or "").startswith(path + "."):
                continue
            file = folder / f"{str(statement.module).removeprefix(path + '.').replace('.', '/')}.py"
            wanted = {each.name for each in statement.names}
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef) and node.name in wanted:
                    optional = len(node.args.args) - len(node.args.defaults)
                    names[node.name] = [
                        each.arg + ("=" if place >= optional else "") for place, each in enumerate(node.args.args)
                    ]
    return dict(sorted(names.items()))


def recorded() -> dict[str, Any]:
    import cupy
    import ml_dtypes

    answer: dict[str, Any] = {"versions": {"cupy": cupy.__version__, "ml_dtypes": ml_dtypes.__version__}}
    for path in MODULES:
        try:
            module = importlib.import_module(path)
        except ImportError:  # cupyx.scipy.linalg loads cuBLAS
            answer[path] = from_source(path)
            continue
        answer[path] = {
            name: described(getattr(module, name))
            for name in sorted(dir(module))
            if not (name.startswith("_") or name == "annotations")
        }
    for path in CLASSES:
        parent, _, name = path.rpartition(".")
        kind = getattr(importlib.import_module(parent), name)
        answer[path] = {
            each: described(getattr(kind, each))
            for each in sorted(dir(kind))
            if each not in dir(object)
            or each in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__repr__")
        }
    return answer


def main() -> None:
    path = Path(__file__).with_name("names.json")
    lines = [
        f"{json.dumps(section)}: {{\n"
        + ",\n".join(f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
        + "\n}"
        for section, entries in recorded().items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
