"""Signatures of PyTorch's functions, read from ``signatures.txt``, and checks of arguments against them.

The signatures are used after a call has failed, to find PyTorch's error message, and for arguments of unusual classes. The
checks follow PyTorch's argument parser, as far as its behaviour can be seen from its errors.
"""

from __future__ import annotations

import operator
import os
import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

import numpy

from ..compat.type_names import type_name
from ..core import devices, dtypes
from ..core.tensor import Tensor, layout, memory_format

if TYPE_CHECKING:
    from collections.abc import Callable

#: Functions that accept a number for any tensor argument.
TAKE_NUMBERS = frozenset(
    name + form
    for name in ("add", "sub", "mul", "div", "subtract", "multiply", "divide", "true_divide", "floor_divide")
    for form in ("", "_")
) | {"copy", "copy_"}
#: NumPy's names for arguments, which PyTorch accepts, too.
OTHER_NAMES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
USUAL_NAMES = {other: usual for usual, names in OTHER_NAMES.items() for other in names}
#: Parameters for an int that PyTorch treats as a size, so that it accepts any object with ``__index__``.
SIZES = frozenset({"n", "m", "k", "high", "index", "low", "start", "length"})
#: The names of types in PyTorch's errors, where they differ from those in signatures.txt.
SHOWN = {
    "int[]": "tuple of ints", "float[]": "tuple of floats", "Tensor[]": "tuple of Tensors",
    "Number[]": "tuple of Scalars", "dtype": "torch.dtype", "layout": "torch.layout", "device": "torch.device",
    "memory_format": "torch.memory_format", "Generator": "torch.Generator", "Stream": "torch.Stream",
    "Storage": "torch.Storage",
}  # fmt: skip


class ArgumentMismatch(TypeError):
    """Error for arguments that do not fit a signature; its text is PyTorch's."""


class ElementMismatch(ArgumentMismatch):
    """Error for an argument that is a list with an element of the wrong type, if this is not the first element.

    PyTorch chooses a signature by the first elements of lists, and finds this error later. Therefore no other signature
    is tried.
    """


class Parameter:
    """One parameter of a signature, parsed from its text, for example ``int[1]? dim=None``."""

    __slots__ = ("default", "keyword_only", "kind", "name", "nullable", "single")
    name: str

    def __init__(self, text: str, keyword_only: bool) -> None:
        kind, _, named = text.rpartition(" ")
        self.name, given, default = named.partition("=")
        self.default: str = default if given else ""  # source text; "" if the argument is required
        self.keyword_only: bool = keyword_only
        self.nullable: bool = kind.endswith("?") or default == "None"
        bare = kind.rstrip("?")
        self.kind: str = re.sub(r"\[\d\]", "[]", bare)
        self.single: bool = (
            bare != self.kind and self.kind != "Tensor[]"
        )  # int[1]: a single int is accepted for the list

    @property
    def shown(self) -> str:
        """Name of the parameter's type as PyTorch's errors show it."""
        return SHOWN.get(self.kind, self.kind)

    def find(self, given: dict[str, object]) -> str | None:
        """Return the keyword by which ``given`` has an argument for this parameter, or None if there is none.

        ``given`` is the dictionary of a call's keyword arguments. The keyword is the parameter's name or an alternative
        name, such as ``axis`` for ``dim``.
        """
        return next((each for each in (self.name, *OTHER_NAMES.get(self.name, ())) if each in given), None)

    def takes(self, value: object, function: str) -> bool:
        """Whether the parameter accepts ``value`` in a call of ``function``.

        If the value is a list, only its first element is checked, as PyTorch does when it chooses a signature.
        """
        if value is None:
            return self.nullable or self.kind == "object"
        if self.kind == "Tensor":
            return isinstance(value, Tensor) or (function in TAKE_NUMBERS and _is_number(value))
        if self.kind.endswith("[]"):
            if isinstance(value, (tuple, list)):
                return not value or self.kind == "Tensor[]" or _element(self.kind, value[0])
            if isinstance(value, Tensor) and self.kind == "int[]" and (self.single or not self.nullable):
                return value._array.size == 1 and value._array.dtype.kind in "iub" and not value.requires_grad
            return self.single and _element(self.kind, value)
        if self.kind == "int" and self.name in SIZES:
            return _is_index(value)
        return _CHECKS[self.kind](value)

    def refuse(self, value: object, function: str, place: int) -> None:
        """Raise ElementMismatch if ``value`` is a list with an element of the wrong type.

        The error text contains ``function``, the name of the function, and ``place``, the index of the argument.
        """
        if not isinstance(value, (tuple, list)):
            return
        for index, each in enumerate(value):
            if self.kind == "Tensor[]" and not (isinstance(each, Tensor) or each is None):
                raise ElementMismatch(
                    f"expected Tensor as element {index} in argument {place}, but got {type_name(each)}"
                )
            if self.kind == "int[]" and not (_element(self.kind, each) or isinstance(each, bool)):
                raise ElementMismatch(
                    f"{function}(): argument '{self.name}' failed to unpack the object at pos {index + 1} with error "
                    f'"type must be tuple of ints,but got {type_name(each)}"'
                )


