"""The declarations of a function: its signatures, as overloads if there are several, and its docstring."""

from __future__ import annotations

import ast
import inspect
import keyword
from dataclasses import dataclass, field, replace
from typing import Any

from ..dispatch import signatures
from ..runtime.codegen import parse_expression
from . import recorded_types
from .annotations import FULL, Source, Stub, docstring, plain, source_of_file

#: Namespaces of ``dispatch/signatures.txt`` by PyTorch's module or class.
SPACES = {
    "torch": "torch", "torch.Tensor": "Tensor", "torch.linalg": "linalg", "torch.fft": "fft", "torch.special": "special",
    "torch.nn.functional": "nn",
}  # fmt: skip
#: Types of parameters in ``dispatch/signatures.txt``.
KINDS = {
    "Tensor": "torch.Tensor", "Number": "torch.types.Number | complex", "float": "float", "int": "int", "bool": "bool",
    "str": "str",
    "dtype": "torch.dtype", "layout": "torch.layout", "memory_format": "torch.memory_format",
    "device": "torch.types.Device", "Generator": "torch.Generator", "object": "typing.Any", "Stream": "typing.Any",
    "Storage": "typing.Any",
}  # fmt: skip
#: Types of parameters that are annotated as ``Any``, by name.
USUAL = {
    "device": "torch.types.Device", "dtype": "torch.dtype | None", "layout": "torch.layout | None", "out": "torch.Tensor | None",
    "memory_format": "torch.memory_format | None", "generator": "torch.Generator | None",
}  # fmt: skip
POSITIONAL, NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
SPREAD, KEYWORDS, FIRST = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY,
)


@dataclass
class Parameter:
    """Parameter of a declaration: name, type, kind as in ``inspect``, and the text of the default or an empty text."""

    name: str
    type: str
    kind: Any = POSITIONAL
    default: str = ""


@dataclass
class Declaration:
    """One way to call a function: parameters, type of the result, and decorators."""

    parameters: list[Parameter]
    result: str
    decorators: list[str] = field(default_factory=list)
    is_async: bool = False


def is_function(value: Any) -> bool:
    """Whether a value is declared as a function: one of Python, or a callable object that shows a signature."""
    return inspect.isroutine(value) or hasattr(value, "__wrapped__")


def node_of(value: Any) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, Source] | None:
    """Return the definition of a function in the sources, and its file; None for a generated function."""
    code: Any = getattr(plain(value), "__code__", None)
    source = source_of_file(code.co_filename) if code is not None else None
    node = source.functions.get(code.co_firstlineno) if source is not None else None
    return (node, source) if node is not None and source is not None else None


def declare(stub: Stub, name: str, value: Any, full: str, owner: type | None = None) -> list[str]:
    """Return the lines that declare a function, or a method of the class ``owner``.

    ``full`` is its name in PyTorch, such as ``torch.Tensor.max``.
    """
    indent = "    " * (owner is not None)
    declared = declarations(stub, name, value, full, owner)
    text = inspect.getdoc(value) or ""
    if (
        owner is not None
        and owner.__mro__[-2] is not owner
        and text
        and any(inspect.getdoc(getattr(base, name, None)) == text for base in owner.__mro__[1:])
    ):
        text = ""
    return shown(stub, name, declared, text, indent)


def shown(stub: Stub, name: str, declared: list[Declaration], text: str, indent: str) -> list[str]:
    """Return the lines of the declarations of one function, with its docstring in the first."""
    lines: list[str] = []
    for number, each in enumerate(declared):
        if len(declared) > 1:
            lines.append(f"{indent}@{stub.outside('typing', 'overload')}")
        lines += [f"{indent}@{decorator}" for decorator in each.decorators]
        head = f"{indent}{'async ' * each.is_async}def {name}({parameters_text(each.parameters)}) -> {each.result}:"
        doc = docstring(text, indent + "    ") if not number else []
        lines += [head, *doc, f"{indent}    ..."] if doc else [f"{head} ..."]
    return lines


