"""The source of a module, and the text of an annotation in a stub.

An annotation names classes and aliases of the module in which it stands. In a stub these are public names: an alias of the
package is written out, a class is imported from the module that declares it, and what is not public becomes ``Any``.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import keyword
import textwrap
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from ..core.dtypes import dtype
from ..core.tensor import layout, memory_format
from ..runtime.codegen import parse_expression, parse_module
from . import names

ANY = "typing.Any"
FOLDER = Path(__file__).resolve().parent.parent
#: Modules whose names an annotation may use as they are.
STANDARD = frozenset({
    "abc", "builtins", "collections", "collections.abc", "concurrent.futures", "contextlib", "datetime", "enum", "io", "os",
    "pathlib", "re",
    "threading", "types", "typing", "numpy", "numbers", "logging", "multiprocessing.context",
})  # fmt: skip
#: Arguments of generic classes that an annotation names without arguments.
GENERIC = {
    "tuple": "Any, ...", "list": "Any", "dict": "Any, Any", "set": "Any", "frozenset": "Any", "type": "Any",
    "Callable": "..., Any",
    "Iterable": "Any", "Iterator": "Any", "Sequence": "Any", "Mapping": "Any, Any", "OrderedDict": "Any, Any",
    "ndarray": "Any, Any", "ContextManager": "Any", "AbstractContextManager": "Any", "Generator": "",
}  # fmt: skip
#: Aliases of the package that annotations keep, by the module that has them: their names say more than their contents.
KEPT = {"Device", "FileLike", "Number"}


class Source:
    """Syntax tree of a file of the package, and what the names at its top level are bound to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        parts = path.relative_to(FOLDER).with_suffix("").parts
        self.is_package: bool = parts[-1] == "__init__"
        self.module: str = ".".join([names.ROOT, *(parts[:-1] if self.is_package else parts)])
        self.tree: ast.Module = parse_module(path.read_text(encoding="utf-8"))
        self.bound: dict[str, ast.AST | tuple[str, str]] = {}
        self._read(self.tree.body)

    def _read(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.Import):
                for each in node.names:
                    first = each.name.partition(".")[0]
                    self.bound[each.asname or first] = (each.name if each.asname else first, "")
            elif isinstance(node, ast.ImportFrom):
                origin = self.module.split(".")
                if node.level:
                    keep = len(origin) - node.level + self.is_package
                    origin = [*origin[:keep], *filter(None, [node.module])]
                else:
                    origin = [node.module or ""]
                for each in node.names:
                    if each.name == "*":
                        star = source_of_module(".".join(origin))
                        self.bound = {**(star.bound if star else {}), **self.bound}
                    else:
                        self.bound[each.asname or each.name] = (".".join(origin), each.name)
            elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                self.bound[node.name] = node
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.bound.setdefault(node.targets[0].id, node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                if node.value is not None:
                    self.bound.setdefault(node.target.id, node.value if _is_alias(node) else node)
            elif isinstance(node, ast.If | ast.Try | ast.With):
                for part in (node.body, getattr(node, "orelse", [])):
                    self._read(part)
                for handler in getattr(node, "handlers", []):
                    self._read(handler.body)

    @property
    def functions(self) -> dict[int, ast.FunctionDef | ast.AsyncFunctionDef]:
        """Functions and methods by the number of their first line, which is that of the first decorator."""
        if not hasattr(self, "_functions"):
            self._functions = {
                min([node.lineno, *(each.lineno for each in node.decorator_list)]): node
                for node in ast.walk(self.tree)
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            }
        return self._functions

    def class_of(self, name: str) -> ast.ClassDef | None:
        """Return the class of this name."""
        return next(
            (node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef) and node.name == name), None
        )


def _is_alias(node: ast.AnnAssign) -> bool:
    return "TypeAlias" in ast.unparse(node.annotation)