class Signature:
    """One signature of a function, parsed from a line such as ``sum(Tensor input, *, dtype dtype=None)``."""

    function: str
    hidden: bool
    shown: str

    def __init__(self, line: str) -> None:
        self.function, _, rest = line.partition("(")
        body, _, note = rest.rpartition(")")
        self.shown, self.hidden = f"({body})", note == "|deprecated"
        self.parameters: list[Parameter] = []
        only = False
        for each in filter(None, body.split(", ")):
            if each == "*":
                only = True
            else:
                self.parameters.append(Parameter(each, only))
        self.positional: int = sum(not each.keyword_only for each in self.parameters)
        first = self.parameters[0] if self.parameters else None
        #: Whether separate ints are accepted for the only parameter, a list of ints: ``x.view(2, 3)``.
        self.spread: bool = self.positional == 1 and first is not None and first.kind == "int[]"
        self.required: int = sum(not each.default for each in self.parameters)

    def check(self, args: tuple[object, ...], named: dict[str, object]) -> None:
        """Raise ArgumentMismatch, with PyTorch's text, if ``args`` and ``named`` do not fit the signature."""
        if len(args) > self.positional and not self.spread:
            raise self._too_many(len(args))
        left, place = dict(named), 0
        for index, each in enumerate(self.parameters):
            if place < len(args):
                if each.keyword_only:
                    raise self._too_many(len(args))
                passed, key = True, None
                value = args[place]
            else:
                key = each.find(left)
                passed, value = key is not None, left.pop(key) if key is not None else None
            if not passed:
                if not each.default:
                    raise self._missing(index)
                continue
            if self.spread and index == 0 and key is None and _element("int[]", value):
                each.refuse(args, self.function, index)
                place = len(args)
                continue
            if not each.takes(value, self.function):
                raise self._wrong(each, value, key, place)
            each.refuse(value, self.function, index)
            place += key is None
        if place < len(args):
            raise self._too_many(len(args))
        for key in left:
            raise self._unexpected(key)

    def kinds(self, count: int) -> list[str]:
        """Return the types of the parameters for ``count`` positional arguments."""
        found = [each.kind for each in self.parameters if not each.keyword_only]
        return ["int"] * count if self.spread and count > 1 else found[:count]

    def _too_many(self, given: int) -> ArgumentMismatch:
        plural = "" if self.positional == 1 else "s"
        takes = f"{self.positional} positional argument{plural}"
        if self.required != self.positional:
            takes = f"from {self.required} to {self.positional} positional arguments"
        return ArgumentMismatch(f"{self.function}() takes {takes} but {given} {'was' if given == 1 else 'were'} given")

    def _missing(self, index: int) -> ArgumentMismatch:
        names = [f'"{each.name}"' for each in self.parameters[index:] if not each.default]
        plural = "s" if len(names) == 1 else ""  # inverted, as in PyTorch
        return ArgumentMismatch(
            f"{self.function}() missing {len(names)} required positional argument{plural}: {', '.join(names)}"
        )

    def _wrong(self, parameter: Parameter, value: object, key: str | None, place: int) -> ArgumentMismatch:
        what = f"{self.function}(): argument '{parameter.name}'"
        if key is None:
            what += f" (position {place + 1})"
        if parameter.kind.endswith("[]") and isinstance(value, (tuple, list)) and value:
            return ArgumentMismatch(
                f"{what} must be {parameter.shown}, but found element of type {type_name(value[0])} at pos 0"
            )
        return ArgumentMismatch(f"{what} must be {parameter.shown}, not {type_name(value)}")

    def _unexpected(self, key: str) -> ArgumentMismatch:
        if any(key == each.name for each in self.parameters):
            return ArgumentMismatch(f"{self.function}() got multiple values for argument '{key}'")
        return ArgumentMismatch(f"{self.function}() got an unexpected keyword argument '{key}'")


