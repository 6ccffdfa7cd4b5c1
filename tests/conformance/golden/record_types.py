"""Record the types that PyTorch declares where the package's own sources do not say them.

``python -m tests.conformance.golden.record_types`` needs PyTorch and writes ``src/retrograd/stubs/types.txt``. The results
of functions whose arguments PyTorch parses itself are those in its stubs and schemas, if they are not a Tensor. The other
types are asked for by the generator of the stubs.
"""

from __future__ import annotations

import ast
import collections.abc
import contextlib
import importlib
import inspect
import os
import pathlib
import re
import types
import typing
from collections.abc import Iterator
from typing import Any

from tests import ROOT

TARGET = ROOT / "src/retrograd/stubs/types.txt"
#: Names in PyTorch's stubs, and the full names.
FULL = {
    "_int": "int", "_float": "float", "_bool": "bool", "_complex": "complex", "_dtype": "torch.dtype", "_device": "torch.device",
    "_layout": "torch.layout", "_size": "collections.abc.Sequence[int]", "Tensor": "torch.Tensor", "Size": "torch.Size",
    "SymInt": "int", "Any": "typing.Any", "Callable": "collections.abc.Callable", "Sequence": "collections.abc.Sequence",
    "Number": "torch.types.Number", "Device": "torch.types.Device", "Generator": "torch.Generator", "Literal": "typing.Literal",
    "memory_format": "torch.memory_format", "_Node": "torch.autograd.graph.Node", "UntypedStorage": "torch.UntypedStorage",
    "Storage": "torch.UntypedStorage", "Iterator": "collections.abc.Iterator",
}  # fmt: skip
#: Types of parameters whose annotations in PyTorch mean something else to its compiler of scripts, or are one of several.
BY_HAND = {
    "torch.nn.functional.interpolate": {
        "size": "int | collections.abc.Sequence[int] | None", "scale_factor": "float | collections.abc.Sequence[float] | None",
    },
    "torch.nn.functional.upsample": {
        "size": "int | collections.abc.Sequence[int] | None", "scale_factor": "float | collections.abc.Sequence[float] | None",
    },
}  # fmt: skip
#: The annotation of a list of ints that may be given as one int is None at run time.
SIZES = "int | collections.abc.Sequence[int]"
BUILTINS = {
    "int",
    "float",
    "bool",
    "complex",
    "str",
    "bytes",
    "object",
    "None",
    "tuple",
    "list",
    "dict",
    "set",
    "slice",
    "type",
}


class Unknown(Exception):
    """A type that the stubs of the package cannot name."""


def of_node(node: ast.expr | None) -> str:
    """Return the text of a type in a stub of PyTorch with full names."""
    if isinstance(node, ast.Constant) and node.value in (None, ...):
        return "..." if node.value is ... else "None"
    if isinstance(node, ast.Name):
        if node.id in BUILTINS:
            return node.id
        if node.id in FULL:
            return FULL[node.id]
    if isinstance(node, ast.Attribute):
        text = ast.unparse(node)
        if text.startswith("torch.return_types."):
            return text
    if isinstance(node, ast.BinOp):
        return f"{of_node(node.left)} | {of_node(node.right)}"
    if isinstance(node, ast.Subscript):
        return f"{of_node(node.value)}[{of_node(node.slice)}]"
    if isinstance(node, ast.Tuple):
        return ", ".join(map(of_node, node.elts)) or "()"
    if isinstance(node, ast.List):
        return f"[{', '.join(map(of_node, node.elts))}]"
    raise Unknown(ast.unparse(node) if node is not None else "nothing")