@cache
def source_of_file(file: str) -> Source | None:
    """Return the source of a file, or None if the file is not in the package."""
    path = Path(file)
    return Source(path) if path.suffix == ".py" and path.is_file() and path.resolve().is_relative_to(FOLDER) else None


@cache
def source_of_module(name: str) -> Source | None:
    """Return the source of a module of the package, or None."""
    if name.partition(".")[0] != names.ROOT:
        return None
    path = FOLDER.joinpath(*name.split(".")[1:])
    for each in (path / "__init__.py", path.with_suffix(".py")):
        if each.is_file():
            return source_of_file(str(each))
    return None


def plain(value: Any) -> Any:
    """Return the function of the program behind static and class methods, properties and wrappers."""
    for _ in range(10):
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        elif not isinstance(value, FunctionType) or isinstance(getattr(value, "__wrapped__", None), FunctionType):
            inner = getattr(value, "__wrapped__", None)
            if inner is None:
                return value
            value = inner
        else:
            return value
    return value


def class_node(cls: type) -> tuple[ast.ClassDef | None, Source | None]:
    """Return the definition of a class in the sources, and its file."""
    for value in vars(cls).values():
        function = plain(value) if isinstance(value, FunctionType | staticmethod | classmethod | property) else None
        code = getattr(function, "__code__", None)
        source = source_of_file(code.co_filename) if code is not None else None
        if source is not None and (node := source.class_of(cls.__name__)) is not None:
            public = names.stand_in(source.module, cls.__name__)
            if public is None or public != names.home(cls):
                return node, source  # not the internal class from which a public one takes its methods
    source = source_of_module(
        cls.__module__.replace("torch", names.ROOT, 1) if cls.__module__[:5] == "torch" else cls.__module__
    )
    return (source.class_of(cls.__name__), source) if source is not None else (None, None)


#: Context of the types in ``types.txt``, whose names are full.
FULL = None


