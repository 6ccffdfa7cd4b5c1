"""Signatures and source code of public functions, as ``help`` and ``inspect`` show them.

The shown signature has PyTorch's parameters, and the shown source is that of the kernel. Generated functions also have
parameters such as ``*rest``, and defaults such as ``MISSING``. These serve only error messages and are not shown.
Therefore the ``__wrapped__`` of each function is a ``DeclaredSignature`` or a ``RecordedSignature``, which creates the
shown signature when ``inspect`` reads it.
"""

from __future__ import annotations

import ast
import keyword
import re
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any

from ..compat.annotations import unquote_annotations
from ..runtime.codegen import parse_expression
from . import signatures

if TYPE_CHECKING:
    from inspect import _ParameterKind

    from ..core.typing import Function
    from .op import Op


class DeclaredSignature:
    """Signature of a function of the operation ``op``, stored as the function's ``__wrapped__``.

    ``form`` is "function", "method" or "in place".

    >>> import inspect
    >>> import retrograd as torch
    >>> inspect.signature(torch.add), inspect.signature(torch.ones(1).add_)
    (<Signature (input, other, *, alpha=1, out=None)>, <Signature (other, *, alpha=1)>)
    >>> print(inspect.getsource(torch.tanh))
    @pointwise(...)
    def tanh(np: Any, self: Any, /) -> Any:
    ...
    """

    __slots__ = ("form", "op")

    def __init__(self, op: Op, form: str) -> None:
        self.op, self.form = op, form

    @property
    def __signature__(self) -> Signature:
        """Signature with the parameters of PyTorch's function."""
        op, first = self.op, "input" if self.form == "function" else "self"
        free = [*op.tensors, *op.params[: op.positional]]
        kinds: dict[str, _ParameterKind] = dict.fromkeys(op.tensors + op.params, Parameter.KEYWORD_ONLY)
        kinds |= dict.fromkeys(free, Parameter.POSITIONAL_OR_KEYWORD)
        given = dict(op.defaults)
        if self.form == "function" and not op.several and op.kind != "view":
            kinds["out"], given["out"] = Parameter.KEYWORD_ONLY, None
        return Signature(
            [
                Parameter(first if name == "self" else name, kind, default=given.get(name, Parameter.empty))
                for name, kind in kinds.items()
            ]
        )

    @property
    def __wrapped__(self) -> Function:
        """Kernel of the operation; ``inspect.getsource`` then shows the kernel's declaration."""
        return self.op.kernel


class RecordedSignature:
    """Signature of a function with ``*args`` or ``**kwargs``, stored as the function's ``__wrapped__``.

    The signature is the longest one that PyTorch's errors list for the function ``name`` of the namespace ``space``.

    >>> import inspect
    >>> import retrograd as torch
    >>> inspect.signature(torch.cat), inspect.signature(torch.Tensor.expand)
    (<Signature (tensors, dim=0, *, out=None)>, <Signature (self, *size, implicit=False)>)
    """

    __slots__ = ("__wrapped__", "name", "space")

    def __init__(self, target: Function, space: str, name: str) -> None:
        self.__wrapped__, self.space, self.name = target, space, name

    @property
    def __signature__(self) -> Signature:
        """Longest signature in PyTorch's errors; if these list none, the signature of the Python function.

        The first parameter of a method is ``self``.
        """
        known = [each for each in signatures.signatures(self.space, self.name) if not each.hidden]
        if not known:
            written = signature(unquote_annotations(self.__wrapped__))
            first, *others = written.parameters.values()
            method = self.space == "Tensor" and first.name == "input"
            return written.replace(parameters=[first.replace(name="self"), *others]) if method else written
        longest = max(known, key=lambda each: (len(each.parameters), each.spread))
        parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)] if self.space == "Tensor" else []
        for index, each in enumerate(longest.parameters):
            kind: Any = Parameter.KEYWORD_ONLY if each.keyword_only else Parameter.POSITIONAL_OR_KEYWORD
            default = _default(each, index >= _needed(longest, known))
            if longest.spread and not each.keyword_only:
                kind, default = Parameter.VAR_POSITIONAL, Parameter.empty
            parameters.append(Parameter(each.name + "_" * keyword.iskeyword(each.name), kind, default=default))
        return Signature(parameters)


def _needed(longest: signatures.Signature, known: list[signatures.Signature]) -> int:
    """Return the number of parameters of the signature ``longest`` that are shown without a default value.

    ``known`` are all signatures of the function. A parameter is shown with a default if a shorter signature does not
    require it. Therefore the result is the smallest number of required parameters of a signature, among those whose
    required parameters are the first parameters of ``longest``.
    """
    names = [each.name for each in longest.parameters]
    starts = [[each.name for each in one.parameters if not each.default] for one in known]
    return min(len(start) for start in starts if start == names[: len(start)])


_WORDS = {"self": re.compile(r"\bself\b"), "input": re.compile(r"\binput\b")}


def with_first_parameter(doc: str | None, written: str, shown: str) -> str | None:
    """Return the docstring ``doc`` with the name ``shown`` of the first parameter where it says ``written``.

    A function and a method have the same docstring, but their first parameters are called ``input`` and ``self``. The
    word ``written``, one of these names, is replaced only between double backquotes. This runs on import for each public
    function: a docstring without the word costs one search.

    >>> with_first_parameter("Write ``log(1 + self)`` for ``self``, by itself.", "self", "input")
    'Write ``log(1 + input)`` for ``input``, by itself.'
    """
    if doc is None or written not in doc:
        return doc
    parts = doc.split("``")
    parts[1::2] = [_WORDS[written].sub(shown, each) if written in each else each for each in parts[1::2]]
    return "``".join(parts)


class _AsWritten:
    """Default value in a displayed signature, whose repr is PyTorch's text, for example ``contiguous_format``."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _default(parameter: signatures.Parameter, optional: bool) -> object:
    """Return the default value of ``parameter`` that ``inspect.signature`` shows.

    It is the value in ``signatures.txt``. If the file has none, the result is None for a keyword-only parameter, or if
    ``optional`` is true. Otherwise it is ``inspect.Parameter.empty``, which means that the parameter is required.
    """
    if not parameter.default:
        return None if optional or parameter.keyword_only else Parameter.empty
    try:
        return ast.literal_eval(parse_expression(parameter.default))
    except (ValueError, SyntaxError):
        return _AsWritten(parameter.default.rpartition("::")[2])