def of_type(value: Any) -> str:
    """Return the text of a type, an object at run time, with full names."""
    if value is None or value is type(None):
        return "None"
    if value is ...:
        return "..."
    origin, arguments = typing.get_origin(value), typing.get_args(value)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(dict.fromkeys(of_type(each) for each in arguments))
    if origin is typing.Literal:
        return f"typing.Literal[{', '.join(map(repr, arguments))}]"
    if origin is collections.abc.Callable:
        if not (arguments and isinstance(arguments[0], list | types.EllipsisType)):
            raise Unknown(repr(value))
        first = "..." if arguments[0] is ... else f"[{', '.join(map(of_type, arguments[0]))}]"
        return f"collections.abc.Callable[{first}, {of_type(arguments[1])}]"
    if origin is not None:
        return f"{of_type(origin)}[{', '.join(map(of_type, arguments))}]"
    if value is Any:
        return "typing.Any"
    if isinstance(value, type):
        module = value.__module__
        if module == "builtins":
            return value.__qualname__
        if module in ("collections.abc", "collections", "torch") or module.startswith("torch."):
            return f"{module}.{value.__qualname__}".replace("torch._tensor.", "torch.")
    raise Unknown(repr(value))


def of_parameter(value: Any) -> str:
    """Return the text of the type of a parameter: a list of a type that can be written accepts any sequence."""
    text = of_type(value)
    if text == "None":
        return SIZES
    return re.sub(r"\bdict\[", "collections.abc.Mapping[", re.sub(r"\blist\[", "collections.abc.Sequence[", text))


def stub_functions(file: str, holder: str = "") -> Iterator[ast.FunctionDef]:
    """Yield the functions in a stub of PyTorch, or the methods of its class ``holder``."""
    import torch

    tree = ast.parse((pathlib.Path(torch.__file__).parent / file).read_text(encoding="utf-8"))
    body = tree.body
    if holder:
        body = next(each for each in body if isinstance(each, ast.ClassDef) and each.name == holder).body
    for each in body:
        if isinstance(each, ast.FunctionDef):
            yield each


def results() -> Iterator[str]:
    """Yield the lines for functions whose arguments PyTorch parses itself: their results that are not a Tensor."""
    import torch

    from retrograd.dispatch.signatures import signatures

    for prefix, file, holder, space in (
        ("torch", "_C/_VariableFunctions.pyi", "", "torch"),
        ("torch.Tensor", "_C/__init__.pyi", "TensorBase", "Tensor"),
    ):
        for node in stub_functions(file, holder):
            if node.name[0] == "_" or not signatures(space, node.name):
                continue
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs]
            shown = [each.arg for each in every if each is not None and each.arg not in ("self", "out")]
            try:
                kind = of_node(node.returns)
            except Unknown as error:
                print("unknown", node.name, error)
                continue
            if kind != "torch.Tensor":
                yield f"{prefix}.{node.name}({', '.join(shown)}) -> {kind}"
    for space, prefix in (("linalg", "linalg_"), ("special", "special_"), ("fft", "fft_"), ("nn", "")):
        holder = {"nn": "nn.functional"}.get(space, space)
        names = {each for each in dir(getattr(torch, space)) if each[0] != "_"}
        if space == "nn":
            names = {each for each in dir(torch.nn.functional) if each[0] != "_"}
        for name in sorted(names):
            known = signatures(space, name)
            for schema in torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{name}") if known else ():
                shown = [
                    each.name.replace("self", "input", 1) if each.name == "self" else each.name
                    for each in schema.arguments
                ]
                if schema.overload_name.endswith("out") or (
                    len(schema.returns) < 2 and "[]" not in str(schema.returns[0].type)
                ):
                    continue
                title = f"{prefix}{name}"
                kind = (
                    f"torch.return_types.{title}"
                    if hasattr(torch.return_types, title)
                    else "tuple[" + ", ".join(["torch.Tensor"] * len(schema.returns)) + "]"
                )
                yield f"torch.{holder}.{name}({', '.join(shown)}) -> {kind}"


def attribute_of_stub(name: str) -> str:
    """Return the type of an attribute or property of a tensor in PyTorch's stub."""
    import torch

    tree = ast.parse((pathlib.Path(torch.__file__).parent / "_C/__init__.pyi").read_text(encoding="utf-8"))
    cls = next(each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == "TensorBase")
    for each in cls.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.target.id == name:
            return of_node(each.annotation)
        if isinstance(each, ast.FunctionDef) and each.name == name:
            return of_node(each.returns)
    raise Unknown(name)


