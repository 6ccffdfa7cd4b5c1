"""Facts of an entry of the API reference that are read from the package and its tests: signatures, shapes, errors.

Signatures with types are those of the stubs (``retrograd.stubs``). Shapes are those of the samples of the tests. Errors
are those that recorded wrong calls raise (``tests/conformance/failing_calls.txt``); the calls are made while the page
is written.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy

import retrograd
from retrograd import stubs
from retrograd.stubs import names
from tests.conformance import error_cases, operation_error_cases
from tests.conformance.samples import FAMILIES, Sample, samples

# -- Signatures --------------------------------------------------------------------------------------------------------

Definition = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def declarations(module: str) -> dict[str, list[ast.stmt]]:
    """Return the functions and classes that the stub of a module declares, overloads together."""
    return _by_name(ast.parse(stubs.module_text(module)).body) if module in names.modules() else {}


def _by_name(body: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    declared: dict[str, list[ast.stmt]] = defaultdict(list)
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            declared[node.name].append(node)
    return declared


def _class(cls: type) -> dict[str, list[ast.stmt]]:
    module, name = names.home(cls) or ("", "")
    for node in declarations(module).get(name, ()):
        if isinstance(node, ast.ClassDef):
            return _by_name(node.body)
    return {}


def _text(node: Definition, method: bool) -> str:
    """Return the signature of a declaration, such as ``(input: Tensor, *, out: Tensor | None = None) -> Tensor``."""
    arguments = node.args
    static = any(ast.unparse(each) == "staticmethod" for each in node.decorator_list)
    if method and not static:
        (arguments.posonlyargs or arguments.args)[:1] = []
    result = f" -> {ast.unparse(node.returns)}" if node.returns and node.name not in ("__init__", "__new__") else ""
    return f"({ast.unparse(arguments)}){result}"


def typed_signatures(name: str, value: Any, kind: str) -> list[str]:
    """Return the signatures that the stubs declare for a function, method or class, or none.

    >>> typed_signatures("tanh", retrograd.tanh, "function")
    ['(input: Tensor, *, out: Tensor | None=None) -> Tensor']
    """
    found: list[ast.stmt] = []
    if kind == "method":
        found = _class(retrograd.Tensor).get(name.rpartition(".")[2], [])
    elif kind == "class":
        for cls in value.__mro__:
            declared = _class(cls)
            if found := declared.get("__init__", []) or declared.get("__new__", []):
                break
    else:
        module, own = names.home(value) or (f"retrograd.{name}".rpartition(".")[0], name.rpartition(".")[2])
        found = declarations(module).get(own, [])
    method = kind != "function"
    definitions = [each for each in found if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return list(dict.fromkeys(_text(_copy(each), method) for each in definitions))


def _copy(node: Definition) -> Definition:
    return ast.parse(ast.unparse(node)).body[0]  # type: ignore[return-value]


# -- Shapes ------------------------------------------------------------------------------------------------------------


@functools.cache
def samples_by_operation() -> dict[str, list[Sample]]:
    """Return the samples of all families by the name of their operation."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for name in FAMILIES:
        for each in samples(name):
            found[each.op].append(each)
    return found


#: Modules whose functions have names of operations, and do something else.
_OTHER_FUNCTIONS = ("distributed.", "jit.", "masked.", "nested.", "nn.init.", "sparse.")


def samples_of(name: str, known: str) -> list[Sample]:
    """Return the samples of the operation ``known`` that show what ``name`` does."""
    found = samples_by_operation().get(known, [])
    if name.startswith(_OTHER_FUNCTIONS):
        return [each for each in found if f"torch.{name}(" in each.expression]
    return found


def operation_names(name: str, value: Any) -> list[str]:
    """Return the names under which the samples of a function or method may be found."""
    last = name.rpartition(".")[2]
    operation = getattr(inspect.unwrap(value), "__name__", last)
    return list(dict.fromkeys((last, last.removesuffix("_"), operation, operation.removesuffix("_"))))


def _shape_of(value: Any) -> str:
    if isinstance(value, retrograd.Tensor):
        return str(tuple(value.shape))
    if isinstance(value, (tuple, list)) and value and all(isinstance(each, retrograd.Tensor) for each in value):
        return ", ".join(map(_shape_of, value)) if len(value) <= 4 else ""
    return ""


@functools.cache
def _line_of_shapes(sample: Sample) -> str:
    """Return the shapes of the inputs and results of a sample, such as ``x (2, 3), y (3,) → (2,)``, or ""."""
    arrays = sample.arrays()
    space = {"torch": retrograd, **{key: retrograd.tensor(each) for key, each in arrays.items()}}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = _shape_of(eval(sample.expression, space))
    except Exception:  # a sample may need another dtype
        return ""
    given = ", ".join(f"{key} {numpy.shape(array)}" for key, array in arrays.items())
    call = re.sub(r"\s+\)", ")", sample.expression.partition("  #")[0].strip())
    return f"``{call}``: {given} → {result}" if given and result else ""