def argument_error_text(space: str, name: str, args: tuple[object, ...], named: dict[str, object]) -> str | None:
    """Return PyTorch's error text for a call of the function ``name`` of the namespace ``space``, or None.

    ``args`` are the positional and ``named`` the keyword arguments. The result is None if the arguments fit a
    signature, or if ``signatures.txt`` has no signature of the function.

    >>> argument_error_text("torch", "exp", ("a",), {})
    "exp(): argument 'input' (position 1) must be Tensor, not str"
    """
    known = signatures(space, name)
    if not known:
        return None
    if not known[0].parameters and len(known) == 1:
        shown = f"{'TensorBase' if space == 'Tensor' else space}.{name}()"
        if named:
            return f"{shown} takes no keyword arguments"
        return f"{shown} takes no arguments ({len(args)} given)" if args else None
    if name == "nonzero" and len(known) > 1:  # the keyword as_tuple selects the signature
        known = known[1:] if "as_tuple" in named else known[:1]
    texts: dict[Signature, str] = {}
    for each in known:
        try:
            each.check(args, named)
        except ElementMismatch as error:
            return str(error)
        except ArgumentMismatch as error:
            texts[each] = str(error)
        else:
            return f"This overload of {name} is deprecated:\n\t{name}{_spaced(each)}" if each.hidden else None
    if len(known) == 1:
        return texts[known[0]]
    count = len(args) + len(named)
    plausible = [each for each in known if each.required <= count <= len(each.parameters) and not each.hidden]
    return texts[plausible[0]] if len(plausible) == 1 else _combinations(known, args, named)


@cache
def numpy_names(space: str, name: str) -> dict[str, str]:
    """Return a dictionary from NumPy's names of parameters, such as ``axis``, to those of PyTorch, such as ``dim``.

    It has the names that the function ``name`` of the namespace ``space`` accepts: those of parameters in one of its
    signatures. Functions that PyTorch implements in Python accept none.

    >>> numpy_names("torch", "cumsum")
    {'x': 'input', 'a': 'input', 'x1': 'input', 'axis': 'dim'}
    """
    parameters = [each.name for line in signatures(space, name) if not line.hidden for each in line.parameters]
    return {other: each for each in parameters for other in OTHER_NAMES.get(each, ())}


@cache
def passed_by_name(space: str, name: str) -> tuple[Signature, ...]:
    """Return the signatures of the function ``name`` of ``space`` whose arguments retrograd's function takes by name only.

    These are the deprecated signatures, such as ``add(input, alpha, other)``, and those with a positional parameter that
    is keyword-only in another signature, such as ``subtract(input, number, alpha)``.
    """
    known = signatures(space, name)
    keywords = {p.name for line in known for p in line.parameters[line.positional :]}
    return tuple(
        [line for line in known if line.hidden or any(p.name in keywords for p in line.parameters[: line.positional])]
    )