def hints(value: Any) -> dict[str, Any]:
    """Return the annotations of a function or class of PyTorch, evaluated as far as they can be."""
    for _ in range(5):
        if hasattr(value, "__wrapped__"):
            value = value.__wrapped__
    try:
        return typing.get_type_hints(value)
    except Exception:
        found = {}
        space = dict(vars(__import__("sys").modules[value.__module__])) if getattr(value, "__module__", None) else {}
        for name, each in getattr(value, "__annotations__", {}).items():
            try:
                found[name] = eval(each, space) if isinstance(each, str) else each
            except Exception:
                continue
        return found


def wanted(name: str, parts: set[str]) -> str | None:
    """Return the line for a name that the generator asks about, or None if PyTorch says nothing of use."""
    import torch

    holder: Any = None
    value: Any = torch
    parts_of_name = name.split(".")[1:]
    for count in range(len(parts_of_name), 0, -1):  # some modules are no attributes of their packages
        with contextlib.suppress(ImportError, TypeError):
            value = importlib.import_module(".".join(["torch", *parts_of_name[:count]]))
            parts_of_name = parts_of_name[count:]
            break
    for each in parts_of_name:
        try:
            holder, value = (
                value,
                inspect.getattr_static(value, each) if isinstance(value, type) else getattr(value, each),
            )
        except AttributeError:
            last = name.rpartition(".")[2]
            hint = hints(value).get(last) if isinstance(value, type) and name.endswith(f".{each}") else None
            try:
                return f"{name}: {of_type(hint)}" if hint not in (None, Any) else None
            except Unknown:
                return None
    last = name.rpartition(".")[2]
    if name.startswith("torch.Tensor.") and not inspect.isfunction(value):
        try:
            kind = attribute_of_stub(last)
        except Unknown:
            return None
        if "" in parts:
            return f"{name}: {kind}"
        return f"{name}() -> {kind}" if "return" in parts else None
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    lazy = type(value).__name__ == "lazy_property"
    if isinstance(value, property) or lazy or type(value).__name__ == "_dependent_property":
        get = value.fget if isinstance(value, property) else getattr(value, "wrapped", None)
        known = hints(get).get("return") if get else None
        try:
            return f"{name}: {of_type(known)}" if known not in (None, Any) else None
        except Unknown:
            return None
    if isinstance(holder, type) and "" in parts and not inspect.isroutine(value):
        known = hints(holder).get(last)
        try:
            return f"{name}: {of_type(known)}" if known not in (None, Any) else None
        except Unknown:
            return None
    if isinstance(value, type):
        value = value.__init__
    if not callable(value):
        return None
    known_types = hints(value)
    shown = []
    for part in sorted(parts - {"return", ""}):
        try:
            text = BY_HAND.get(name, {}).get(part) or (of_parameter(known_types[part]) if part in known_types else "")
            if text not in ("", "typing.Any"):
                shown.append(f"{part}: {text}")
        except Unknown:
            continue
    result = ""
    if "return" in parts and "return" in known_types:
        try:
            result = of_type(known_types["return"])
        except Unknown:
            result = ""
    if name.endswith(".forward") and result == "None":
        result = ""  # a base class that does not implement it
    if not shown and result in ("", "typing.Any"):
        return None
    return f"{name}({', '.join(shown)}) -> {result or 'typing.Any'}"


def main() -> None:
    """Write the file: results first, then the types that the generator asks for."""
    found = sorted(set(results()))
    from retrograd import stubs

    stubs.recorded_types.ignored.add("types.txt")
    stubs.texts()
    for name, parts in sorted(stubs.recorded_types.asked.items()):
        line = wanted(name, parts)
        if line is not None:
            found.append(line)
    head = [
        "# What PyTorch declares where the sources of the package say Any, one name a line (see recorded_types.py); written by",
        "# tests/conformance/golden/record_types.py.",
    ]
    temporary = TARGET.with_suffix(".new")
    temporary.write_text("\n".join([*head, *found]) + "\n", encoding="utf-8")
    os.replace(temporary, TARGET)
    print(len(found), "lines;", len(stubs.recorded_types.asked), "asked")


if __name__ == "__main__":
    main()