class Stub:
    """Text of a stub under construction: what it imports, and the types that it names."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.imports: dict[str, str] = {}  # local name to line
        self.standard: set[str] = set()
        self.aliases: dict[str, str] = {}
        self.variables: dict[str, str] = {}  # type variables
        contents = names.contents(module)
        own = [
            value for value in contents.values() if isinstance(value, type) and names.home(value) in self._places(value)
        ]
        #: Names that mean something else in a class of the stub.
        self.members: set[str] = {member for each in own for member in (*dir(each), *_set_on_self(each))}

    def _places(self, value: object) -> list[tuple[str, str]]:
        return [(self.module, name) for name, each in names.contents(self.module).items() if each is value]

    # -- Imports

    def relative(self, module: str) -> str:
        """Return the name of a module of the package as a relative import in this stub has it."""
        here = self.module.split(".")
        if not names.is_package(self.module):
            here = here[:-1]
        there = module.split(".")
        shared = 0
        while shared < min(len(here), len(there)) and here[shared] == there[shared]:
            shared += 1
        return "." * (len(here) - shared + 1) + ".".join(there[shared:])

    def export(self, name: str, module: str, original: str) -> list[str]:
        """Declare that ``name`` is ``original`` of another module; return the lines for one of this module."""
        if module == self.module:
            return [f"{name} = {original}"]
        self.imports[name] = f"from {self.relative(module)} import {original} as {name}"
        return []

    def export_module(self, name: str) -> None:
        """Declare that ``name`` is a module."""
        value = names.contents(self.module)[name]
        parent, _, last = value.__name__.rpartition(".")  # type: ignore[attr-defined]
        self.imports[name] = f"from {self.relative(parent)} import {last} as {name}"

    def public(self, module: str, name: str) -> str:
        """Return the text for a public class, which is imported if another module declares it."""
        if module == self.module:
            if name not in self.members:
                return name
            self.aliases[f"_{name}"] = name
            return f"_{name}"
        if name not in self.members and names.contents(self.module).get(name) is getattr(names.modules()[module], name):
            return name  # exported
        contents = names.contents(self.module)
        local = f"_{name}" if name in self.members or name in contents else name
        if name in self.members and isinstance(
            contents.get(name), type
        ):  # `_name` is the alias of the stub's own class
            local = f"_{module.rpartition('.')[2]}_{name}"
        self.imports[local] = f"from {self.relative(module)} import {name}" + f" as {local}" * (local != name)
        return local

    def builtin(self, name: str) -> str:
        """Return the text for a type of Python's builtins."""
        if name in self.members or name in names.contents(self.module):
            self.imports[f"_{name}"] = f"from builtins import {name} as _{name}"
            return f"_{name}"
        return name

    def outside(self, module: str, name: str) -> str:
        """Return the text for a name of a module that is not in the package."""
        if module == "builtins":
            return self.builtin(name)
        if module == "typing_extensions":
            module = "typing"
        if name in self.members or name in names.contents(self.module):
            local = f"_{name}" if module == "typing" else f"_{module.rpartition('.')[2]}_{name}"
            self.imports[local] = f"from {module} import {name} as {local}"
            return local
        self.imports[name] = f"from {module} import {name}"
        return name

    @property
    def any(self) -> str:
        """Text for ``typing.Any``."""
        return self.outside("typing", "Any")

    # -- Types

    def type_text(self, node: ast.expr | None, source: Source | None) -> str:
        """Return the text of an annotation of the file ``source``, or of ``types.txt`` if this is None."""
        if node is None:
            return self.any
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                return self.type_text(parse_expression(node.value), source)
            return "..." if node.value is ... else str(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.union([self.type_text(node.left, source), self.type_text(node.right, source)])
        if isinstance(node, ast.List):
            return "[" + ", ".join(self.type_text(each, source) for each in node.elts) + "]"
        if isinstance(node, ast.Tuple):
            return ", ".join(self.type_text(each, source) for each in node.elts) or "()"
        if isinstance(node, ast.Subscript):
            return self._subscript(node, source)
        if isinstance(node, ast.Name | ast.Attribute):
            text = self._name(node, source)
            bare = GENERIC.get(text.rpartition(".")[2].lstrip("_"))
            return f"{text}[{bare.replace('Any', self.any)}]" if bare else text
        if isinstance(node, ast.Starred):
            return f"*{self.type_text(node.value, source)}"
        return self.any

    def union(self, parts: list[str]) -> str:
        """Return the text of the union of types, each a text that may be a union."""
        flat = [each for part in parts for each in _split_union(part)]
        if self.any in flat:
            return self.any
        unique = list(dict.fromkeys(flat))
        return " | ".join([each for each in unique if each != "None"] + ["None"] * ("None" in unique))

    def _subscript(self, node: ast.Subscript, source: Source | None) -> str:
        value = self._name(node.value, source) if isinstance(node.value, ast.Name | ast.Attribute) else self.any
        if value == self.any:
            return value
        last = value.rpartition(".")[2].lstrip("_")
        if last == "Literal":
            elements = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return f"{value}[{', '.join(map(ast.unparse, elements))}]"
        inside = self.type_text(node.slice, source)
        if last == "Optional":
            return self.union([inside, "None"])
        if last == "Union":
            elements = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return self.union([self.type_text(each, source) for each in elements])
        if last == "Annotated":
            elements = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return self.type_text(elements[0], source)
        return f"{value}[{inside}]"

    def _name(self, node: ast.Name | ast.Attribute, source: Source | None) -> str:
        dotted = ast.unparse(node)
        first, *rest = dotted.split(".")
        if source is FULL:
            return self._full(dotted)
        bound = source.bound.get(first)
        if bound is None:
            return self.builtin(first) if hasattr(builtins, first) and not rest else self.any
        if isinstance(bound, tuple):
            module, name = bound
            target = [*filter(None, [name]), *rest]
            return self._imported(module, target)
        if rest:
            if isinstance(bound, ast.Assign | ast.Call) or first == "self":
                return self.any
            if rest in (["args"], ["kwargs"]):
                return f"{self._bound(first, bound, source)}.{rest[0]}"
            return self.any
        return self._bound(first, bound, source)

    def _full(self, dotted: str) -> str:
        module, _, name = dotted.rpartition(".")
        if dotted == "T":
            self.variables["_T"] = f'_T = {self.outside("typing", "TypeVar")}("_T")'
            return "_T"
        if not module:
            return self.builtin(name) if hasattr(builtins, name) else self.any
        if module.partition(".")[0] != "torch":
            return self.outside(module, name)
        return self._imported(module.replace("torch", names.ROOT, 1), [name])

    def _imported(self, module: str, target: list[str]) -> str:
        if module.partition(".")[0] not in (names.ROOT, "torch"):
            while len(target) > 1:
                module, target = f"{module}.{target[0]}", target[1:]
            if module not in STANDARD or not target:
                return self.any
            return self.outside(module, target[0])
        value: Any
        try:
            value = importlib.import_module(module)
        except ImportError:
            return self.any
        space: Any = value
        for each in target:
            space, value = value, getattr(value, each, None)
        if target and target[-1] in KEPT and isinstance(space, ModuleType) and space.__name__ == "retrograd.types":
            return self.public("retrograd.types", target[-1])
        if isinstance(value, type) and (home := names.home(value)):
            return self.public(*home)
        origin = source_of_module(space.__name__) if isinstance(space, ModuleType) else None
        if origin is None or not target:
            return self.any
        bound = origin.bound.get(target[-1])
        if isinstance(bound, tuple):
            return self._imported(bound[0], [*filter(None, [bound[1]])])
        return self._bound(target[-1], bound, origin) if bound is not None else self.any

    def _bound(self, name: str, bound: ast.AST | tuple[str, str], source: Source) -> str:
        """Return the text for a name that the file ``source`` binds to a class, an alias or a type variable."""
        if isinstance(bound, ast.ClassDef):
            value = getattr(importlib.import_module(source.module), name, None)
            if same := names.stand_in(source.module, name):
                return self.public(*same)  # a public class replaces this one
            for each in value.__mro__ if isinstance(value, type) else ():
                if (home := names.home(each)) and each is not object:
                    return self.public(*home)
                if vars(builtins).get(each.__name__) is each and each is not object:
                    return self.builtin(each.__name__)
            return self.any
        if isinstance(bound, ast.Call) and ast.unparse(bound.func).rpartition(".")[2] in ("TypeVar", "ParamSpec"):
            return self._variable(name, bound, source)
        if name in KEPT and source.module == "retrograd.types":
            return self.public("retrograd.types", name)
        if isinstance(bound, ast.expr):
            if isinstance(bound, ast.Constant) and not isinstance(bound.value, str):
                return self.any
            return self.type_text(bound, source)
        return self.any

    def _variable(self, name: str, call: ast.Call, source: Source) -> str:
        kind = self.outside("typing", ast.unparse(call.func).rpartition(".")[2])
        local = f"_{name.lstrip('_')}"
        options = "".join(f", {self.type_text(each, source)}" for each in call.args[1:])
        for each in call.keywords:
            shown = self.type_text(each.value, source) if each.arg in ("bound", "default") else ast.unparse(each.value)
            options += f", {each.arg}={shown}"
        self.variables[local] = f'{local} = {kind}("{local}"{options})'
        return local

    def value_type(self, value: object) -> str:
        """Return the text of the type of a constant."""
        if value is None:
            return "None"
        if isinstance(value, dtype | layout):
            return self.value_class(next(each for each in (dtype, memory_format, layout) if isinstance(value, each)))
        if isinstance(value, tuple) and value and len({type(each) for each in value}) == 1:
            return f"{self.builtin('tuple')}[{self.value_type(value[0])}, ...]"
        sizes: dict[type, int] = {list: 1, set: 1, frozenset: 1, dict: 2, tuple: 1}
        count = sizes.get(type(value))
        if count is not None:
            arguments = ", ".join([self.any] * count + ["..."] * isinstance(value, tuple))
            return f"{self.builtin(type(value).__name__)}[{arguments}]"
        return self.value_class(type(value))

    def value_class(self, cls: type) -> str:
        """Return the text for a class, or for its first base that is public."""
        for each in cls.__mro__[:-1]:
            if home := names.home(each):
                return self.public(*home)
            if each.__module__ == "builtins" and each.__name__ in vars(builtins):
                return self.builtin(each.__name__)
        return self.any

    def variable(self, name: str, value: object) -> list[str]:
        """Return the lines that declare a variable of the module."""
        if isinstance(value, type) and value.__module__ == "builtins":
            return [f"{name} = {self.outside('builtins', value.__name__)}"]
        if isinstance(value, type) and value.__module__ in STANDARD:
            self.imports[name] = f"from {value.__module__} import {value.__name__} as {name}"
            return []
        source = source_of_module(self.module)
        bound = source.bound.get(name) if source else None
        if isinstance(bound, tuple) and bound[1] and bound[0].partition(".")[0] != names.ROOT:
            self.imports[name] = f"from {bound[0]} import {bound[1]} as {name}"
            return []
        if isinstance(bound, tuple) and not bound[1]:
            self.imports[name] = f"import {bound[0]} as {name}"
            return []
        if source and isinstance(bound, ast.Call) and ast.unparse(bound.func).endswith("TypeVar"):
            return [f"{name} = {self._variable(name, bound, source)}"]
        if source and bound is not None and self._is_type(value):
            alias = self.outside("typing", "TypeAlias")
            return [f"{name}: {alias} = {self.type_text(bound, source) if isinstance(bound, ast.expr) else self.any}"]
        return [f"{name}: {self.value_type(value)}"]

    @staticmethod
    def _is_type(value: object) -> bool:
        """Whether a value is a class, or an alias such as ``int | str``."""
        return isinstance(value, type) or typing.get_origin(value) is not None

    # -- The file

    def text(self, documentation: str, lines: list[str]) -> str:
        """Return the text of the stub, with the module's docstring and the lines of its declarations."""
        head = [*docstring(documentation, "")]
        head.append(
            '# mypy: disable-error-code="assignment,misc,no-redef,overload-cannot-match,overload-overlap,override"'
        )
        head.append("# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false")
        tail = [f"{local} = {name}" for local, name in sorted(self.aliases.items())]
        body = [*sorted(set(self.imports.values())), *self.variables.values(), "", *lines, *tail]
        return "\n".join([*head, *body]) + "\n"


def _set_on_self(cls: type) -> Iterator[str]:
    """Yield the attributes that a class annotates, and those that its methods assign to ``self``."""
    node, _ = class_node(cls)
    for each in ast.walk(node) if node is not None else ():
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            yield each.attr


def _split_union(text: str) -> Iterator[str]:
    """Yield the members of a union that is not inside of brackets."""
    depth, start = 0, 0
    for place, each in enumerate(text):
        depth += (each in "[(") - (each in "])")
        if each == "|" and not depth:
            yield text[start:place].strip()
            start = place + 1
    yield text[start:].strip()


def docstring(text: str, indent: str) -> list[str]:
    """Return the lines of a docstring with this text, none for an empty text."""
    if not text:
        return []
    mark = 'r"""' if "\\" in text else '"""'
    if text.endswith('"') or '"""' in text or (mark[0] == "r" and text.endswith("\\")):
        text = text.replace('"""', "'''") + " " * (text.endswith(('"', "\\")))
    return textwrap.indent(f'{mark}{text}"""', indent, lambda line: bool(line.strip())).splitlines()


def identifier(name: str) -> bool:
    """Whether a declaration can have this name."""
    return name.isidentifier() and not keyword.iskeyword(name)
