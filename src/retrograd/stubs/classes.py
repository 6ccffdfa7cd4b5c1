"""The declaration of a class: its bases, attributes and methods.

A public class that inherits from an internal one is declared with the members of both. The attributes are those that the
class annotates, and those that ``__init__`` assigns.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import replace
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

from ..compat.missing_names import UnsupportedAttribute
from ..core.tensor import Tensor
from ..operations.creation import legacy_types
from ..runtime.codegen import parse_expression
from . import functions, names, recorded_types
from .annotations import FULL, Source, Stub, class_node, docstring, identifier, source_of_module

#: Special methods that are not declared: Python's own declarations, or of interest to the package only.
HIDDEN = frozenset({
    "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__class__", "__dict__", "__dir__",
    "__doc__",
    "__firstlineno__", "__getattribute__", "__getstate__", "__init_subclass__", "__module__", "__orig_bases__",
    "__parameters__", "__qualname__", "__reduce__", "__reduce_ex__", "__repr__", "__setstate__", "__sizeof__", "__slots__",
    "__static_attributes__", "__str__", "__subclasshook__", "__weakref__", "__subclasscheck__", "__instancecheck__",
    "__type_params__", "__abstractmethods__", "__class_getitem__", "__copy__", "__deepcopy__", "__getnewargs__",
    "__prepare__", "__match_args__", "__replace__", "__dataclass_fields__", "__dataclass_params__", "__slotnames__",
    "__constants__", "__call__", "__post_init__", "__torch_function__", "__delattr__", "__format__", "__all__",
    "__getattr__", "__setattr__",
})  # fmt: skip
#: Methods with an underscore that other programs call: notebooks.
PROTOCOLS = frozenset({"_repr_html_"})
#: Metaclass of ``FloatTensor`` and others, whose instances are tensors.
LEGACY = type(legacy_types.CPU_TYPES["FloatTensor"])
#: Attributes of public classes that only the package uses.
INTERNAL = {
    "torch.dtype": {"bits", "category", "name", "numpy"},
    "torch.optim.optimizer.Optimizer": {
        "counted",
        "checked",
        "moved",
        "moved_if",
        "captured",
        "capturable_on",
        "foreach_recorded",
    },
}
#: Operators of a tensor and the type of the other operand.
OPERAND = "torch.Tensor | torch.types.Number | complex"
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
#: Other special methods of a tensor: what follows the name in their declarations, with full names.
SPECIAL = {
    "__matmul__": "(self, other: torch.Tensor) -> torch.Tensor", "__rmatmul__": "(self, other: torch.Tensor) -> torch.Tensor",
    "__imatmul__": "(self, other: torch.Tensor) -> torch.Tensor",
    "__neg__": "(self) -> torch.Tensor", "__pos__": "(self) -> torch.Tensor", "__abs__": "(self) -> torch.Tensor",
    "__invert__": "(self) -> torch.Tensor", "__bool__": "(self) -> bool", "__int__": "(self) -> int",
    "__float__": "(self) -> float", "__complex__": "(self) -> complex", "__index__": "(self) -> int",
    "__len__": "(self) -> int", "__hash__": "(self) -> int", "__contains__": "(self, element: typing.Any, /) -> bool",
    "__iter__": "(self) -> collections.abc.Iterator[torch.Tensor]", "__reversed__": "(self) -> torch.Tensor",
    "__getitem__": "(self, index: INDEX, /) -> torch.Tensor",
    "__setitem__": "(self, index: INDEX, value: OPERAND, /) -> None",
    "__array__": "(self, dtype: typing.Any = None) -> numpy.typing.NDArray[typing.Any]",
    "__deepcopy__": "(self, memo: dict[int, typing.Any]) -> torch.Tensor",
    "__format__": "(self, format_spec: str, /) -> str",
    "__dlpack__": "(self, *, stream: typing.Any = -1, max_version: tuple[int, int] | None = None, "
    "dl_device: typing.Any = None, copy: bool | None = None) -> typing.Any",
    "__dlpack_device__": "(self) -> tuple[typing.Any, int]",
}  # fmt: skip
#: What an index of a tensor may consist of.
INDEX_ITEM = (
    "None | bool | int | slice[typing.Any, typing.Any, typing.Any] | types.EllipsisType | torch.Tensor | "
    "collections.abc.Sequence[typing.Any] | numpy.typing.NDArray[typing.Any]"
)


def declare(stub: Stub, name: str, cls: type) -> list[str]:
    """Return the lines that declare a class."""
    if type(cls) is LEGACY:
        base = stub.type_text(parse_expression("torch.Tensor"), FULL)
        return [f"class {name}({base}):", *docstring(inspect.getdoc(cls) or "", "    "), "    ..."]
    if names.torch_name(stub.module) == "torch.return_types":
        return named_result(stub, name, cls)
    full = f"{names.torch_name(stub.module)}.{name}"
    members = Members(stub, cls, full)
    body = docstring(inspect.getdoc(cls) or "" if "__doc__" in vars(cls) else "", "    ")
    lines = members.lines()
    bases = members.bases()
    head = f"class {name}{f'({bases})' if bases else ''}:"
    if not body and not lines:
        return [f"{head} ..."]
    return [head, *body, *(lines or ["    ..."])]


def named_result(stub: Stub, name: str, cls: type) -> list[str]:
    """Return the lines that declare a class of ``torch.return_types``: a tuple of tensors with names."""
    fields = [each for each, value in vars(cls).items() if isinstance(value, property)]
    tensor = stub.type_text(parse_expression("torch.Tensor"), FULL)
    lines = [f"class {name}({stub.builtin('tuple')}[{', '.join([tensor] * len(fields))}]):"]
    for each in fields:
        lines += [f"    @{stub.builtin('property')}", f"    def {each}(self) -> {tensor}: ..."]
    sequence = stub.type_text(parse_expression("collections.abc.Iterable[torch.Tensor]"), FULL)
    return [
        *lines,
        f"    def __new__(cls, values: {sequence}, attributes: {stub.builtin('object')} = None) -> {name}: ...",
    ]


class Members:
    """Members of a public class and of its internal bases, as lines of a stub."""

    def __init__(self, stub: Stub, cls: type, full: str) -> None:
        self.stub: Stub = stub
        self.cls: type = cls
        self.full: str = full
        self.done: set[str] = set()
        for each in cls.__mro__:
            self.done |= {key for key, value in vars(each).items() if isinstance(value, UnsupportedAttribute)}
            if home := names.home(each):
                self.done |= INTERNAL.get(".".join([names.torch_name(home[0]), home[1]]), set())

    def own_classes(self) -> list[type]:
        """Return the class and its internal bases, those that no other public base has."""
        public = [each for each in self.cls.__mro__[1:] if names.home(each)]
        inherited = {base for each in public for base in each.__mro__}
        return [
            each
            for each in self.cls.__mro__
            if each is self.cls
            or (each not in inherited and each.__module__.partition(".")[0] in ("retrograd", "torch"))
        ]

    def bases(self) -> str:
        """Return the text of the bases: public classes, classes of Python, and ``Generic``."""
        found: list[str] = []
        generic = ""
        for cls in self.own_classes():
            node, source = class_node(cls)
            for each in node.bases if node is not None else ():
                if isinstance(each, ast.Subscript) and source is not None:
                    text = self.stub.type_text(each, source)
                    if text.startswith(("Generic[", "_Generic[")):
                        generic = text
                    elif text != self.stub.any:
                        found.append(text)
            for base in cls.__bases__:
                if base in self.own_classes() or base is object or base.__name__ == "Generic":
                    continue
                if any(text.partition("[")[0].lstrip("_") == base.__name__ for text in found):
                    continue
                if home := names.home(base):
                    found.append(self.stub.public(*home))
                elif same := names.stand_in(_module_of(base), base.__name__):
                    found.append(self.stub.public(*same))
                elif base.__module__ in ("builtins", "collections", "abc", "enum", "typing", "types"):
                    found.append(self._standard(base))
        if self.cls.__dict__.get("_is_protocol"):
            found.append(self.stub.outside("typing", "Protocol"))
        unique = list(dict.fromkeys(filter(None, found)))
        if type(self.cls).__name__ == "EnumType" and not any("Enum" in each or "Flag" in each for each in unique):
            unique.append(self.stub.outside("enum", "Enum"))
        return ", ".join(unique + [generic] * bool(generic))

    def _standard(self, base: type) -> str:
        text = self.stub.outside(base.__module__, base.__name__)
        count = {"dict": 2, "OrderedDict": 2, "defaultdict": 2, "UserDict": 2, "list": 1, "set": 1, "deque": 1}.get(
            base.__name__, 0
        )
        if base is tuple:
            return f"{text}[{self.stub.any}, ...]"
        return f"{text}[{', '.join([self.stub.any] * count)}]" if count else text

    def lines(self) -> list[str]:
        """Return the lines of all members: attributes first."""
        attributes: list[str] = []
        methods: list[str] = []
        for cls in self.own_classes():
            node, source = class_node(cls)
            if cls is Tensor:
                break
            if node is not None and source is not None:
                for name, text in self.annotated(cls, node, source):
                    attributes += self._attribute(name, text)
                methods += self._defined(cls, node, source)
            methods += self._generated(cls)
        if self.cls is Tensor:
            methods += self.tensor()
        for cls in self.own_classes():
            node, source = class_node(cls)
            if node is not None and source is not None and cls is not Tensor:
                for name, text in assigned(self.stub, node, source):
                    attributes += self._attribute(name, text)
        for name in recorded_types.members_by_hand(self.full):
            if name not in self.done and self.cls is not Tensor:
                methods += self._method(name, getattr(self.cls, name))
        return attributes + methods + self._call()

    def _attribute(self, name: str, text: str) -> list[str]:
        if name in self.done or name[:1] == "_" or not identifier(name):
            return []
        self.done.add(name)
        if text == self.stub.any or recorded_types.attribute_by_hand(f"{self.full}.{name}"):
            known = recorded_types.declared(f"{self.full}.{name}", "")
            text = text if known is None else self.stub.type_text(known, FULL)
        return [f"    {name}: {text}"]

    def annotated(self, cls: type, node: ast.ClassDef, source: Source) -> Iterator[tuple[str, str]]:
        """Yield the attributes that the body of a class annotates or sets, with their types."""
        for each in node.body:
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                text = self.stub.type_text(each.annotation, source)
                if text == self.stub.any:
                    text = dict(assigned(self.stub, node, source)).get(each.target.id, text)
                if issubclass(cls, BaseException) or not _is_enum(cls):
                    yield each.target.id, text
            elif isinstance(each, ast.Assign) and _is_enum(self.cls):
                for target in each.targets:
                    if isinstance(target, ast.Name) and target.id[0] != "_":
                        self.done.add(target.id)
                        member = target.id
                        value = vars(self.cls).get(member)
                        self.enum_values = getattr(self, "enum_values", [])
                        shown = getattr(value, "value", None)
                        text = repr(shown) if isinstance(shown, int | str | float | tuple) else "..."
                        self.enum_values.append(f"    {member} = {text}")

    def _shown(self, name: str) -> bool:
        if name in self.done or name in HIDDEN or not identifier(name):
            return False
        return name[:1] != "_" or name in PROTOCOLS or (name[:2] == "__" and name[-2:] == "__")

    def _defined(self, cls: type, node: ast.ClassDef, source: Source) -> list[str]:
        """Return the lines of the methods that the body of a class defines."""
        lines: list[str] = getattr(self, "enum_values", [])
        self.enum_values = []
        here: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        for each in _body(node):
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                here.setdefault(each.name, []).append(each)
        for name, nodes in here.items():
            value = inspect.getattr_static(cls, name, None)
            if not self._shown(name) or (value is None and name != "__hash__"):
                continue
            overloads = [
                each for each in nodes if any(ast.unparse(d).endswith("overload") for d in each.decorator_list)
            ]
            if len(overloads) == len(nodes) - 1:
                nodes = overloads or nodes
            self.done.add(name)
            kept = [each for each in nodes if _kept(each, nodes)]
            declared = [self._from_node(each, source, value) for each in kept]
            written = recorded_types.by_hand(f"{self.full}.{name}")
            if written:
                declared = [
                    replace(
                        functions.from_text(self.stub, line, not isinstance(value, staticmethod)),
                        decorators=declared[0].decorators,
                    )
                    for line in written
                ]
            text = inspect.getdoc(plain_doc(value)) or "" if getattr(plain_doc(value), "__doc__", None) else ""
            if len(declared) > 1 and not overloads and not written:
                for number, one in enumerate(declared):
                    lines += functions.shown(self.stub, name, [one], text if not number else "", "    ")
                continue
            plain_method = isinstance(value, FunctionType | staticmethod | classmethod | property)
            only_self = [[each.name for each in one.parameters] for one in declared] == [["self"]]
            if only_self and not plain_method and not declared[0].decorators:
                declared[0].decorators = [self.stub.builtin("property")]  # one that is computed once
            for one in declared:
                one.decorators = [d for d in one.decorators if d.rpartition(".")[2].lstrip("_") != "overload"]
            lines += functions.shown(self.stub, name, declared, text, "    ")
        return lines

    def _from_node(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, source: Source, value: Any
    ) -> functions.Declaration:
        found = functions.from_node(
            self.stub, node, source, f"{self.full}.{node.name}", method=not functions._is_static(node), own=True
        )
        if node.name == "__init__":
            found.result = "None"
        if node.name == "__new__":
            found.result, found.decorators = self.stub.outside("typing", "Self"), []
            found.parameters[0] = replace(found.parameters[0], name="cls", type="")
        if node.name in ("__setattr__", "__delattr__", "__setitem__", "__delitem__") and found.result == self.stub.any:
            found.result = "None"
        return found

    def _generated(self, cls: type) -> list[str]:
        """Return the lines of the members of a class that its body does not define: generated methods, properties."""
        lines: list[str] = []
        for name, value in list(vars(cls).items()):
            if not self._shown(name) or name == "__hash__":
                continue
            self.done.add(name)
            if name == "__new__" and (_is_enum(self.cls)):
                continue
            if isinstance(value, property):
                lines += self._property(name, value)
            elif isinstance(value, MemberDescriptorType | GetSetDescriptorType):
                lines += [f"    {name}: {self._fact(name)}"]
            elif isinstance(value, FunctionType | staticmethod | classmethod):
                lines += self._method(name, value)
            elif isinstance(value, type):
                self.done.discard(name)
            elif callable(value) or hasattr(value, "__get__"):
                lines += [f"    {name}: {self._fact(name)}"]
            else:
                text = self._fact(name)
                lines += [f"    {name}: {text if text != self.stub.any else self.stub.value_type(value)}"]
        return lines

    def _fact(self, name: str) -> str:
        known = recorded_types.declared(f"{self.full}.{name}", "")
        return self.stub.any if known is None else self.stub.type_text(known, FULL)

    def _property(self, name: str, value: property) -> list[str]:
        found = functions.node_of(value)
        written = recorded_types.by_hand(f"{self.full}.{name}")
        if written:
            kind = self.stub.type_text(written[0].returns, FULL)
        elif found is not None:
            kind = functions.result_type(self.stub, *found, f"{self.full}.{name}")
        else:
            kind = self._fact(name)
        head = [f"    @{self.stub.builtin('property')}", f"    def {name}(self) -> {kind}:"]
        doc = docstring(inspect.cleandoc(value.__doc__ or ""), "        ")
        lines = [*head, *doc, "        ..."] if doc else [head[0], head[1] + " ..."]
        if value.fset is not None:
            lines += [f"    @{name}.setter", f"    def {name}(self, value: {kind}) -> None: ..."]
        if value.fdel is not None:
            lines += [f"    @{name}.deleter", f"    def {name}(self) -> None: ..."]
        return lines

    def _method(self, name: str, value: Any) -> list[str]:
        """Return the lines of a method that the body of its class does not define."""
        text = inspect.getdoc(plain_doc(value)) or "" if plain_doc(value).__doc__ else ""
        written = [functions.from_text(self.stub, each, True) for each in recorded_types.by_hand(f"{self.full}.{name}")]
        return functions.shown(self.stub, name, written or [self._declaration(name, value)], text, "    ")

    def _declaration(self, name: str, value: Any) -> functions.Declaration:
        """Return the declaration of a method, from its definition or from its signature at run time."""
        full = f"{self.full}.{name}"
        tensor = self.stub.type_text(parse_expression("torch.Tensor"), FULL)
        definition = functions.node_of(value)
        if definition is not None:
            method = not isinstance(value, staticmethod)
            found = functions.from_node(self.stub, *definition, full, method=method, own=False)
            if isinstance(value, staticmethod | classmethod):
                found.decorators = [self.stub.builtin(type(value).__name__)]
            return found
        own = value if isinstance(value, FunctionType) else getattr(self.cls, name)
        found = functions.from_signature(self.stub, own, full, self.cls)
        types = self._field_types() if name == "__init__" else {}
        for each in found.parameters:
            if each.type == self.stub.any and name == "forward":
                each.type = tensor
            if each.name in types:
                each.type = self.stub.union([types[each.name], "None"]) if each.default == "None" else types[each.name]
        if name == "forward" and found.result == self.stub.any:
            found.result = tensor
        if name == "__new__":
            found.result, found.decorators = self.stub.outside("typing", "Self"), []
            found.parameters[0] = replace(found.parameters[0], name="cls", type="")
        found.result = {"__init__": "None", "extra_repr": self.stub.builtin("str")}.get(name, found.result)
        return found

    def _field_types(self) -> dict[str, str]:
        """Return the types of the annotated attributes of a class and of its bases, by name."""
        found: dict[str, str] = {}
        for cls in reversed(self.cls.__mro__):
            node, source = class_node(cls)
            if node is not None and source is not None:
                found |= {
                    each.target.id: self.stub.type_text(each.annotation, source)
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                }
        return found

    def _call(self) -> list[str]:
        """Return the lines of ``__call__``: that of a module takes what ``forward`` takes."""
        from ..nn.modules.module import Module

        if issubclass(self.cls, Module):
            written = [
                functions.from_text(self.stub, each, True) for each in recorded_types.by_hand(f"{self.full}.forward")
            ]
            if written:
                return functions.shown(self.stub, "__call__", written, "", "    ")
            forward = vars(self.cls).get("forward") or next(
                (vars(each)["forward"] for each in self.own_classes() if "forward" in vars(each)), None
            )
            if self.cls is Module:
                return [
                    f"    forward: {self.stub.type_text(parse_expression('collections.abc.Callable[..., typing.Any]'), FULL)}",
                    f"    def __call__(self, *args: {self.stub.any}, **kwargs: {self.stub.any}) -> {self.stub.any}: ...",
                ]
            if forward is None:
                return []
            return functions.shown(self.stub, "__call__", [self._declaration("forward", forward)], "", "    ")
        value = next((vars(each)["__call__"] for each in self.own_classes() if "__call__" in vars(each)), None)
        if isinstance(value, FunctionType):
            return self._method("__call__", value)
        return []

    # -- Tensor

    def tensor(self) -> list[str]:
        """Return the lines of the members of ``Tensor``."""
        stub, lines = self.stub, []
        any_text = stub.any
        lines += [
            f"    def __new__(cls, *args: {any_text}, **kwargs: {any_text}) -> {stub.outside('typing', 'Self')}: ..."
        ]
        operand = stub.type_text(parse_expression(OPERAND), FULL)
        tensor = stub.type_text(parse_expression("torch.Tensor"), FULL)
        index = stub.type_text(parse_expression(INDEX_ITEM), FULL)
        stub.aliases["_IndexItem"] = index
        stub.aliases["_Index"] = f"_IndexItem | {stub.builtin('tuple')}[_IndexItem, ...]"
        for each in ARITHMETIC:
            for form in ("", "r", "i"):
                if hasattr(Tensor, f"__{form}{each}__"):
                    lines.append(f"    def __{form}{each}__(self, other: {operand}) -> {tensor}: ...")
        for each in COMPARISONS:
            if each in ("eq", "ne"):
                overload, other = f"    @{stub.outside('typing', 'overload')}", stub.builtin("object")
                lines += [overload, f"    def __{each}__(self, other: {operand}) -> {tensor}: ..."]
                lines += [overload, f"    def __{each}__(self, other: {other}) -> {stub.builtin('bool')}: ..."]
            else:
                lines.append(f"    def __{each}__(self, other: {operand}) -> {tensor}: ...")
        lines += [
            f"    @{stub.builtin('classmethod')}",
            f"    def __torch_function__(cls, func: {any_text}, types: {any_text}, args: {any_text} = ..., "
            f"kwargs: {any_text} = None) -> {any_text}: ...",
        ]
        for name, text in SPECIAL.items():
            if hasattr(Tensor, name):
                node = ast.parse(f"def f{text.replace('INDEX', 'int').replace('OPERAND', OPERAND)}: ...").body[0]
                assert isinstance(node, ast.FunctionDef)
                found = functions.from_text(stub, node, method=True)
                if "INDEX" in text:
                    found.parameters[1].type = "_Index"
                lines += functions.shown(stub, name, [found], "", "    ")
        for name in dir(Tensor):
            if name[:1] == "_" and name not in PROTOCOLS:
                continue
            value = inspect.getattr_static(Tensor, name)
            if type(value).__name__ == "MethodOnDemand":
                value = getattr(Tensor, name)
            if isinstance(value, property):
                lines += self._property(name, value)
            elif isinstance(value, staticmethod | classmethod):
                lines += self._method(name, value)
            elif callable(value):
                lines += functions.declare(stub, name, value, f"torch.Tensor.{name}", Tensor)
            else:
                lines += [f"    {name}: {self._fact(name)}"]
        return lines


def plain_doc(value: Any) -> Any:
    """Return the object whose docstring describes a member."""
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value


def _module_of(cls: type) -> str:
    """Return the module of the package whose source defines a class, or an empty text."""
    _, source = class_node(cls)
    return source.module if source is not None else ""


def _is_enum(cls: type) -> bool:
    return type(cls).__name__ in ("EnumType", "EnumMeta")


def _kept(node: ast.FunctionDef | ast.AsyncFunctionDef, nodes: list[Any]) -> bool:
    """Whether a definition is declared: setters are, the first of two alternatives is not."""
    decorated = any("." in ast.unparse(each) or "overload" in ast.unparse(each) for each in node.decorator_list)
    return decorated or node is next(
        each
        for each in reversed(nodes)
        if not any("." in ast.unparse(d) for d in each.decorator_list) or each is nodes[0]
    )


def _body(node: ast.ClassDef) -> Iterator[ast.stmt]:
    """Yield the statements of the body of a class, also those for type checkers only."""
    for each in node.body:
        if isinstance(each, ast.If):
            yield from each.body
        else:
            yield each


def assigned(stub: Stub, node: ast.ClassDef, source: Source) -> Iterator[tuple[str, str]]:
    """Yield the attributes that ``__init__`` of a class assigns to ``self``, with their types as far as they are evident."""
    init = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    if init is None:
        return
    arguments = [*init.args.posonlyargs, *init.args.args, *init.args.kwonlyargs]
    types = {each.arg: stub.type_text(each.annotation, source) for each in arguments if each.annotation is not None}
    for each in ast.walk(init):
        if isinstance(each, ast.AnnAssign) and _self_name(each.target):
            yield _self_name(each.target), stub.type_text(each.annotation, source)
        if not isinstance(each, ast.Assign):
            continue
        for target in each.targets:
            if name := _self_name(target):
                yield name, inferred(stub, each.value, source, types)
            elif isinstance(target, ast.Tuple):
                values = each.value.elts if isinstance(each.value, ast.Tuple) else [None] * len(target.elts)
                element = _element(inferred(stub, each.value, source, types))
                for part, value in zip(target.elts, values, strict=False):
                    if name := _self_name(part):
                        yield name, inferred(stub, value, source, types) if value is not None else element or stub.any


def _self_name(node: ast.expr) -> str:
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if own else ""  # type: ignore[attr-defined]


def _element(text: str) -> str:
    """Return the type of the elements of a tuple of one type."""
    return text.partition("[")[2].removesuffix(", ...]") if text.endswith(", ...]") else ""


def inferred(stub: Stub, node: ast.expr, source: Source, types: dict[str, str]) -> str:
    """Return the type of an expression in ``__init__``, if its form shows it, else ``Any``."""
    if isinstance(node, ast.Name) and node.id in types:
        return types[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | str):
        return stub.builtin(type(node.value).__name__)
    if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return stub.builtin("bool")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        bound = source.bound.get(node.func.id)
        definition, origin = bound, source
        if isinstance(bound, tuple) and (other := source_of_module(bound[0])):
            definition, origin = other.bound.get(bound[1]), other
        if isinstance(definition, ast.ClassDef):
            text = stub.type_text(ast.Name(node.func.id), source)
            text = {"UninitializedParameter": "Parameter"}.get(text, text)
            return text
        if isinstance(definition, ast.FunctionDef):
            return stub.type_text(definition.returns, origin)
    return stub.any