def parameters_text(parameters: list[Parameter]) -> str:
    """Return the text of the parameters between the parentheses of a declaration."""
    parts: list[str] = []
    marked = False
    for place, each in enumerate(parameters):
        if each.kind is NAMED and not marked:
            parts.append("*")
            marked = True
        marked = marked or each.kind is SPREAD
        stars = {SPREAD: "*", KEYWORDS: "**"}.get(each.kind, "")
        kind = f": {each.type}" if each.type else ""
        parts.append(
            f"{stars}{each.name}{kind}"
            + (f" = {each.default}" if each.default and kind else f"={each.default}" if each.default else "")
        )
        if each.kind is FIRST and (place + 1 == len(parameters) or parameters[place + 1].kind is not FIRST):
            parts.append("/")
    return ", ".join(parts)


def declarations(stub: Stub, name: str, value: Any, full: str, owner: type | None = None) -> list[Declaration]:
    """Return the ways to call a function, from its recorded signatures or from its definition."""
    if written := recorded_types.by_hand(full):
        return [from_text(stub, each, owner is not None) for each in written]
    space = SPACES.get(full.rpartition(".")[0])
    if space is not None:
        known = [each for each in signatures.signatures(space, name) if not each.hidden]
        if known:
            return recorded(stub, known, full)
    found = node_of(value) if "__signature__" not in getattr(value, "__dict__", {}) else None
    if found is not None:
        node, source = found
        if owner is None or space == "Tensor":
            return [from_node(stub, node, source, full, method=owner is not None, own=owner is None)]
        return [from_node(stub, node, source, full, method=not _is_static(node), own=True)]
    return [from_signature(stub, value, full, owner)]


def _is_static(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(each) == "staticmethod" for each in node.decorator_list)


# -- Recorded signatures ------------------------------------------------------------------------------------------------


def recorded(stub: Stub, known: list[signatures.Signature], full: str) -> list[Declaration]:
    """Return the declarations of a function whose signatures are in ``dispatch/signatures.txt``."""
    method = full.startswith("torch.Tensor.")
    found: list[Declaration] = []
    for line in known:
        shown = [each.name for each in line.parameters if each.name != "out"]
        kind = recorded_types.result(full, shown)
        if kind is None and method:
            kind = recorded_types.result(full.replace(".Tensor", "", 1), ["input", *shown])
        result = stub.type_text(kind or parse_expression("torch.Tensor"), FULL)
        parameters = [Parameter("self", "")] if method else []
        for each in line.parameters:
            parameters.append(
                Parameter(
                    each.name + "_" * keyword.iskeyword(each.name),
                    recorded_type(stub, each, line, result),
                    NAMED if each.keyword_only else POSITIONAL,
                    _default(each.default),
                )
            )
        parameters = _required_first(parameters)
        found.append(Declaration(parameters, result))
        if line.spread:
            one = parameters.copy()
            place = 1 if method else 0
            one[place] = Parameter(one[place].name, stub.builtin("int"), SPREAD)
            found.append(Declaration(one, result))
    return merged(found)


def _required_first(parameters: list[Parameter]) -> list[Parameter]:
    """Return the parameters such that a default is followed by defaults, as Python requires of a declaration."""
    given = False
    result = []
    for each in parameters:
        if each.kind is POSITIONAL:
            given = given or bool(each.default)
            if given and not each.default:
                each = replace(each, default="...")
        result.append(each)
    return result


def recorded_type(stub: Stub, parameter: signatures.Parameter, line: signatures.Signature, result: str) -> str:
    """Return the type of a parameter of a recorded signature."""
    kind = parameter.kind
    if parameter.name == "out":
        one = stub.type_text(parse_expression("torch.Tensor"), FULL)
        text = one if kind == "Tensor" else f"{stub.builtin('tuple')}[{one}, ...] | {stub.builtin('list')}[{one}]"
    elif kind.endswith("[]"):
        element = KINDS[kind[:-2]]
        text = stub.type_text(parse_expression(f"collections.abc.Sequence[{element}]"), FULL)
        if parameter.single:
            text = stub.union([stub.type_text(parse_expression(element), FULL), text])
    else:
        takes_numbers = kind == "Tensor" and line.function in signatures.TAKE_NUMBERS
        text = stub.type_text(parse_expression(KINDS[kind] + " | torch.types.Number | complex" * takes_numbers), FULL)
    return stub.union([text, "None"]) if parameter.nullable else text