def shapes(name: str, value: Any, count: int = 3) -> list[str]:
    """Return lines with calls of an operation and the shapes of their inputs and results."""
    for known in operation_names(name, value):
        lines: dict[str, str] = {}
        found = samples_of(name, known)
        own = f".{known}(" if name.startswith("Tensor.") else f"torch.{name}("
        for each in sorted(found, key=lambda sample: own not in sample.expression):
            if len(each.expression) < 80 and (line := _line_of_shapes(each)):
                lines.setdefault(line.partition("``: ")[2], line)
            if len(lines) == count:
                break
        if lines:
            return list(lines.values())
    return []


# -- Errors ------------------------------------------------------------------------------------------------------------

#: Expressions in place of the names that recorded calls use.
INPUTS = {
    "x": "torch.ones(2, 3)", "v": "torch.ones(3)", "w": "torch.ones(3, requires_grad=True)", "s": "torch.tensor(2.0)",
    "i": "torch.tensor([0, 1, 2])", "b": "torch.tensor([True, False, True])", "c": "torch.tensor([1 + 2j, 3 - 1j])",
    "h": "torch.ones(2, dtype=torch.float16)", "y": "(torch.ones(3, requires_grad=True) * 2)", "e": "torch.empty(0, 3)",
    "m": "torch.eye(3)", "t": "torch.ones(2, 3, 4)",
    "F": "torch.nn.functional", "nn": "torch.nn", "optim": "torch.optim", "data": "torch.utils.data",
}  # fmt: skip


class _Inputs(ast.NodeTransformer):
    """Replaces names by the expressions of their values."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.parse(self.values[node.id], mode="eval").body if node.id in self.values else node


def _called(call: ast.expr) -> str:
    """Return the name of the entry that a call with its inputs calls, such as ``nn.Linear`` or ``Tensor.sum``, or ""."""
    if not isinstance(call, ast.Call):
        return ""
    if isinstance(call.func, ast.Call):
        return _called(call.func)
    text = ast.unparse(call.func)
    if re.fullmatch(r"torch(\.\w+)+", text):
        return text.removeprefix("torch.")
    return f"Tensor.{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""


@functools.cache
def wrong_calls() -> dict[str, list[str]]:
    """Return recorded calls that raise, with their inputs written out, by the name of the entry that they call."""
    found: dict[str, list[str]] = defaultdict(list)
    families = operation_error_cases.FAMILIES
    calls = [(call, INPUTS) for each in error_cases.calls().values() for call in each]
    calls += [
        (call, {**operation_error_cases.NAMES}) for each in families for call in operation_error_cases.calls(each)
    ]
    for call, values in calls:
        try:
            tree = _Inputs(values).visit(ast.parse(call, mode="eval")).body
        except SyntaxError:  # several statements
            continue
        text = ast.unparse(tree)
        if len(text) <= 100 and (name := _called(tree)):
            found[name].append(text)
    return {name: sorted(dict.fromkeys(each), key=len) for name, each in found.items()}


def _raised(call: str) -> tuple[str, str] | None:
    """Return the type and the first line of the error that a call raises, or None."""
    try:
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            eval(call, {"torch": retrograd})
    except NameError:  # the call uses a function of the tests
        return None
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return type(error).__name__, lines[0]
    return None


def _same_operation(name: str) -> Iterator[str]:
    """Yield the name of an entry and those of the other forms of the same operation."""
    last = name.rpartition(".")[2]
    yield name
    if "." not in name or name.startswith(("Tensor.", "linalg.", "special.", "nn.functional.", "fft.")):
        for base in dict.fromkeys((last, last.removesuffix("_"))):
            for space in ("", "Tensor.", "linalg.", "special.", "nn.functional.", "fft."):
                yield space + base


def _wrong_type(name: str) -> list[str]:
    """Return a call with a string in place of the first tensor, if the function ``name`` expects one there."""
    module, _, last = f"retrograd.{name}".rpartition(".")
    for node in declarations(module).get(last, ()):
        if isinstance(node, ast.FunctionDef):
            first = (node.args.posonlyargs + node.args.args)[:1]
            if first and first[0].annotation is not None and ast.unparse(first[0].annotation) == "Tensor":
                rest = len(node.args.args) - 1 - len(node.args.defaults)
                given = ["'a'"] + ["torch.ones(3)"] * rest
                return [f"torch.{name}({', '.join(given)})"]
    return []


def errors(name: str, count: int = 2) -> list[tuple[str, str, str]]:
    """Return calls of an entry that raise: the type of the error, the call, and the first line of the message."""
    for each in _same_operation(name):
        found: dict[str, tuple[str, str, str]] = {}
        for call in wrong_calls().get(each) or _wrong_type(each):
            raised = _raised(call)
            if raised and 10 < len(raised[1]) <= 240 and "0x" not in raised[1] and raised[1][-1] != ":":
                found.setdefault(f"{raised[0]}: {raised[1][:20]}", (raised[0], call, raised[1]))
            if len(found) == count:
                break
        if found:
            return list(found.values())
    return []