def call_by_name(
    space: str, name: str, args: tuple[object, ...], named: dict[str, object]
) -> tuple[dict[str, object], str] | None:
    """Return the arguments of a call by name, if the call fits a signature in :func:`passed_by_name`, and a warning.

    ``args`` are the positional and ``named`` the keyword arguments of a call of the function ``name`` of the namespace
    ``space``. The warning is PyTorch's about a deprecated signature, or empty. The result is None if they fit no
    such signature.

    >>> call_by_name("Tensor", "add", (2, Tensor([1.0])), {})[0]
    {'alpha': 2, 'other': tensor([1.])}
    """
    for signature in passed_by_name(space, name):
        with suppress(ArgumentMismatch):
            signature.check(args, named)
            given = {**dict(zip([each.name for each in signature.parameters], args, strict=False)), **named}
            if not signature.hidden:
                return given, ""
            usual = "\n\t".join(f"{name}{_spaced(each)}" for each in signatures(space, name) if not each.hidden)
            return given, (
                f"This overload of {name} is deprecated:\n\t{name}{_spaced(signature)}\n"
                f"Consider using one of the following signatures instead:\n\t{usual}"
            )
    return None


def fitting(space: str, name: str, args: tuple[object, ...], named: dict[str, object]) -> Signature | None:
    """Return the signature of the function ``name`` of ``space`` that the arguments of a call fit, or None.

    ``args`` are the positional and ``named`` the keyword arguments.
    """
    if argument_error_text(space, name, args, named) is None:
        for each in signatures(space, name):
            with suppress(ArgumentMismatch):
                each.check(args, named)
                return None if each.hidden else each
    return None


def overflows(space: str, name: str, args: tuple[object, ...], named: dict[str, object]) -> bool:
    """Whether an argument that the function ``name`` of ``space`` takes as an int does not fit into 64 bits.

    ``args`` are the positional and ``named`` the keyword arguments, which fit a signature.
    """
    big = [each for each in (*args, *named.values()) if isinstance(each, int) and not -(2**63) <= each < 2**63]
    line = fitting(space, name, args, named) if big else None
    if line is None:
        return False
    given = {**dict(zip([p.name for p in line.parameters], args, strict=False)), **named}
    return any(p.kind == "int" and any(given.get(p.name) is value for value in big) for p in line.parameters)


def _combinations(known: list[Signature], args: tuple[object, ...], named: dict[str, object]) -> str:
    """Return PyTorch's error text "received an invalid combination of arguments".

    The text lists the types of the arguments ``args`` and ``named``, and the signatures ``known`` of the function.
    """
    got = [type_name(each) for each in args] + [f"{key}={type_name(value)}" for key, value in reversed(named.items())]
    listed = ", ".join(got) + (", " if named and not args else "")
    shown = [_spaced(each) for each in known if not each.hidden]
    start = f"{known[0].function}() received an invalid combination of arguments - got ({listed}), but expected "
    return start + (shown[0] if len(shown) == 1 else "one of:\n * " + "\n * ".join(shown) + "\n")


def _spaced(signature: Signature) -> str:
    """Return the text of a signature as PyTorch's errors show it."""
    parts: list[str] = []
    for each in signature.shown.strip("()").split(", "):
        kind, _, named = each.rpartition(" ")
        bare = re.sub(r"\[\d\]", "[]", kind.rstrip("?"))
        parts.append(f"{SHOWN.get(bare, bare)} {named.replace('=', ' = ')}" if kind else each)
    return f"({', '.join(parts)})"


# --- signatures.txt -------------------------------------------------------------------------------------------------

#: The prefixes that PyTorch's functions of a namespace have in their own names.
PREFIXES = {"linalg": "linalg_", "fft": "fft_", "special": "special_"}