def _default(text: str) -> str:
    """Return the text of a default in a stub: a literal as it is, anything else as dots."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return "..." if text else ""
    return "..." if isinstance(value, set) else text


def merged(found: list[Declaration]) -> list[Declaration]:
    """Return the declarations without those whose calls another one of the same result accepts."""
    kept: list[Declaration] = []
    for each in found:
        if not any(accepts(other, each) for other in kept):
            kept = [other for other in kept if not accepts(each, other)] + [each]
    return kept


def accepts(general: Declaration, special: Declaration) -> bool:
    """Whether ``general`` accepts every call that ``special`` accepts, and has the same result."""
    if general.result != special.result:
        return False
    by_name = {each.name: each for each in general.parameters}
    if [each.kind for each in special.parameters if each.kind is SPREAD] or any(
        each.kind is SPREAD for each in general.parameters
    ):
        return False
    for place, each in enumerate(special.parameters):
        other = by_name.pop(each.name, None)
        if (
            other is None
            or not set(_parts(each.type)) <= set(_parts(other.type))
            or (each.default and not other.default)
        ):
            return False
        if (each.kind is POSITIONAL and general.parameters.index(other) != place) or (
            other.kind is NAMED and each.kind is not NAMED
        ):
            return False
    return all(each.default for each in by_name.values())


def _parts(text: str) -> list[str]:
    return text.split(" | ")


# -- Definitions in the sources -----------------------------------------------------------------------------------------


def from_node(
    stub: Stub, node: ast.FunctionDef | ast.AsyncFunctionDef, source: Source, full: str, *, method: bool, own: bool
) -> Declaration:
    """Return the declaration of a function that is defined in ``source``.

    Types that are not annotated, or annotated as ``Any``, are those that PyTorch declares. The first parameter of a method
    has no type. ``own`` states that the definition is in the class, with decorators that count.
    """
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(every) - len(arguments.defaults)) + [*arguments.defaults]
    parameters = []
    for place, (each, default) in enumerate(zip(every, defaults, strict=True)):
        kind = FIRST if place < len(arguments.posonlyargs) else POSITIONAL
        if method and not place:
            parameters.append(Parameter("cls" if each.arg in ("cls", "mcs") else "self", "", kind))
        else:
            parameters.append(_argument(stub, each, default, source, full, kind))
    if arguments.vararg:
        parameters.append(_argument(stub, arguments.vararg, None, source, full, SPREAD))
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parameters.append(_argument(stub, each, default, source, full, NAMED))
    if arguments.kwarg:
        parameters.append(_argument(stub, arguments.kwarg, None, source, full, KEYWORDS))
    result = result_type(stub, node, source, full)
    decorators = [text for each in node.decorator_list if own for text in _decorator(stub, each)]
    return Declaration(parameters, result, decorators, isinstance(node, ast.AsyncFunctionDef))


def from_text(stub: Stub, node: ast.FunctionDef, method: bool) -> Declaration:
    """Return the declaration of a function that is written with full names, as in ``by_hand.txt``."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(every) - len(arguments.defaults)) + [*arguments.defaults]
    rows: list[tuple[ast.arg, ast.expr | None, Any]] = [
        (each, default, FIRST if each in arguments.posonlyargs else POSITIONAL)
        for each, default in zip(every, defaults, strict=True)
    ]
    rows += [(arguments.vararg, None, SPREAD)] if arguments.vararg else []
    rows += [(each, default, NAMED) for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    rows += [(arguments.kwarg, None, KEYWORDS)] if arguments.kwarg else []
    parameters = [
        Parameter(
            each.arg,
            "" if not place and each.arg in ("self", "cls") else stub.type_text(each.annotation, FULL),
            kind,
            ast.unparse(default) if default is not None else "",
        )
        for place, (each, default, kind) in enumerate(rows)
    ]
    return Declaration(parameters, stub.type_text(node.returns, FULL))


def result_type(stub: Stub, node: ast.FunctionDef | ast.AsyncFunctionDef, source: Source, full: str) -> str:
    """Return the type of the result of a function that is defined in ``source``."""
    result = stub.type_text(node.returns, source)
    if result == stub.any and (known := recorded_types.declared(full, "return")) is not None:
        return stub.type_text(known, FULL)
    return result


def known_type(stub: Stub, text: str, full: str, name: str) -> str:
    """Return the type of a parameter: ``text``, or if that is ``Any``, what its name or PyTorch's declaration says."""
    if text != stub.any:
        return text
    known = parse_expression(USUAL[name]) if name in USUAL else recorded_types.declared(full, name)
    return text if known is None else stub.type_text(known, FULL)


def _argument(stub: Stub, node: ast.arg, default: ast.expr | None, source: Source, full: str, kind: Any) -> Parameter:
    text = known_type(stub, stub.type_text(node.annotation, source), full, node.arg)
    shown = "" if default is None else _default(ast.unparse(default)) or "..."
    if shown == "None" and text != stub.any:
        text = stub.union([text, "None"])
    return Parameter(node.arg, text, kind, shown)


def _decorator(stub: Stub, node: ast.expr) -> list[str]:
    """Return the decorators of a method that its declaration keeps."""
    text = ast.unparse(node)
    last = text.rpartition(".")[2]
    if text in ("staticmethod", "classmethod", "property"):
        return [stub.builtin(text)]
    if last in ("setter", "deleter") and "." in text:
        return [text]
    if last in ("contextmanager", "asynccontextmanager"):
        return [stub.outside("contextlib", last)]
    if last in ("abstractmethod",):
        return [stub.outside("abc", last)]
    if last in ("cached_property",):
        return [stub.outside("functools", last)]
    if last == "overload":
        return [stub.outside("typing", last)]
    return []


# -- Signatures at run time ---------------------------------------------------------------------------------------------


def from_signature(stub: Stub, value: Any, full: str, owner: type | None) -> Declaration:
    """Return the declaration of a function that was generated: its parameters as ``inspect`` shows them."""
    tensor = stub.type_text(parse_expression("torch.Tensor"), FULL)
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        first = [Parameter("self", "")] if owner is not None and not isinstance(value, staticmethod) else []
        return Declaration(
            [*first, Parameter("args", stub.any, SPREAD), Parameter("kwargs", stub.any, KEYWORDS)], stub.any
        )
    parameters = []
    is_op = type(getattr(value, "__wrapped__", None)).__name__ == "DeclaredSignature"
    op = getattr(getattr(value, "__wrapped__", None), "op", None)
    for place, each in enumerate(signature.parameters.values()):
        text = stub.any
        if owner is not None and not place and each.name in ("self", "cls", "input"):
            parameters.append(Parameter("self", ""))
            continue
        if isinstance(each.annotation, str) and (source := _source(value)):
            text = stub.type_text(parse_expression(each.annotation), source)
        text = known_type(stub, text, full, each.name)
        if (
            text == stub.any
            and is_op
            and (each.name in ("input", "self", "out") or each.name in getattr(op, "tensors", ()))
        ):
            text = stub.union([tensor, "None"]) if each.default is None else tensor
        default = "" if each.default is each.empty else _default(repr(each.default)) or "..."
        if default == "None" and text != stub.any:
            text = stub.union([text, "None"])
        parameters.append(Parameter(each.name, text, each.kind, default))
    result = stub.any
    if isinstance(signature.return_annotation, str) and (source := _source(value)):
        result = stub.type_text(parse_expression(signature.return_annotation), source)
    if result == stub.any and (known := recorded_types.declared(full, "return")) is not None:
        result = stub.type_text(known, FULL)
    elif is_op and not getattr(op, "several", False):
        result = tensor
    return Declaration(_required_first(parameters), result)


def _source(value: Any) -> Source | None:
    code = getattr(plain(value), "__code__", None)
    return source_of_file(code.co_filename) if code is not None else None