@cache
def _lines() -> dict[tuple[str, str], list[str]]:
    """Return the lines of ``signatures.txt``, as a dictionary whose keys are pairs (namespace, function name)."""
    lines: dict[tuple[str, str], list[str]] = {}
    space = ""
    with open(os.path.join(os.path.dirname(__file__), "signatures.txt"), encoding="utf-8") as file:
        text = file.read()
    for line in text.splitlines():
        if line.startswith("["):
            space = line.strip("[]")
        elif not line.startswith("#"):
            name = line.partition("(")[0]
            lines.setdefault((space, name.removeprefix(PREFIXES.get(space, ""))), []).append(line)
    return lines


@cache
def signatures(space: str, name: str) -> list[Signature]:
    """Return the signatures of the function ``name`` in the namespace ``space``, such as ``torch`` or ``Tensor``."""
    lines = _lines().get((space, name))
    if lines is None and space == "Tensor":
        lines = [_as_method(each) for each in _lines().get(("torch", name), ()) if "(Tensor input" in each]
    return [Signature(each) for each in lines or () if not each.endswith("|python")]


@cache
def numbers(space: str, name: str) -> frozenset[str]:
    """Return the names of the parameters that are numbers in a signature of the function ``name``.

    ``space`` is the namespace of the function.
    """
    parameters = [each for line in signatures(space, name) for each in line.parameters if each.kind in _NUMERIC]
    names = {each.name for each in parameters}
    return frozenset(names | {"self", "input"} if names & {"self", "input"} else names)


_NUMERIC = ("Number", "float")


def _as_method(line: str) -> str:
    """Return the signature of a method, made from ``line``, the signature of the function with the same name.

    The parameters ``input`` and ``out`` are omitted.
    """
    line = re.sub(r"\(Tensor input(, )?", "(", line)
    return re.sub(r"(, \*)?, Tensor(\[\d\])? out=None\)|\*, Tensor(\[\d\])? out=None\)", ")", line)


# --- Types ----------------------------------------------------------------------------------------------------------


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, complex, numpy.number, numpy.bool_))


def _is_int(value: object) -> bool:
    if isinstance(value, Tensor):
        return value._array.size == 1 and value._array.dtype.kind in "iu" and not value.requires_grad
    return isinstance(value, (int, numpy.integer)) and not isinstance(value, bool)


def _is_index(value: object) -> bool:
    """Whether ``value`` is an int, or an object with ``__index__``, as PyTorch accepts it for a size."""
    if isinstance(value, (int, Tensor)):
        return _is_int(value)
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _is_scalar(value: object) -> bool:
    if isinstance(value, Tensor):
        return value._array.ndim == 0 and not value.requires_grad
    return _is_number(value)


def _element(kind: str, value: object) -> bool:
    """Whether ``value`` can be an element of a list of the type ``kind``, such as "int[]" or "Tensor[]"."""
    if kind == "int[]":
        return _is_index(value)
    return isinstance(value, Tensor) if kind == "Tensor[]" else _is_scalar(value)


def _is_float(value: object) -> bool:
    return _is_scalar(value) and not isinstance(value, (complex, numpy.complexfloating))


_CHECKS: dict[str, Callable[[object], bool]] = {
    "Number": _is_scalar, "float": _is_float, "int": _is_int,
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "dtype": lambda value: isinstance(value, dtypes.dtype) or any(value is each for each in (float, int, bool, complex)),
    "layout": lambda value: isinstance(value, layout) and not isinstance(value, memory_format),
    "memory_format": lambda value: isinstance(value, memory_format),
    "device": lambda value: isinstance(value, (devices.device, str)) or _is_int(value),
    "Generator": lambda value: type(value).__name__ == "Generator",
    "object": lambda value: True, "Stream": lambda value: True, "Storage": lambda value: True,
}  # fmt: skip


def check_keywords(space: str, name: str, named: dict[str, object]) -> None:
    """Raise ArgumentMismatch if ``named`` has a keyword that no signature of the function ``name`` of ``space`` has.

    Wrappers of functions with ``**kwargs`` call this check, because such functions would accept any keyword.
    """
    known = signatures(space, name)
    for key in named if known else ():
        if not any(each.name == key for one in known for each in one.parameters):
            raise ArgumentMismatch(f"{name}() got an unexpected keyword argument '{key}'")
